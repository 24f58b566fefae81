"""The wizard's rows in the table of actions."""

from __future__ import annotations

from relaydesk.core.commands import CancelJob, CheckHop
from relaydesk.surfaces.console.action import ANYWHERE
from relaydesk.surfaces.console.panes.hopcheck.actions import ACTIONS, HOPCHECK, OPEN
from relaydesk.surfaces.console.panes.hopcheck.standing import HIDDEN, OFFERED


def test_the_wizard_is_opened_from_anywhere_and_has_its_own_keys() -> None:
    assert OPEN.where == ANYWHERE
    assert "X-Zs-Relay-Hop" in OPEN.title
    assert {each.where for each in ACTIONS} == {HOPCHECK}
    assert {each.command for each in ACTIONS if each.command} == {CheckHop, CancelJob}


def test_every_action_is_offered_at_some_step() -> None:
    ids = {each.id for each in ACTIONS}
    offered = {name for names in OFFERED.values() for name in names}
    assert offered <= ids
    assert ids - offered == {"hopcheck.before"}
    assert set(HIDDEN) <= ids
