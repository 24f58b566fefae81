"""Groups whose verbs are imported when called: `status` must not pay for `serve`."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb: its name, where its command is (``module:attribute``), and its line of help.

    The help stands here so that the list of verbs is printed without importing any of them.
    """

    name: str
    target: str
    help: str

    @property
    def built(self) -> bool:
        """Whether its module is part of this version; one that is not has no line in the help."""
        return importlib.util.find_spec(self.target.partition(":")[0]) is not None

    def load(self) -> click.Command:
        """Import the command."""
        module, _, attribute = self.target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


class LazyGroup(click.Group):
    """A group over `Verb` rows, listed in the order given."""

    def __init__(self, *args: Any, verbs: Sequence[Verb] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._verbs = {verb.name: verb for verb in verbs}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [name for name, verb in self._verbs.items() if verb.built]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        verb = self._verbs.get(cmd_name)
        return verb.load() if verb is not None and verb.built else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, self._verbs[name].help) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
