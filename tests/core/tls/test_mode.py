from __future__ import annotations

import pytest

from relaydesk.core.errors import LocalError
from relaydesk.core.tls.mode import tls_wanted


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "LocalHost.", "a.localhost", "::ffff:127.0.0.1"],
)
def test_auto_is_plain_only_on_loopback(host: str) -> None:
    assert not tls_wanted("auto", host)
    assert tls_wanted("on", host)


@pytest.mark.parametrize(
    "host", ["", "*", "0.0.0.0", "::", "[::]", "192.168.1.2", "hub", "localhost.example", "127.0.0.1.example"]
)
def test_auto_is_tls_wherever_another_machine_may_reach(host: str) -> None:
    assert tls_wanted("auto", host)
    assert not tls_wanted("off", host)


def test_another_mode_names_variable_value_and_choice() -> None:
    with pytest.raises(LocalError, match=r"RELAY_V1_TLS is 'yes'.*auto, on or off") as caught:
        tls_wanted("yes", "")
    assert caught.value.fault.code == "bad_setting"
