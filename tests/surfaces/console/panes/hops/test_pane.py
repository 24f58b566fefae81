"""The hops pane through its keys."""

from __future__ import annotations

import msgspec

from relaydesk.core.commands import Outcome, ProbeRelays
from relaydesk.core.view.network import HopsView, NetworkView
from tests.surfaces.console.panes.network_scenes import hops, sections
from tests.surfaces.console.stage import NOW_MS, Desk, console, refreshed, settled, until


async def test_the_card_follows_what_is_found_out_later(desk: Desk) -> None:
    desk.values |= sections(NOW_MS)
    async with console(desk, (120, 36)) as (app, pilot):
        await pilot.press("8", "end")
        assert "Nobody was charged." in await settled(app, pilot)
        *newer, last = hops(NOW_MS).hops
        refuted = msgspec.structs.replace(last, charged="relay", rule="claim_refuted")
        desk.set(hops=HopsView((*newer, refuted)))
        await refreshed(app, pilot)
        text = await settled(app, pilot)
        assert "was charged." in text
        assert "rule       claim_refuted" in text


async def test_failures_alone_and_an_end_to_them(desk: Desk) -> None:
    desk.values |= sections(NOW_MS)
    async with console(desk) as (app, pilot):
        await pilot.press("8", "e")
        text = await settled(app, pilot)
        assert "Only what brought no answer, 5 left out: esc shows all." in text
        assert "● 200" not in text
        await pilot.press("escape")
        assert "● 200" in await settled(app, pilot)
        await pilot.press("c")
        await pilot.pause()
        assert app.clipboard == hops(NOW_MS).hops[2].id


async def test_nothing_yet_is_not_off(desk: Desk) -> None:
    desk.answer(ProbeRelays, Outcome(ok=True, value={"probes": []}))
    async with console(desk) as (app, pilot):
        await pilot.press("8")
        assert "This node takes no part in the relay network." in await settled(app, pilot)
        desk.set(network=NetworkView(on=True))
        await refreshed(app, pilot)
        assert "Nothing was asked through a relay yet." in await settled(app, pilot)
        await pilot.press("r")
        await until(pilot, lambda: bool(desk.sent))
        assert "nobody could be asked" in " ".join((await settled(app, pilot)).split())
