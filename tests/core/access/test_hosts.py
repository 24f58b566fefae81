from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.access.hosts import host_name, is_own

NAMES = frozenset({"hub.example.org", "192.168.1.5"})


@pytest.mark.parametrize(
    "header",
    ["localhost", "LOCALHOST:8383", "localhost.", "a.localhost:1", "127.0.0.1", "127.0.0.1:8383", "127.9.9.9",
     "[::1]", "[::1]:8383", "[::ffff:127.0.0.1]:1", "hub.example.org", "Hub.Example.Org:443",
     "hub.example.org.:443", "192.168.1.5:80", " localhost "],
)  # fmt: skip
def test_names_of_this_machine(header: str) -> None:
    assert is_own(header, NAMES)


@pytest.mark.parametrize(
    "header",
    ["evil.example", "evil.example:8383", "localhost.evil.example", "127.0.0.1.evil.example", "xlocalhost",
     "evil.example@localhost", "localhost@evil.example", "localhost:80:80", "localhost/evil", "", " ", ":80",
     "sub.hub.example.org", "192.168.1.6", "[fe80::1]", "[::1", "::1", "0", "2130706433", "0x7f.1",
     "localhost\tevil", "localhost,evil.example", "8.8.8.8"],
)  # fmt: skip
def test_foreign_names(header: str) -> None:
    assert not is_own(header, NAMES)


@given(st.text(max_size=60))
def test_any_header_has_an_answer(header: str) -> None:
    name = host_name(header)
    assert name is None or (name and name == name.lower() and not name.isspace())
    assert is_own(header, frozenset()) <= is_own(header, NAMES)


@given(st.from_regex(r"[a-z0-9-]{1,10}(\.[a-z0-9-]{1,10}){1,3}", fullmatch=True), st.integers(0, 65535))
def test_no_name_of_the_web_is_taken_for_this_machine(name: str, port: int) -> None:
    own = name.endswith(".localhost") or name.startswith("127.")
    assert not is_own(f"{name}:{port}", frozenset()) or own
