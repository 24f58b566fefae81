"""``relaydesk key list`` and ``usage``."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import click

from relaydesk.core.commands import ShowUsage
from relaydesk.core.errors import PeerError
from relaydesk.core.view.sections import KeysView, KeyView, Section
from relaydesk.surfaces.cli.attach import attach_option, find_node, json_option, read
from relaydesk.surfaces.cli.key.options import day_text, limit_text
from relaydesk.surfaces.cli.output import print_json, say, table, tell
from relaydesk.surfaces.control.routes import VIEWS

_DAY_S: Final = 86_400
_WEEK: Final = 7


@click.command("list")
@json_option
@attach_option
def listing(as_json: bool, attach: Path | None) -> None:
    """Every key, what it may do, and what it has used today."""
    section = read(find_node(attach).get(f"{VIEWS}/keys"), Section[KeysView])
    if section.value is None:
        raise PeerError("internal_error", "the node cannot list its keys", "try again")
    keys = section.value.keys
    if as_json:
        print_json({"keys": keys})
        return
    head = ("KEY", "TODAY", "TOKENS/DAY", "RUN", "AT ONCE", "PER MIN", "NETWORK", "MODELS", "EXPIRES")
    for line in table(head, [_row(key) for key in keys], indent="", shrink=(0, 7)):
        say(line)


def _row(key: KeyView) -> tuple[str, ...]:
    return (
        key.name,
        f"{key.used:,}",
        limit_text(key.tokens_per_day),
        str(key.running),
        limit_text(key.max_concurrency),
        limit_text(key.requests_per_minute),
        _network(key),
        ", ".join(key.models) or "all",
        day_text(key.expires_at_ms) if key.expires_at_ms else "never",
    )


def _network(key: KeyView) -> str:
    """What of its credit of the day is spent or set aside, in microunits."""
    if not key.network:
        return "no"
    return f"{key.credit_spent + key.credit_held:,}/{key.credit_per_day:,}" if key.credit_per_day else "free"


class Since(click.ParamType[Any]):
    """A day (``2027-01-31``) or a number of days (``30d``); gives days since 1970."""

    name = "DAY"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, int):
            return value
        text = str(value).strip().lower()
        if text.endswith("d") and text[:-1].isdigit() and len(text) < 7:
            return max(0, time.time_ns() // 1_000_000_000 // _DAY_S - int(text[:-1]) + 1)
        try:
            return (date.fromisoformat(text) - date(1970, 1, 1)).days
        except ValueError:
            self.fail(f"{text[:40]!r} is no day: give 2027-01-31, or 30d for the last thirty.", param, ctx)


@click.command()
@click.argument("name")
@click.option("--since", type=Since(), default=f"{_WEEK}d", help="2027-01-31, or 30d; 7d without it.")
@json_option
@attach_option
def usage(name: str, since: int, as_json: bool, attach: Path | None) -> None:
    """What the key NAME used, by day (UTC). `default` is the default key."""
    value = find_node(attach).call(ShowUsage(name=name, since_day=max(0, since))).value
    days = [{**row, "day": _day(row["day"])} for row in value["days"]]
    if as_json:
        print_json({**value, "days": days})
        return
    if not days:
        tell(f"{name} has used nothing since {_day(max(0, since))}.")
        return
    head = ["DAY", "REQUESTS", "PROMPT", "ANSWER", "TOKENS"]
    columns = ["requests", "prompt_tokens", "completion_tokens", "tokens"]
    if any(row.get("credit") for row in days):
        head, columns = [*head, "CREDIT"], [*columns, "credit"]
    rows = [(row["day"], *(f"{row.get(each, 0):,}" for each in columns)) for row in days]
    total = ("in all", *(f"{sum(row.get(each, 0) for row in days):,}" for each in columns))
    for line in table(head, [*rows, total], indent=""):
        say(line)
    left = value["now"]["tokens_left"]
    if left is not None:
        tell(f"{left:,} tokens are left today.")
    credit = value["now"].get("credit") or {}
    if credit.get("limit"):
        tell(f"{credit['left']:,} microunits of credit are left today.")


def _day(number: int) -> str:
    return datetime.fromtimestamp(number * _DAY_S, UTC).strftime("%Y-%m-%d")
