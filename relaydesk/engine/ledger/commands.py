"""The commands about the ledger, carried out."""

from __future__ import annotations

from typing import Final

import msgspec

from relaydesk.core.codec import to_builtins
from relaydesk.core.commands import (
    IssueCredit,
    Outcome,
    ResolveDispute,
    ShowLedger,
    ShowStatement,
)
from relaydesk.core.errors import LocalError
from relaydesk.core.ledger.ask import ROWS
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.view.ledger import LedgerView
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.ledger.ledger import Ledger
from relaydesk.engine.ledger.purse import Purse

# What is turned into JSON at once on the loop.
PAGE: Final = ROWS


class LedgerCommands:
    """Handlers for what is answered out of our own books; `AccountCommands` has what targets are asked."""

    def __init__(self, ledger: Ledger, purse: Purse) -> None:
        self._ledger = ledger
        self._purse = purse

    def register(self, dispatcher: Dispatcher) -> None:
        """Offer all handlers."""
        dispatcher.on(ShowLedger, self.show)
        dispatcher.on(IssueCredit, self.issue)
        dispatcher.on(ShowStatement, self.statement)
        dispatcher.on(ResolveDispute, self.resolve)

    def view(self) -> LedgerView:
        """The section ``ledger``: the target's books and the payer's."""
        return msgspec.structs.replace(
            self._ledger.view(), credit=self._purse.view(), refused=self._purse.refused()
        )

    async def show(self, _command: ShowLedger) -> Outcome:
        await self._ledger.refresh()
        return Outcome(ok=True, value=to_builtins(self.view()))

    async def issue(self, command: IssueCredit) -> Outcome:
        code = await self._ledger.issue(command.amount, command.expires_ms, command.note)
        value = {"code": code, "amount": command.amount, "expires_ms": command.expires_ms}
        return Outcome(ok=True, value=value)

    async def statement(self, command: ShowStatement) -> Outcome:
        account = await self._account(command.account)
        found = await self._ledger.statement(account, max(0, command.after), PAGE)
        return Outcome(ok=True, value=to_builtins(found))

    async def resolve(self, command: ResolveDispute) -> Outcome:
        try:
            ticket = await self._ledger.resolve(command.tx_id, command.amount)
        except LedgerRefusal as refusal:
            code = "not_found" if refusal.code == "unknown_ticket" else "conflict"
            raise LocalError(code, refusal.message, "see `relaydesk ledger balance`", param="tx_id") from None
        back = ticket.max_price - ticket.amount - ticket.fee
        return Outcome(ok=True, value={"tx_id": ticket.tx_id, "earned": ticket.amount, "refunded": back})

    async def _account(self, given: str) -> str:
        """The one address that begins so. Raises `LocalError` where none or several do."""
        found = await self._ledger.find_accounts(given.strip().upper())
        if len(found) == 1:
            return found[0]
        if not found:
            raise self._none(given)
        raise LocalError(
            "invalid_request",
            "several accounts begin so" if given else "there are several accounts",
            "name one: see `relaydesk ledger balance`",
            param="account",
        )

    def _none(self, given: str) -> LocalError:
        """There is no such account here; one of ours at a target is kept, and asked for, there."""
        wanted = given.strip().upper()
        ours = [each for each in self._purse.view() if each.payer.startswith(wanted)]
        if not ours:
            what = "no account begins so" if given else "nobody has an account at this node yet"
            return LocalError("not_found", what, "see `relaydesk ledger balance`", param="account")
        where = f"{ours[0].operator}:{ours[0].node}" if len(ours) == 1 else "OPERATOR:NODE"
        what = "that account is ours at another node" if given else "nobody has an account at this node"
        hint = f"for our own account at another node: `relaydesk ledger statement --at {where}`"
        return LocalError("not_found", what, hint, param="account")
