from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.config import kinds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("1h30m", 5400), ("250ms", 0.25), ("1.5h", 5400), ("0", 0), ("0s", 0),
     ("1m0.5s", 60.5)],
)  # fmt: skip
def test_durations(text: str, seconds: float) -> None:
    assert kinds.parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "10", "10 m", "-1s", "1d", "m", "1h-3m", ".5s", "1e3s", "10M", "1s ", "inf", "９s"]
)
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        kinds.parse_duration(text)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 30 * 24 * 3_600_000))
def test_durations_round_trip_to_the_millisecond(milliseconds: int) -> None:
    shown = kinds.show_duration(milliseconds / 1000)
    assert round(kinds.parse_duration(shown) * 1000) == milliseconds


def test_duration_bounds_and_forever() -> None:
    kind = kinds.duration("1s", "1h", forever=True)
    assert kind.parse("1s") == 1
    assert kind.parse("60m") == 3600
    assert kind.parse("forever") == kind.parse("-1") == kinds.FOREVER
    assert kind.show(kinds.FOREVER) == "forever"
    for text in ("999ms", "1h1ms"):
        with pytest.raises(ValueError, match="range"):
            kind.parse(text)
    with pytest.raises(ValueError, match="not a duration"):
        kinds.duration("1s", "1h").parse("forever")


@pytest.mark.parametrize("text", ["", "1.0", "0x10", "1_0", "+1", " 1", "11", "-1", "1" * 50, "１"])
def test_integers_refused(text: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        kinds.integer(0, 10).parse(text)


def test_credit() -> None:
    kind = kinds.credit()
    assert kind.parse("0.25USD") == kind.parse("250000") == 250_000
    assert kind.parse(kind.show(250_000)) == 250_000
    with pytest.raises(ValueError, match="no amount"):
        kind.parse("0.25")


def test_names_are_lower_case_once_and_ordered() -> None:
    kind = kinds.names()
    assert kind.parse("Hub.Example.org, 10.0.0.7  fd00::0:1,hub.example.org") == (
        "hub.example.org", "10.0.0.7", "fd00::1",
    )  # fmt: skip
    assert kind.parse("") == ()


@pytest.mark.parametrize("text", ["a..b", "*.x.org", "-a", "a-", "1.2.3.4.5", "http://x", "x:80", "a" * 64])
def test_names_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a host name"):
        kinds.names().parse(text)


def test_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/op")
    kind = kinds.path()
    assert kind.parse("") is None
    assert kind.parse("~/x") == Path("/home/op/x")
    assert kinds.resolve(kind.parse("../x"), "/etc/relaydesk") == Path("/etc/x")
    assert kinds.resolve(kind.parse("/x/./y"), "/etc") == Path("/x/y")
    for text in ("a\0b", "~no-such-user-here/x"):
        with pytest.raises(ValueError, match=r".*"):
            kind.parse(text)


@pytest.mark.parametrize("text", [" ", "a b", "a\n", "é", "\x7f", "x" * 513])
def test_secrets_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a key"):
        kinds.secret().parse(text)


def test_choice_is_case_blind() -> None:
    kind = kinds.choice("auto", "on", "off")
    assert kind.parse("ON") == "on"
    assert kind.allowed == "auto, on or off"
    with pytest.raises(ValueError, match="one of them"):
        kind.parse("yes")


@pytest.mark.parametrize(
    ("text", "kept"), [("", ""), ("/", ""), ("relay", "/relay"), ("/a//b/", "/a/b"), ("/v1x", "/v1x")]
)
def test_mounts(text: str, kept: str) -> None:
    assert kinds.mount().parse(text) == kept
    assert kinds.mount().parse(kept) == kept


@pytest.mark.parametrize(
    "text", ["/v1", "/api/x", "/a b", "/a?b", "/..", "/a/./b", "/a%2f", "/é", "https://x"]
)
def test_mounts_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a path"):
        kinds.mount().parse(text)


def test_items_are_kept_once_and_in_order() -> None:
    kind = kinds.items(str.lower, "words", "WORDS")
    assert kind.parse("B, a  b") == ("b", "a")
    assert kind.show(("b", "a")) == "b,a"
    assert kind.parse("") == ()


@pytest.mark.parametrize(
    "text",
    [
        "hub", "10.0.0.1", "fd00::1", "*", "*.org", "**.a.test", "a.*.test", "https://a.test", "a_b.test",
        "a.test:443", "a..test", "-.test",
    ],
)  # fmt: skip
def test_domains_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        kinds.domains().parse(text)


def test_domains_are_lower_case_once_and_ordered() -> None:
    kind = kinds.domains()
    assert kind.parse("*.Lab.test B.test.,b.test") == ("*.lab.test", "b.test")
    assert kind.parse("") == ()


@pytest.mark.parametrize(
    "text", ["", "acme.test/dir", "http://acme.test/", "https://", "https://u:p@a.test/", "https://a b/",
             "https://a.test:99999/", "https://a.test/\n", "HTTPS"],
)  # fmt: skip
def test_urls_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        kinds.https_url().parse(text)


def test_urls_stay_as_they_are() -> None:
    assert kinds.https_url().parse("https://[::1]:14000/dir?x=1") == "https://[::1]:14000/dir?x=1"


@pytest.mark.parametrize(
    "text",
    [
        "node.example.org",
        "ftp://node.example.org",
        "https://",
        "https://u:p@node.example.org",
        "https://node.example.org/?q",
        "https://node.example.org/#f",
        "https://node.example.org/a/../b",
        "https://node.example.org:99999",
        "https://node.exämple.org",
        "https://node.example.org/a b",
        "https://node.example.org/" + "a" * 248,
    ],
)
def test_base_urls_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"base URL|248|[Pp]ort"):
        kinds.base_url().parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", ""),
        ("https://node.example.org/", "https://node.example.org"),
        ("https://node.example.org:8384/relay/", "https://node.example.org:8384/relay"),
        ("http://127.0.0.1:8384", "http://127.0.0.1:8384"),
    ],
)
def test_base_urls_lose_their_last_slash(text: str, value: str) -> None:
    assert kinds.base_url().parse(text) == value


@pytest.mark.parametrize(
    "text", ["me", "me@", "@a.test", "me@host", "a@b.test, c@d.test", "a b@c.test", "me@a.test\n"]
)
def test_mail_addresses_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a mail address"):
        kinds.email().parse(text)


@given(st.text(max_size=80))
def test_no_text_is_half_read(text: str) -> None:
    for kind in (kinds.domains(), kinds.https_url(), kinds.base_url(), kinds.email(), kinds.address()):
        try:
            value = kind.parse(text)
        except ValueError:
            continue
        assert kind.parse(kind.show(value)) == value  # type: ignore[arg-type]
