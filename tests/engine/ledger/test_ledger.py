"""The target's ledger: who pays what, and that nothing is booked twice."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from relaydesk.core.events import Event, LedgerChanged
from relaydesk.core.ledger.extensions import LedgerNote, Settled
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.statement import fault_in
from relaydesk.core.ledger.terms import Policy
from relaydesk.engine.ledger.ledger import Ledger
from tests.support.ledger_rig import (
    ANN,
    BOB,
    REF,
    VALUES,
    LedgerRig,
    claim_request,
    open_request,
    protest_request,
)


async def refused(call: object, code: str) -> None:
    with pytest.raises(LedgerRefusal) as caught:
        await call  # type: ignore[misc]
    assert caught.value.code == code


async def amounts(ledger: Ledger, payer: str = ANN.address) -> tuple[int, int, int]:
    totals = await ledger.totals()
    assert totals.issued == totals.balance + totals.held + totals.earned + totals.fees
    return (*await ledger.balance(payer), totals.earned)


async def test_two_equal_claims_settle(rig: LedgerRig) -> None:
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 1000)
    tx_id, terms = await rig.open(ledger, ANN, 100)
    assert await amounts(ledger) == (900, 100, 0)
    assert (await ledger.receipt(tx_id, VALUES)).state == "open"
    claim = claim_request(tx_id, terms.ticket_id, VALUES, ANN)
    assert (await ledger.settle(claim)).state == "settled"
    assert await amounts(ledger) == (960, 0, 40)
    # The same again is answered and changes nothing.
    assert (await ledger.settle(claim)).state == "settled"
    assert (await ledger.receipt(tx_id, VALUES)).state == "settled"
    assert await amounts(ledger) == (960, 0, 40)
    statement = await ledger.statement(ANN.address)
    assert fault_in(statement) == ""
    assert [row.kind for row in statement.rows] == ["redeem", "open", "receipt", "claim", "claim", "settle"]


async def test_the_payers_claim_may_come_first(rig: LedgerRig) -> None:
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 100)
    tx_id, terms = await rig.open(ledger, ANN)
    claim = claim_request(tx_id, terms.ticket_id, VALUES, ANN)
    assert (await ledger.settle(claim)).state == "pending_settle"
    assert (await ledger.receipt(tx_id, VALUES)).state == "settled"
    assert await amounts(ledger) == (60, 0, 40)


async def test_differing_claims_freeze_and_the_operator_resolves(rig: LedgerRig) -> None:
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 100)
    tx_id, terms = await rig.open(ledger, ANN)
    await ledger.receipt(tx_id, VALUES)
    less = msgspec.structs.replace(VALUES, amount=1)
    claim = claim_request(tx_id, terms.ticket_id, less, ANN)
    assert (await ledger.settle(claim)).state == "frozen"
    other = claim_request(tx_id, terms.ticket_id, VALUES, ANN)
    await refused(ledger.settle(other), "claim_differs")
    rig.clock.advance(10_000)
    await ledger.due()
    assert await amounts(ledger) == (0, 100, 0)
    await refused(ledger.resolve(tx_id, 41), "over_price")
    assert (await ledger.resolve(tx_id, 15)).state == "resolved"
    assert await amounts(ledger) == (85, 0, 15)
    await refused(ledger.resolve(tx_id, 15), "not_frozen")
    assert fault_in(await ledger.statement(ANN.address)) == ""


@pytest.mark.parametrize(
    "field",
    [
        "receipt_digest",
        "ttft_ms",
        "decode_ms",
        "input_count",
        "output_count",
        "input_usage_type",
        "output_usage_type",
        "aux_output_usage_type",
    ],
)
async def test_every_one_of_the_values_counts(rig: LedgerRig, field: str) -> None:
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 100)
    tx_id, terms = await rig.open(ledger, ANN)
    await ledger.receipt(tx_id, VALUES)
    changed = "00" * 32 if field == "receipt_digest" else getattr(VALUES, field) + 1
    values = msgspec.structs.replace(VALUES, **{field: changed})
    assert (await ledger.settle(claim_request(tx_id, terms.ticket_id, values, ANN))).state == "frozen"


async def test_a_silent_payer_pays_at_the_deadline(rig: LedgerRig) -> None:
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 100)
    tx_id, _ = await rig.open(ledger, ANN)
    await ledger.receipt(tx_id, VALUES)
    rig.clock.advance(29)
    await ledger.due()
    assert (await ledger.ticket(tx_id)).state == "open"  # type: ignore[union-attr]
    rig.clock.advance(1)
    await ledger.due()
    assert (await ledger.ticket(tx_id)).state == "pending_settle"  # type: ignore[union-attr]
    await refused(ledger.lapse(tx_id), "too_early")
    rig.clock.advance(300 + 600 - 31)
    await ledger.due()
    assert await amounts(ledger) == (0, 100, 0)
    rig.clock.advance(1)
    await ledger.due()
    assert (await ledger.ticket(tx_id)).state == "lapsed"  # type: ignore[union-attr]
    assert await amounts(ledger) == (60, 0, 40)
    assert fault_in(await ledger.statement(ANN.address)) == ""


@pytest.mark.parametrize("payer_claims", [False, True])
async def test_without_the_nodes_claim_the_payer_is_paid_back(rig: LedgerRig, payer_claims: bool) -> None:
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 100)
    tx_id, terms = await rig.open(ledger, ANN)
    if payer_claims:
        await ledger.settle(claim_request(tx_id, terms.ticket_id, VALUES, ANN))
    rig.clock.advance(900)
    await ledger.due()
    assert (await ledger.ticket(tx_id)).state == "refunded"  # type: ignore[union-attr]
    assert await amounts(ledger) == (100, 0, 0)
    await refused(ledger.receipt(tx_id, VALUES), "ended")


async def test_a_protest_freezes(rig: LedgerRig) -> None:
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 100)
    tx_id, terms = await rig.open(ledger, ANN)
    await ledger.receipt(tx_id, VALUES)
    protest = protest_request(tx_id, terms.ticket_id, ANN)
    assert (await ledger.protest(protest)).state == "frozen"
    assert (await ledger.protest(protest)).state == "frozen"
    await refused(ledger.protest(protest_request(tx_id, terms.ticket_id, ANN, "ef" * 32)), "frozen")
    await refused(ledger.settle(claim_request(tx_id, terms.ticket_id, VALUES, ANN)), "frozen")
    await ledger.refresh()
    (dispute,) = ledger.view().disputes
    assert (dispute.tx_id, dispute.disputed_by, dispute.claimed) == (tx_id, "protest", 40)
    assert fault_in(await ledger.statement(ANN.address)) == ""


async def test_a_ticket_without_any_extension_ends(rig: LedgerRig) -> None:
    """A client that knows nothing of ours sends a transaction of its own kind, or none, at price 0."""
    ledger = await rig.start()
    for answered in (True, False):
        terms = rig.terms(ANN, max_price=0)
        ticket = await ledger.open_(terms, None, "whatever")
        if answered:
            await ledger.receipt(ticket.tx_id, msgspec.structs.replace(VALUES, amount=0))
        rig.clock.advance(900)
        await ledger.due()
        ended = await ledger.ticket(ticket.tx_id)
        assert ended is not None
        assert ended.state == ("lapsed" if answered else "refunded")
        assert ended.payer == ""
    assert await ledger.forget_free() == 0
    rig.clock.advance(31 * 86_400)
    assert await ledger.forget_free() == 2
    await refused(ledger.open_(rig.terms(ANN, max_price=1), None, ""), "unsigned")


async def test_a_ticket_that_came_to_nothing_is_forgotten_and_the_books_agree(rig: LedgerRig) -> None:
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 300)
    nothing = msgspec.structs.replace(VALUES, amount=0)
    ids = []
    for values in (VALUES, nothing, None):
        tx_id, terms = await rig.open(ledger, ANN)
        ids.append(tx_id)
        if values is not None:
            await ledger.receipt(tx_id, values)
            await ledger.settle(claim_request(tx_id, terms.ticket_id, values, ANN))
    live, terms = await rig.open(ledger, ANN)
    await ledger.protest(protest_request(live, terms.ticket_id, ANN))
    rig.clock.advance(900)
    await ledger.due()
    assert await ledger.forget_free() == 0
    rig.clock.advance(31 * 86_400)
    assert await ledger.forget_free() == 2
    found = [await ledger.ticket(each) is not None for each in (*ids, live)]
    assert found == [True, False, False, True]
    assert fault_in(await ledger.statement(ANN.address)) == ""
    # A start adds everything up again.
    assert await amounts(await rig.start()) == (160, 100, 40)


async def test_price_0_with_a_record(rig: LedgerRig) -> None:
    ledger = await rig.start()
    tx_id, terms = await rig.open(ledger, ANN, 0)
    free = msgspec.structs.replace(VALUES, amount=0)
    await ledger.receipt(tx_id, free)
    assert (await ledger.settle(claim_request(tx_id, terms.ticket_id, free, ANN))).state == "settled"
    assert await amounts(ledger) == (0, 0, 0)


async def test_what_cannot_be_opened(rig: LedgerRig) -> None:
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 150)
    tx_id, terms = await rig.open(ledger, ANN, 100)
    request, _ = open_request(terms, ANN)
    await refused(ledger.open_(terms, request, tx_id), "replayed")
    again = msgspec.structs.replace(terms, max_price=1)
    request, other = open_request(again, ANN)
    await refused(ledger.open_(again, request, other), "ticket_opened")
    terms = rig.terms(ANN, 51)
    request, tx_id = open_request(terms, ANN)
    await refused(ledger.open_(terms, request, tx_id), "not_enough_credit")
    terms = rig.terms(ANN, 50)
    request, tx_id = open_request(terms, BOB)
    await refused(ledger.open_(terms, request, tx_id), "bad_signature")
    request, tx_id = open_request(terms, ANN, REF._replace(node=3))
    await refused(ledger.open_(terms, request, tx_id), "terms_differ")
    request, _ = open_request(terms, ANN)
    await refused(ledger.open_(terms, request, "A" * 52), "terms_differ")
    for changed in ({"max_price": 49}, {"expires_at": terms.expires_at + 1}, {"payer": BOB.address}):
        request, tx_id = open_request(msgspec.structs.replace(terms, **changed), ANN)
        await refused(ledger.open_(terms, request, tx_id), "terms_differ")
    for life in (-600, 3601):
        late = rig.terms(ANN, 10, life)
        request, tx_id = open_request(late, ANN)
        await refused(ledger.open_(late, request, tx_id), "expired")
    assert await amounts(ledger) == (50, 100, 0)


async def test_claims_that_are_refused(rig: LedgerRig) -> None:
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 200)
    tx_id, terms = await rig.open(ledger, ANN)
    other, other_terms = await rig.open(ledger, ANN)
    await refused(ledger.settle(claim_request(tx_id, terms.ticket_id, VALUES, BOB)), "bad_signature")
    await refused(ledger.settle(claim_request(tx_id, other_terms.ticket_id, VALUES, ANN)), "other_ticket")
    await refused(ledger.settle(claim_request("A" * 52, terms.ticket_id, VALUES, ANN)), "unknown_ticket")
    dear = msgspec.structs.replace(VALUES, amount=101)
    await refused(ledger.settle(claim_request(tx_id, terms.ticket_id, dear, ANN)), "over_price")
    await refused(ledger.receipt(tx_id, dear), "over_price")
    await ledger.receipt(other, VALUES)
    await refused(ledger.receipt(other, msgspec.structs.replace(VALUES, amount=39)), "claim_differs")
    forged = msgspec.structs.replace(claim_request(other, other_terms.ticket_id, VALUES, ANN), amount=0)
    await refused(ledger.settle(forged), "bad_signature")
    assert await amounts(ledger) == (0, 200, 0)


async def test_the_fee_is_on_top_and_fixed_when_opened(rig: LedgerRig) -> None:
    rig.policy = lambda: Policy(fee_bps=1000)
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 110)
    tx_id, terms = await rig.open(ledger, ANN, 110)
    rig.policy = lambda: Policy(fee_bps=2000)
    values = msgspec.structs.replace(VALUES, amount=101)
    await refused(ledger.receipt(tx_id, values), "over_price")
    values = msgspec.structs.replace(VALUES, amount=99)
    await ledger.receipt(tx_id, values)
    await ledger.settle(claim_request(tx_id, terms.ticket_id, values, ANN))
    assert await amounts(ledger) == (2, 0, 99)
    assert (await ledger.totals()).fees == 9
    assert fault_in(await ledger.statement(ANN.address)) == ""


async def test_what_a_reserve_brings_never_fails_it(rig: LedgerRig) -> None:
    ledger = await rig.start()
    code = await ledger.issue(500)
    assert await ledger.note(ANN.address, code) == LedgerNote(500, 0, 500)
    tx_id, terms = await rig.open(ledger, ANN)
    await ledger.receipt(tx_id, VALUES)
    good = claim_request(tx_id, terms.ticket_id, VALUES, ANN)
    bad = claim_request(tx_id, terms.ticket_id, VALUES, BOB)
    unknown = claim_request("B" * 52, terms.ticket_id, VALUES, ANN)
    note = await ledger.note(ANN.address, "rdv1.x", (bad, unknown, good, good))
    assert note == LedgerNote(
        460,
        0,
        None,
        "bad_voucher",
        (
            Settled(tx_id, refused="bad_signature"),
            Settled("B" * 52, refused="unknown_ticket"),
            Settled(tx_id, "settled"),
            Settled(tx_id, "settled"),
        ),
    )


async def test_opens_at_once_never_hold_more_than_there_is(rig: LedgerRig) -> None:
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 1000)
    ends = await asyncio.gather(*(rig.open(ledger, ANN, 100) for _ in range(14)), return_exceptions=True)
    codes = [end.code for end in ends if isinstance(end, LedgerRefusal)]
    assert codes == ["not_enough_credit"] * 4
    assert await amounts(ledger) == (0, 1000, 0)


async def test_a_cancelled_open_is_watched_all_the_same(rig: LedgerRig) -> None:
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 100)
    terms = rig.terms(ANN)
    request, tx_id = open_request(terms, ANN)
    opening = asyncio.ensure_future(ledger.open_(terms, request, tx_id))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    rig.clock.advance(900)
    await ledger.due()
    assert await amounts(ledger) == (100, 0, 0)
    ticket = await ledger.ticket(tx_id)
    assert ticket is None or ticket.state == "refunded"


async def test_an_open_that_was_refused_is_not_watched(rig: LedgerRig) -> None:
    """Whoever has no credit could else fill memory, a ticket at a time."""
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 100)
    await rig.open(ledger, ANN, 100)
    for _ in range(3):
        with pytest.raises(LedgerRefusal) as caught:
            await rig.open(ledger, ANN, 1)
        assert caught.value.code == "not_enough_credit"
    assert len(ledger._deadlines) == 1


async def test_fronts_are_told(rig: LedgerRig) -> None:
    told: list[Event] = []
    rig.bus.listen(told.append)
    ledger = await rig.start()
    await ledger.refresh()
    assert told == [LedgerChanged()]
    code = await ledger.issue(100, note="for ann\x1b[31m")
    await ledger.refresh()
    (voucher,) = ledger.view().vouchers
    assert (voucher.amount, voucher.note) == (100, "for ann[31m")
    await ledger.redeem(ANN.address, code)
    tx_id, terms = await rig.open(ledger, ANN, 60)
    await ledger.refresh()
    view = ledger.view()
    assert (view.issued, view.balance, view.held, view.earned) == (100, 40, 60, 0)
    (ticket,) = view.open_tickets
    assert (ticket.tx_id, ticket.deadline_at_ms) == (tx_id, (terms.expires_at + 600) * 1000)
    await ledger.receipt(tx_id, VALUES)
    await ledger.settle(claim_request(tx_id, terms.ticket_id, VALUES, ANN))
    await ledger.refresh()
    (day,) = ledger.view().earnings
    assert (day.model, day.tickets, day.earned, day.refunded) == ("smollm2", 1, 40, 20)
    (account,) = ledger.view().accounts
    assert (account.balance, account.spent, account.note) == (60, 40, "for ann[31m")
    assert len(told) == 4
