from __future__ import annotations

from relaydesk.config.listen import Listen
from relaydesk.config.model import Settings
from relaydesk.config.reload import diff, merge


def test_what_a_running_node_takes() -> None:
    old = Settings()
    new = Settings(listen=Listen("", 1), heartbeat=5.0, log_level="debug")
    assert diff(old, old) == ((), ())
    changes = diff(old, new)
    assert changes.applied == ("heartbeat", "log_level")
    assert changes.needs_restart == ("listen",)
    merged = merge(old, new)
    assert (merged.listen, merged.heartbeat, merged.log_level) == (old.listen, 5.0, "debug")
    assert diff(merged, new) == ((), ("listen",))
