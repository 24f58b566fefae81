"""Streams that were touched on their way, or that lie: each ends in its code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.errors import FaultError
from relaydesk.engine.relay.exchange import stream as stream_module
from tests.support.exchange_rig import CHAT, ExchangeRig, text_of
from tests.support.wire.events import block
from tests.support.wire.lies import double, drop, end_after, flip, insert, move, swap

# Blocks of the canned stream: a role, four pieces, the end, the usage, the receipt, [DONE].
BROKEN = {
    "two change places": swap(1, 2),
    "the first is lost": drop(0),
    "one is lost": drop(2),
    "one comes twice": double(2),
    "one comes earlier": move(3, 1),
    "one is altered": flip(2),
    "the last piece is lost": drop(4),
    "plain content": insert(2, b'data: {"choices":[]}\n\n'),
    "content that is not sealed": insert(2, block("zs", "aGVsbG8=")),
    "content that is no base64": insert(2, block("zs", "%%%")),
    "an error that is not sealed": insert(2, b'event: error\ndata: {"error":{}}\n\n'),
    "the receipt amid content": move(-2, 2),
    "nothing but the end": end_after(0),
    "no end of the answer": end_after(3),
}


@pytest.mark.parametrize("how", BROKEN)
async def test_what_was_touched_is_not_delivered_as_whole(tmp_path: Path, how: str) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.events = BROKEN[how]
        chunks: list[dict[str, Any]] = []
        with pytest.raises(FaultError) as caught:
            await rig.stream(into=chunks)
        assert caught.value.fault.code == "operator_inconsistent_response"
        # What was handed out is a beginning of what was said, in its order.
        assert rig.targets[0].words.text.startswith(text_of(chunks))
        (paid,) = rig.paid
        assert (paid.amount, paid.receipt_ok) == (paid.max_price, False)
        (ticket,) = await rig.tickets()
        assert ticket.claim is None


TAILS = {
    "the receipt is lost": (drop(-2), "operator_inconsistent_response"),
    "the receipt is altered": (flip(-2), "operator_inconsistent_response"),
    "the receipt comes twice": (double(-2), "operator_inconsistent_response"),
    "the usage is lost": (drop(6), "operator_inconsistent_response"),
    "receipt and usage change places": (swap(6, 7), "operator_inconsistent_response"),
    "all of the end is lost": (end_after(7), "operator_inconsistent_response"),
    "content behind the receipt": (insert(8, block("zs", "aGVsbG8=")), "operator_inconsistent_response"),
}


@pytest.mark.parametrize("how", TAILS)
async def test_an_answer_without_its_proof_does_not_end_well(tmp_path: Path, how: str) -> None:
    events, code = TAILS[how]
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.events = events
        seen: list[dict[str, Any]] = []
        with pytest.raises(FaultError) as caught:
            await rig.stream(into=seen)
        assert caught.value.fault.code == code
        assert all(chunk["choices"] for chunk in seen), "the usage waits for the proof"
        assert len(rig.paid) == 1


async def test_a_stream_that_is_cut_behind_its_receipt_is_proved(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.events = drop(-1)
        chunks = await rig.stream()
        assert text_of(chunks) == rig.targets[0].words.text
        assert chunks[-1]["usage"]
        assert rig.paid[0].receipt_ok


@pytest.mark.parametrize("at", range(9))
async def test_a_target_that_hangs_up_at_each_event(tmp_path: Path, at: int) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.close = f"event:{at}"
        if at == 8:
            assert text_of(await rig.stream()) == rig.targets[0].words.text
            return
        with pytest.raises(FaultError) as caught:
            await rig.stream()
        # Hung up before a byte of the stream, it may look like no answer at all.
        assert caught.value.fault.code in ("upstream_unreachable", "operators_unreachable")
        (paid,) = rig.paid
        assert (paid.amount, paid.receipt_ok) == (paid.max_price, False)


async def test_a_relay_that_cuts_the_answer_off(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path, relays=1) as rig:
        handle = rig.relays[0].handle

        async def handled(request: Any) -> Any:
            if request.headers["X-Zs-Relay-Path"] == CHAT:
                rig.relays[0].cut_after = 900
            return await handle(request)

        rig.relays[0].handle = handled  # type: ignore[method-assign]
        with pytest.raises(FaultError) as caught:
            await rig.stream()
        assert caught.value.fault.code in ("upstream_unreachable", "operators_unreachable")
        assert len(await rig.tickets()) == 1


async def test_comments_and_a_settle_group_change_nothing(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.keep_alive = True
        rig.targets[0].lies.settle_group = b"two transactions"
        assert text_of(await rig.stream()) == rig.targets[0].words.text
        assert rig.paid[0].receipt_ok


@pytest.mark.parametrize(
    ("error", "ends_in"),
    [
        ((503, "provider_overloaded"), "operators_busy"),
        ((400, "context_length_exceeded"), "context_length_exceeded"),
        ((400, "input_budget_exceeded"), "operator_inconsistent_response"),
        ((400, "model_mismatch"), "operator_inconsistent_response"),
        ((403, "zero_data_retention_required"), "refused"),
        ((400, "unknown_builtin_tool"), "unsupported"),
        ((500, "weather"), "engine_failed"),
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
async def test_a_sealed_error_is_told_and_costs_nothing(
    tmp_path: Path, error: tuple[int, str], ends_in: str, streamed: bool
) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.sealed_error = error
        with pytest.raises(FaultError) as caught:
            await (rig.stream() if streamed else rig.whole())
        assert caught.value.fault.code == ends_in
        (paid,) = rig.paid
        assert (paid.amount, paid.receipt_ok) == (0, True)
        (ticket,) = await rig.tickets()
        assert ticket.claim is not None
        assert ticket.claim.values.amount == 0


async def test_an_end_that_does_not_come_is_waited_for_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "TAIL_S", 0.05)
    async with ExchangeRig(tmp_path) as rig:
        # Each event takes longer than all of the end may.
        rig.targets[0].lies.pause_s = 0.1
        with pytest.raises(FaultError) as caught:
            await rig.stream()
        assert caught.value.fault.code == "upstream_unreachable"
        assert [paid.receipt_ok for paid in rig.paid] == [False]
