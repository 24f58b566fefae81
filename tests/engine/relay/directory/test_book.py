from __future__ import annotations

from pathlib import Path
from typing import Any

from relaydesk.core.relay.directory.document import Document, open_document
from relaydesk.core.relay.ref import NodeRef
from tests.support.directory_rig import side
from tests.support.directory_world import ANN, BOB, EVE, KEEPER, NOW, OTHER, Key, document, record

ANN_0, EVE_0 = NodeRef(ANN.operator, 0), NodeRef(EVE.operator, 0)


def opened(keeper: Key = KEEPER, **changes: Any) -> Document:
    return open_document(document(keeper, **changes), keeper.address, NOW)


async def test_it_lists_and_finds_the_admitted_only(tmp_path: Path) -> None:
    async with side(tmp_path) as here:
        assert here.book.nodes() == ()
        await here.book.update([opened(admits=(ANN,), records=[record(ANN), record(EVE)])])
        (listed,) = here.book.nodes()
        assert listed == here.book.find(ANN_0)
        assert (listed.ref, listed.owner) == (ANN_0, ANN.address)
        assert here.book.find(EVE_0) is None
        assert {each.standing for each in here.book.entries()} == {"admitted", "unknown"}
        assert here.changes == ["changed"]
        await here.book.update([opened(admits=(ANN,), records=[record(ANN), record(EVE)])])
        assert here.changes == ["changed"]


async def test_entries_end_by_themselves(tmp_path: Path) -> None:
    async with side(tmp_path) as here:
        await here.book.update([opened()])
        here.clock.advance(3599)
        assert len(here.book.nodes()) == 2
        assert here.book.find(ANN_0) is not None
        here.clock.advance(1)
        assert here.book.nodes() == ()
        assert here.book.find(ANN_0) is None


async def test_choices_hold_across_restarts(tmp_path: Path) -> None:
    shown = opened(admits=(ANN, BOB), records=[record(ANN), record(BOB), record(EVE)])
    async with side(tmp_path) as here:
        await here.book.update([shown])
        await here.book.choose(EVE.address, "trusted")
        await here.book.choose(BOB.address, "blocked")
        assert {each.owner for each in here.book.nodes()} == {ANN.address, EVE.address}
    async with side(tmp_path) as here:
        await here.book.update([shown])
        assert {each.owner for each in here.book.nodes()} == {ANN.address, EVE.address}
        assert await here.book.forget(EVE.address)
        assert await here.book.forget(BOB.address)
        assert not await here.book.forget(EVE.address)
        assert {each.owner for each in here.book.nodes()} == {ANN.address, BOB.address}


async def test_an_older_record_is_refused_after_a_restart(tmp_path: Path) -> None:
    async with side(tmp_path) as here:
        await here.book.update([opened(records=[record(ANN, version=5)])])
        assert here.book.find(ANN_0) is not None
    async with side(tmp_path) as here:
        await here.book.update([opened(records=[record(ANN, version=4)])])
        assert here.book.find(ANN_0) is None
        assert "older" in here.book.entries()[0].why


async def test_a_clash_is_an_alert_until_it_is_over(tmp_path: Path) -> None:
    mine, other = record(ANN), record(ANN, base_url="https://elsewhere.example.org")
    async with side(tmp_path) as here:
        await here.book.update([opened(records=[mine])])
        await here.book.update([opened(records=[mine]), opened(OTHER, records=[other])])
        assert "directory_clash" in here.standing_alerts()
        assert here.book.nodes()[0].base_url == "https://ann0.example.org"
        await here.book.update([opened(records=[mine])])
        assert here.standing_alerts() == {}
