"""Target, client and relay as processes, one of them killed at each step of an exchange.

Whatever the moment: the request ends in its code, what was killed starts again, no credit is made or lost,
the payer's book bears the target's out, and every ticket ends by its deadline.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from relaydesk.core.ledger import paid as paid_rules
from relaydesk.core.ledger.keys import KeySigner
from relaydesk.core.ledger.paid import PaidTicket
from relaydesk.core.ledger.ticket import Ticket
from relaydesk.engine.bus import Bus
from relaydesk.engine.clock import SystemRng
from relaydesk.engine.ledger.ledger import Ledger
from relaydesk.store.ledger_sums import Totals
from tests.support.operators import Operator, Operators, Plan
from tests.support.target_rig import ShiftedClock
from tests.support.trigger import STEPS, Trigger, kill

pytestmark = [pytest.mark.engine, pytest.mark.timeout(240)]

CREDIT: Final = 50_000_000
# USD 50 and 200 for a million tokens: what is owed is never 0.
RATES: Final = {"input_rate": 50_000_000, "output_rate": 200_000_000}
MODEL: Final = "smollm2"
NET: Final = f"net/{MODEL}"
TOKENS: Final = 12
# A ticket that nobody used holds a slot for its life: of those there are some here.
SLOTS: Final = 16
# Longer than the whole schedule of an exchange, which is a minute.
ENDS_S: Final = 90.0
# From a ticket to its deadline: its life and the grace, and the watchdog's time.
OVER_S: Final = 120 + 600 + 40


@dataclass(frozen=True)
class Outcome:
    """How a request ended at the client: its text, and the code of its error; "gone": cut off."""

    status: int
    text: str = ""
    code: str = ""
    whole: bool = False

    @property
    def good(self) -> bool:
        return self.status == 200 and self.whole and not self.code


class World:
    """A relay that keeps the directory, a target behind the trigger, and a client with credit."""

    def __init__(self, folder: Path, operators: Operators, trigger: Trigger, model: Path) -> None:
        self.folder, self.operators, self.trigger = folder, operators, trigger
        self.relay, self.target, self.client = operators
        self.target.add(
            model, MODEL, offer=True, preload=True, keep_alive_s=-1, slots=SLOTS, ctx=512, **RATES
        )
        self.target.load(MODEL)
        self.issued = 0
        # Tickets that the target was killed over: there will be no receipt.
        self.lost: set[str] = set()
        self.voucher(CREDIT)
        limits = {"network": True, "credit_per_day": CREDIT}
        self.key = self.client.command("add-key", name="guest", settings=limits)["key"]
        self.offered()

    def voucher(self, amount: int) -> None:
        """Buy one; it goes with the client's next reserve."""
        code = self.target.command("issue-credit", amount=amount, note="the client")["code"]
        self.client.command("redeem-credit", code=code)
        self.issued += amount

    # Asking

    def ask(self, text: str, *, stream: bool = True) -> Outcome:
        """One request at the client's own port, read to its end."""
        url = self.client.url.removeprefix("http://")
        with closing(http.client.HTTPConnection(url, timeout=ENDS_S)) as connection:
            body = {
                "model": NET,
                "messages": [{"role": "user", "content": text}],
                "max_tokens": TOKENS,
                "temperature": 0,
                "seed": 1,
                "stream": stream,
            }
            headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
            try:
                connection.request("POST", "/v1/chat/completions", json.dumps(body).encode(), headers)
                response = connection.getresponse()
                if stream and response.status == 200:
                    return _streamed(response)
                return _whole(response.status, json.loads(response.read()))
            except (http.client.HTTPException, ConnectionError):
                return Outcome(0, code="gone")

    def asked(self, text: str, *, stream: bool = True) -> Any:
        """The same, under way."""
        pool = ThreadPoolExecutor(1)
        try:
            return pool.submit(self.ask, text, stream=stream)
        finally:
            pool.shutdown(wait=False)

    def offered(self) -> None:
        """Wait until the client may ask again: it probes the target through the relay."""

        def warm() -> bool:
            self.client.command("probe-relays")
            return bool(self.models().get(NET))

        self.operators.wait(warm, f"{NET} is not offered", 40)

    def models(self) -> dict[str, Any]:
        url = self.client.url.removeprefix("http://")
        with closing(http.client.HTTPConnection(url, timeout=20)) as connection:
            connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {self.key}"})
            return {each["id"]: each for each in json.loads(connection.getresponse().read())["data"]}

    # Killing

    def node(self, who: str) -> Operator:
        found: Operator = getattr(self, who)
        return found

    def arm(self, who: str, step: str) -> None:
        """Have a node killed at a step. Of a dead target nothing more comes, whatever it had sent."""
        pid = self.node(who).pid
        self.trigger.arm(step, lambda: kill(pid), hang_up=who == "target")

    def turn(self) -> None:
        """Start the target anew in peace: what the client knows of its keys is out of date."""
        # A probe meanwhile would find it down. A node makes its first by itself, soon after it started.
        self.client.wait_for(lambda view: view.relays.value.next_probe_at_ms > time.time() * 1000 + 60_000)
        self.offered()
        self.target.stop()
        self.target.start()
        self._wait_warm()

    def again(self, who: str) -> None:
        """Start what was killed."""
        node = self.node(who)
        assert node.process is not None
        assert node.process.wait(10) == -9
        node.start()
        if who == "target":
            self._wait_warm()

    def _wait_warm(self) -> None:
        self.target.wait_for(lambda view: any(m.state == "warm" for m in view.models.value.models), 60)

    # The books

    def copy(self, node: Operator, name: str) -> Path:
        """One state of a database of a node that runs."""
        to = self.folder / f"{name}-{time.monotonic_ns()}.db"
        with closing(sqlite3.connect(node.state / name)) as source, closing(sqlite3.connect(to)) as copied:
            source.backup(copied)
        return to

    def paid(self) -> dict[str, PaidTicket]:
        """The payer's book, by transaction."""
        with closing(sqlite3.connect(self.copy(self.client, "relaydesk.db"))) as conn:
            found = [
                msgspec.json.decode(body, type=PaidTicket)
                for (body,) in conn.execute("SELECT ticket FROM paid_tickets")
            ]
        return {each.tx_id: each for each in found}

    def opened(self) -> dict[str, Ticket]:
        """The target's tickets, by transaction."""
        with closing(sqlite3.connect(self.copy(self.target, "ledger.db"))) as conn:
            return _tickets(conn)

    def served(self) -> None:
        """Wait until the target has written down what each ticket came to that it took."""
        self.operators.wait(
            lambda: all(each.receipt for each in self.opened().values() if each.tx_id not in self.lost),
            "a receipt is missing",
            30,
        )

    def check(self) -> None:
        """No credit is made or lost, both books agree, and each ticket ends: over a copy of the books."""
        asyncio.run(self._check(self.copy(self.target, "ledger.db")))

    async def _check(self, path: Path) -> None:
        identity, clock = self.target.identity, ShiftedClock()
        ledger = Ledger(path, identity.ref, KeySigner(identity.seed), clock, SystemRng(), Bus())
        await ledger.start()
        try:
            _sums_hold(before := await ledger.totals())
            # A voucher that is on its way counts when it is there.
            assert before.issued <= self.issued
            # In this order: what the target has opened is in the payer's book by then.
            paid = self.paid()
            tickets = await ledger._repo.read(lambda books: _tickets(books._conn))
            for ticket in tickets.values():
                _agree(ticket, paid)
            for payer in {ticket.payer for ticket in tickets.values()}:
                statement = await ledger.statement(payer)
                assert paid_rules.disagreement(statement, identity.signing_addr, paid) == ""
            clock.passed_s = OVER_S
            await ledger.due()
            _sums_hold(after := await ledger.totals())
            tickets = await ledger._repo.read(lambda books: _tickets(books._conn))
            for ticket in tickets.values():
                ends = ("settled", "lapsed") if ticket.receipt is not None else ("refunded",)
                assert ticket.state in ends
            owed = [each.receipt.claim.values.amount for each in tickets.values() if each.receipt]
            assert (after.issued, after.held, after.earned) == (before.issued, 0, sum(owed))
        finally:
            await ledger.close()

    def settled(self) -> None:
        """Right behind an exchange: what came before it is settled, and the payer knows how it stands."""
        paid = sorted(self.paid().values(), key=lambda each: each.opened_ms)
        *earlier, last = paid
        assert last.state == "waiting"
        assert {each.state for each in earlier} <= {"open", "told"}
        assert {each.answer for each in earlier if each.state == "told"} <= {"settled"}
        with closing(sqlite3.connect(self.copy(self.client, "relaydesk.db"))) as conn:
            ((told, held),) = conn.execute("SELECT balance, held FROM paid_accounts")
        with closing(sqlite3.connect(self.copy(self.target, "ledger.db"))) as conn:
            ((free, bound, spent),) = conn.execute("SELECT balance, held, spent FROM accounts")
        price = last.open.max_price
        assert (told - price, held + price) == (free, bound)
        assert free + bound + spent == self.issued


def _sums_hold(totals: Totals) -> None:
    assert totals.issued == totals.balance + totals.held + totals.earned + totals.fees


def _tickets(conn: sqlite3.Connection) -> dict[str, Ticket]:
    found = [msgspec.json.decode(body, type=Ticket) for (body,) in conn.execute("SELECT ticket FROM tickets")]
    return {each.tx_id: each for each in found}


def _agree(ticket: Ticket, paid: dict[str, PaidTicket]) -> None:
    """What the target has of a ticket is what its payer has, or something that nobody can have told him."""
    ours = paid[ticket.tx_id]
    assert (ours.open.max_price, ours.open.ticket_id) == (ticket.max_price, ticket.ticket_id)
    assert ours.protest is None
    if ours.claim is None:
        # The answer broke off: open until its deadline.
        assert (ours.state, ticket.payer_claim) == ("open", None)
        assert ticket.state in ("open", "pending_settle")
        return
    # He agreed to what the node had written down before it said so.
    assert ticket.receipt is not None
    assert ours.claim.values == ticket.receipt.claim.values
    assert ticket.state in ("open", "pending_settle", "settled")
    assert ticket.state != "settled" or ticket.amount == ours.claim.values.amount


def _streamed(response: http.client.HTTPResponse) -> Outcome:
    text, code, whole = "", "", False
    for raw in response:
        line = raw.strip()
        if line == b"data: [DONE]":
            whole = True
        elif line.startswith(b"data: "):
            chunk = json.loads(line[6:])
            code = (chunk.get("error") or {}).get("code") or code
            for choice in chunk.get("choices", ()):
                text += choice["delta"].get("content") or ""
    return Outcome(200, text, code or ("" if whole else "gone"), whole)


def _whole(status: int, document: dict[str, Any]) -> Outcome:
    if status == 200:
        return Outcome(200, document["choices"][0]["message"]["content"], whole=True)
    return Outcome(status, code=document["error"]["code"])


@pytest.fixture(scope="module")
def world(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    # Nobody probes by himself: every message is of a request, or of what a test does.
    quiet = {"PROBE_INTERVAL": "600s"}
    with Trigger() as trigger:
        operators = Operators(
            Plan(settings=quiet),
            Plan(settings={**quiet, "NETWORK_SLOTS": str(SLOTS - 1)}, url=trigger.base_url),
            Plan(settings=quiet),
        )
        trigger.upstream = f"http://{operators[1].bind}"
        with operators:
            yield World(tmp_path_factory.mktemp("books"), operators, trigger, smollm2)


QUESTION: Final = "Tell me about the sea."


def test_nobody_is_killed(world: World) -> None:
    world.trigger.arm("after", lambda: None, hang_up=False)
    first = world.ask(QUESTION)
    assert first.good and first.text
    # Details are asked for when a node has started, too.
    assert [each for each in world.trigger.steps if each != "details"] == list(STEPS[1:])
    assert world.ask(QUESTION, stream=False).text == first.text
    world.check()


# How a request ends, and what the target has of its ticket if it was the one that was killed: nothing, the
# ticket, the receipt as well. "ok" is an answer, whole.
BEFORE: Final = {"ok", "operators_unreachable", "operators_busy"}
ENDS: Final[dict[str, tuple[set[str], set[str], str]]] = {
    # step: target, relay, what the target has
    # Nothing was paid: it is tried again, and whoever is back in time serves it.
    "details": (BEFORE, BEFORE, "nothing"),
    "reserve": (BEFORE, BEFORE, "nothing"),
    "reserved": (BEFORE, BEFORE, "nothing"),
    # It was paid, and nobody can prove that it was not served.
    "request": ({"upstream_unreachable"}, {"operators_unreachable"}, "nothing"),
    "head": ({"upstream_unreachable"}, {"operators_unreachable"}, "ticket"),
    "event": ({"upstream_unreachable"}, {"upstream_unreachable"}, "ticket"),
    "receipt": ({"upstream_unreachable"}, {"upstream_unreachable"}, "receipt"),
    # Behind the receipt nothing is missing. A relay may have died with it in its hands.
    "done": ({"ok"}, {"ok", "upstream_unreachable"}, "receipt"),
    "after": ({"ok"}, {"ok", "upstream_unreachable"}, "receipt"),
}
CASES: Final = [
    pytest.param(who, step, marks=() if (who, step) == ("target", "event") else pytest.mark.long)
    for who in ("target", "client", "relay")
    for step in STEPS
]


@pytest.mark.parametrize(("who", "step"), CASES)
def test_whoever_is_killed(world: World, who: str, step: str) -> None:
    if step == "details":
        world.turn()
    if step in ("reserve", "reserved"):
        world.voucher(1_000_000)
    before = world.opened()
    world.arm(who, step)
    under_way = world.asked(QUESTION)
    assert world.trigger.reached.wait(30), under_way.result(ENDS_S)
    if who == "target":
        new = [each for tx_id, each in world.opened().items() if tx_id not in before]
        found = "nothing" if not new else "receipt" if new[0].receipt else "ticket"
        assert found == ENDS[step][2]
        world.lost |= {each.tx_id for each in new if each.receipt is None}
    world.again(who)
    outcome = under_way.result(ENDS_S)
    ended = "ok" if outcome.good else outcome.code
    if who == "client":
        # With the last word under way, it may still have said it.
        assert ended == "gone" or (ended, step) == ("ok", "after")
    else:
        assert ended in ENDS[step][who == "relay"]
    world.served()
    world.check()
    world.offered()
    assert world.ask(QUESTION).good
    world.settled()
    world.check()
