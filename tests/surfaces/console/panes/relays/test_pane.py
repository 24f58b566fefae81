"""The relays pane through its keys."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.codec import to_builtins
from relaydesk.core.commands import BlockOperator, ForgetOperator, Outcome, ProbeRelays, TrustOperator
from relaydesk.core.text import safe_text
from relaydesk.core.view.network import HopsView, NetworkView, RelaysView
from relaydesk.surfaces.console.ask import Confirm
from relaydesk.surfaces.console.panes.relays.pane import RelaysPane, probed
from tests.surfaces.console.panes.network_scenes import hops, owner, ref, relays, sections
from tests.surfaces.console.stage import NOW_MS, Desk, console, refreshed, settled, until


def _in_network(desk: Desk) -> None:
    desk.values |= sections(NOW_MS)


async def test_time_counts_down_while_it_is_looked_at(desk: Desk) -> None:
    _in_network(desk)
    async with console(desk, (120, 36)) as (app, pilot):
        await pilot.press("7", "slash", *"demoted", "enter")
        assert "7:47 left" in await settled(app, pilot)
        desk.clock.advance(60)
        assert app.pane is not None
        app.pane.tick(NOW_MS + 60_000)
        text = await settled(app, pilot)
        assert "6:47 left" in text
        assert "6 min: 502" in text


async def test_trouble_alone_and_an_end_to_it(desk: Desk) -> None:
    _in_network(desk)
    async with console(desk) as (app, pilot):
        await pilot.press("7", "e")
        text = await settled(app, pilot)
        assert "Only what wants a look, 11 nodes left out: esc shows all." in " ".join(text.split())
        await pilot.press("escape")
        assert "Only what wants a look" not in await settled(app, pilot)
        assert isinstance(app.pane, RelaysPane)
        assert app.pane.table is not None
        assert len(app.pane.table.view) == 21


async def test_the_whole_id_is_copied(desk: Desk) -> None:
    _in_network(desk)
    async with console(desk) as (app, pilot):
        await pilot.press("7", "down", "c")
        await pilot.pause()
        assert app.clipboard == ref("ivan")


async def test_probes_of_one_and_of_all(desk: Desk) -> None:
    _in_network(desk)
    probes = [to_builtins(each) for each in hops(NOW_MS).hops[3:7]]
    desk.answer(ProbeRelays, Outcome(ok=True, value={"probes": probes}))
    async with console(desk) as (app, pilot):
        # This node is not asked about itself.
        await pilot.press("7", "r")
        assert "that is this node itself" in await settled(app, pilot)
        assert desk.sent == []
        await pilot.press("escape", "down", "r")
        await until(pilot, lambda: len(desk.sent) == 1)
        await pilot.press("R")
        await until(pilot, lambda: len(desk.sent) == 2)
        assert desk.sent == [ProbeRelays(ref=ref("ivan")), ProbeRelays()]
        assert "probe all: 2 of 4 answered, 1 time a relay was charged" in await settled(app, pilot)


@pytest.mark.parametrize(("key", "kind"), [("T", TrustOperator), ("B", BlockOperator), ("F", ForgetOperator)])
async def test_an_operator_is_decided_about_by_its_owner_and_never_unasked(
    desk: Desk, key: str, kind: type[BlockOperator]
) -> None:
    _in_network(desk)
    desk.answer(kind, Outcome(ok=True, value={}))
    async with console(desk) as (app, pilot):
        await pilot.press("7", "down", key)
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        text = "".join((await settled(app, pilot)).split())
        assert owner("ivan") in text
        assert desk.sent == []
        await pilot.press("y")
        await until(pilot, lambda: bool(desk.sent))
        assert desk.sent == [kind(owner=owner("ivan"))]


async def test_off_says_how_to_turn_it_on_and_nothing_can_be_sent(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("7", "R")
        text = " ".join((await settled(app, pilot)).split())
        assert "This node takes no part in the relay network." in text
        assert "set RELAY_NETWORK=on and RELAY_DIRECTORIES, then restart the node" in text
        assert "the network is off" in text


async def test_on_and_alone_it_says_what_is_missing(desk: Desk) -> None:
    alone = NetworkView(on=True, proto_version="9.10", problem=safe_text("port 8384 is taken"))
    desk.values |= {"network": alone, "relays": RelaysView(), "hops": HopsView()}
    async with console(desk, (120, 36)) as (app, pilot):
        await pilot.press("7")
        text = await settled(app, pilot)
        assert "✗ not up" in text
        assert "✗ port 8384 is taken." in text
        assert "No directory is pinned: set RELAY_DIRECTORIES" in text
        # It comes up, and others are seen.
        desk.set(**sections(NOW_MS))
        await refreshed(app, pilot)
        text = await settled(app, pilot)
        assert "● published" in text
        assert "12 reachable" in text


def test_what_came_of_probes() -> None:
    one, *_ = hops(NOW_MS).hops[4:]
    assert probed(Outcome(ok=True, value={"probes": [to_builtins(one)]})).startswith("200 through ")
    assert "nobody could be asked" in probed(Outcome(ok=True, value={"probes": []}))
    assert probed(Outcome(ok=True, value={"probes": 3})) == "done"


async def test_a_relay_that_is_gone_leaves_no_card(desk: Desk) -> None:
    _in_network(desk)
    async with console(desk, (120, 36)) as (app, pilot):
        await pilot.press("7", "end")
        assert ref("grace", 2) in await settled(app, pilot)
        left = tuple(each for each in relays(NOW_MS).relays if each.ref != ref("grace", 2))
        desk.set(relays=msgspec.structs.replace(relays(NOW_MS), relays=left))
        await refreshed(app, pilot)
        assert ref("grace", 2) not in await settled(app, pilot)
