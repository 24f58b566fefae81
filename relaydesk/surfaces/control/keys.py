"""From the seed's ``/keys`` routes to commands: what a body may say."""

from __future__ import annotations

from typing import Any, Final

from relaydesk.core.access.limits import FIELDS
from relaydesk.core.commands import AddKey, Command, RemoveKey, SetKey
from relaydesk.core.errors import LocalError
from relaydesk.surfaces.control.answers import refuse_unknown, text_field

_SETTINGS: Final = frozenset({*FIELDS, "models", "expires_ms", "in_path", "network"})


def to_add(body: dict[str, Any]) -> Command:
    """``POST /keys``: a ``name`` and the key's settings. Raises `LocalError` ``invalid_request``."""
    refuse_unknown(body, _SETTINGS | {"name"}, "a key")
    return AddKey(text_field(body, "name"), _settings(body))


def to_set(path_name: str, body: dict[str, Any]) -> Command:
    """``PATCH /keys[/NAME]``: settings to change. Raises `LocalError` ``invalid_request``."""
    refuse_unknown(body, _SETTINGS | {"name"}, "a key")
    settings = _settings(body)
    if not settings:
        raise LocalError("invalid_request", "the body changes nothing", "give at least one setting")
    return SetKey(_named(path_name, body), settings)


def to_remove(path_name: str, body: dict[str, Any]) -> Command:
    """``DELETE /keys[/NAME]``. Raises `LocalError` ``invalid_request``."""
    refuse_unknown(body, frozenset({"name"}), "a key to remove")
    return RemoveKey(_named(path_name, body))


def _settings(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "name"}


def _named(path_name: str, body: dict[str, Any]) -> str:
    named = text_field(body, "name")
    if path_name and named and path_name != named:
        raise LocalError("invalid_request", "path and body name different keys", param="name")
    return path_name or named
