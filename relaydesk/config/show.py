"""Settings as people see them: `config show` and the generated page."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relaydesk.config.load import DEFAULT_ORIGIN, Loaded
from relaydesk.config.model import BY_KEY, SETTINGS, Setting, Settings


@dataclass(frozen=True, slots=True)
class Shown:
    """One setting's value as text, and its origin. A secret shows only whether it is set."""

    name: str
    value: str
    origin: str
    help: str


def shown(loaded: Loaded) -> tuple[Shown, ...]:
    """Every setting in the order of the table."""
    return tuple(
        Shown(item.name, _value(item, loaded), loaded.origins.get(item.key, DEFAULT_ORIGIN), item.help)
        for item in SETTINGS
    )


def value_text(loaded: Loaded, key: str) -> str:
    """One value as text that reads back as the same value; a secret as ``(set)`` or empty."""
    return _value(BY_KEY[key], loaded)


def settings_of(values: Mapping[str, str]) -> Settings:
    """Settings out of values as they are shown, by name; secrets and what cannot be read keep defaults."""
    found: dict[str, Any] = {}
    for item in SETTINGS:
        if item.secret or item.name not in values:
            continue
        try:
            found[item.key] = item.kind.parse(values[item.name])
        except ValueError:
            continue  # a node of another version may know other values
    return dataclasses.replace(Settings(), **found)


def _value(setting: Setting, loaded: Loaded) -> str:
    value = getattr(loaded.settings, setting.key)
    if setting.secret:
        return "(set)" if value else ""
    return setting.kind.show(value)
