"""Handing in vouchers of other nodes: at once where their target can be asked (design §6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from relaydesk.core.errors import LocalError, PeerError
from relaydesk.core.ledger.voucher import VoucherCode
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.ledger.purse import Purse, read_voucher
from relaydesk.engine.relay.asking.asker import Asker
from relaydesk.engine.relay.exchange.accounts import Accounts
from relaydesk.store.paid import PaidAccount, PaidVoucher

# Somebody waits for it, and what is not said now is said later; spent twice where details are fetched first.
REDEEM_S: Final = 12.0


@dataclass(frozen=True, slots=True)
class HandedIn:
    """A voucher, what has become of it, and our account there.

    ``before``: it was redeemed earlier. ``why``: why its target could not be asked now, where it waits.
    """

    voucher: PaidVoucher
    account: PaidAccount
    before: bool = False
    why: str = ""


class Redeemer:
    """Refuses what could never be redeemed, and asks the target about the rest."""

    def __init__(self, accounts: Accounts, asker: Asker, purse: Purse) -> None:
        self._accounts = accounts
        self._asker = asker
        self._purse = purse

    async def redeem(self, text: str) -> HandedIn:
        """Hand a voucher's code in, at once where its target can be asked; else it waits.

        Raises `LocalError` for a code that is none, or of a node that cannot be asked: ``invalid_request``,
        ``not_found``; `EnvError` where the purse's disk fails.
        """
        code = read_voucher(text)
        self._askable(code.ref)
        await self._purse.add_voucher(text)
        found = await self._standing(code)
        if found.voucher.state != "waiting":
            return replace(found, before=True)
        try:
            await self._accounts.ask(code.ref, voucher=code.id, budget_s=REDEEM_S)
        except PeerError as error:
            return replace(await self._standing(code), why=error.fault.message)
        return await self._standing(code)

    async def _standing(self, code: VoucherCode) -> HandedIn:
        voucher = await self._purse.voucher(code.id)
        account = next((each for each in await self._purse.accounts() if each.ref == code.ref), None)
        assert voucher is not None
        assert account is not None
        return HandedIn(voucher, account)

    def _askable(self, ref: NodeRef) -> None:
        """Whether a voucher of that node could ever be redeemed. Raises `LocalError`."""
        if ref == self._asker.peers.self_ref:
            raise LocalError(
                "invalid_request",
                f"the voucher is for credit at this node itself ({ref})",
                "whoever bought it redeems it at a node of theirs",
                param="code",
            )
        if self._asker.peers.get(ref) is not None:
            return
        known = next((each for each in self._asker.relays_view().relays if each.ref == str(ref)), None)
        if known is not None:
            why = f" ({known.why})" if known.why else ""
            raise LocalError(
                "conflict",
                f"the voucher is of node {ref}, which this node does not use: it is {known.standing}{why}",
                "see `relaydesk operators list`",
                param="code",
            )
        raise LocalError(
            "not_found",
            f"the voucher is of node {ref}, and no directory lists that node",
            "see `relaydesk relays`; it may be of another network",
            param="code",
        )
