"""What the network listener may be opened as."""

from __future__ import annotations

import itertools

import pytest

from relaydesk.core.relay.door import Door, door, refused_url


@pytest.mark.parametrize(
    ("loopback", "certificate", "lab", "choice", "tls"),
    [
        (False, True, False, "auto", True),
        (False, True, True, "auto", True),
        (True, True, False, "auto", False),
        (True, True, False, "on", True),
        (True, False, False, "auto", False),
        (True, True, False, "off", False),
        (False, False, True, "auto", False),
        (False, True, True, "off", False),
    ],
)
def test_what_is_opened(loopback: bool, certificate: bool, lab: bool, choice: str, tls: bool) -> None:
    assert door(loopback=loopback, certificate=certificate, lab=lab, choice=choice) == Door(tls=tls)


@pytest.mark.parametrize(
    ("loopback", "certificate", "lab", "choice", "words"),
    [
        (False, False, False, "auto", "no certificate that the world trusts"),
        (False, False, False, "on", "there is no certificate"),
        (True, False, True, "on", "there is no certificate"),
        (False, True, False, "off", "plain HTTP to other machines"),
        (False, False, False, "off", "plain HTTP to other machines"),
    ],
)
def test_what_is_refused_says_why(
    loopback: bool, certificate: bool, lab: bool, choice: str, words: str
) -> None:
    found = door(loopback=loopback, certificate=certificate, lab=lab, choice=choice)
    assert words in found.problem
    assert "RELAY_" in found.hint


def test_nobody_outside_a_lab_is_spoken_to_without_tls() -> None:
    for loopback, certificate, choice in itertools.product(
        (False, True), (False, True), ("auto", "on", "off")
    ):
        found = door(loopback=loopback, certificate=certificate, lab=False, choice=choice)
        assert found.problem or found.tls or loopback


@pytest.mark.parametrize(
    ("url", "lab", "private", "words"),
    [
        ("https://node.example.org", True, False, "RELAY_ALLOW_PRIVATE"),
        ("https://192.168.0.9", False, True, "private address"),
        ("http://node.example.org", False, False, "not https"),
        ("http://node.example.org", False, None, "not https"),
    ],
)
def test_urls_that_cannot_be(url: str, lab: bool, private: bool | None, words: str) -> None:
    refusal = refused_url(url, lab=lab, private=private)
    assert refusal is not None
    assert words in refusal.problem
    assert refusal.hint


@pytest.mark.parametrize(
    ("url", "lab", "private"),
    [
        ("", False, None),
        ("", True, None),
        ("https://node.example.org", False, False),
        ("https://node.example.org", False, None),
        ("http://10.0.0.1:8384", True, True),
        ("https://node.lab", True, None),
    ],
)
def test_urls_that_can_be(url: str, lab: bool, private: bool | None) -> None:
    assert refused_url(url, lab=lab, private=private) is None
