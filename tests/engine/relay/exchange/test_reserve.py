"""Reserves at targets that lie, refuse, hang up or have moved on: each ends in its code, for nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.errors import FaultError
from relaydesk.core.relay.sealed.envelope import seal_envelope
from relaydesk.engine.relay.age import PyrageAge
from tests.support.exchange_rig import ExchangeRig, text_of
from tests.support.paid_world import WORDS, paid_world
from tests.support.target_rig import MODEL as TARGETS_MODEL
from tests.support.target_rig import chat, reserved
from tests.support.wire.lies import put
from tests.support.wire.relay import MinimalRelay
from tests.support.wire.rules import Refusal
from tests.support.wire.server import coded, uncoded
from tests.support.wire.target import MinimalTarget

Turn = Callable[[MinimalTarget], Any]


async def ends(rig: ExchangeRig, code: str, **fields: Any) -> FaultError:
    """The exchange ends in ``code``, nothing was opened, and the prompt never left, sealed or not."""
    with pytest.raises(FaultError) as caught:
        await rig.stream(**fields)
    assert caught.value.fault.code == code
    assert rig.paid == []
    for target in rig.targets:
        assert await rig.tickets(target) == ()
        assert target.bodies == []
        assert all(each.path != "/v1/chat/completions" for each in target.seen)
    return caught.value


def _lie(name: str, edit: Callable[..., Any]) -> Turn:
    return lambda target: setattr(target.lies, name, edit)


_PRICES: dict[str, Callable[[dict[str, Any]], None]] = {
    "more than its numbers come to": lambda ticket: ticket.update(max_price=ticket["max_price"] + 1),
    "less than its numbers come to": lambda ticket: ticket.update(max_price=ticket["max_price"] - 1),
    "cached input dearer than other": lambda ticket: ticket.update(cache_read_rate=ticket["input_rate"] + 1),
    "thrice the output rate": lambda ticket: _repriced(ticket, output_rate=3 * ticket["output_rate"]),
    "thrice the input rate": lambda ticket: _repriced(
        ticket, input_rate=3 * ticket["input_rate"], cache_read_rate=0
    ),
    "a minimum of its own": lambda ticket: _repriced(ticket, min_price=100_000),
    "more input than was counted": lambda ticket: _repriced(ticket, input_count=ticket["input_count"] * 2),
}


def _repriced(ticket: dict[str, Any], **fields: int) -> None:
    """A lie whose sum is right."""
    ticket.update(fields)
    legs = [
        -(-ticket[f"{count}_count"] * ticket[f"{rate}_rate"] // 1_000_000)
        for count, rate in (("input", "input"), ("max_output", "output"))
    ]
    ticket["max_price"] = max(sum(legs), ticket["min_price"])


@pytest.mark.parametrize("lie", _PRICES)
async def test_a_price_that_does_not_hold_is_not_paid(tmp_path: Path, lie: str) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.ticket = _PRICES[lie]
        error = await ends(rig, "ticket_price_rejected")
        assert "7:1" in error.fault.message
        assert rig.slept == []


@pytest.mark.parametrize(
    "turn",
    [
        _lie("ticket_sent", put(max_price=1)),
        _lie("ticket_sent", put(sig="AA==")),
        _lie("ticket", put(model="lab/other")),
        _lie("ticket", put(operator_id=9)),
        _lie("ticket", put(node_id=9)),
        _lie("ticket", put(stream=False)),
        _lie("ticket", put(expires_at=1_700_000_000)),
        _lie("ticket", lambda ticket: _repriced(ticket, max_output_count=10)),
        _lie("ticket", lambda ticket: _repriced(ticket, max_output_count=10_000)),
        _lie("ticket", lambda ticket: _repriced(ticket, input_count=10)),
        _lie("ticket", put(commit_k="A" * 43 + "=")),
        _lie("ticket", put(ticket_id="AAAA")),
        _lie("reserve_response", put(ticket=None)),
        _lie("reserve_response", put(wrapped_response_key="AAAA")),
        _lie("reserve_response", put(ticket="ticket")),
    ],
)
async def test_a_ticket_that_is_not_what_was_asked_is_not_paid(tmp_path: Path, turn: Turn) -> None:
    async with ExchangeRig(tmp_path) as rig:
        turn(rig.targets[0])
        await ends(rig, "operator_inconsistent_response")
        assert rig.slept == []


async def test_the_next_target_gets_what_a_liar_does_not(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path, [MinimalTarget(7), MinimalTarget(8)]) as rig:
        rig.targets[0].lies.ticket = put(max_price=1)
        assert text_of(await rig.stream()) == rig.targets[1].words.text
        assert [paid.target for paid in rig.paid] == [rig.ref(rig.targets[1])]
        assert await rig.tickets(rig.targets[0]) == ()


@pytest.mark.parametrize(
    ("status", "code", "ends_in"),
    [
        (403, "free_quota_exhausted", "free_quota_exhausted"),
        (403, "payer_not_opted_in", "payer_not_opted_in"),
        (400, "unsupported_model", "no_operator"),
        (400, "invalid_reserve", "no_operator"),
        (400, "context_length_exceeded", "context_length_exceeded"),
        (418, "", "no_operator"),
    ],
)
async def test_a_refusal_is_believed_at_once(tmp_path: Path, status: int, code: str, ends_in: str) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.refuse["reserve"] = (status, code)
        await ends(rig, ends_in)
        assert len(rig.targets[0].seen) == 1
        assert rig.slept == []


@pytest.mark.parametrize(
    ("status", "code", "asked"),
    [(429, "no_capacity", 1), (503, "node_draining", 1), (400, "unsupported_model", 1)],
)
async def test_another_target_is_asked_where_it_may_help(
    tmp_path: Path, status: int, code: str, asked: int
) -> None:
    async with ExchangeRig(tmp_path, [MinimalTarget(7), MinimalTarget(8)]) as rig:
        rig.targets[0].lies.refuse["reserve"] = (status, code)
        assert text_of(await rig.stream()) == rig.targets[1].words.text
        assert len(rig.targets[0].seen) == asked


async def test_a_refusal_of_the_payer_is_not_taken_elsewhere(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path, [MinimalTarget(7), MinimalTarget(8)]) as rig:
        rig.targets[0].lies.refuse["reserve"] = (403, "free_quota_exhausted")
        await ends(rig, "free_quota_exhausted")
        assert rig.targets[1].seen == []


@pytest.mark.parametrize(
    ("status", "code", "slept"),
    [
        (429, "no_capacity", [2, 2, 4, 4, *[8] * 5]),
        (503, "node_draining", [4, 12, 30]),
        (503, "provider_unavailable", [4, 12, 30]),
    ],
)
async def test_what_may_pass_is_waited_for_within_the_minute(
    tmp_path: Path, status: int, code: str, slept: list[float]
) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.refuse["reserve"] = (status, code)
        await ends(rig, "operators_busy")
        assert len(rig.targets[0].seen) == len(slept) + 1
        assert rig.slept == slept


@pytest.mark.parametrize(("asked", "slept"), [("7", [7, 7, 7, 7]), ("60", [])])
async def test_a_busy_target_is_asked_no_sooner_than_it_says(
    tmp_path: Path, asked: str, slept: list[float]
) -> None:
    async with ExchangeRig(tmp_path) as rig:
        for relay in rig.relays:
            relay.always = lambda _: coded(429, "no_capacity", Retry_After=asked)
        error = await ends(rig, "operators_busy")
        assert error.fault.retry_after == int(asked)
        assert rig.slept[:4] == slept[:4]


async def test_five_at_once_are_all_answered_by_two_places(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        target = rig.targets[0]
        check, admit = target.check_reserve, target.admit
        held, most = [0], [0]

        def checked(asked: Any) -> None:
            check(asked)
            if held[0] == 2:
                raise Refusal(429, "no_capacity", Retry_After="2")
            held[0] += 1
            most[0] = max(most[0], held[0])

        def admitted(raw: bytes) -> Any:
            found = admit(raw)
            held[0] -= 1
            return found

        async def until_freed(seconds: float) -> None:
            rig.slept.append(seconds)
            while held[0] == 2:
                await asyncio.sleep(0.01)

        target.check_reserve = checked  # type: ignore[method-assign]
        target.admit = admitted  # type: ignore[method-assign]
        rig.exchange._sleep = until_freed
        answers = await asyncio.gather(*(rig.stream(rig.body(f"question {n}")) for n in range(5)))
        assert [text_of(chunks) for chunks in answers] == [target.words.text] * 5
        assert most == [2]
        assert rig.slept and min(rig.slept) >= 2.0


async def test_a_target_that_unloaded_its_model_is_not_called_busy(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.refuse["reserve"] = (400, "unsupported_model")
        error = await ends(rig, "no_operator")
        assert "the node at 7:1 no longer serves it" in error.fault.message


async def test_a_wrong_clock_of_ours_is_put_right_once(tmp_path: Path) -> None:
    ahead = MinimalTarget(now=lambda: time.time() + 200)
    ahead.issued_at = int(time.time())
    async with ExchangeRig(tmp_path, [ahead]) as rig:
        assert text_of(await rig.stream()) == ahead.words.text
        assert [each.path for each in ahead.seen].count("/v1/zs/reserve") == 2


async def test_a_clock_that_stays_wrong_ends_it(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.refuse["reserve"] = (401, "invalid_payer_sig")
        for relay in rig.relays:
            relay.always = lambda _: coded(401, "invalid_payer_sig", f"node_time={int(time.time())}")
        await ends(rig, "no_operator")
        assert sum(len(relay.seen) for relay in rig.relays) == 2


async def test_no_stamp_of_another_day_is_signed(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        for relay in rig.relays:
            relay.always = lambda _: coded(
                401, "invalid_payer_sig", f"node_time={int(time.time()) + 200_000}"
            )
        await ends(rig, "no_operator")
        assert sum(len(relay.seen) for relay in rig.relays) == 1


async def test_a_key_that_was_rotated_is_fetched_anew(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].rotate()
        assert text_of(await rig.stream()) == rig.targets[0].words.text
        assert [each.path for each in rig.targets[0].seen] == [
            "/v1/zs/reserve",
            "/v1/zs/details",
            "/v1/zs/reserve",
            "/v1/chat/completions",
        ]


async def test_a_target_that_never_opens_what_is_sealed_to_it_is_asked_twice(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.refuse["reserve"] = (400, "bad_reserve_envelope")
        await ends(rig, "no_operator")
        assert [each.path for each in rig.targets[0].seen].count("/v1/zs/reserve") == 2


async def test_a_recipient_that_was_seen_is_not_used_again(tmp_path: Path) -> None:
    """Relays ask the target and swallow its answer, twice: it has the recipient, we have nothing."""
    async with ExchangeRig(tmp_path) as rig:
        count = [0]
        for relay in rig.relays:
            _swallow(relay, count)
        assert text_of(await rig.stream()) == rig.targets[0].words.text
        recipients = [held.recipient for held in rig.targets[0].tickets.values()]
        assert len(recipients) == len(set(recipients)) == 3
        # Each time the same bytes through another relay, which the target refuses, and then others.
        bodies = [each.body for each in rig.targets[0].seen if each.path == "/v1/zs/reserve"]
        assert [bodies.index(body) for body in bodies] == [0, 0, 2, 2, 4]


def _swallow(relay: MinimalRelay, count: list[int]) -> None:
    handle = relay.handle

    async def handled(request: Any) -> Any:
        count[0] += 1
        relay.after = (lambda _: uncoded(502)) if count[0] in (1, 3) else None
        return await handle(request)

    relay.handle = handled  # type: ignore[method-assign]


@pytest.mark.parametrize("step", ["reserve"])
async def test_a_target_that_hangs_up_is_tried_to_the_end_of_the_schedule(tmp_path: Path, step: str) -> None:
    async with ExchangeRig(tmp_path, relays=3) as rig:
        rig.targets[0].lies.close = step
        error = await ends(rig, "operators_unreachable")
        assert error.fault.retry_after == 60
        # Three attempts, each through another relay, in each of four sweeps.
        assert len(rig.targets[0].seen) == 12
        assert rig.slept == [0.5, 1.5, 4.0, 0.5, 1.5, 12.0, 0.5, 1.5, 30.0, 0.5, 1.5]
        assert [len(relay.seen) for relay in rig.relays] == [4, 4, 4]


async def test_a_front_door_that_answers_for_a_relay_is_no_target(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path, relays=3) as rig:
        for relay in rig.relays:
            relay.tamper = lambda _path, _body: _greeted(rig)
        assert text_of(await rig.stream()) == rig.targets[0].words.text
        assert rig.slept == [0.5]


def _greeted(rig: ExchangeRig) -> bytes:
    for relay in rig.relays:
        relay.tamper = None
    return b"<h1>hello</h1>"


async def test_an_answer_that_a_relay_made_itself_is_no_targets(tmp_path: Path) -> None:
    """It has the form, and is not sealed to the key that only the target was told: another relay is asked."""
    theirs = seal_envelope(PyrageAge(), b"{}", PyrageAge().new_identity().recipient)
    async with ExchangeRig(tmp_path, relays=3) as rig:
        for relay in rig.relays:
            relay.tamper = lambda _path, _body: _greeted(rig) and theirs
        assert text_of(await rig.stream()) == rig.targets[0].words.text
        assert rig.slept == [0.5]


async def test_without_a_relay_nothing_is_sent(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        for at in range(len(rig.relays)):
            del rig.directory.listed[rig.relay_ref(at)]
        await ends(rig, "no_relay_available")
        assert rig.targets[0].seen == []
        assert rig.slept == []


@pytest.mark.parametrize(
    "wrong",
    [
        lambda details: details.update(ephemeral_sig="A" * 86 + "=="),
        lambda details: details.update(signing_addr=details["owner_addr"]),
        lambda details: details.update(ephemeral_age_pubkey=None),
    ],
)
async def test_a_target_without_a_key_that_holds_is_refused(
    tmp_path: Path, wrong: Callable[[dict[str, Any]], None]
) -> None:
    async with ExchangeRig(tmp_path) as rig:
        # The key that was verified has expired, and what comes instead does not hold.
        rig.targets[0].lies.details = wrong
        rig.clock.wall_ms = lambda: int((time.time() + 26 * 60) * 1000)  # type: ignore[method-assign]
        rig.targets[0].now = lambda: time.time() + 26 * 60
        rig.targets[0].rotate()
        await ends(rig, "no_ephemeral_capacity")
        assert {each.path for each in rig.targets[0].seen} == {"/v1/zs/details"}


async def test_a_price_above_what_a_key_has_left_is_not_paid(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        await ends(rig, "credit_per_day_exceeded", credit_left=1999)
        # Nothing was reserved: a ticket that nobody pays would keep a place from others.
        assert "/v1/zs/reserve" not in {each.path for each in rig.targets[0].seen}
        rig.targets[0].seen.clear()
        assert await rig.stream(credit_left=2_100)


async def test_a_ceiling_holds_for_the_ticket_too(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.ticket = lambda ticket: _repriced(ticket, output_rate=2_100_000)
        await ends(rig, "price_ceiling_exceeded", hints=b'{"max_price":{"output":2.0}}')
        rig.targets[0].seen.clear()
        assert await rig.stream(hints=b'{"max_price":{"output":2.1}}')


async def test_a_minimum_where_none_was_told_is_refused(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.details = put(min_charge_output_tokens=0)
        await rig.probe()
        await ends(rig, "ticket_price_rejected")


async def test_our_credit_there_is_looked_at_before_paying(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        target = rig.targets[0]
        target.lies.details = put(relaydesk_ledger=True)
        target.lies.reserve_response = put(relaydesk_ledger={"balance": 10, "held": 0})
        await rig.probe()
        error = await ends(rig, "credit_missing")
        assert "voucher of operator 7" in error.fault.hint
        (account,) = await rig.purse.accounts()
        assert (account.ref, account.balance) == (rig.ref(target), 10)
        # From then on nothing is reserved that could not be paid, and what could be still is.
        await ends(rig, "credit_missing")
        assert [each.path for each in target.seen] == ["/v1/zs/reserve"]
        target.seen.clear()
        await ends(rig, "credit_missing", body=rig.body(max_tokens=1, messages=[]))
        assert [each.path for each in target.seen] == []
        target.lies.reserve_response = put(relaydesk_ledger={"balance": 10_000, "held": 0})
        await rig.purse.add_voucher("rdv1.7.1." + "a" * 32)
        assert await rig.stream()


async def test_requests_that_are_refused_keep_nobody_out_of_an_idle_target(tmp_path: Path) -> None:
    """The real target, with two places: a key over its credit, and a payer without credit there."""
    async with paid_world(tmp_path) as world:
        world.announce()
        for credit, code in (
            (1, "credit_per_day_exceeded"),
            (None, "credit_missing"),
            (None, "credit_missing"),
        ):
            with pytest.raises(FaultError) as caught:
                await world.payer.stream(
                    world.payer.body(model=TARGETS_MODEL), model=TARGETS_MODEL, credit_left=credit
                )
            assert caught.value.fault.code == code
        await world.voucher(100_000)
        assert await world.ask() == WORDS
        assert world.payer.slept == []


async def test_places_that_nobody_uses_are_waited_for(tmp_path: Path) -> None:
    async with paid_world(tmp_path) as world:
        world.announce()
        await world.voucher(100_000)
        for _ in range(2):
            async with world.target.client() as stranger:
                await reserved(stranger, chat())

        async def both(seconds: float) -> None:
            world.payer.slept.append(seconds)
            world.target.clock.passed_s += int(seconds)

        world.payer.exchange._sleep = both
        assert await world.ask() == WORDS
        assert world.payer.slept == [2, 2, 4, 4]


async def test_the_network_fee_belongs_to_the_price(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path, [MinimalTarget(fee_bps=500)], fee_bps=500) as rig:
        await rig.stream()
        (paid,) = rig.paid
        assert (paid.max_price, paid.amount) == (2100, 2100)
        rig._fee_bps = 0
        with pytest.raises(FaultError) as caught:
            await rig.stream()
        assert caught.value.fault.code == "ticket_price_rejected"


async def test_a_client_that_leaves_while_a_target_is_sought_pays_nothing(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.pause_s = 5.0
        gate = asyncio.Event()
        for relay in rig.relays:
            handle = relay.handle

            async def slow(request: Any, handle: Any = handle) -> Any:
                gate.set()
                await asyncio.sleep(5)
                return await handle(request)

            relay.handle = slow  # type: ignore[method-assign]
        task = asyncio.ensure_future(rig.stream())
        await gate.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert rig.paid == []
        assert await rig.tickets() == ()
