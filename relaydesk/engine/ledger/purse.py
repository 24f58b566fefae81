"""The payer's own book: a key for each target operator, vouchers, what was opened and what is owed.

A key is made when it is first needed, kept among the secrets and used for one operator only: nothing joins it
with this node or with what we pay another.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.events import LedgerChanged
from relaydesk.core.ledger import paid as rules
from relaydesk.core.ledger.ask import AskRecord, Want
from relaydesk.core.ledger.extensions import MOST_SETTLEMENTS, LedgerNote
from relaydesk.core.ledger.keys import KeySigner
from relaydesk.core.ledger.paid import PaidTicket
from relaydesk.core.ledger.records import OpenRecord, Values, fields_of, signature
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.statement import Statement
from relaydesk.core.ledger.voucher import VoucherCode, parse_code
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.view.ledger import CreditView
from relaydesk.engine.bus import Bus
from relaydesk.store.db import Database
from relaydesk.store.paid import PaidAccount, PaidBook, PaidRepo
from relaydesk.store.secrets import Secrets

# No deadline of a target is further away: what was not said until then is not said any more.
LATE_MS: Final = 86_400_000


class Extras(msgspec.Struct, frozen=True):
    """What goes into a reserve: ``relaydesk_voucher`` (empty: none) and ``relaydesk_settle``."""

    voucher: str = ""
    settle: tuple[dict[str, Any], ...] = ()

    @property
    def fields(self) -> dict[str, Any]:
        """The reserve's extra JSON fields; none where there is nothing to say."""
        found: dict[str, Any] = {"relaydesk_voucher": self.voucher} if self.voucher else {}
        return found | ({"relaydesk_settle": list(self.settle)} if self.settle else {})


class Purse:
    """Make it inside the loop; the database must be open, the secrets prepared."""

    def __init__(self, database: Database, secrets: Secrets, clock: Clock, rng: Rng, bus: Bus) -> None:
        self._repo = PaidRepo(database)
        self._secrets = secrets
        self._clock = clock
        self._rng = rng
        self._bus = bus
        self._keys: dict[int, KeySigner] = {}
        self._making = asyncio.Lock()
        self._view: tuple[CreditView, ...] = ()

    async def start(self) -> None:
        """Read how the accounts stand and give up what is too old. Raises `EnvError` ``storage_failed``."""
        await self.give_up()
        await self._refresh()

    async def give_up(self) -> None:
        """What is too old to be said is not said any more. Raises `EnvError` ``storage_failed``."""
        before = self._clock.wall_ms() - LATE_MS
        await self._repo.run(lambda book: book.give_up(before))

    async def key(self, operator: int) -> KeySigner:
        """The payer key for an operator, made where there is none: it signs reserves and opens.

        Raises `EnvError` ``secret_failed``; an unreadable key is never replaced by a new one.
        """
        async with self._making:
            found = self._keys.get(operator)
            if found is None:
                found = self._keys[operator] = await asyncio.to_thread(self._load, operator)
        return found

    def _load(self, operator: int) -> KeySigner:
        name = f"payer-{operator}"
        text = self._secrets.get(name)
        if text is None:
            text = self._rng.token_bytes(32).hex()
            self._secrets.put(name, text)
        try:
            seed = bytes.fromhex(text)
        except ValueError:
            seed = b""
        if len(seed) != 32:
            raise EnvError(
                "secret_failed",
                f"the secret {name} is no payer key",
                "restore it from a backup: it is credit",
            )
        return KeySigner(seed)

    # Paying

    async def open_(
        self, ref: NodeRef, ticket_id: str, model: str, max_price: int, expires_at: int
    ) -> PaidTicket:
        """Sign for a ticket and write that down; ``tx_id`` and ``extension`` go into the inner header.

        Repeated for the same ticket it gives the same. Raises `RecordError`, `EnvError`.
        """
        key = await self.key(ref.operator)
        record = OpenRecord(ticket_id, ref.operator, ref.node, key.address, max_price, expires_at)
        made = rules.pay(record, key, model, self._clock.wall_ms())

        def work(book: PaidBook) -> PaidTicket:
            found = book.ticket(made.tx_id)
            if found is None:
                book.keep(made)
            return found or made

        return await self._repo.run(work)

    async def claim(self, tx_id: str, values: Values) -> PaidTicket:
        """The receipt was verified: its values are told to the target with the next reserve.

        Raises `LedgerRefusal`: ``unknown_ticket``, ``claim_differs``, ``over_price``.
        """
        return await self._change(tx_id, lambda ticket, key: rules.claimed(ticket, values, key))

    async def protest(self, tx_id: str, body_hash: str) -> PaidTicket:
        """What came is not what the receipt states; ``body_hash`` is of what came (64 hex digits).

        Raises `LedgerRefusal`: ``unknown_ticket``, ``claim_differs``.
        """
        return await self._change(tx_id, lambda ticket, key: rules.protested(ticket, body_hash, key))

    async def _change(self, tx_id: str, rule: Any) -> PaidTicket:
        ticket = await self.ticket(tx_id)
        if ticket is None:
            raise LedgerRefusal("unknown_ticket")
        key = await self.key(ticket.open.operator)

        def work(book: PaidBook) -> PaidTicket:
            now = book.ticket(tx_id) or ticket
            changed: PaidTicket = rule(now, key)
            if changed is not now:
                book.keep(changed)
            return changed

        return await self._repo.run(work)

    async def ticket(self, tx_id: str) -> PaidTicket | None:
        """A ticket that we opened."""
        return await self._repo.read(lambda book: book.ticket(tx_id))

    # With a reserve

    async def extras(self, ref: NodeRef) -> Extras:
        """What the next reserve to a target is to carry. It is repeated until `told` has the answer."""
        items, voucher = await self._repo.read(
            lambda book: (book.waiting(ref, MOST_SETTLEMENTS), book.waiting_voucher(ref))
        )
        code = None
        if voucher is not None:
            code = await asyncio.to_thread(self._secrets.get, _voucher_name(voucher))
        return Extras(code or "", tuple(item for each in items if (item := each.item) is not None))

    async def told(self, ref: NodeRef, note: LedgerNote, sent: Extras) -> None:
        """The target's ``relaydesk_ledger``, in answer to what was ``sent``."""
        key = await self.key(ref.operator)
        now = self._clock.wall_ms()
        done = (
            parse_code(sent.voucher).id if sent.voucher and (note.refused or note.voucher is not None) else ""
        )

        def work(book: PaidBook) -> None:
            book.tell(PaidAccount(ref, key.address, note.balance, note.held, now))
            for said in note.settled[:MOST_SETTLEMENTS]:
                ticket = book.ticket(said.tx_id)
                # Only of its own tickets can a target tell.
                if ticket is not None and (ticket.open.operator, ticket.open.node) == ref:
                    book.keep(rules.answered(ticket, said))
            if done:
                book.end_voucher(done, "refused" if note.refused else "redeemed", note.voucher or 0)

        await self._repo.run(work)
        if done:
            await asyncio.to_thread(self._secrets.remove, _voucher_name(done))
        await self._refresh()

    async def ask(self, ref: NodeRef, want: Want, sent: Extras, after: int = 0) -> bytes:
        """The signed JSON to seal for `/v1/zs/ledger`; ``sent`` is what `extras` gave."""
        key = await self.key(ref.operator)
        record = AskRecord(want, key.address, *ref, after, self._clock.wall_ms() // 1000)
        found = fields_of(record) | {"sig": signature(key, record)}
        found |= {"voucher": sent.voucher, "settle": list(sent.settle)}
        return msgspec.json.encode(found)

    # Vouchers, accounts, statements

    async def add_voucher(self, code: str) -> VoucherCode:
        """A code goes with the next reserve to its node. Raises `LocalError` ``invalid_request``."""
        try:
            parsed = parse_code(code)
        except ValueError as error:
            raise LocalError(
                "invalid_request",
                str(error),
                "paste it again as its seller gave it, the whole line that starts with rdv2.",
                param="code",
            ) from error
        key = await self.key(parsed.ref.operator)
        now = self._clock.wall_ms()
        await asyncio.to_thread(self._secrets.put, _voucher_name(parsed.id), parsed.text)

        def work(book: PaidBook) -> None:
            book.add_voucher(parsed.id, parsed.ref, now)
            if all(account.ref != parsed.ref for account in book.accounts()):
                book.tell(PaidAccount(parsed.ref, key.address))

        await self._repo.run(work)
        await self._refresh()
        return parsed

    async def accounts(self) -> tuple[PaidAccount, ...]:
        """Our accounts at targets, as they last told us."""
        return await self._repo.read(lambda book: book.accounts())

    async def disagreement(self, ref: NodeRef, signing: str, statement: Statement) -> str:
        """The first thing in a target's statement that our book does not bear out; empty for none."""
        key = await self.key(ref.operator)
        head = statement.statement
        if (head.operator, head.node) != ref or head.account != key.address:
            return "it is of another account"
        tickets = await self._repo.read(lambda book: book.tickets(ref))
        paid = {each.tx_id: each for each in tickets}
        # Every row has a signature to be checked.
        return await asyncio.to_thread(rules.disagreement, statement, signing, paid)

    def view(self) -> tuple[CreditView, ...]:
        """Our credit as it was last told."""
        return self._view

    async def _refresh(self) -> None:
        self._view = tuple(
            CreditView(*each.ref, each.payer, each.balance, each.held, each.open, each.waiting, each.told_ms)
            for each in await self.accounts()
        )
        self._bus.publish(LedgerChanged())


def _voucher_name(voucher: str) -> str:
    return f"voucher-{voucher[:40]}"
