from __future__ import annotations

from relaydesk.core.text import SafeText
from relaydesk.core.view.network import RelayView
from relaydesk.surfaces.cli.names import named_by


def test_a_name_stands_beside_the_number() -> None:
    rows = [
        RelayView("1:0", "O", SafeText("u"), "eligible", name=SafeText("ann")),
        RelayView("2:0", "P", SafeText("u"), "eligible"),
    ]
    named = named_by(rows)
    assert [named(ref) for ref in ("1:0", "2:0", "3:0", "")] == ["ann 1:0", "2:0", "3:0", ""]
