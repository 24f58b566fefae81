from __future__ import annotations

from relaydesk.core.access.exposure import Exposure


def test_what_holds_where_nothing_was_said() -> None:
    exposure = Exposure()
    assert (exposure.prefix, exposure.hosts, exposure.proxies) == ("", None, ())
    assert exposure.origins.allows("http://localhost:3000")
    assert not exposure.origins.allows("https://evil.example")
