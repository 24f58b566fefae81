"""The embedded `Ledger` of a target: credit, holds, settlement (design §6, wire §4.9 and §6).

Every call is one transaction that is on the disk when it returns; what is refused raises `LedgerRefusal`, a
disk that fails `EnvError` ``storage_failed``, and either leaves everything as it was. A caller that is
cancelled may still have been heard: repeating a call never books twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from relaydesk.core.events import LedgerChanged
from relaydesk.core.ledger import ticket as rules
from relaydesk.core.ledger.account import Account
from relaydesk.core.ledger.ask import ROWS, Answer, read_ask
from relaydesk.core.ledger.extensions import (
    ClaimRequest,
    LedgerNote,
    OpenRequest,
    ProtestRequest,
    Settled,
    Settlement,
    record_of,
)
from relaydesk.core.ledger.records import (
    Claim,
    Signer,
    Values,
    check_signature,
)
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.statement import MOST_ROWS, Statement
from relaydesk.core.ledger.terms import Policy, Terms, open_ticket
from relaydesk.core.ledger.ticket import Step, Ticket
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.view.ledger import LedgerView
from relaydesk.engine.bus import Bus
from relaydesk.engine.ledger.credit import Credit
from relaydesk.engine.ledger.deadlines import WATCHDOG_S, Deadlines
from relaydesk.engine.ledger.statements import statement_of
from relaydesk.engine.ledger.view import view_of
from relaydesk.store.ledger import Books, LedgerRepo
from relaydesk.store.ledger_sums import Totals

# Tickets that nothing was paid for are forgotten after so long; accounts' rows and what models earned stay.
FREE_KEPT_MS = 30 * 86_400_000


class Ledger:
    """Make it inside the loop; `start` before use, `close` at the end.

    ``node`` signs for the node, ``operator`` for its operator (vouchers, resolved disputes); where the
    owner's key is offline the node's key signs for both, which its certificate allows. ``policy`` is read at
    every opening, so that a setting holds for tickets opened after it changed.
    """

    def __init__(
        self,
        path: Path,
        ref: NodeRef,
        node: Signer,
        clock: Clock,
        rng: Rng,
        bus: Bus,
        *,
        operator: Signer | None = None,
        policy: Callable[[], Policy] = Policy,
        watchdog_s: float = WATCHDOG_S,
        busy_s: float = 5.0,
    ) -> None:
        self.ref = ref
        self._repo = LedgerRepo(path, ref, busy_s=busy_s)
        self._node = node
        self._operator = operator or node
        self._clock = clock
        self._bus = bus
        self._policy = policy
        self._deadlines = Deadlines(clock, watchdog_s)
        self._credit = Credit(self._repo, ref, self._operator, clock, rng, self.changed)
        self._view = LedgerView()
        self._stale = True

    async def start(self) -> None:
        """Open the books, check that their sums agree, and watch what was open.

        Raises `EnvError` ``storage_failed``.
        """
        await self._repo.open()
        for ticket in await self._repo.read(lambda books: books.live_tickets()):
            self._deadlines.watch(ticket)
        await self.refresh()

    async def close(self) -> None:
        """Finish what was begun. May be called twice."""
        await self._repo.close()

    # Opening

    async def open_(self, terms: Terms, request: OpenRequest | None, tx_id: str) -> Ticket:
        """Hold a ticket's price, once. ``tx_id`` is the inner header's `algorand_tx_id`.

        Without ``request`` (`relaydesk_open`) only price 0 is opened; the ticket's own ``tx_id`` names it
        from then on. Raises `LedgerRefusal`: ``unsigned``, ``terms_differ``, ``bad_signature``,
        ``bad_record``, ``expired``, ``replayed``, ``ticket_opened``, ``not_enough_credit``: all of them 402
        `payment_verification_failed` on the wire.
        """
        now_ms = self._clock.wall_ms()
        step = open_ticket(terms, request, tx_id, self.ref, self._policy(), now_ms)
        ticket = step.ticket

        def work(books: Books) -> None:
            if books.ticket(ticket.tx_id) is not None:
                raise LedgerRefusal("replayed")
            if books.has_ticket(ticket.ticket_id):
                raise LedgerRefusal("ticket_opened")
            books.keep(step, now_ms)

        # Before the books have it: a caller that is cancelled meanwhile must not leave a hold unwatched.
        self._deadlines.watch(ticket)
        try:
            await self._repo.run(work)
        except LedgerRefusal as refusal:
            # Of one that is known already the first opening is watched, and that goes on.
            if refusal.code == "not_enough_credit":
                self._deadlines.forget(ticket.tx_id)
            raise
        self.changed()
        return ticket

    async def ticket(self, tx_id: str) -> Ticket | None:
        """A ticket as it stands."""
        return await self._repo.read(lambda books: books.ticket(tx_id))

    # Settling

    async def receipt(self, tx_id: str, values: Values) -> Ticket:
        """The node's own claim, from its receipt: write it down before the receipt is sent.

        It settles when the payer claims the same, or alone at the deadline. The same again changes nothing.
        Raises `LedgerRefusal`: ``unknown_ticket``, ``over_price``, ``claim_differs``, ``ended``.
        """
        now_ms = self._clock.wall_ms()

        def rule(ticket: Ticket) -> Step:
            claim = Claim(tx_id, ticket.ticket_id, "node", values)
            return rules.note_receipt(ticket, claim, self._node, now_ms)

        self._deadlines.received(tx_id)
        return await self._step(tx_id, rule, now_ms)

    async def settle(self, item: ClaimRequest) -> Ticket:
        """The payer's claim: settles with an equal one of the node, freezes with another.

        Raises `LedgerRefusal`: ``unknown_ticket``, ``other_ticket``, ``bad_signature``, ``bad_record``,
        ``claim_differs``, ``over_price``, ``frozen``, ``ended``.
        """
        return await self._settle(item)

    async def protest(self, item: ProtestRequest) -> Ticket:
        """The payer's protest freezes the ticket. Raises `LedgerRefusal` like `settle`."""
        return await self._settle(item)

    async def _settle(self, item: Settlement) -> Ticket:
        now_ms = self._clock.wall_ms()
        return await self._step(item.tx_id, lambda ticket: self._taken(ticket, item, now_ms), now_ms)

    async def take(self, items: tuple[Settlement, ...]) -> tuple[Settled, ...]:
        """`relaydesk_settle`: every item by itself, in one transaction; refusals are in the answer."""
        now_ms = self._clock.wall_ms()

        def one(books: Books, item: Settlement) -> Settled:
            try:
                ticket = books.ticket(item.tx_id)
                if ticket is None:
                    raise LedgerRefusal("unknown_ticket")
                step = self._taken(ticket, item, now_ms)
            except LedgerRefusal as refusal:
                return Settled(item.tx_id, refused=refusal.code)
            if step.entries:
                books.keep(step, now_ms)
            return Settled(item.tx_id, step.ticket.state)

        if not items:
            return ()
        found = await self._repo.run(lambda books: tuple(one(books, item) for item in items))
        for each in found:
            if each.state and each.state not in rules.LIVE:
                self._deadlines.forget(each.tx_id)
        self.changed()
        return found

    def _taken(self, ticket: Ticket, item: Settlement, now_ms: int) -> Step:
        record = record_of(item)
        check_signature(ticket.payer, record, item.sig)
        if isinstance(record, Claim):
            return rules.take_claim(ticket, record, item.sig, self._node, now_ms)
        return rules.take_protest(ticket, record, item.sig, self._node, now_ms)

    async def file(self, tx_id: str) -> Ticket:
        """The watchdog: the node's receipt becomes its claim, without the payer."""
        now_ms = self._clock.wall_ms()
        ticket = await self._step(tx_id, lambda found: rules.file_receipt(found, self._node, now_ms), now_ms)
        self._deadlines.filed(tx_id)
        return ticket

    async def lapse(self, tx_id: str) -> Ticket:
        """After the deadline: the node is paid what it claims, or the payer is paid back.

        One that has ended stays as it is. Raises `LedgerRefusal`: ``unknown_ticket``, ``too_early``.
        """
        now_ms = self._clock.wall_ms()

        def rule(ticket: Ticket) -> Step:
            return rules.lapse(ticket, self._node, self._deadlines.now_s(ticket), now_ms)

        return await self._step(tx_id, rule, now_ms)

    async def resolve(self, tx_id: str, amount: int) -> Ticket:
        """The operator ends a dispute: ``amount`` is earned, the rest goes back to the payer.

        Raises `LedgerRefusal`: ``unknown_ticket``, ``not_frozen``, ``over_price`` (over its receipt).
        """
        now_ms = self._clock.wall_ms()
        return await self._step(
            tx_id, lambda ticket: rules.resolve(ticket, amount, self._operator, now_ms), now_ms
        )

    async def _step(self, tx_id: str, rule: Callable[[Ticket], Step], now_ms: int) -> Ticket:
        def work(books: Books) -> Step:
            ticket = books.ticket(tx_id)
            if ticket is None:
                raise LedgerRefusal("unknown_ticket")
            step = rule(ticket)
            if step.entries:
                books.keep(step, now_ms)
            return step

        step = await self._repo.run(work)
        if step.ticket.state not in rules.LIVE:
            self._deadlines.forget(tx_id)
        if step.entries:
            self.changed()
        return step.ticket

    async def due(self) -> None:
        """Do what the clock asks for: file receipts, end tickets. `LedgerService` calls it."""
        for tx_id in self._deadlines.unclaimed():
            await self._quietly(tx_id, self.file(tx_id))
        for tx_id in self._deadlines.over():
            await self._quietly(tx_id, self.lapse(tx_id))

    async def _quietly(self, tx_id: str, step: Awaitable[Ticket]) -> None:
        try:
            await step
        except LedgerRefusal as refusal:
            # One that was refused when it was to be opened is watched in vain.
            if refusal.code == "unknown_ticket":
                self._deadlines.forget(tx_id)

    async def forget_free(self) -> int:
        """Drop tickets that came to nothing and ended long ago; says how many."""
        before = self._clock.wall_ms() - FREE_KEPT_MS
        return await self._repo.run(lambda books: books.forget_free(before))

    # Credit

    async def issue(self, amount: int, expires_ms: int = 0, note: str = "") -> str:
        """A new voucher's code, shown now and kept nowhere. See `Credit.issue`."""
        return await self._credit.issue(amount, expires_ms, note)

    async def redeem(self, payer: str, code: str) -> int:
        """A voucher becomes the payer's credit, once; gives its amount. See `Credit.redeem`."""
        return await self._credit.redeem(payer, code)

    async def account(self, payer: str) -> Account:
        """How an account stands; one that nothing was booked to is empty."""
        return await self._repo.read(lambda books: books.account(payer))

    async def balance(self, payer: str) -> tuple[int, int]:
        """What the payer may spend, and what is held for open tickets."""
        account = await self.account(payer)
        return account.balance, account.held

    async def find_accounts(self, beginning: str) -> tuple[str, ...]:
        """Addresses that begin so, two at most: one is found, two are too many."""
        return await self._repo.read(lambda books: books.find_accounts(beginning))

    async def totals(self) -> Totals:
        """The sums of everything: ``issued == balance + held + earned + fees``."""
        return await self._repo.read(lambda books: books.totals())

    async def statement(self, payer: str, after: int = 0, limit: int = MOST_ROWS) -> Statement:
        """The account's rows, oldest first, under the node's signature.

        ``after`` and ``limit`` give a part of them; the head is always about the whole account.
        """
        now_ms = self._clock.wall_ms()

        def work(books: Books) -> Statement:
            return statement_of(books, payer, self.ref, self._node, self._operator, now_ms, after, limit)

        return await self._repo.read(work)

    # What comes in a reserve, and between two

    async def note(self, payer: str, code: str = "", items: tuple[Settlement, ...] = ()) -> LedgerNote:
        """A reserve's `relaydesk_voucher` and `relaydesk_settle`; the answer is its `relaydesk_ledger`.

        Neither makes a reserve fail: what was refused is named in the note.
        """
        voucher, refused = None, ""
        if code:
            try:
                voucher = await self.redeem(payer, code)
            except LedgerRefusal as refusal:
                refused = refusal.code
        settled = await self.take(items)
        balance, held = await self.balance(payer)
        return LedgerNote(balance, held, voucher, refused, settled)

    async def answer(self, body: bytes) -> bytes:
        """The opened body of `/v1/zs/ledger` and the JSON to seal in answer (`core/ledger/ask.py`).

        Raises `LedgerRefusal`: ``bad_record``, ``bad_signature``, ``expired``.
        """
        ask = read_ask(body, self.ref, self._clock.wall_ms() // 1000)
        note = await self.note(ask.payer, ask.voucher, tuple(ask.settle))
        wanted = await self.statement(ask.payer, ask.after, ROWS) if ask.want == "statement" else None
        return msgspec.json.encode(Answer(note, wanted))

    # What fronts see

    def changed(self) -> None:
        """The view is to be made anew."""
        self._stale = True

    def view(self) -> LedgerView:
        """The books as they were at the last `refresh`."""
        return self._view

    async def refresh(self) -> None:
        """Make the view anew where something changed, and say so."""
        if not self._stale:
            return
        self._stale = False
        try:
            self._view = await self._repo.read(view_of)
        except BaseException:
            self._stale = True
            raise
        self._bus.publish(LedgerChanged())
