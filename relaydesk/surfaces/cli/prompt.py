"""Asking before something is lost."""

from __future__ import annotations

import sys

import click

from relaydesk.core.errors import LocalError

yes_option = click.option("--yes", "-y", is_flag=True, help="Do it without asking.")


def confirm(command: str, does: str, loses: str, *, yes: bool) -> None:
    """Return where ``command`` may be done. ``does`` completes "it …", ``loses`` says what would be gone.

    Raises `LocalError` ``refused`` where nobody can be asked, `click.exceptions.Exit` 1 on a no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise LocalError(
            "refused",
            f"`relaydesk {command}` {does}",
            f"this loses {loses}; add `--yes` if that is wanted",
        )
    click.echo(f"This {does}. It loses {loses}.", err=True)
    if not click.confirm("Go on?", default=False, err=True):
        click.echo("Nothing was changed.", err=True)
        raise click.exceptions.Exit(1)
