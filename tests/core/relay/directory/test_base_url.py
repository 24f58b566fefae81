from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.directory.base_url import MAX_BYTES, check_base_url
from relaydesk.core.relay.directory.refusal import Refused

GOOD = [
    "https://a.example.org",
    "https://a.example.org:8443/relay/x-1",
    "https://93.184.216.34",
    "https://[2606:2800:220:1::1]:1",
    "https://" + "a" * 60 + ".org/" + "b" * (MAX_BYTES - 73),
]
LAB = ["http://127.0.0.1:8384", "http://localhost:1", "https://10.1.2.3/x", "https://[::1]", "https://node"]
ODD = [
    "",
    "https://",
    "ftp://a.org",
    "HTTPS://a.org",
    "https://a.org/",
    "https://a.org?x",
    "https://a.org#x",
    "https://a.org?",
    "https://u@a.org",
    "https://u:p@a.org",
    "https://a.org:0",
    "https://a.org:65536",
    "https://a.org:",
    "https://a.org:８",
    "https://a.org/a//b",
    "https://a.org/../b",
    "https://a.org/.",
    "https://a.org/a%2f",
    "https://a.org\\@b.org",
    "https://a.org\n",
    "https://a.org /",
    "https://ä.org",
    "https://a.org\x1b[2J",
    "https://1.2.3",
    "https://0x7f000001",
    "https://2130706433",
    "https://[::1",
    "https://[fe80::1%25eth0]",
    "https://" + "a" * 60 + ".org/" + "b" * (MAX_BYTES - 72),
    "//a.org",
    "a.org",
]


@pytest.mark.parametrize("text", GOOD)
def test_good_ones_stay_as_they_are(text: str) -> None:
    assert check_base_url(text, allow_private=False) == text
    assert len(text) <= MAX_BYTES


@pytest.mark.parametrize(
    "text", [*LAB, "http://a.example.org", "https://x.local", "https://[::ffff:10.0.0.1]"]
)
def test_private_ones_are_for_labs(text: str) -> None:
    assert check_base_url(text, allow_private=True) == text
    with pytest.raises(Refused) as caught:
        check_base_url(text, allow_private=False)
    assert caught.value.kind == "base_url"


@pytest.mark.parametrize("text", ODD)
def test_odd_ones_are_refused_everywhere_and_not_repeated(text: str) -> None:
    with pytest.raises(Refused) as caught:
        check_base_url(text, allow_private=True)
    assert caught.value.kind == "base_url"
    assert caught.value.sentence.isprintable()


@given(st.text(max_size=40).map(lambda rest: "https://" + rest))
def test_any_text_is_taken_as_it_is_or_refused(text: str) -> None:
    try:
        assert check_base_url(text, allow_private=True) == text
    except Refused:
        return
    assert text.isascii()
    assert not {"@", "?", "#", "%", "\\"} & set(text)
