"""What a named key is asked."""

from __future__ import annotations

import shlex
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import FaultError, LocalError
from relaydesk.surfaces.cli.key.options import setting_options, settings_of
from relaydesk.surfaces.console.panes.keys import form
from tests.surfaces.console.panes.scenes import DAY_MS, KEYS
from tests.surfaces.console.stage import NOW_MS

ANN = KEYS.keys[1]
HELD = tuple(field.value for field in form.fields(ANN))


def test_what_holds_now_stands_there_and_changes_nothing() -> None:
    assert HELD == ("200000", "2", "20", "smollm2", "2026-04-13 15:09 UTC", "no", "")
    assert form.settings(HELD, NOW_MS, ANN) == {}
    assert form.options(HELD, ANN) == ""


def test_only_what_differs_is_sent() -> None:
    answers = ("", "2", "20", "all", "never", "yes", "0.50 USD")
    assert form.settings(answers, NOW_MS, ANN) == {
        "tokens_per_day": 0,
        "models": [],
        "expires_ms": 0,
        "network": True,
        "credit_per_day": 500_000,
    }
    assert form.options(answers, ANN) == (
        "--tokens-per-day 0 --model all --expires never --network --credit-per-day 0.50USD"
    )


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        (("", "", "", "", "", "", ""), {}),
        (("200k", "", "", "", "", "", ""), {"tokens_per_day": 200_000}),
        (
            ("1,500", "3", "1 M", "", "", "", ""),
            {"tokens_per_day": 1500, "max_concurrency": 3, "requests_per_minute": 10**6},
        ),
        (("", "", "", "a, b c", "", "", ""), {"models": ["a", "b", "c"]}),
        (("", "", "", "", "2d", "", ""), {"expires_ms": NOW_MS + 2 * DAY_MS}),
        (
            ("", "", "", "net/a/b", "", " Yes", "1_500"),
            {"models": ["net/a/b"], "network": True, "credit_per_day": 1500},
        ),
    ],
)
def test_settings_of_a_new_key(answers: tuple[str, ...], found: dict[str, Any]) -> None:
    assert form.settings(answers, NOW_MS) == found


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (("many", "", "", "", "", "", ""), "tokens a day: 'many' is no number"),
        (("", "-1", "", "", "", "", ""), "at once: '-1' is no number"),
        (("", "", "", "", "soon", "", ""), "expires: 'soon' is no time"),
        (("", "", "", "", "", "maybe", ""), "network: 'maybe' is no answer"),
        (("", "", "", "", "", "", "0.5"), "credit a day: '0.5' is no amount"),
    ],
)
def test_what_cannot_be_names_its_field(answers: tuple[str, ...], said: str) -> None:
    with pytest.raises(LocalError, match=said):
        form.settings(answers, NOW_MS)


@click.command()
@setting_options
def _options(**options: Any) -> dict[str, Any]:
    return settings_of(options)


LIMIT = st.integers(0, 10**9).map(str) | st.just("")
NAMES = st.lists(st.sampled_from(("smollm2", "a", "qwen3:8b")), max_size=2, unique=True).map(" ".join)


SWITCH = st.sampled_from(("", "yes", "no"))
CREDIT = st.integers(0, 10**9).map(str) | st.decimals(0, 999, places=2).map(lambda each: f"{each} USD")


@given(st.tuples(LIMIT, LIMIT, LIMIT, NAMES, st.sampled_from(("", "never", "2027-01-31")), SWITCH, CREDIT))
def test_the_command_line_does_the_same(answers: tuple[str, ...]) -> None:
    found = _options.main(shlex.split(form.options(answers)), standalone_mode=False)
    assert found == form.settings(answers, NOW_MS)


@given(st.tuples(*[st.text(max_size=20)] * 7))
def test_any_answer_is_settings_or_a_fault(answers: tuple[str, ...]) -> None:
    form.options(answers, ANN)
    try:
        found = form.settings(answers, NOW_MS, ANN)
    except FaultError:
        return
    assert found.keys() <= {
        "tokens_per_day",
        "max_concurrency",
        "requests_per_minute",
        "models",
        "expires_ms",
        "network",
        "credit_per_day",
    }
