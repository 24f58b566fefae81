"""What can be done with credit."""

from __future__ import annotations

from relaydesk.surfaces.console.panes.ledger.actions import ACTIONS
from relaydesk.surfaces.console.panes.ledger.pane import LedgerPane
from relaydesk.surfaces.console.panes.ledger.present import BOOKS


def test_what_sends_nothing_has_its_method_and_what_ends_a_dispute_asks() -> None:
    for action in ACTIONS:
        assert action.command is not None or callable(getattr(LedgerPane, action.method))
    assert [action.id for action in ACTIONS if action.danger] == ["ledger.resolve"]


def test_every_list_can_be_opened_by_its_name() -> None:
    assert {f"ledger.{book.id}" for book in BOOKS} <= {action.id for action in ACTIONS}
