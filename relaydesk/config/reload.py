"""What SIGHUP may change, and what has to wait for a restart."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from relaydesk.config.model import SETTINGS, Settings


class Changes(NamedTuple):
    """Keys of the settings that differ."""

    applied: tuple[str, ...]
    needs_restart: tuple[str, ...]


def diff(old: Settings, new: Settings) -> Changes:
    """Which settings differ, by whether a running node takes them."""
    changed = [item for item in SETTINGS if getattr(old, item.key) != getattr(new, item.key)]
    return Changes(
        tuple(item.key for item in changed if item.reload),
        tuple(item.key for item in changed if not item.reload),
    )


def merge(old: Settings, new: Settings) -> Settings:
    """What a running node goes on with: ``old`` with every reloadable value of ``new``."""
    return dataclasses.replace(old, **{key: getattr(new, key) for key in diff(old, new).applied})
