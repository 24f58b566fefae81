"""The settings of a key as options, and as people read them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from relaydesk.config.expiry import ALLOWED, parse_expiry
from relaydesk.core.access.credit import CREDIT_ALLOWED, credit_text, parse_credit
from relaydesk.core.access.limits import FIELDS, MOST

F = TypeVar("F", bound=Callable[..., Any])


class Expiry(click.ParamType[Any]):
    """A time as `parse_expiry` reads it; gives milliseconds since 1970, 0 for never."""

    name = "WHEN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, int):
            return value
        try:
            return parse_expiry(value, time.time_ns() // 1_000_000)
        except ValueError:
            self.fail(f"{str(value).strip()[:40]!r} is no time: give {ALLOWED}.", param, ctx)


class Credit(click.ParamType[Any]):
    """An amount as `parse_credit` reads it, in a closed range; gives microunits."""

    name = "AMOUNT"

    def __init__(self, least: int = 0, most: int = MOST) -> None:
        self._least, self._most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, int):
            return value
        try:
            amount = parse_credit(value)
        except ValueError:
            self.fail(f"{str(value).strip()[:40]!r} is no amount: give {CREDIT_ALLOWED}.", param, ctx)
        if not self._least <= amount <= self._most:
            self.fail(f"{amount:,} microunits is not {self._least:,} to {self._most:,}.", param, ctx)
        return amount


def setting_options(command: F) -> F:
    """Every setting of a key as an option; one that is not given is None."""
    limit = click.IntRange(0, MOST)
    for option in reversed(
        (
            click.option("--tokens-per-day", type=limit, metavar="N", help="Tokens a day, UTC; 0: no limit."),
            click.option("--max-concurrency", type=limit, metavar="N", help="Requests at once; 0: no limit."),
            click.option(
                "--requests-per-minute", type=limit, metavar="N", help="Requests in 60 seconds; 0: no limit."
            ),
            click.option("--expires", type=Expiry(), help=f"{ALLOWED}."),
            click.option(
                "--model",
                "models",
                multiple=True,
                metavar="NAME",
                help="Only this model; may be repeated. `all` for every one.",
            ),
            click.option(
                "--network/--no-network", default=None, help="Whether it may ask models of the relay network."
            ),
            click.option(
                "--credit-per-day",
                type=Credit(),
                help=f"What it may pay there in a day, UTC: {CREDIT_ALLOWED}; 0 pays nothing.",
            ),
        )
    ):
        command = option(command)
    return command


def settings_of(options: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given, as the node takes them."""
    settings = {name: options[name] for name in (*FIELDS, "network") if options[name] is not None}
    if options["expires"] is not None:
        settings["expires_ms"] = options["expires"]
    if options["models"]:
        settings["models"] = [] if "all" in options["models"] else list(options["models"])
    return settings


def day_text(wall_ms: int) -> str:
    """A time as its day and minute in UTC."""
    return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def limit_text(value: int) -> str:
    """A limit as people read it."""
    return f"{value:,}" if value else "none"


def buys_nothing(found: dict[str, Any]) -> str:
    """What follows ``credit a day: 0`` of a key of the network, where 0 is no lack of a limit; or nothing."""
    if not found.get("network") or found.get("credit_per_day", 0):
        return ""
    return ": it may buy nothing; set --credit-per-day"


def facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    """What a key may do, a name and a value each; limits first."""
    models = found.get("models") or ()
    expires = found.get("expires_ms", 0)
    return [
        ("tokens a day", limit_text(found["tokens_per_day"])),
        ("requests at once", limit_text(found["max_concurrency"])),
        ("requests a minute", limit_text(found["requests_per_minute"])),
        ("models", ", ".join(models) if models else "all"),
        ("expires", day_text(expires) if expires else "never"),
        ("relay network", "yes" if found.get("network") else "no"),
        ("credit a day", credit_text(found.get("credit_per_day", 0))),
        *([("place", "only in a URL: /k/<key>/v1")] if found.get("in_path") else []),
    ]
