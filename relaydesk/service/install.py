"""Writing a unit to where systemd looks, and taking it away again. Nothing is started or stopped here."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.service.unit import NAME, OURS

SYSTEM_DIR: Final = Path("/etc/systemd/system")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a unit goes. ``manager`` is the systemctl that looks there."""

    directory: Path
    manager: str
    needs_root: bool

    @property
    def path(self) -> Path:
        """The unit's file."""
        return self.directory / NAME


def place(*, user: bool) -> Place:
    """The place for a system or a user unit. Raises `LocalError` where there is no systemd."""
    if not sys.platform.startswith("linux"):
        raise LocalError(
            "unsupported",
            "services are made for systemd, which is on Linux only",
            "run `relaydesk serve` instead",
        )
    if not user:
        return Place(SYSTEM_DIR, "systemctl", needs_root=True)
    home = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path.home() / ".config"
    return Place(base / "systemd" / "user", "systemctl --user", needs_root=False)


def install(where: Place, unit: str) -> bool:
    """Write the unit; false where it was there already, word for word.

    Raises `LocalError` ``refused`` without root where it needs it, ``conflict`` for a unit that is not
    ours, `EnvError` ``storage_failed`` where it cannot be written.
    """
    _check_root(where, "install")
    if _current(where) == unit:
        return False
    temp = where.path.with_name(f".{NAME}.new")
    try:
        where.directory.mkdir(parents=True, exist_ok=True)
        temp.write_text(unit, encoding="utf-8")
        temp.chmod(0o644)
        os.replace(temp, where.path)
    except OSError as error:
        raise _failed("write", where, error) from error
    return True


def uninstall(where: Place) -> bool:
    """Remove the unit; false where there was none. Raises like `install`."""
    _check_root(where, "uninstall")
    if _current(where) is None:
        return False
    try:
        where.path.unlink()
    except OSError as error:
        raise _failed("remove", where, error) from error
    return True


def _current(where: Place) -> str | None:
    try:
        text = where.path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _failed("read", where, error) from error
    if not text.startswith(OURS):
        raise LocalError("conflict", f"{where.path} was not written by relaydesk", "move it away first")
    return text


def _check_root(where: Place, verb: str) -> None:
    if where.needs_root and os.geteuid() != 0:
        raise LocalError(
            "refused",
            f"a system service is made by root in {where.directory}",
            f"use `sudo relaydesk service {verb}`, or add `--user` for a service of your own",
        )


def _failed(verb: str, where: Place, error: Exception) -> EnvError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return EnvError(
        "storage_failed", f"cannot {verb} {where.path} ({reason})", "check the rights of that path"
    )
