"""The real asking side and the real target, each with its book, behind relays that know no extension of ours.

Whatever is done to what they send each other: it ends in its code, credit is neither made nor lost, and every
ticket ends by its deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from relaydesk.core.errors import FaultError
from relaydesk.core.ledger import paid as paid_rules
from relaydesk.core.ledger.paid import PaidTicket
from relaydesk.core.ledger.ticket import Ticket
from relaydesk.core.relay.records.receipt import Receipt, sign_receipt
from relaydesk.core.relay.records.ticket import Ticket as Granted
from relaydesk.engine.relay.target import serve
from relaydesk.engine.relay.target.receipts import Measured, receipt_of
from relaydesk.store.paid import PaidRepo
from tests.support.exchange_rig import CHAT, ExchangeRig, text_of
from tests.support.scripted_engine import Script, answer, piece
from tests.support.target_rig import MODEL, TargetRig

PRICED = (500_000, 2_000_000)
WORDS = "a heron in water"
CREDIT = 10_000_000
# What a question here comes to: its counts at those prices, each leg rounded up.
COSTS = 3 + 8
OVER_S = 120 + 600 + 40


class World:
    """One payer, and targets with credit of his; ``target`` is the first of them."""

    def __init__(self, payer: ExchangeRig, targets: list[TargetRig]) -> None:
        self.payer, self.targets, self.target = payer, targets, targets[0]

    async def ask(self, text: str = "hello", *, stream: bool = True, **more: Any) -> str:
        body = self.payer.body(text, model=MODEL, stream=stream, **more)
        if stream:
            return text_of(await self.payer.stream(body, model=MODEL))
        whole = await self.payer.whole(body, model=MODEL)
        return str(whole["choices"][0]["message"]["content"])

    async def refused(self, **more: Any) -> str:
        """The code that a question ends with."""
        with pytest.raises(FaultError) as caught:
            await self.ask(**more)
        return caught.value.fault.code

    def tamper(self, change: Callable[[bytes], bytes] | None) -> None:
        """Have every relay change the answers to requests."""
        for relay in self.payer.relays:
            relay.tamper = None if change is None else lambda path, raw: change(raw) if path == CHAT else raw

    # The books

    async def opened(self, at: int = 0) -> dict[str, Ticket]:
        """A target's tickets, by transaction."""
        found = await self.targets[at].ledger._repo.read(
            lambda books: list(books._conn.execute("SELECT ticket FROM tickets"))
        )
        tickets = [msgspec.json.decode(raw, type=Ticket) for (raw,) in found]
        return {each.tx_id: each for each in tickets}

    async def paid(self, at: int = 0) -> dict[str, PaidTicket]:
        """The payer's there."""
        ref = self.targets[at].ref
        found = await PaidRepo(self.payer.database).read(lambda book: book.tickets(ref))
        return {each.tx_id: each for each in found}

    async def sums(self, at: int = 0) -> tuple[int, int, int]:
        """Balance, held, earned; they are what vouchers brought."""
        totals = await self.targets[at].ledger.totals()
        assert totals.fees == 0
        assert (totals.issued, totals.balance + totals.held + totals.earned) == (CREDIT, CREDIT)
        return totals.balance, totals.held, totals.earned

    async def disagreement(self, at: int = 0) -> str:
        target = self.targets[at]
        payer = (await self.payer.purse.key(target.ref.operator)).address
        statement = await target.ledger.statement(payer)
        return paid_rules.disagreement(statement, target.identity.signing_addr, await self.paid(at))

    async def end(self, at: int = 0) -> dict[str, Ticket]:
        """All deadlines pass: every ticket has ended, at its receipt or at nothing, and the books agree."""
        target = self.targets[at]
        await target.rest()
        await self.sums(at)
        target.clock.passed_s += OVER_S
        await target.ledger.due()
        tickets, paid = await self.opened(at), await self.paid(at)
        assert set(tickets) <= set(paid)
        for ticket in tickets.values():
            ends = ("settled", "lapsed") if ticket.receipt is not None else ("refunded",)
            assert ticket.state in ends
            assert ticket.amount == (ticket.receipt.claim.values.amount if ticket.receipt is not None else 0)
        _, held, earned = await self.sums(at)
        assert (held, earned) == (0, sum(ticket.amount for ticket in tickets.values()))
        assert await self.disagreement(at) == ""
        return tickets


@asynccontextmanager
async def world_of(
    folder: Path, *, targets: int = 1, relays: int = 1, slots: int = 64
) -> AsyncIterator[World]:
    """Strangers have half of a target's slots."""
    (folder / "payer").mkdir()
    async with AsyncExitStack() as stack:
        rigs = []
        for at in range(targets):
            (folder / f"target{at}").mkdir()
            rig = TargetRig(folder / f"target{at}", rates=PRICED, slots=slots, ctx=512)
            rigs.append(await stack.enter_async_context(rig))
        payer = await stack.enter_async_context(ExchangeRig(folder / "payer", (), relays=relays))
        for rig in rigs:
            rig.hub.starter.reply = lambda _: answer("a", " heron", " in", " water")
            payer.enlist(rig.ref, rig.identity.owner_addr, rig.identity.signing_addr, rig.url)
            for relay in payer.relays:
                relay.peers[rig.ref] = rig.url
        await payer.probe(*(rig.ref for rig in rigs))
        for rig in rigs:
            await payer.purse.add_voucher(await rig.ledger.issue(CREDIT))
        yield World(payer, rigs)


async def test_every_ticket_ends_though_no_relay_knows_of_it(tmp_path: Path) -> None:
    async with world_of(tmp_path, relays=2) as world:
        for at in range(4):
            assert await world.ask(f"{at}", stream=at % 2 == 0) == WORDS
        # What was agreed to went with the reserve behind it; for the last there was none.
        states = [ticket.state for ticket in (await world.opened()).values()]
        assert sorted(states) == ["open", "settled", "settled", "settled"]
        world.target.hub.starter.reply = lambda _: Script([piece("Once"), piece(" upon"), asyncio.Event()])
        # A relay notices that its client has left when there is something to pass on.
        world.target.heartbeat_s = 0.05
        asking = asyncio.create_task(world.ask("never"))
        await world.target.hub.until(lambda: world.target.hub.starter.open == 1)
        asking.cancel()
        await asyncio.wait([asking])
        ended = await world.end()
        assert sorted(ticket.state for ticket in ended.values()) == ["lapsed", *["settled"] * 4]
        # No relay was asked for anything but what the wire has.
        paths = {each.headers["X-Zs-Relay-Path"] for relay in world.payer.relays for each in relay.seen}
        assert paths == {"/v1/zs/reserve", CHAT}


async def test_sixty_four_at_once_lose_nothing(tmp_path: Path) -> None:
    async with world_of(tmp_path, targets=2, relays=2) as world:
        # A voucher goes with one reserve: until it is there nobody else has credit.
        hints = [{"only": [str(rig.ref.operator)]} for rig in world.targets]
        for only in hints:
            assert await world.ask("first", provider=only) == WORDS
        # The targets have room for half of them each: who finds the first one full goes to the other.
        asked = [world.ask(f"{at}", stream=at % 2 == 0) for at in range(64)]
        assert await asyncio.gather(*asked) == [WORDS] * 64
        assert [(each.amount, each.receipt_ok) for each in world.payer.paid] == [(COSTS, True)] * 66
        served = 0
        for at, only in enumerate(hints):
            paid, tickets = await world.paid(at), await world.opened(at)
            assert set(paid) == set(tickets)
            assert len({ticket.ticket_id for ticket in tickets.values()}) == len(tickets)
            served += len(tickets)
            # What was agreed to is told with the next reserve, 64 at a time, and settles.
            assert await world.ask("and then", provider=only) == WORDS
            (last,) = [each for each in (await world.opened(at)).values() if each.tx_id not in tickets]
            assert await world.sums(at) == (
                CREDIT - len(tickets) * COSTS - last.max_price,
                last.max_price,
                len(tickets) * COSTS,
            )
            ended = await world.end(at)
            assert sorted(each.state for each in ended.values()) == ["lapsed", *["settled"] * len(tickets)]
        assert served == 66


# --- a relay that lies


def frames(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[bytes], bytes]:
    """Changes the events of a stream, each with its blank line."""
    return lambda raw: b"".join(change([each + b"\n\n" for each in raw.split(b"\n\n") if each]))


def flipped(event: bytes, at: int = -8) -> bytes:
    changed = b"A" if event[at : at + 1] != b"A" else b"B"
    return event[:at] + changed + event[at + 1 :]


WRONG = "operator_inconsistent_response"
LIES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "two swapped": (lambda each: [each[1], each[0], *each[2:]], WRONG),
    "one dropped": (lambda each: [each[0], *each[2:]], WRONG),
    "the last content dropped": (lambda each: [*each[:-3], *each[-2:]], WRONG),
    "one twice": (lambda each: [each[0], *each], WRONG),
    "one altered": (lambda each: [each[0], flipped(each[1]), *each[2:]], WRONG),
    "in another order": (lambda each: [*each[2:4], *each[:2], *each[4:]], WRONG),
    "the receipt altered": (lambda each: [*each[:-2], flipped(each[-2]), each[-1]], WRONG),
    "the receipt dropped": (lambda each: [*each[:-2], each[-1]], WRONG),
    "the receipt before its time": (lambda each: [each[0], each[-2], *each[1:-2], each[-1]], WRONG),
    "cut off in the middle": (lambda each: each[:3], "upstream_unreachable"),
    "nothing at all": (lambda each: [], "upstream_unreachable"),
    "content in the open": (lambda each: [each[0], b'data: {"choices":[]}\n\n', *each[1:]], WRONG),
}


async def test_whatever_a_relay_does_to_an_answer(tmp_path: Path) -> None:
    async with world_of(tmp_path) as world:
        assert await world.ask() == WORDS
        for lie, (change, code) in LIES.items():
            world.tamper(frames(change))
            assert (lie, await world.refused()) == (lie, code)
            world.tamper(None)
            await world.target.rest()
            await world.sums()
            # It costs this ticket and no more: the next one is served.
            assert await world.ask() == WORDS
        # The target has served them all, and its receipts are what is owed in the end.
        tickets = await world.end()
        assert [ticket.amount for ticket in tickets.values()] == [COSTS] * (2 * len(LIES) + 1)
        # Of what was not proved the payer has agreed to nothing.
        assert sum(each.claim is None for each in (await world.paid()).values()) == len(LIES)


async def test_whatever_a_relay_sends_once_more(tmp_path: Path) -> None:
    """A reserve, a request with its ticket, and an answer with its receipt."""
    async with world_of(tmp_path) as world, aiohttp.ClientSession() as http:
        (relay,) = world.payer.relays
        assert await world.ask("one") == WORDS
        before, sent = await world.sums(), list(relay.seen)

        async def again() -> list[str]:
            codes = []
            for each in sent:
                async with http.post(relay.base_url + each.path, data=each.body, headers=each.headers) as got:
                    codes.append((await got.json(content_type=None))["error"]["code"])
            return codes

        assert [each.headers["X-Zs-Relay-Path"] for each in sent] == ["/v1/zs/reserve", CHAT]
        assert await again() == ["reserve_replayed", "ticket_invalid"]
        # A key that was replaced still opens them.
        world.target.clock.shift_s = 60
        world.target.keys._turn(world.target.clock.wall_ms() // 1000)
        assert await again() == ["reserve_replayed", "ticket_invalid"]
        world.target.clock.shift_s = 0
        assert await world.sums() == before
        assert len(world.target.hub.starter.engine(MODEL).bodies) == 1
        # An answer to another ticket, receipt and all.
        kept = next(bytes(raw) for path, _, raw in relay.answered if path == CHAT)
        world.tamper(lambda raw: kept)
        assert await world.refused(text="two") == WRONG
        world.tamper(None)
        assert await world.ask("three") == WORDS
        tickets = await world.end()
        assert len(tickets) == 3


# --- a target that lies


TARGET_LIES: dict[str, tuple[dict[str, Any], str]] = {
    "more than its counts come to": ({"amount_charged": COSTS + 1}, "claims"),
    "another hash": ({"body_hash": "0" * 64}, "protest"),
}


@pytest.mark.parametrize("lie", TARGET_LIES)
async def test_a_receipt_that_lies_is_disputed_in_both_books(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    change, disputed = TARGET_LIES[lie]
    honest = receipt_of

    def lying(ticket: Granted, measured: Measured, body_hash: str, seed: bytes) -> Receipt:
        made = honest(ticket, measured, body_hash, seed)
        return sign_receipt(seed, msgspec.structs.replace(made, **change))

    async with world_of(tmp_path) as world:
        monkeypatch.setattr(serve, "receipt_of", lying)
        assert await world.refused() == WRONG
        monkeypatch.setattr(serve, "receipt_of", honest)
        # What the payer says of it goes with the next reserve.
        assert await world.ask() == WORDS
        (frozen,) = [each for each in (await world.opened()).values() if each.state == "frozen"]
        assert (frozen.protest is not None) == (disputed == "protest")
        assert (await world.paid())[frozen.tx_id].answer == "frozen"
        # Its price serves neither until the operator ends it, whatever time passes.
        world.target.clock.passed_s += OVER_S
        await world.target.ledger.due()
        assert await world.sums() == (CREDIT - COSTS - frozen.max_price, frozen.max_price, COSTS)
        await world.target.ledger.resolve(frozen.tx_id, COSTS if disputed == "claims" else 0)
        _, held, earned = await world.sums()
        assert (held, earned) == (0, 2 * COSTS if disputed == "claims" else COSTS)
        assert await world.disagreement() == ""
