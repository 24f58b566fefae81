"""The command about our account at a target, carried out."""

from __future__ import annotations

from relaydesk.core.codec import to_builtins
from relaydesk.core.commands import FetchStatement, Outcome
from relaydesk.core.ledger.ask import ROWS
from relaydesk.core.ledger.statement import Statement
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.relay.commands import parse_ref
from relaydesk.engine.relay.exchange.accounts import Accounts, HeldAgainst


class AccountCommands:
    """The statement that was fetched last is kept until its last page was given."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._last: HeldAgainst | None = None

    def register(self, dispatcher: Dispatcher) -> None:
        """Offer the handler."""
        dispatcher.on(FetchStatement, self.fetch)

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
