"""``relaydesk service``: systemd units."""

from __future__ import annotations

import grp
import os
import stat
import sys
from pathlib import Path
from typing import Final

import click

from relaydesk.service.install import Place, place
from relaydesk.service.install import install as write_unit
from relaydesk.service.install import uninstall as remove_unit
from relaydesk.service.unit import GPU_GROUPS, UnitOptions, system_unit, user_unit
from relaydesk.surfaces.cli.lazy import LazyGroup
from relaydesk.surfaces.cli.output import note, say
from relaydesk.surfaces.cli.settings import load_settings
from relaydesk.surfaces.cli.verbs import verb

_TEMPORARY: Final = (Path("/tmp"), Path("/var/tmp"))

_user_option = click.option("--user", is_flag=True, help="A service of your own rather than the machine's.")


@click.group(cls=LazyGroup, verbs=verb("service").below)
def service() -> None:
    """Run relaydesk as a systemd service."""


@click.command("print")
@_user_option
def print_unit(user: bool) -> None:
    """Print the unit that `install` would write."""
    say(_unit(user).rstrip("\n"))
    _warn(user)


@click.command()
@_user_option
def install(user: bool) -> None:
    """Write the unit and say how to start it. Without --user this needs root."""
    where = place(user=user)
    unit = _unit(user)
    written = write_unit(where, unit)
    say(f"{where.path} is {'written' if written else 'there already'}. Next:")
    say(f"  {where.manager} daemon-reload")
    say(f"  {where.manager} enable --now relaydesk")
    if user:
        say("  loginctl enable-linger   # to keep it running while you are logged out")
    _warn(user)


@click.command()
@_user_option
def uninstall(user: bool) -> None:
    """Remove the unit and say how to stop it. Models, keys and certificates stay."""
    where: Place = place(user=user)
    if not remove_unit(where):
        say(f"{where.path} is not there: nothing to remove")
        return
    say(f"{where.path} is removed. A service that still runs is stopped with:")
    say(f"  {where.manager} disable --now relaydesk")
    say(f"  {where.manager} daemon-reload")


def _unit(user: bool) -> str:
    settings = load_settings().settings
    options = UnitOptions(
        command=_command(),
        drain_s=settings.drain_timeout,
        port=settings.listen.port,
        acme_port=settings.acme_http_listen.port if settings.tls_domain and not settings.acme_dns_hook else 0,
        groups=() if user else _groups(),
    )
    return user_unit(options) if user else system_unit(options)


def _command() -> tuple[str, ...]:
    """How this very program is started again: its script beside the interpreter, else the module."""
    script = Path(sys.executable).with_name("relaydesk")
    if os.access(script, os.X_OK):
        return (str(script), "serve")
    return (sys.executable, "-m", "relaydesk", "serve")


def _groups() -> tuple[str, ...]:
    """The groups of GPU devices that this machine has."""
    known = {group.gr_name for group in grp.getgrall()}
    return tuple(name for name in GPU_GROUPS if name in known)


def _warn(user: bool) -> None:
    """Say on stderr why the service would not start, where that can be told."""
    # A virtual environment's interpreter is a link: the file it leads to must be in reach as well.
    programs = (Path(_command()[0]), Path(sys.executable).resolve())
    elsewhere = "install relaydesk below /opt or /usr/local"
    if not user:
        elsewhere += ", or use `relaydesk service install --user`"
    for program in programs:
        temporary = next((each for each in _TEMPORARY if each in program.parents), None)
        if temporary is not None:
            why = "is emptied at each boot" if user else "is another one for the service"
            note(f"warning: {program} is in {temporary}, which {why}: {elsewhere}")
            return
        if not user and (closed := _closed_directory(program)):
            note(f"warning: the service's own user cannot enter {closed} to start {program}: {elsewhere}")
            return


def _closed_directory(program: Path) -> Path | None:
    """The first directory above the program that another user may not enter."""
    for directory in reversed(program.absolute().parents):
        try:
            if not directory.stat().st_mode & stat.S_IXOTH:
                return directory
        except OSError:
            return directory
    return None
