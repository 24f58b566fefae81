"""What can be done with keys."""

from __future__ import annotations

from relaydesk.surfaces.console.panes.keys.actions import ACTIONS


def test_replacing_a_key_is_a_danger_and_showing_it_is_not() -> None:
    by_id = {action.id: action for action in ACTIONS}
    show, rotate = by_id["keys.show"], by_id["keys.rotate"]
    assert "every client" in by_id["keys.revoke"].danger
    assert not show.danger
    assert "every client" in rotate.danger
    # Who may only look must not get at the key.
    assert show.writes
    assert rotate.writes
