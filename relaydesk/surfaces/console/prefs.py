"""``console.toml``: how the console looked last, kept in the state directory of whoever opened it."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from relaydesk.surfaces.console.data import DEFAULT_HZ, RATES_HZ
from relaydesk.surfaces.console.themes import NAMES

FILE_NAME: Final = "console.toml"
# Nothing that was written by us comes near it.
_LONGEST: Final = 4_096


@dataclass(frozen=True, slots=True)
class Prefs:
    """``theme`` is a key of `themes.NAMES`, ``rate_hz`` one of `data.RATES_HZ`.

    ``problem`` says what was wrong with the file, empty for nothing.
    """

    theme: str = "dark"
    rate_hz: float = DEFAULT_HZ
    problem: str = ""


def load_prefs(path: Path) -> Prefs:
    """Read the file where there is one. Never raises: what is wrong counts as not there."""
    try:
        with path.open("rb") as file:
            data = tomllib.loads(file.read(_LONGEST).decode())
    except FileNotFoundError:
        return Prefs()
    except (OSError, ValueError) as error:
        return Prefs(problem=f"{path} cannot be read ({error}): the usual theme and rate are in force")
    usual = Prefs()
    theme = _chosen(data, "theme", tuple(NAMES), usual.theme)
    rate = _chosen(data, "rate_hz", RATES_HZ, usual.rate_hz)
    wrong = [name for name, value in (("theme", theme), ("rate_hz", rate)) if value is None]
    problem = f"{path}: {' and '.join(wrong)} cannot be used: the usual is in force" if wrong else ""
    return Prefs(usual.theme if theme is None else theme, usual.rate_hz if rate is None else rate, problem)


def save_prefs(path: Path, prefs: Prefs) -> str:
    """Write the file whole, or leave the old one; why it cannot be written, empty where it was."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.write_text(f'theme = "{prefs.theme}"\nrate_hz = {prefs.rate_hz}\n', encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        return f"{path} cannot be written ({error.strerror}): this is forgotten when the console is left"
    return ""


def _chosen(data: dict[str, Any], name: str, allowed: tuple[Any, ...], usual: Any) -> Any:
    """The value, the usual one where there is none, None for one that is not allowed."""
    value = data.get(name, usual)
    return value if type(value) in (str, int, float) and value in allowed else None
