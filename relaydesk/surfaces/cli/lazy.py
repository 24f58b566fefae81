"""Groups whose verbs are imported when called: `status` must not pay for `serve`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from relaydesk.surfaces.cli.verbs import Verb


class LazyGroup(click.Group):
    """A group over `Verb` rows, listed in the order given.

    Called without a verb it prints its help as it is, on stderr with the exit code of misuse.
    """

    def __init__(self, *args: Any, verbs: Sequence[Verb] = (), **kwargs: Any) -> None:
        super().__init__(*args, **{"no_args_is_help": False, **kwargs})
        self._verbs = {verb.name: verb for verb in verbs}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, verb in self._verbs.items() if verb.built]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = self._verbs.get(cmd_name)
        return verb.load() if verb is not None and verb.built else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, self._verbs[name].help) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not self.invoke_without_command and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if not word.startswith("-") and word not in self.list_commands(ctx):
            from relaydesk.surfaces.cli.meant import no_such_command

            raise no_such_command(ctx, word)
        return super().resolve_command(ctx, args)
