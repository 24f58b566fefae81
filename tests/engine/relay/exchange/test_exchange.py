"""Whole exchanges with a minimal target through minimal relays, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.errors import EnvError, PeerError
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.sealed.stream_reader import Content, StreamReader
from relaydesk.engine.relay.age import PyrageAge
from tests.support.exchange_rig import CHAT, ExchangeRig, text_of
from tests.support.wire.lies import drop, put
from tests.support.wire.target import MinimalTarget

ANSWER = "The answer is forty-two."


async def test_a_stream_is_answered_verified_and_claimed(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        chunks = await rig.stream()
        assert text_of(chunks) == ANSWER
        assert chunks[-1]["usage"]["total_tokens"] == 16
        (ticket,) = await rig.tickets()
        receipt = rig.targets[0].tickets[ticket.open.ticket_id].receipt
        assert receipt is not None
        assert (ticket.state, ticket.claim and ticket.claim.values.amount) == (
            "waiting",
            receipt["amount_charged"],
        )
        (paid,) = rig.paid
        assert (paid.target, paid.max_price, paid.amount, paid.receipt_ok) == (
            rig.ref(rig.targets[0]),
            ticket.open.max_price,
            receipt["amount_charged"],
            True,
        )
        assert paid.relay in {rig.relay_ref(0), rig.relay_ref(1)}


async def test_a_whole_answer_is_verified_and_claimed(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        answer = await rig.whole()
        assert answer["choices"][0]["message"]["content"] == ANSWER
        (ticket,) = await rig.tickets()
        assert ticket.state == "waiting"
        assert rig.paid[0].receipt_ok


async def test_no_byte_of_the_prompt_leaves_unsealed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    sentence = "the heron waits behind the third lock"
    async with ExchangeRig(tmp_path) as rig:
        body = rig.body(sentence, prompt_cache_key="who-we-are", provider={"sort": "price"})
        assert sentence.encode() in body
        await rig.stream(body)
        await rig.whole(rig.body(sentence, stream=False))
        payer = (await rig.purse.key(7)).address
        assert len(rig.seen) >= 8
        for seen in rig.seen:
            for word in (sentence, payer, "heron", "forty-two", "who-we-are"):
                assert word.encode() not in seen
        files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        assert any(payer.encode() in data for data in files), "the search finds what is there"
        for said in (caplog.text.encode(), repr(rig.paid).encode(), *files):
            assert sentence.encode() not in said
            assert b"forty-two" not in said
        # What the target opens is all of the prompt, and none of what is not for it.
        opened = json.loads(rig.targets[0].bodies[0])
        assert opened["messages"][0]["content"] == sentence
        assert {"provider", "prompt_cache_key"}.isdisjoint(opened)
        assert opened["store"] is False
        # The target was asked by relays alone.
        assert {each.headers.get("User-Agent") for each in rig.targets[0].seen} == {None}
        for path in [each.path for relay in rig.relays for each in relay.seen]:
            assert path == "/v1/zs/relay"


async def test_sixty_four_exchanges_at_once_lose_nothing(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        answers = await asyncio.gather(*(rig.stream(rig.body(f"question {n}")) for n in range(64)))
        assert [text_of(chunks) for chunks in answers] == [ANSWER] * 64
        tickets = await rig.tickets()
        assert len(tickets) == len({ticket.tx_id for ticket in tickets}) == 64
        assert {ticket.state for ticket in tickets} == {"waiting"}
        assert len(rig.paid) == 64
        assert all(each.receipt_ok for each in rig.paid)
        asked = {json.loads(body)["messages"][0]["content"] for body in rig.targets[0].bodies}
        assert asked == {f"question {n}" for n in range(64)}
        # A reply key is used for one reserve alone.
        assert len({held.recipient for held in rig.targets[0].tickets.values()}) == 64


async def test_each_operator_sees_another_payer(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path, [MinimalTarget(7), MinimalTarget(8)]) as rig:
        await rig.stream(hints=b'{"only":["7"]}')
        await rig.stream(hints=b'{"only":["8"]}')
        payers = [{held.payer for held in target.tickets.values()} for target in rig.targets]
        assert [len(each) for each in payers] == [1, 1]
        assert payers[0] != payers[1]


async def test_a_large_body_goes_and_comes_without_holding_the_loop_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, elsewhere = threading.get_ident(), set[str]()

    def watched(owner: type, name: str, size: int) -> None:
        work = getattr(owner, name)

        def watching(self: Any, data: bytes, *more: Any) -> Any:
            if len(data) > size:
                assert threading.get_ident() != loop, name
                elsewhere.add(name)
            return work(self, data, *more)

        monkeypatch.setattr(owner, name, watching)

    watched(PyrageAge, "seal", 64 * 1024)
    watched(StreamReader, "feed", 64 * 1024)
    async with ExchangeRig(tmp_path, [MinimalTarget(window=500_000)]) as rig:
        rig.targets[0].words.pieces = ("x" * 300_000, "y")
        body = rig.body("z" * 300_000)
        assert text_of(await rig.stream(body)) == "x" * 300_000 + "y"
        whole = await rig.whole(rig.body("z" * 300_000, stream=False))
        assert whole["choices"][0]["message"]["content"] == "x" * 300_000 + "y"
        assert all(paid.receipt_ok for paid in rig.paid)
        assert "seal" in elsewhere


async def test_a_part_that_came_in_pieces_is_opened_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, opened = threading.get_ident(), list[tuple[int, bool]]()
    feed = StreamReader.feed

    def watching(self: Any, data: bytes) -> Any:
        found = feed(self, data)
        opened.extend(
            (len(each.data), threading.get_ident() == loop) for each in found if isinstance(each, Content)
        )
        return found

    monkeypatch.setattr(StreamReader, "feed", watching)
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].words.pieces = ("x" * 300_000, "y")
        assert text_of(await rig.stream()) == "x" * 300_000 + "y"
    assert [on_loop for size, on_loop in opened if size > 64 * 1024] == [False]


async def test_the_bound_is_version_two_where_the_target_knows_it(tmp_path: Path) -> None:
    old, new = MinimalTarget(7, proto_version="9.1"), MinimalTarget(8, proto_version="9.2")
    async with ExchangeRig(tmp_path, [old, new]) as rig:
        # A BOM would count in version 1; images differ too, and this target takes none.
        await rig.stream(hints=b'{"only":["7"]}')
        await rig.stream(hints=b'{"only":["8"]}')
        assert [held.bound_version for held in old.tickets.values()] == [1]
        assert [held.bound_version for held in new.tickets.values()] == [2]


async def test_the_extension_goes_only_to_targets_that_announce_it(tmp_path: Path) -> None:
    plain, ours = MinimalTarget(7), MinimalTarget(8)
    ours.lies.details = lambda details: details.update(relaydesk_ledger=True)
    async with ExchangeRig(tmp_path, [plain, ours]) as rig:
        for _ in range(2):
            await rig.stream(hints=b'{"only":["7"]}')
            await rig.stream(hints=b'{"only":["8"]}')
        assert all("relaydesk_open" not in header for header in plain.headers)
        (opening, _) = [header["relaydesk_open"] for header in ours.headers]
        (ticket, _) = await rig.tickets(ours)
        assert opening == ticket.extension | {"sig": opening["sig"]}
        assert {len(header["algorand_tx_id"]) for header in (*plain.headers, *ours.headers)} == {52}


async def test_a_client_that_leaves_early_ends_the_answer_at_once(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.pause_s = 0.05
        engine = rig.exchange.engine(rig.request())
        async with await engine.stream(CHAT, rig.body()) as stream:
            await anext(stream)
        (ticket,) = await rig.tickets()
        assert ticket.state == "open"
        (paid,) = rig.paid
        assert (paid.amount, paid.receipt_ok) == (paid.max_price, False)


async def test_a_client_that_leaves_behind_the_last_chunk_still_settles(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        engine = rig.exchange.engine(rig.request())
        stream = await engine.stream(CHAT, rig.body())
        async for chunk in stream:
            if json.loads(chunk)["choices"][0]["finish_reason"] == "stop":
                break
        await stream.aclose()
        (ticket,) = await rig.tickets()
        assert ticket.state == "waiting"
        assert rig.paid[0].receipt_ok


async def test_a_reader_that_is_cancelled_behind_the_last_chunk_still_settles(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.pause_s = 0.02
        last = asyncio.Event()

        async def read() -> None:
            async with await rig.exchange.engine(rig.request()).stream(CHAT, rig.body()) as stream:
                async for chunk in stream:
                    if json.loads(chunk)["choices"][0]["finish_reason"] == "stop":
                        last.set()

        task = asyncio.ensure_future(read())
        await last.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await rig.exchange.aclose()
        (ticket,) = await rig.tickets()
        assert ticket.state == "waiting"
        assert [paid.receipt_ok for paid in rig.paid] == [True]


async def test_content_behind_the_end_is_not_delivered(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        words = rig.targets[0].words
        parts = words.parts

        def more(*asked: Any, **kind: Any) -> list[bytes]:
            found = parts(*asked, **kind)
            late = json.loads(found[1]) | {"id": "late"}
            return [*found, json.dumps(late).encode(), found[-1]]

        words.parts = more  # type: ignore[method-assign]
        chunks = await rig.stream()
        assert text_of(chunks) == ANSWER
        assert "late" not in {chunk["id"] for chunk in chunks}
        assert [bool(chunk["choices"]) for chunk in chunks].count(False) == 1
        assert rig.paid[0].receipt_ok


async def test_a_call_of_tools_ends_with_its_account(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        words = rig.targets[0].words
        parts = words.parts

        def calling(*asked: Any, **kind: Any) -> list[bytes]:
            return [part.replace(b'"stop"', b'"tool_calls"') for part in parts(*asked, **kind)]

        words.parts = calling  # type: ignore[method-assign]
        chunks = await rig.stream()
        assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
        assert chunks[-1]["usage"]
        assert rig.paid[0].receipt_ok
        # Without its proof the account does not come, and whoever waits for it sees no good end.
        rig.targets[0].lies.events = drop(-2)
        seen: list[dict[str, Any]] = []
        with pytest.raises(PeerError):
            await rig.stream(into=seen)
        assert all(chunk["choices"] for chunk in seen)


async def test_a_target_that_was_faster_goes_ahead_of_a_cheaper_one(tmp_path: Path) -> None:
    fast, cheap = MinimalTarget(7), MinimalTarget(8, rates=(0.25, 1.0))
    fast.lies.receipt = put(ttft_ms=1, decode_ms=4)
    cheap.lies.receipt = put(ttft_ms=1, decode_ms=8000)
    async with ExchangeRig(tmp_path, [fast, cheap]) as rig:
        for hints in (b"", b'{"only":["7"]}', b"", b'{"sort":"price"}', b'{"sort":"throughput"}'):
            await rig.stream(hints=hints)
        assert [paid.target.operator for paid in rig.paid] == [8, 7, 7, 8, 7]


@pytest.mark.parametrize("asked", [True, False])
async def test_an_answer_of_another_kind_is_refused(tmp_path: Path, asked: bool) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.paid = lambda _, ticket, __: ticket.update(stream=not asked) or True
        with pytest.raises(PeerError) as caught:
            await (rig.stream() if asked else rig.whole())
        assert caught.value.fault.code == "operator_inconsistent_response"
        assert "kind that was asked for" in caught.value.fault.message
        assert len(rig.paid) == 1
        rig.targets[0].lies.sealed_error = (503, "provider_overloaded")
        with pytest.raises(PeerError) as caught:
            await (rig.stream() if asked else rig.whole())
        # A whole error says what it is; a streamed one that nobody asked for is not read.
        expected = "operators_busy" if asked else "operator_inconsistent_response"
        assert caught.value.fault.code == expected


async def test_the_price_is_asked_for_before_it_is_paid(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        asked: list[tuple[Any, int, int]] = []

        async def hold(ref: Any, most: int) -> None:
            asked.append((ref, most, len(await rig.tickets())))
            if len(asked) > 1:
                raise PeerError("credit_per_day_exceeded", "no more today")

        await rig.stream(hold=hold)
        with pytest.raises(PeerError, match="no more today"):
            await rig.stream(hold=hold)
        assert asked == [(NodeRef(7, 1), 2000, 0), (NodeRef(7, 1), 2000, 1)]
        assert len(await rig.tickets()) == len(rig.paid) == 1
        assert len(rig.targets[0].bodies) == 1


async def test_a_purse_that_cannot_pay_asks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ExchangeRig(tmp_path) as rig:

        async def fail(*_: Any) -> None:
            raise EnvError("storage_failed", "the disk is full")

        monkeypatch.setattr(rig.purse, "open_", fail)
        with pytest.raises(EnvError):
            await rig.stream()
        assert rig.targets[0].bodies == []
        assert [(paid.amount, paid.receipt_ok) for paid in rig.paid] == [(0, False)]
