"""The ledger pane through its keys."""

from __future__ import annotations

import msgspec

from relaydesk.core.commands import IssueCredit, Outcome, RedeemCredit, ResolveDispute
from relaydesk.core.view.ledger import LedgerView
from relaydesk.core.view.network import NetworkView
from relaydesk.surfaces.console.ask import Confirm, Prompt
from relaydesk.surfaces.console.panes.keys.reveal import Reveal
from tests.surfaces.console.panes.ledger_scenes import address, ledger, transaction
from tests.surfaces.console.panes.network_scenes import sections
from tests.surfaces.console.stage import NOW_MS, Desk, console, refreshed, settled, until

CODE = "rdv1.12.1." + "a2" * 16


async def test_lists_are_gone_through_and_keep_their_place(desk: Desk) -> None:
    desk.values |= sections(NOW_MS)
    async with console(desk, (120, 36)) as (app, pilot):
        await pilot.press("9", "down")
        assert "144 rows, signed and chained" in await settled(app, pilot)
        await pilot.press("c")
        await pilot.pause()
        assert app.clipboard == address("ben")
        await pilot.press("v")
        assert "PAYER" in await settled(app, pilot)
        await pilot.press("V")
        assert app.pane is not None
        assert app.pane.subject() == address("ben")
        await pilot.press("V")
        assert "TO TELL" in await settled(app, pilot)
        # The last is followed by the first.
        await pilot.press("v")
        assert app.pane.subject() == address("ben")
        app.action_run("ledger.disputes")
        await pilot.press("c")
        await pilot.pause()
        assert app.clipboard == transaction("d1")


async def test_it_begins_with_a_list_that_holds_something_and_stays_where_it_was_led(desk: Desk) -> None:
    desk.values |= sections(NOW_MS)
    payer = msgspec.structs.replace(LedgerView(), credit=ledger(NOW_MS).credit)
    desk.values["ledger"] = payer
    async with console(desk) as (app, pilot):
        await pilot.press("9")
        assert "TO TELL" in await settled(app, pilot)
        await pilot.press("v")
        assert "ACCOUNT" in await settled(app, pilot)
        desk.set(ledger=msgspec.structs.replace(payer, issued=1))
        await refreshed(app, pilot)
        assert "ACCOUNT" in await settled(app, pilot)


async def test_a_click_on_a_name_opens_its_list_and_closes_the_card(desk: Desk) -> None:
    desk.values |= sections(NOW_MS)
    async with console(desk) as (app, pilot):
        await pilot.press("9", "enter")
        text = await settled(app, pilot)
        assert "signed and chained" in text
        line = next(at for at, row in enumerate(text.splitlines()) if "Accounts 6" in row)
        await pilot.click(offset=(text.splitlines()[line].index("Earnings") + 2, line))
        text = await settled(app, pilot)
        assert "PAID BACK" in text
        assert "signed and chained" not in text


async def test_a_deadline_counts_down_while_it_is_looked_at(desk: Desk) -> None:
    desk.values |= sections(NOW_MS)
    async with console(desk, (120, 36)) as (app, pilot):
        await pilot.press("9", "v")
        assert "◐ open  11:56 left" in await settled(app, pilot)
        desk.clock.advance(60)
        assert app.pane is not None
        app.pane.tick(NOW_MS + 60_000)
        text = await settled(app, pilot)
        assert "◐ open  10:56 left" in text
        assert text.count("10:56") == 2


async def test_a_voucher_is_made_and_its_code_is_on_the_screen_once(desk: Desk) -> None:
    desk.values |= sections(NOW_MS)
    desk.answer(IssueCredit, Outcome(ok=True, value={"code": CODE, "amount": 5_000_000, "expires_ms": 0}))
    async with console(desk) as (app, pilot):
        await pilot.press("9", "a")
        await until(pilot, lambda: isinstance(app.screen, Prompt))
        await pilot.press(*"5M", "tab", "tab", *"gus")
        assert "relaydesk ledger credit 5000000 --note gus" in " ".join((await settled(app, pilot)).split())
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Reveal))
        assert desk.sent == [IssueCredit(amount=5_000_000, expires_ms=0, note="gus")]
        text = await settled(app, pilot)
        assert CODE in text
        assert "A voucher of 5,000,000 microunits" in text
        await pilot.press("escape")
        assert "a2a2" not in await settled(app, pilot)


async def test_a_code_that_is_none_is_asked_for_again_and_never_sent(desk: Desk) -> None:
    desk.values |= sections(NOW_MS)
    value = {"operator": 12, "node": 1, "payer": "X", "state": "redeemed", "amount": 5_000}
    desk.answer(RedeemCredit, Outcome(ok=True, value=value))
    async with console(desk) as (app, pilot):
        await pilot.press("9", "r")
        await until(pilot, lambda: isinstance(app.screen, Prompt))
        await pilot.press(*"rdv1.no", "enter")
        assert "that is no voucher code" in await settled(app, pilot)
        assert desk.sent == []
        await pilot.press("ctrl+u", *CODE, "enter")
        await until(pilot, lambda: bool(desk.sent))
        assert desk.sent == [RedeemCredit(code=CODE)]
        text = " ".join((await settled(app, pilot)).split())
        assert "12:1 credited 5,000 microunits" in text
        assert "a2a2" not in text


async def test_a_dispute_is_ended_at_the_receipt_at_most_and_never_unasked(desk: Desk) -> None:
    desk.values |= sections(NOW_MS)
    outcome = Outcome(ok=True, value={"tx_id": transaction("d1"), "earned": 22_005, "refunded": 39_435})
    desk.answer(ResolveDispute, outcome)
    async with console(desk) as (app, pilot):
        await pilot.press("9", "d")
        assert "no dispute is selected" in await settled(app, pilot)
        await pilot.press("escape", "v", "v", "d")
        await until(pilot, lambda: isinstance(app.screen, Prompt))
        assert "at most 48,210 is earned" in " ".join((await settled(app, pilot)).split())
        await pilot.press("ctrl+u", *"48211", "enter")
        await until(pilot, lambda: isinstance(app.screen, Prompt))
        assert "48,211 microunits is not 0 to 48,210" in " ".join((await settled(app, pilot)).split())
        await pilot.press("ctrl+u", *"22005", "enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert desk.sent == []
        assert "is final" in await settled(app, pilot)
        await pilot.press("y")
        await until(pilot, lambda: bool(desk.sent))
        assert desk.sent == [ResolveDispute(tx_id=transaction("d1"), amount=22_005)]
        assert "22,005 earned, 39,435 went back" in " ".join((await settled(app, pilot)).split())


async def test_off_says_how_to_turn_it_on_and_nothing_can_be_sent(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("9", "a")
        text = " ".join((await settled(app, pilot)).split())
        assert "This node takes no part in the relay network, so it keeps no books." in text
        assert "the network is off" in text
        desk.set(network=NetworkView(on=True))
        await refreshed(app, pilot)
        assert "Nobody has credit here yet" in await settled(app, pilot)


async def test_a_ticket_that_has_ended_leaves_no_card(desk: Desk) -> None:
    desk.values |= sections(NOW_MS)
    async with console(desk, (120, 36)) as (app, pilot):
        await pilot.press("9", "v", "end")
        assert "nobody signed for it" in " ".join((await settled(app, pilot)).split())
        left = msgspec.structs.replace(ledger(NOW_MS), open_tickets=())
        desk.set(ledger=left)
        await refreshed(app, pilot)
        text = await settled(app, pilot)
        assert "No ticket is open" in text
        assert "nobody signed" not in text
