"""`relaydesk.toml` as flat text values with their line numbers."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from relaydesk.config.secret_file import open_regular
from relaydesk.core.errors import LocalError
from relaydesk.core.text import safe_text

_MAX_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of the file: its TOML value and its line from 1, or 0 where it is written in an odd way."""

    value: Any
    line: int


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A settings file that was read. ``others_read`` says that its mode lets every local user read it."""

    path: Path
    entries: dict[str, Entry]
    mode: int

    @property
    def others_read(self) -> bool:
        """Whether people other than the owner and the group can read it."""
        return bool(self.mode & stat.S_IROTH)

    def origin(self, key: str) -> str:
        """``relaydesk.toml:12``."""
        line = self.entries[key].line
        return f"{self.path.name}:{line}" if line else self.path.name


def read_toml(path: Path, *, required: bool) -> TomlFile | None:
    """The file's entries; None where it does not exist and need not. Raises `LocalError` ``bad_setting``."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            mode = os.fstat(file.fileno()).st_mode
            raw = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        if not required:
            return None
        raise _bad(f"the settings file {path} does not exist", "create it, or unset RELAY_CONFIG") from None
    except OSError as exc:
        raise _bad(
            f"the settings file {path} cannot be read ({exc.strerror or exc})", "check its rights and path"
        ) from exc
    if len(raw) > _MAX_BYTES:
        raise _bad(f"the settings file {path} is larger than {_MAX_BYTES // 1024} KiB", "check the path")
    import tomllib  # slow to load, and most nodes have no file

    try:
        text = raw.decode()
        table = tomllib.loads(text)
    except (UnicodeDecodeError, RecursionError):
        raise _bad(f"{path} is not a TOML file", 'write lines like listen = ":8383" in UTF-8') from None
    except tomllib.TOMLDecodeError as exc:
        raise _bad(f"{path} is not valid TOML ({safe_text(str(exc), 120)})", "correct that line") from exc
    except ValueError:  # what Python itself refuses to read: a number of thousands of digits
        raise _bad(f"{path} holds a number with too many digits", "correct that number") from None
    return TomlFile(path, {key: Entry(value, _line_of(key, text)) for key, value in table.items()}, mode)


def _line_of(key: str, text: str) -> int:
    """Line of a top-level key, 0 where it cannot be told.

    `tomllib` keeps no positions. A line that looks like the key's may be inside a multi-line string; it is
    outside exactly where everything above it is valid TOML by itself.
    """
    import tomllib

    quoted = re.escape(key)
    looks = re.compile(rf"""\s*\[{{0,2}}\s*(?:"{quoted}"|'{quoted}'|{quoted})\s*[=.\]]""")
    # tomllib ends lines at \n only; str.splitlines would count others too.
    lines = text.split("\n")
    for number, candidate in enumerate(lines):
        if not looks.match(candidate):
            continue
        try:
            tomllib.loads("".join(f"{line}\n" for line in lines[:number]))
        except tomllib.TOMLDecodeError:
            continue
        return number + 1
    return 0


def _bad(message: str, hint: str) -> LocalError:
    return LocalError("bad_setting", message, hint, param="RELAY_CONFIG")
