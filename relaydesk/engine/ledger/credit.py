"""Vouchers: issued by the operator, redeemed once by whoever has the code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from relaydesk.core.errors import LocalError
from relaydesk.core.ledger.records import Redemption, Signer, VoucherRecord, signature
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.ticket import Entry
from relaydesk.core.ledger.voucher import MOST_CREDIT, SECRET_BYTES, VoucherCode, parse_code
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.relay.address import decode_address
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.text import safe_text
from relaydesk.store.ledger import Books, LedgerRepo, StoredVoucher

NOTE_CHARS: Final = 64


class Credit:
    """``changed`` is called after anything was written."""

    def __init__(
        self,
        repo: LedgerRepo,
        ref: NodeRef,
        operator: Signer,
        clock: Clock,
        rng: Rng,
        changed: Callable[[], None],
    ) -> None:
        self._repo = repo
        self._ref = ref
        self._operator = operator
        self._clock = clock
        self._rng = rng
        self._changed = changed

    async def issue(self, amount: int, expires_ms: int, note: str) -> str:
        """A new voucher of ``amount`` microunits; gives its code, of which only the hash is kept.

        ``expires_ms`` is wall-clock milliseconds, 0 for never. Raises `LocalError` ``invalid_request``,
        `EnvError` ``storage_failed``.
        """
        now = self._clock.wall_ms()
        if not 0 < amount <= MOST_CREDIT:
            raise LocalError(
                "invalid_request", f"a voucher has 1 to {MOST_CREDIT:,} microunits", param="amount"
            )
        if expires_ms and not now < expires_ms < 1 << 52:
            raise LocalError("invalid_request", "a voucher expires in the future", param="expires_ms")
        code = VoucherCode(self._ref, self._rng.token_bytes(SECRET_BYTES))
        record = VoucherRecord(code.id, self._ref.operator, self._ref.node, amount, now, expires_ms)
        sig = signature(self._operator, record)
        stored = StoredVoucher(record, self._operator.address, sig, safe_text(note, NOTE_CHARS))
        await self._repo.run(lambda books: books.put_voucher(stored))
        self._changed()
        return code.text

    async def redeem(self, payer: str, code: str) -> int:
        """Credit ``payer`` with a voucher's amount and give that; the same payer again changes nothing.

        Raises `LedgerRefusal`: ``bad_voucher``, ``voucher_expired``, ``voucher_used``, ``bad_record`` (no
        address), ``account_full``.
        """
        try:
            parsed = parse_code(code)
        except ValueError as error:
            raise LedgerRefusal("bad_voucher") from error
        try:
            decode_address(payer)
        except ValueError as error:
            raise LedgerRefusal("bad_record") from error
        if parsed.ref != self._ref:
            raise LedgerRefusal("bad_voucher")
        now = self._clock.wall_ms()
        amount = await self._repo.run(lambda books: self._redeem(books, payer, parsed.id, now))
        self._changed()
        return amount

    def _redeem(self, books: Books, payer: str, voucher: str, now: int) -> int:
        found = books.voucher(voucher)
        if found is None:
            raise LedgerRefusal("bad_voucher")
        amount = found.record.amount
        if found.payer == payer:
            return amount
        if found.payer:
            raise LedgerRefusal("voucher_used")
        if found.record.expires_ms and now >= found.record.expires_ms:
            raise LedgerRefusal("voucher_expired")
        record = Redemption(voucher, payer, amount, now)
        sig = signature(self._operator, record)
        entry = Entry("redeem", record, self._operator.address, sig, balance=amount, issued=amount)
        books.book(payer, (entry,), now)
        books.spend_voucher(voucher, payer, now)
        return amount
