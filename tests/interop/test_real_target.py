"""The real target under the minimal client, through the minimal relay: neither shares code with it.

The client holds the target to the wire at every step; the relay then does to its bytes what a hostile one
may.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_engine import answer
from tests.support.target_rig import ANN, MODEL, TargetRig, chat
from tests.support.wire import prices
from tests.support.wire.client import MinimalClient
from tests.support.wire.exchange import Violation
from tests.support.wire.relay import MinimalRelay

CANARY = "the heron stands in the cold water"
PRICED = (500_000, 2_000_000)
CHAT = "/v1/chat/completions"


class World:
    def __init__(self, rig: TargetRig, relay: MinimalRelay, client: MinimalClient) -> None:
        self.rig, self.relay, self.client = rig, relay, client

    async def exchange(self, **body: Any) -> Any:
        return await self.client.exchange(chat(CANARY, **body), opened=self.rig.paid())


@asynccontextmanager
async def world_of(folder: Path, rates: tuple[int, int]) -> AsyncIterator[World]:
    async with TargetRig(folder, rates=rates) as rig, MinimalRelay() as relay:
        relay.peers[rig.ref.operator, rig.ref.node] = rig.url
        rig.hub.starter.reply = lambda _: answer("a", " heron", " in", " water")
        async with rig.client(relay.base_url) as client:
            yield World(rig, relay, client)
        await rig.rest()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_of(tmp_path, PRICED) as world:
        await world.rig.credit(1_000_000)
        yield world


# --- honest


@pytest.mark.parametrize("stream", [False, True])
async def test_an_exchange_holds_to_every_rule(world: World, stream: bool) -> None:
    found = await world.exchange(stream=stream)
    assert found.text == "a heron in water" and found.done and found.reply.marker
    assert found.receipt is not None and found.receipt["amount_charged"] == 3 + 8


async def test_the_second_dialect(world: World) -> None:
    for stream in (False, True):
        body = {"model": MODEL, "input": CANARY, "stream": stream}
        found = await world.client.exchange(body, opened=world.rig.paid(), path="/v1/responses")
        assert "heron" in json.dumps(found.documents) and found.receipt is not None


async def test_a_relay_learns_neither_words_nor_payer(world: World) -> None:
    await world.exchange(stream=True)
    await world.exchange()
    seen = (
        b"".join(each.body + repr(each).encode() for each in world.relay.seen)
        + repr(world.relay.answered).encode()
    )
    # It did see what it carries: the search finds what must be there.
    assert b"ciphertext" in seen and b"event: zs" in seen
    tickets = [row.ticket_id for row in await world.rig.ledger._repo.read(lambda books: books.live_tickets())]
    assert len(tickets) == 2
    for secret in (CANARY, "heron", ANN.address, *tickets):
        assert secret.encode() not in seen


async def test_nobody_who_knows_no_extension_is_left_with_an_open_ticket(tmp_path: Path) -> None:
    async with world_of(tmp_path, (0, 0)) as world:
        for stream in (False, True):
            assert (await world.client.exchange(chat(stream=stream))).receipt is not None
        ledger, clock = world.rig.ledger, world.rig.clock
        live = await ledger._repo.read(lambda books: books.live_tickets())
        assert len(live) == 2
        clock.passed_s = 1000
        await ledger.due()
        assert not await ledger._repo.read(lambda books: books.live_tickets())


# --- a relay that lies


def frames(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[str, bytes], bytes]:
    """Changes the events of a stream, each with its blank line."""

    def tamper(path: str, body: bytes) -> bytes:
        if path != CHAT:
            return body
        return b"".join(change([each + b"\n\n" for each in body.split(b"\n\n") if each]))

    return tamper


def flipped(event: bytes, at: int = -8) -> bytes:
    changed = b"A" if event[at : at + 1] != b"A" else b"B"
    return event[:at] + changed + event[at + 1 :]


LIES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "the first two swapped": lambda each: [each[1], each[0], *each[2:]],
    "one dropped": lambda each: [each[0], *each[2:]],
    "the last content dropped": lambda each: [*each[:-3], *each[-2:]],
    "one twice": lambda each: [each[0], *each],
    "one altered": lambda each: [each[0], flipped(each[1]), *each[2:]],
    "the receipt altered": lambda each: [*each[:-2], flipped(each[-2]), each[-1]],
    "the receipt dropped": lambda each: [*each[:-2], each[-1]],
    "the receipt before its time": lambda each: [each[0], each[-2], *each[1:-2], each[-1]],
    "the end cut off": lambda each: each[:-1],
    "content in the open": lambda each: [each[0], b'data: {"choices":[]}\n\n', *each[1:]],
}


@pytest.mark.parametrize("lie", LIES)
async def test_whatever_is_done_to_a_stream_is_seen(world: World, lie: str) -> None:
    world.relay.tamper = frames(LIES[lie])
    with pytest.raises(Violation):
        await world.exchange(stream=True)
    # The payer did not get it whole; the target booked what it made, and the sums are what they were.
    totals = await world.rig.ledger.totals()
    assert totals.balance + totals.held + totals.earned == 1_000_000


async def test_a_stream_that_is_left_alone_passes_the_same_way(world: World) -> None:
    world.relay.tamper = frames(lambda each: each)
    assert (await world.exchange(stream=True)).text == "a heron in water"


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body[:-6] + b"AA" + body[-4:],
        lambda body: json.dumps({"error": {"code": "x"}}).encode(),
        lambda body: b'{"choices":[]}',
    ],
)
async def test_whatever_is_done_to_a_whole_answer_is_seen(
    world: World, change: Callable[[bytes], bytes]
) -> None:
    world.relay.tamper = lambda path, body: change(body) if path == CHAT else body
    with pytest.raises(Violation):
        await world.exchange()


async def test_an_answer_to_another_ticket_is_none(world: World) -> None:
    """A relay keeps one answer and gives it to the next request."""
    kept: list[bytes] = []

    def swap(path: str, body: bytes) -> bytes:
        if path != CHAT:
            return body
        kept.append(body)
        return kept[0]

    world.relay.tamper = swap
    await world.exchange(stream=True)
    with pytest.raises(Violation):
        await world.exchange(stream=True)


async def test_a_relay_that_sends_everything_twice_pays_once(world: World) -> None:
    client = world.client
    raw = json.dumps(chat(CANARY)).encode()
    details = await client.details()
    reserved = await client.reserve(details, MODEL, prices.input_bound(raw), 16)
    tx_id, extra = world.rig.paid()(reserved)
    sent = client.sealed_request(details, reserved, raw, tx_id=tx_id, header=extra)
    first, second = await asyncio.gather(client.resend(sent), client.resend(sent))
    assert sorted((first.status, second.status)) == [200, 402]
    again = next(each for each in client.sent if each.step == "reserve")
    assert (await client.resend(again)).error["code"] == "reserve_replayed"
    assert len(world.rig.hub.starter.engine(MODEL).bodies) == 1
