"""The commands about our accounts at targets, carried out."""

from __future__ import annotations

from relaydesk.core.codec import to_builtins
from relaydesk.core.commands import FetchStatement, Outcome, RedeemCredit
from relaydesk.core.errors import LocalError
from relaydesk.core.ledger.ask import ROWS
from relaydesk.core.ledger.refusal import voucher_refusal
from relaydesk.core.ledger.statement import Statement
from relaydesk.core.text import safe_text
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.relay.commands import parse_ref
from relaydesk.engine.relay.exchange.accounts import Accounts, HeldAgainst
from relaydesk.engine.relay.exchange.redeemer import Redeemer


class AccountCommands:
    """The statement that was fetched last is kept until its last page was given."""

    def __init__(self, accounts: Accounts, redeemer: Redeemer) -> None:
        self._accounts = accounts
        self._redeemer = redeemer
        self._last: HeldAgainst | None = None

    def register(self, dispatcher: Dispatcher) -> None:
        """Offer the handlers."""
        dispatcher.on(FetchStatement, self.fetch)
        dispatcher.on(RedeemCredit, self.redeem)

    async def fetch(self, command: FetchStatement) -> Outcome:
        """``value``: a page as a `Statement`, with ``disagreement`` beside it."""
        ref = parse_ref(command.node)
        last = self._last
        if not command.after or last is None or last.ref != ref:
            last = await self._accounts.statement(ref)
        end = max(0, command.after) + ROWS
        rows = last.statement.rows[max(0, command.after) : end]
        self._last = last if end < len(last.statement.rows) else None
        page = to_builtins(Statement(last.statement.statement, rows))
        return Outcome(ok=True, value={**page, "disagreement": last.disagreement})

    async def redeem(self, command: RedeemCredit) -> Outcome:
        """``value``: whose account it is, and whether the voucher was credited or waits for its target.

        Raises `LocalError` ``conflict`` where the target refuses it.
        """
        found = await self._redeemer.redeem(command.code)
        voucher, ref = found.voucher, found.voucher.ref
        if voucher.state == "refused":
            raise LocalError(
                "conflict",
                f"node {ref} refuses the voucher: {voucher_refusal(voucher.reason)}",
                "ask who sold it for another; `relaydesk ledger balance` lists it",
                param="code",
            )
        return Outcome(
            ok=True,
            value={
                "operator": ref.operator,
                "node": ref.node,
                "payer": found.account.payer,
                "state": voucher.state,
                "amount": voucher.amount,
                "balance": found.account.balance,
                "before": found.before,
                "why": safe_text(found.why, 300),
            },
        )
