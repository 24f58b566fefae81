"""Asking before something is lost."""

from __future__ import annotations

import sys

import click

from relaydesk.core.errors import LocalError
from relaydesk.surfaces.cli.output import note

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
    note(f"This {does}. It loses {loses}.")
    if not click.confirm("Go on?", default=False, err=True):
        note("Nothing was changed.")
        raise click.exceptions.Exit(1)
