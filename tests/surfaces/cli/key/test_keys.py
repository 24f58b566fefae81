"""`relaydesk key`: what the node is asked, and what people read."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from relaydesk.core.commands import AddKey, RemoveKey, SetKey, ShowUsage
from relaydesk.core.view.sections import KeysView, KeyView

SETTINGS = {
    "tokens_per_day": 1000,
    "max_concurrency": 0,
    "requests_per_minute": 0,
    "models": ["m"],
    "expires_ms": 0,
    "in_path": False,
}
MADE = {"name": "ann", "key": "rk-" + "0" * 64, **SETTINGS}


def test_add_shows_the_secret_alone_on_stdout(cli: Any, node: Any) -> None:
    node.answer(AddKey, MADE)
    done = cli("key", "add", "ann", "--tokens-per-day", "1000", "--model", "m")
    assert (done.code, done.out) == (0, MADE["key"] + "\n")
    assert node.seen == [AddKey("ann", {"tokens_per_day": 1000, "models": ["m"]})]
    assert "only time" in done.err
    assert "tokens a day: 1,000" in done.err
    assert cli("key", "add", "ann", "--in-path", "--json").json == MADE
    assert node.seen[-1] == AddKey("ann", {"in_path": True})


@pytest.mark.parametrize(
    ("given", "seconds"), [("30d", 30 * 86_400), ("12h", 12 * 3600), ("90m", 5400)], ids=str
)
def test_an_expiry_from_now(cli: Any, node: Any, given: str, seconds: int) -> None:
    node.answer(AddKey, MADE)
    cli("key", "add", "ann", "--expires", given)
    expected = time.time_ns() // 1_000_000 + seconds * 1000
    assert abs(node.seen[0].settings["expires_ms"] - expected) < 60_000


def test_an_expiry_by_day_and_none(cli: Any, node: Any) -> None:
    node.answer(SetKey, {"name": "ann", "old": SETTINGS, **SETTINGS})
    cli("key", "set", "ann", "--expires", "2031-02-03")
    day = datetime(2031, 2, 3, tzinfo=UTC).timestamp() * 1000
    cli("key", "set", "ann", "--expires", "never")
    assert node.seen == [SetKey("ann", {"expires_ms": day}), SetKey("ann", {"expires_ms": 0})]


@pytest.mark.parametrize(
    "options",
    [
        ("--expires", "soon"),
        ("--expires", "2031-13-01"),
        ("--tokens-per-day", "-1"),
        ("--tokens-per-day", "1.5"),
        ("--max-concurrency", "9" * 30),
    ],
)
def test_what_cannot_be_is_a_usage_error(cli: Any, node: Any, options: tuple[str, str]) -> None:
    refused = cli("key", "add", "ann", *options)
    assert (refused.code, refused.out, node.seen) == (2, "", [])
    assert options[0] in refused.err


def test_the_network_and_its_credit(cli: Any, node: Any) -> None:
    node.answer(AddKey, {**MADE, "network": True, "credit_per_day": 250_000})
    done = cli("key", "add", "ann", "--network", "--credit-per-day", "0.25USD")
    assert node.seen == [AddKey("ann", {"credit_per_day": 250_000, "network": True})]
    assert "relay network: yes" in done.err
    assert "credit a day: 250,000 (0.25 USD)" in done.err
    node.answer(SetKey, {"name": "ann", "old": {**SETTINGS, "network": True}, **SETTINGS, "network": False})
    done = cli("key", "set", "ann", "--no-network", "--credit-per-day", "250000")
    assert node.seen[-1] == SetKey("ann", {"credit_per_day": 250_000, "network": False})
    assert done.out.splitlines() == ["ann: relay network yes → no"]
    for amount in ("0.25", "-1", "1 EUR", "lots"):
        refused = cli("key", "set", "ann", "--credit-per-day", amount)
        assert refused.code == 2 and "microunits such as 500000 or 5M, or USD such as 0.50USD" in " ".join(
            refused.err.split()
        )


def test_a_key_of_the_network_without_credit_is_told_what_is_missing(cli: Any, node: Any) -> None:
    node.answer(AddKey, {**MADE, "network": True, "credit_per_day": 0})
    done = cli("key", "add", "ann", "--network")
    assert "credit a day: 0: it may buy nothing; set --credit-per-day" in done.err
    node.answer(AddKey, {**MADE, "network": False, "credit_per_day": 0})
    assert "credit a day: 0\n" in cli("key", "add", "ann").err
    node.answer(SetKey, {"name": "ann", "old": SETTINGS, **SETTINGS, "network": True})
    done = cli("key", "set", "ann", "--network")
    assert done.out == "ann: relay network no → yes\n"
    assert "credit a day: 0: it may buy nothing; set --credit-per-day" in done.err


def test_usage_has_credit_where_there_was_any(cli: Any, node: Any) -> None:
    day = {"day": 20_000, "requests": 2, "prompt_tokens": 1000, "completion_tokens": 30, "tokens": 1030}
    credit = {"limit": 5000, "spent": 1500, "held": 0, "left": 3500}
    now = {"tokens_left": None, "credit": credit}
    node.answer(ShowUsage, {"name": "ann", "days": [{**day, "credit": 1500}], "now": now})
    done = cli("key", "usage", "ann")
    assert done.out.splitlines()[0].split()[-1] == "CREDIT"
    assert done.out.splitlines()[1].split()[-1] == "1,500"
    assert "3,500 microunits of credit are left today." in done.out + done.err


def test_set_says_what_changed(cli: Any, node: Any) -> None:
    node.answer(SetKey, {"name": "ann", "old": SETTINGS, **SETTINGS, "tokens_per_day": 0, "models": []})
    done = cli("key", "set", "ann", "--tokens-per-day", "0", "--model", "all")
    assert node.seen == [SetKey("ann", {"tokens_per_day": 0, "models": []})]
    assert done.out.splitlines() == ["ann: tokens a day 1,000 → none", "ann: models m → all"]
    node.answer(SetKey, {"name": "ann", "old": SETTINGS, **SETTINGS})
    assert cli("key", "set", "ann", "--tokens-per-day", "1000").out == "ann: it is so already\n"
    assert cli("key", "set", "ann").code == 2


def test_rm_only_when_confirmed(cli: Any, node: Any) -> None:
    node.answer(RemoveKey, {"name": "ann", "running": 2})
    refused = cli("key", "rm", "ann")
    assert (refused.code, node.seen) == (4, [])
    assert "gets 401" in refused.err
    done = cli("key", "rm", "ann", "--yes")
    assert done.out == "ann is revoked; 2 of its requests are still running\n"


def test_list(cli: Any, node: Any) -> None:
    node.views["keys"] = KeysView(
        (
            KeyView("default", "0" * 8, "state directory"),
            KeyView(
                "ann",
                "1" * 8,
                "key add",
                tokens_per_day=5000,
                used=1234,
                models=("a", "b"),
                network=True,
                credit_per_day=9000,
                credit_spent=1000,
                credit_held=500,
            ),
            KeyView("bob", "2" * 8, "key add", network=True),
        )
    )
    done = cli("key", "list")
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0][:3] == ["KEY", "TODAY", "TOKENS/DAY"]
    assert lines[1][:3] == ["default", "0", "none"]
    assert lines[2][:3] == ["ann", "1,234", "5,000"]
    assert [line[6] for line in lines] == ["PER", "no", "1,500/9,000", "free"]
    assert "a, b" in done.out
    assert [key["name"] for key in cli("key", "list", "--json").json["keys"]] == ["default", "ann", "bob"]


def test_usage(cli: Any, node: Any) -> None:
    day = {"day": 20_000, "requests": 2, "prompt_tokens": 1000, "completion_tokens": 30, "tokens": 1030}
    node.answer(ShowUsage, {"name": "ann", "days": [day], "now": {"tokens_left": 70}})
    done = cli("key", "usage", "ann", "--since", "2024-10-04")
    assert node.seen == [ShowUsage("ann", 20_000)]
    assert done.out.splitlines()[1].split() == ["2024-10-04", "2", "1,000", "30", "1,030"]
    assert done.out.splitlines()[2].split() == ["in", "all", "2", "1,000", "30", "1,030"]
    assert "70 tokens are left today." in done.out + done.err
    assert cli("key", "usage", "ann", "--json").json["days"][0]["day"] == "2024-10-04"
    cli("key", "usage", "ann", "--since", "1d")
    assert node.seen[-1].since_day == time.time_ns() // 10**9 // 86_400
    node.answer(ShowUsage, {"name": "ann", "days": [], "now": {"tokens_left": None}})
    assert "ann has used nothing since" in cli("key", "usage", "ann").err + cli("key", "usage", "ann").out
    assert cli("key", "usage", "ann", "--since", "yesterday").code == 2
