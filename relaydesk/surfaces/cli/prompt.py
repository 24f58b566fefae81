"""Asking before something is lost."""

from __future__ import annotations

import sys

import click

from relaydesk.core.errors import LocalError

yes_option = click.option("--yes", "-y", is_flag=True, help="Do it without asking.")


def confirm(question: str, loses: str, *, yes: bool) -> None:
    """Return where it may be done. ``loses`` says what would be gone.

    Raises `LocalError` ``refused`` where nobody can be asked, `click.exceptions.Exit` 1 on a no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise LocalError("refused", f"{question.rstrip('?')} loses {loses}", "add --yes if that is wanted")
    click.echo(f"This loses {loses}.", err=True)
    if not click.confirm(question, default=False, err=True):
        click.echo("Nothing was changed.", err=True)
        raise click.exceptions.Exit(1)
