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
from relaydesk.core.ledger.refusal import LedgerRefusal, voucher_refusal
from relaydesk.core.ledger.statement import Statement
from relaydesk.core.ledger.voucher import VoucherCode, parse_code
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.text import safe_text
from relaydesk.core.view.ledger import CreditView, RefusedVoucherView
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.bus import Bus
from relaydesk.engine.ledger.refused_alarm import RefusedAlarm
from relaydesk.store.db import Database
from relaydesk.store.paid import PaidAccount, PaidBook, PaidRepo, PaidVoucher, VoucherState
from relaydesk.store.secrets import Secrets

# No deadline of a target is further away: what was not said until then is not said any more.
LATE_MS: Final = 86_400_000


# How long a refused voucher is shown.
REFUSED_SHOWN_MS: Final = 30 * 86_400_000
_MOST_REFUSED: Final = 50


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

    def __init__(
        self, database: Database, secrets: Secrets, clock: Clock, rng: Rng, bus: Bus, alerts: AlertBoard
    ) -> None:
        self._repo = PaidRepo(database)
        self._secrets = secrets
        self._clock = clock
        self._rng = rng
        self._bus = bus
        self._alarm = RefusedAlarm(alerts, clock)
        self._keys: dict[int, KeySigner] = {}
        self._making = asyncio.Lock()
        self._view: tuple[CreditView, ...] = ()
        self._refused: tuple[RefusedVoucherView, ...] = ()

    async def start(self) -> None:
        """Read how the accounts stand and give up what is too old. Raises `EnvError` ``storage_failed``."""
        await self.give_up()
        await self._refresh()

    async def give_up(self) -> None:
        """What is too old to be said is not said any more. Raises `EnvError` ``storage_failed``."""
        before = self._clock.wall_ms() - LATE_MS
        await self._repo.run(lambda book: book.give_up(before))
        self._alarm.forget_old()

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

    async def extras(self, ref: NodeRef, first: str = "") -> Extras:
        """What the next reserve to a target is to carry. It is repeated until `told` has the answer.

        Of vouchers it is the oldest one that waits, or the one whose id is ``first``.
        """
        items, vouchers = await self._repo.read(
            lambda book: (book.waiting(ref, MOST_SETTLEMENTS), book.waiting_vouchers(ref))
        )
        code = await self._code(ref, sorted(vouchers, key=lambda voucher: voucher != first))
        return Extras(code, tuple(item for each in items if (item := each.item) is not None))

    async def _code(self, ref: NodeRef, vouchers: list[str]) -> str:
        """The first code that is there; one that is lost holds up none behind it."""
        for voucher in vouchers:
            code = await asyncio.to_thread(self._secrets.get, _voucher_name(voucher))
            if code is not None:
                return code
            await self._lost(ref, voucher)
        return ""

    async def _lost(self, ref: NodeRef, voucher: str) -> None:
        now = self._clock.wall_ms()
        if await self._repo.run(lambda book: book.end_voucher(voucher, "refused", now, reason="code_lost")):
            self._alarm.refused(ref, voucher, "code_lost")
            await self._refresh()

    async def told(self, ref: NodeRef, note: LedgerNote, sent: Extras, quiet: str = "") -> None:
        """The target's ``relaydesk_ledger``, in answer to what was ``sent``.

        A voucher that was refused raises the alert ``voucher_refused``, but for the one whose id is
        ``quiet``: somebody waits for the answer.
        """
        key = await self.key(ref.operator)
        now = self._clock.wall_ms()
        done = (
            parse_code(sent.voucher).id if sent.voucher and (note.refused or note.voucher is not None) else ""
        )

        def work(book: PaidBook) -> bool:
            book.tell(PaidAccount(ref, key.address, note.balance, note.held, now))
            for said in note.settled[:MOST_SETTLEMENTS]:
                ticket = book.ticket(said.tx_id)
                # Only of its own tickets can a target tell.
                if ticket is not None and (ticket.open.operator, ticket.open.node) == ref:
                    book.keep(rules.answered(ticket, said))
            state: VoucherState = "refused" if note.refused else "redeemed"
            return bool(done) and book.end_voucher(
                done, state, now, amount=note.voucher or 0, reason=note.refused
            )

        ended = await self._repo.run(work)
        if ended and note.refused and done != quiet:
            self._alarm.refused(ref, done, note.refused)
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
        """A code goes with the next reserve to its node. Raises `LocalError` ``invalid_request``.

        One that was refused may be handed in again; of one that was redeemed nothing changes.
        """
        parsed = read_voucher(code)
        known = await self.voucher(parsed.id)
        if known is not None and known.state == "redeemed":
            return parsed
        key = await self.key(parsed.ref.operator)
        now = self._clock.wall_ms()
        await asyncio.to_thread(self._secrets.put, _voucher_name(parsed.id), parsed.text)

        def work(book: PaidBook) -> None:
            book.add_voucher(parsed.id, parsed.ref, now)
            if all(account.ref != parsed.ref for account in book.accounts()):
                book.tell(PaidAccount(parsed.ref, key.address))

        await self._repo.run(work)
        self._alarm.over(parsed.id)
        await self._refresh()
        return parsed

    async def voucher(self, voucher: str) -> PaidVoucher | None:
        """What became of a voucher by its id; None where it was never handed in."""
        return await self._repo.read(lambda book: book.voucher(voucher))

    async def waiting_vouchers(self, ref: NodeRef) -> tuple[str, ...]:
        """The ids of those that a target has not answered yet."""
        return await self._repo.read(lambda book: book.waiting_vouchers(ref))

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

    def refused(self) -> tuple[RefusedVoucherView, ...]:
        """The vouchers that targets refused of late, newest first."""
        return self._refused

    async def _refresh(self) -> None:
        since = self._clock.wall_ms() - REFUSED_SHOWN_MS
        refused = await self._repo.read(lambda book: book.refused_vouchers(since, _MOST_REFUSED))
        self._refused = tuple(
            RefusedVoucherView(
                each.voucher[:8], *each.ref, safe_text(voucher_refusal(each.reason)), each.ended_ms
            )
            for each in refused
        )
        self._view = tuple(
            CreditView(*each.ref, each.payer, each.balance, each.held, each.open, each.waiting, each.told_ms)
            for each in await self.accounts()
        )
        self._bus.publish(LedgerChanged())


def read_voucher(code: str) -> VoucherCode:
    """A voucher's code. Raises `LocalError` ``invalid_request``."""
    try:
        return parse_code(code)
    except ValueError as error:
        raise LocalError(
            "invalid_request",
            str(error),
            "paste it again as its seller gave it, the whole line that starts with rdv2.",
            param="code",
        ) from error


def _voucher_name(voucher: str) -> str:
    return f"voucher-{voucher[:40]}"
