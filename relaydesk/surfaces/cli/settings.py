"""The settings as a verb of the command line sees them, and the flags that set them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from relaydesk.config.load import Loaded, load

F = TypeVar("F", bound=Callable[..., Any])


def load_settings(flags: Mapping[str, str | None] | None = None) -> Loaded:
    """Read all layers, with the file of ``relaydesk --config`` where it was given."""
    ctx = click.get_current_context(silent=True)
    config = ctx.find_object(Path) if ctx is not None else None
    return load(flags=flags, config=config)


def settings_flags(command: F) -> F:
    """Give a command one flag for each setting that is no secret; they arrive as text or None, by key."""
    from relaydesk.config.model import SETTINGS

    for setting in reversed(SETTINGS):
        if not setting.secret:
            default = f" [default: {setting.default}]" if setting.default else ""
            command = click.option(
                setting.flag,
                setting.key,
                metavar=setting.kind.metavar,
                default=None,
                help=setting.help.replace("`", "") + default,
            )(command)
    return command
