"""Where things are: settings file, state, runtime directory, control socket. Nothing is created here."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from relaydesk.core.errors import LocalError

if TYPE_CHECKING:
    from relaydesk.config.model import Settings

APP: Final = "relaydesk"
CONFIG_NAME: Final = "relaydesk.toml"
SOCKET_NAME: Final = "control.sock"
SYSTEM_RUNTIME: Final = Path("/run/relaydesk")
# sockaddr_un holds 108 bytes on Linux and 104 on macOS, the closing NUL among them.
SOCKET_LIMIT: Final = 103 if sys.platform == "darwin" else 107
# A worker's socket adds a slash, eight hex digits and ".sock" to its directory, and engines copy the path
# into buffers of their own.
WORKERS_LIMIT: Final = 100 - 14


@dataclass(frozen=True, slots=True)
class Paths:
    """The places of one node."""

    state: Path
    runtime: Path
    socket: Path
    models: Path

    @property
    def workers(self) -> Path:
        """Where the engines' sockets are: this state directory's alone, and short enough for a socket.

        The runtime directory is shared by all nodes of a user, and a starting node ends what a dead one
        left in its own.
        """
        import hashlib

        name = hashlib.sha256(os.fsencode(os.path.abspath(self.state))).hexdigest()[:12]
        usual = self.runtime / name
        if len(os.fsencode(usual)) <= WORKERS_LIMIT:
            return usual
        return Path("/tmp") / f"{APP}-{os.getuid()}" / name

    @property
    def usage_log(self) -> Path:
        """What requests used, before the database has it."""
        return self.state / "usage.log"

    @property
    def audit(self) -> Path:
        """Where the audit's files are."""
        return self.state / "audit"

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.state / "relaydesk.db"

    @property
    def ledger(self) -> Path:
        """The books of a target: a SQLite file of their own."""
        return self.state / "ledger.db"

    @property
    def tls(self) -> Path:
        """The node's own CA and leaf."""
        return self.state / "tls"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where a running node may answer. ``explicit`` (--attach): nothing else is tried."""

    socket: Path
    origin: str
    explicit: bool = False


def config_file(env: Mapping[str, str]) -> Path:
    """``relaydesk.toml`` where `RELAY_CONFIG` names no other."""
    if sys.platform == "darwin":
        import platformdirs

        return Path(platformdirs.user_config_dir(APP)) / CONFIG_NAME
    return _xdg(env, "XDG_CONFIG_HOME", ".config") / APP / CONFIG_NAME


def resolve(settings: Settings, env: Mapping[str, str] | None = None) -> Paths:
    """The places that settings and environment come to.

    A service manager's STATE_DIRECTORY and RUNTIME_DIRECTORY stand in for the user's directories.
    Raises `LocalError` ``bad_setting`` for a `RELAY_SOCKET` too long for any socket.
    """
    env = os.environ if env is None else env
    state = settings.state_dir or _state_dir(env)
    runtime = _runtime_dir(state, env)
    socket = _checked(settings.socket, "RELAY_SOCKET") if settings.socket else _own_sockets(state, runtime)[0]
    return Paths(state, runtime, socket, settings.model_dir or state / "models")


def candidates(
    settings: Settings, env: Mapping[str, str] | None = None, attach: Path | None = None
) -> tuple[Candidate, ...]:
    """Where to look for a running node, in the order of the start rule, each place once."""
    env = os.environ if env is None else env
    if attach is not None:
        path = Path(os.path.abspath(attach.expanduser()))
        return (Candidate(_checked(path, "--attach"), "--attach", explicit=True),)
    state = settings.state_dir or _state_dir(env)
    found: dict[Path, Candidate] = {}
    if settings.socket is not None:
        found[settings.socket] = Candidate(_checked(settings.socket, "RELAY_SOCKET"), "RELAY_SOCKET")
    for path in _own_sockets(state, _runtime_dir(state, env)):
        found.setdefault(path, Candidate(path, "state directory"))
    system = SYSTEM_RUNTIME / SOCKET_NAME
    found.setdefault(system, Candidate(system, "system service"))
    return tuple(found.values())


def model_cache(env: Mapping[str, str]) -> Path:
    """Where the demo keeps its model between runs, and a pull of the same model looks first."""
    return _xdg(env, "XDG_CACHE_HOME", ".cache") / APP / "models"


def _own_sockets(state: Path, runtime: Path) -> list[Path]:
    """Where the node of a state directory listens (the first), then where it would under another login.

    Where the plain path is too long for a socket, a digest of it in a short directory stands in. Which
    short directory depends on the environment, so the one that always exists is looked at as well.
    """
    if runtime == SYSTEM_RUNTIME:
        return [runtime / SOCKET_NAME]
    plain = state / SOCKET_NAME
    if _fits(plain):
        return [plain]
    import hashlib  # rarely needed, and slow to load for a program that starts in 200 ms

    name = hashlib.sha256(os.fsencode(plain)).hexdigest()[:16] + ".sock"
    short = [runtime / name, Path("/tmp") / f"{APP}-{os.getuid()}" / name]
    return [path for path in short if _fits(path)]


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= SOCKET_LIMIT


def _checked(path: Path, name: str) -> Path:
    if not _fits(path):
        raise LocalError(
            "bad_setting",
            f"the socket path {path} of {name} is longer than {SOCKET_LIMIT} bytes",
            "choose a shorter one",
            param=name,
        )
    return path


def _state_dir(env: Mapping[str, str]) -> Path:
    given = _first(env, "STATE_DIRECTORY")
    if given is not None:
        return given
    if sys.platform == "darwin":
        import platformdirs

        return Path(platformdirs.user_state_dir(APP))
    return _xdg(env, "XDG_STATE_HOME", ".local/state") / APP


def _runtime_dir(state: Path, env: Mapping[str, str]) -> Path:
    given = _first(env, "RUNTIME_DIRECTORY")
    if given is not None:
        return given
    session = env.get("XDG_RUNTIME_DIR", "")
    return Path(session) / APP if os.path.isabs(session) else state / "run"


def _first(env: Mapping[str, str], name: str) -> Path | None:
    """systemd separates several directories with colons; the first is the unit's main one."""
    first = env.get(name, "").split(":")[0]
    return Path(first) if os.path.isabs(first) else None


def _xdg(env: Mapping[str, str], name: str, usual: str) -> Path:
    """The XDG base directory; a relative value is ignored, as that specification says."""
    value = env.get(name, "")
    return Path(value) if os.path.isabs(value) else Path(env.get("HOME") or Path.home()) / usual
