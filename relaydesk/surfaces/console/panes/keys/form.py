"""What a named key is asked: its name, its limits, its models, its end; as texts, settings, and options."""

from __future__ import annotations

import re
from typing import Any, Final

from relaydesk.config.expiry import ALLOWED, parse_expiry
from relaydesk.core.access.credit import CREDIT_ALLOWED, parse_credit
from relaydesk.core.errors import LocalError
from relaydesk.core.view.sections import KeyView
from relaydesk.surfaces.console.ask import Field
from relaydesk.surfaces.console.panes.keys.present import day_time

LIMITS: Final = (
    ("tokens_per_day", "tokens a day", "--tokens-per-day"),
    ("max_concurrency", "at once", "--max-concurrency"),
    ("requests_per_minute", "per minute", "--requests-per-minute"),
)
NOTE: Final = (
    f"Empty or 0 is no limit; models apart by blanks, empty for all; expires: {ALLOWED}; network: yes or no, "
    "for models of the relay network, and microunits or 0.50USD a day to pay there, 0 for nothing."
)
_SWITCHES: Final = {"yes": "--network", "no": "--no-network", "": "--no-network"}
_COUNT: Final = re.compile(r"(\d{1,18})([kKmM]?)")
_STEPS: Final = {"": 1, "k": 1_000, "m": 1_000_000}


def fields(key: KeyView | None = None) -> tuple[Field, ...]:
    """The settings as fields: empty ones for a new key, else what holds now."""
    limits = tuple(
        Field(label, "no limit", _limit(getattr(key, name)) if key is not None else "")
        for name, label, _ in LIMITS
    )
    models = " ".join(key.models) if key is not None else ""
    expires = day_time(key.expires_at_ms) if key is not None and key.expires_at_ms else ""
    network = ("yes" if key.network else "no") if key is not None else ""
    credit = _limit(key.credit_per_day) if key is not None else ""
    return (
        *limits,
        Field("models", "all", models),
        Field("expires", "never", expires),
        Field("network", "no", network),
        Field("credit a day", "pays nothing", credit),
    )


def settings(answers: tuple[str, ...], now_ms: int, key: KeyView | None = None) -> dict[str, Any]:
    """What the answers to `fields` set; of a key that is there only what is another than before.

    Raises `LocalError` ``invalid_request`` naming the field.
    """
    *limits, models, expires, network, credit = answers
    *old_limits, old_models, old_expires, old_network, old_credit = (field.value for field in fields(key))
    found: dict[str, Any] = {}
    for (name, label, _), text, old in zip(LIMITS, limits, old_limits, strict=True):
        if text != old:
            found[name] = _count(label, text)
    if models != old_models:
        found["models"] = _names(models)
    if expires != old_expires:
        found["expires_ms"] = _expiry(expires, now_ms)
    if network != old_network:
        found["network"] = _switch(network)
    if credit != old_credit:
        found["credit_per_day"] = _credit(credit)
    return found


def options(answers: tuple[str, ...], key: KeyView | None = None) -> str:
    """The same as options of ``relaydesk key``; what cannot be read yet stands there as it is typed."""
    *limits, models, expires, network, credit = answers
    *old_limits, old_models, old_expires, old_network, old_credit = (field.value for field in fields(key))
    words: list[str] = []
    for (_, _, option), text, old in zip(LIMITS, limits, old_limits, strict=True):
        if text != old:
            words.append(f"{option} {_shown(text)}")
    if models != old_models:
        words += [f"--model {name}" for name in _names(models)] or ["--model all"]
    if expires != old_expires:
        words.append(f"--expires {expires or 'never'}")
    if network != old_network:
        words.append(_SWITCHES.get(network.strip().lower(), f"--network {network}"))
    if credit != old_credit:
        words.append(f"--credit-per-day {_bare(credit) or '0'}")
    return " ".join(words)


def _count(label: str, text: str) -> int:
    found = _COUNT.fullmatch(_bare(text) or "0")
    if found is None:
        raise LocalError("invalid_request", f"{label}: {text[:40]!r} is no number", "write 20, 200k, or 0")
    return int(found[1]) * _STEPS[found[2].lower()]


def _shown(text: str) -> str:
    found = _COUNT.fullmatch(_bare(text) or "0")
    return str(int(found[1]) * _STEPS[found[2].lower()]) if found is not None else text


def _bare(text: str) -> str:
    return re.sub(r"[\s,_]", "", text)


def _names(text: str) -> list[str]:
    names = text.replace(",", " ").split()
    return [] if names == ["all"] else names


def _expiry(text: str, now_ms: int) -> int:
    try:
        return parse_expiry(text or "never", now_ms)
    except ValueError:
        raise LocalError(
            "invalid_request", f"expires: {text[:40]!r} is no time", f"write {ALLOWED}"
        ) from None


def _switch(text: str) -> bool:
    word = text.strip().lower()
    if word not in _SWITCHES:
        raise LocalError("invalid_request", f"network: {text[:40]!r} is no answer", "write yes or no")
    return word == "yes"


def _credit(text: str) -> int:
    try:
        return parse_credit(text or "0")
    except ValueError:
        raise LocalError(
            "invalid_request", f"credit a day: {text[:40]!r} is no amount", f"write {CREDIT_ALLOWED}"
        ) from None


def _limit(value: int) -> str:
    return str(value) if value else ""
