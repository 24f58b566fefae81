"""Behind the payment: what may be sent again, what is refused, and what is not read at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.errors import FaultError
from relaydesk.engine.relay.asking.peers import Verified
from tests.support.exchange_rig import ExchangeRig, text_of
from tests.support.wire import target as wire_target
from tests.support.wire.lies import without
from tests.support.wire.relay import MinimalRelay
from tests.support.wire.server import close, coded, uncoded

INFERENCE = "/v1/chat/completions"


def inferences(rig: ExchangeRig) -> list[bytes]:
    """Every sealed request that a relay was given."""
    return [
        each.body
        for relay in rig.relays
        for each in relay.seen
        if each.headers["X-Zs-Relay-Path"] == INFERENCE
    ]


async def ends(rig: ExchangeRig, code: str, *, owed: int | None = None, stream: bool = True) -> FaultError:
    """The exchange ends in ``code`` with one ticket opened and not claimed, and at most ``owed`` for it."""
    with pytest.raises(FaultError) as caught:
        await (rig.stream() if stream else rig.whole())
    assert caught.value.fault.code == code
    (ticket,) = await rig.tickets()
    assert (ticket.state, ticket.claim, ticket.protest) == ("open", None, None)
    (paid,) = rig.paid
    assert paid.amount == (paid.max_price if owed is None else owed)
    assert not paid.receipt_ok
    return caught.value


def refuse(rig: ExchangeRig, answer: Callable[[], Any], times: int = 1) -> None:
    """Relays let reserves through and answer the next inferences themselves."""
    left = [times]

    def turned(relay: MinimalRelay) -> Callable[[Any], Any]:
        handle = relay.handle

        async def handled(request: Any) -> Any:
            if request.headers.get("X-Zs-Relay-Path") == INFERENCE and left[0] > 0:
                left[0] -= 1
                relay.answers.append(lambda _: answer())
            return await handle(request)

        return handled

    for relay in rig.relays:
        relay.handle = turned(relay)  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize(
    "code",
    ["relay_busy", "relay_unknown_target", "relay_build_request", "relay_bad_path", "relay_bad_target"],
)
async def test_a_coded_hop_error_is_sent_again_byte_for_byte_through_another_relay(
    tmp_path: Path, code: str
) -> None:
    async with ExchangeRig(tmp_path, relays=3) as rig:
        refuse(rig, lambda: coded(503, code), 2)
        assert text_of(await rig.stream()) == rig.targets[0].words.text
        bodies = inferences(rig)
        assert len(bodies) == 3
        assert len(set(bodies)) == 1
        used = [
            at
            for at, relay in enumerate(rig.relays)
            if any(each.headers["X-Zs-Relay-Path"] == INFERENCE for each in relay.seen)
        ]
        assert used == [0, 1, 2]
        assert [paid.receipt_ok for paid in rig.paid] == [True]


async def test_hop_errors_of_every_relay_end_it_for_nothing(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path, relays=4) as rig:
        refuse(rig, lambda: coded(503, "relay_busy"), 9)
        await ends(rig, "operators_unreachable", owed=0)
        assert rig.slept == [0.5, 1.5]
        assert len(inferences(rig)) == 3
        assert len(set(inferences(rig))) == 1


async def test_without_another_relay_a_hop_error_ends_it(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path, relays=1) as rig:
        refuse(rig, lambda: coded(503, "relay_busy"), 9)
        await ends(rig, "operators_unreachable", owed=0)
        assert len(inferences(rig)) == 1


@pytest.mark.parametrize(
    "answer",
    [
        lambda: coded(502, "relay_upstream_unreachable"),
        lambda: coded(503, "relay_of_tomorrow"),
        lambda: uncoded(502),
        lambda: uncoded(503),
        lambda: uncoded(504),
        lambda: uncoded(429),
    ],
)
async def test_nothing_else_is_sent_again(tmp_path: Path, answer: Callable[[], Any]) -> None:
    async with ExchangeRig(tmp_path, relays=3) as rig:
        refuse(rig, answer, 9)
        with pytest.raises(FaultError) as caught:
            await rig.stream()
        assert caught.value.fault.code in ("upstream_unreachable", "operator_inconsistent_response")
        assert len(inferences(rig)) == 1
        assert len(await rig.tickets()) == 1
        assert len(rig.paid) == 1


@pytest.mark.parametrize("step", ["inference", "answer"])
async def test_a_target_that_hangs_up_on_a_paid_request_is_not_asked_again(tmp_path: Path, step: str) -> None:
    async with ExchangeRig(tmp_path, relays=3) as rig:
        rig.targets[0].lies.close = step
        with pytest.raises(FaultError) as caught:
            await rig.stream()
        assert caught.value.fault.code in ("operators_unreachable", "upstream_unreachable")
        assert len(inferences(rig)) == 1
        (ticket,) = await rig.tickets()
        assert ticket.state == "open"
        assert len(rig.paid) == 1


async def test_a_relay_that_hangs_up_on_a_paid_request_is_charged_and_nothing_is_repeated(
    tmp_path: Path,
) -> None:
    async with ExchangeRig(tmp_path, relays=1) as rig:
        handle = rig.relays[0].handle

        async def gone(request: Any) -> Any:
            if request.headers.get("X-Zs-Relay-Path") == INFERENCE:
                await request.read()
                close(request)
            return await handle(request)

        rig.relays[0].handle = gone  # type: ignore[method-assign]
        await ends(rig, "operators_unreachable")
        assert rig.asker.hops_view().hops[0].charged == "relay"
        assert rig.targets[0].bodies == []


@pytest.mark.parametrize(
    ("status", "code", "ends_in"),
    [
        (402, "payment_verification_failed", "payment_verification_failed"),
        (402, "ticket_invalid", "operator_inconsistent_response"),
        (402, "admission_tag_invalid", "operator_inconsistent_response"),
        (400, "bad_envelope", "operator_inconsistent_response"),
        (503, "node_draining", "operators_busy"),
        (500, "", "upstream_unreachable"),
        (418, "", "upstream_unreachable"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_plain_refusal_costs_nothing(
    tmp_path: Path, status: int, code: str, ends_in: str, stream: bool
) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.refuse["inference"] = (status, code)
        await ends(rig, ends_in, owed=0, stream=stream)
        assert len(inferences(rig)) == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_a_target_that_does_not_find_it_paid_says_what_to_do(tmp_path: Path, stream: bool) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.paid = lambda *_: False
        error = await ends(rig, "payment_verification_failed", owed=0, stream=stream)
        assert "voucher of operator 7" in error.fault.hint


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_is_not_sealed_is_refused(tmp_path: Path, stream: bool) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.unsealed = True
        error = await ends(rig, "operator_unsealed_response", stream=stream)
        assert error.fault.rule.status == 502


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_without_its_key_is_refused(tmp_path: Path, stream: bool) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.headers = without("X-Zs-Response-Key")
        await ends(rig, "operator_unsealed_response", stream=stream)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_key_that_the_ticket_does_not_commit_to_opens_nothing(tmp_path: Path, stream: bool) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.key = b"k" * 32
        error = await ends(rig, "operator_inconsistent_response", stream=stream)
        assert "another key than its ticket commits to" in error.fault.message


@pytest.mark.parametrize("kind", ["text/plain", "application/json"])
async def test_a_sealed_answer_says_that_it_is_one(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ExchangeRig(tmp_path) as rig:
        monkeypatch.setattr(wire_target, "SEALED", kind)
        await ends(rig, "operator_unsealed_response", stream=False)


async def test_the_inner_header_is_the_wires(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        await rig.stream()
        (header,) = rig.targets[0].headers
        assert set(header) == {"reply_to_public_key", "algorand_tx_id", "ticket_id", "admission_tag"}
        (ticket,) = await rig.tickets()
        assert header["algorand_tx_id"] == ticket.tx_id
        (body,) = inferences(rig)
        assert list(json.loads(body)) == ["ciphertext"]


async def test_a_key_that_became_none_after_the_reserve_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target signs whatever it likes as its key; one of small order cannot be sealed to."""
    async with ExchangeRig(tmp_path) as rig:
        none = "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq5cu47z"
        monkeypatch.setattr(Verified, "sealing_key", none)
        await ends(rig, "operator_inconsistent_response", owed=0)
        assert inferences(rig) == []


async def test_a_client_that_leaves_before_the_answer_begins(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.gate = asyncio.Event()
        task = asyncio.ensure_future(rig.stream())
        while not rig.targets[0].bodies:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        rig.targets[0].lies.gate.set()
        (paid,) = rig.paid
        assert (paid.amount, paid.receipt_ok) == (paid.max_price, False)
        (ticket,) = await rig.tickets()
        assert ticket.state == "open"
        assert len(inferences(rig)) == 1
