"""What may be meant by a verb that does not exist."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.surfaces.cli.meant import _ELSEWHERE, meant
from relaydesk.surfaces.cli.verbs import paths


@pytest.mark.parametrize(
    ("group", "word", "first"),
    [
        ("", "stauts", "status"),
        ("", "list", "model list"),
        ("", "fit", "model fit"),
        ("", "ls", "model list"),
        ("", "lst", "model list"),
        ("request", "lst", "request list"),
        ("request", "shw", "request show"),
        ("", "unlod", "model unload"),
        ("model", "lst", "model list"),
        ("model", "stauts", "status"),
        ("config", "chek", "config check"),
    ],
)
def test_first_guess(group: str, word: str, first: str) -> None:
    assert meant(group, word)[0] == first


def test_nothing_alike() -> None:
    assert meant("", "xyzzy") == []


def test_what_other_programs_call_it_leads_somewhere() -> None:
    assert set(_ELSEWHERE.values()) <= set(paths())
    assert not set(_ELSEWHERE) & set(paths())


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["", "model", "tls"]), st.text(min_size=1, max_size=12))
def test_guesses_are_commands_and_few(group: str, word: str) -> None:
    found = meant(group, word)
    assert len(found) == len(set(found)) <= 3
    assert set(found) <= set(paths())
