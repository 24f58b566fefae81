"""What one paid ticket comes to: told to the purse and to whoever asked, once, however the exchange ends."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from relaydesk.core.errors import EnvError
from relaydesk.core.ledger.paid import PaidTicket
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.relay.exchange.receipt_check import ReceiptVerdict, judge_receipt
from relaydesk.core.relay.price.charge import net_fee
from relaydesk.core.relay.records.canonical import RecordError
from relaydesk.core.relay.records.receipt import Receipt, decode_receipt
from relaydesk.engine.ledger.purse import Purse
from relaydesk.engine.relay.exchange.request import Paid
from relaydesk.engine.relay.exchange.reserve import Reservation
from relaydesk.engine.relay.exchange.timings import Timings

_log: Final = logging.getLogger(__name__)


class Bill:
    """One ticket that was opened. ``relay`` is who carried its request last."""

    def __init__(
        self,
        reservation: Reservation,
        paid: PaidTicket,
        purse: Purse,
        timings: Timings,
        on_paid: Callable[[Paid], None],
        fee_bps: int,
    ) -> None:
        self.reservation = reservation
        self.paid = paid
        self.relay = reservation.relay
        self._purse = purse
        self._timings = timings
        self._on_paid = on_paid
        self._fee_bps = fee_bps
        self._told = False

    @property
    def tx_id(self) -> str:
        """What the answer is bound to, beside the ticket."""
        return self.paid.tx_id

    def refused(self) -> None:
        """The target, or every relay, refused before anything was served: nothing is owed."""
        self._tell(0, ok=False)

    def unknown(self) -> None:
        """No receipt will come: as far as anybody here knows, all of it may be taken."""
        self._tell(self.reservation.ticket.max_price, ok=False)

    async def settle(self, data: bytes | None, body_hash: str, *, failed: bool) -> str:
        """A whole answer was read: what is wrong with its receipt, empty where it holds.

        ``data`` is the receipt's JSON, None without one. The purse is told what we agree to, or what came
        instead. A purse that fails is logged: silence counts as consent, so nothing is lost but the protest.
        """
        receipt = _decoded(data)
        if receipt is None:
            self.unknown()
            return "missing" if data is None else "unreadable"
        held = self.reservation
        judged = judge_receipt(receipt, held.ticket, held.public, body_hash, failed=failed)
        try:
            await self._settle(judged, body_hash)
        except LedgerRefusal as refusal:
            _log.error("our book does not take the receipt of node %s: %s", held.ref, refusal.message)
        except EnvError as error:
            _log.error("the receipt of node %s is not written down: %s", held.ref, error.fault.sentence)
        if judged.wrong:
            _log.warning("the receipt of node %s does not hold: %s", held.ref, judged.wrong)
        self._count(receipt, judged)
        return judged.wrong

    async def _settle(self, judged: ReceiptVerdict, body_hash: str) -> None:
        if judged.step == "protest":
            await self._purse.protest(self.tx_id, body_hash)
        elif judged.values is not None:
            await self._purse.claim(self.tx_id, judged.values)

    def _count(self, receipt: Receipt, judged: ReceiptVerdict) -> None:
        if judged.values is None:
            self.unknown()
            return
        amount = judged.values.amount
        if judged.step == "agree" and receipt.decode_ms > 0 and receipt.actual_output_count:
            speed = receipt.actual_output_count / receipt.decode_ms * 1000
            held = self.reservation
            self._timings.add(held.ref, held.ticket.model, held.rtt_ms, receipt.ttft_ms, speed)
        self._tell(amount + net_fee(amount, self._fee_bps), ok=judged.step == "agree")

    def _tell(self, amount: int, *, ok: bool) -> None:
        if self._told:
            return
        self._told = True
        held = self.reservation
        self._on_paid(Paid(self.relay, held.ref, held.ticket.max_price, amount, ok))


def _decoded(data: bytes | None) -> Receipt | None:
    try:
        return None if data is None else decode_receipt(data)
    except RecordError:
        return None
