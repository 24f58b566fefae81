from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.config import paths
from relaydesk.config.model import Settings
from relaydesk.core.errors import LocalError

HOME = {"HOME": "/home/op"}
linux = pytest.mark.skipif(sys.platform != "linux", reason="the XDG places are Linux's")


@linux
def test_the_users_places() -> None:
    found = paths.resolve(Settings(), HOME)
    assert found.state == Path("/home/op/.local/state/relaydesk")
    assert found.socket == found.state / "control.sock"
    assert found.models == found.state / "models"
    assert found.runtime == found.state / "run"
    assert paths.config_file(HOME) == Path("/home/op/.config/relaydesk/relaydesk.toml")
    env = {**HOME, "XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c", "XDG_RUNTIME_DIR": "/run/user/7"}
    assert paths.resolve(Settings(), env).state == Path("/s/relaydesk")
    assert paths.resolve(Settings(), env).runtime == Path("/run/user/7/relaydesk")
    assert paths.config_file(env) == Path("/c/relaydesk/relaydesk.toml")
    assert paths.config_file({**HOME, "XDG_CONFIG_HOME": "rel"}) == paths.config_file(HOME)


def test_under_a_service_manager() -> None:
    env = {**HOME, "STATE_DIRECTORY": "/var/lib/relaydesk:/x", "RUNTIME_DIRECTORY": "/run/relaydesk"}
    found = paths.resolve(Settings(), env)
    assert found.state == Path("/var/lib/relaydesk")
    assert found.socket == Path("/run/relaydesk/control.sock")
    assert paths.resolve(Settings(state_dir=Path("/own")), env).state == Path("/own")


def test_settings_win() -> None:
    chosen = Settings(state_dir=Path("/s"), socket=Path("/x.sock"), model_dir=Path("/m"))
    found = paths.resolve(chosen, HOME)
    assert (found.state, found.socket, found.models) == (Path("/s"), Path("/x.sock"), Path("/m"))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 240), st.sampled_from(["", "/run/user/1000", "/" + "r" * 120]))
def test_a_socket_path_always_fits(length: int, session: str) -> None:
    env = {**HOME, "XDG_RUNTIME_DIR": session}
    state = Path("/" + "é" * length)
    found = paths.resolve(Settings(state_dir=state), env).socket
    assert len(os.fsencode(found)) <= paths.SOCKET_LIMIT
    plain = state / "control.sock"
    assert (found == plain) == (len(os.fsencode(plain)) <= paths.SOCKET_LIMIT)
    # A node started outside the session is found from inside.
    seen = {item.socket for item in paths.candidates(Settings(state_dir=state), env)}
    assert paths.resolve(Settings(state_dir=state), HOME).socket in seen
    assert found in seen


def test_two_long_states_have_two_sockets() -> None:
    made = {paths.resolve(Settings(state_dir=Path("/" + letter * 150)), HOME).socket for letter in "ab"}
    assert len(made) == 2


@linux
def test_the_limit_is_the_kernels(tmp_path: Path) -> None:
    base = tmp_path / ("d" * max(1, 40 - len(str(tmp_path))))
    base.mkdir()
    fits = base / ("s" * (paths.SOCKET_LIMIT - len(str(base)) - 1))
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(fits))
    with socket.socket(socket.AF_UNIX) as sock, pytest.raises(OSError, match="too long"):
        sock.bind(str(fits) + "s")


def test_a_chosen_socket_that_cannot_be() -> None:
    long = Path("/" + "x" * 120)
    for call in (
        lambda: paths.resolve(Settings(socket=long), HOME),
        lambda: paths.candidates(Settings(socket=long), HOME),
        lambda: paths.candidates(Settings(), HOME, long),
    ):
        with pytest.raises(LocalError, match="longer than"):
            call()


def test_the_start_rule_in_order() -> None:
    found = paths.candidates(Settings(socket=Path("/x.sock"), state_dir=Path("/s")), HOME)
    assert [(item.socket, item.origin) for item in found] == [
        (Path("/x.sock"), "RELAY_SOCKET"),
        (Path("/s/control.sock"), "state directory"),
        (Path("/run/relaydesk/control.sock"), "system service"),
    ]
    only = paths.candidates(Settings(socket=Path("/x.sock")), HOME, Path("/a.sock"))
    assert [(item.socket, item.explicit) for item in only] == [(Path("/a.sock"), True)]
    env = {**HOME, "RUNTIME_DIRECTORY": "/run/relaydesk"}
    assert len(paths.candidates(Settings(), env)) == 1


def test_starting_needs_nothing_heavy() -> None:
    code = (
        "import sys; from relaydesk.config import load, paths; "
        "paths.candidates(load.load({'HOME': '/nowhere'}).settings, {'HOME': '/nowhere'}); "
        "print(' '.join({'asyncio', 'platformdirs', 'tomllib', 'hashlib', 'difflib',"
        " 'ssl', 'aiohttp', 'sqlite3', 'logging', 'subprocess'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    if sys.platform == "linux":
        assert ran.stdout.strip() == ""


def test_the_model_cache() -> None:
    assert paths.model_cache({"HOME": "/h"}) == Path("/h/.cache/relaydesk/models")
    assert paths.model_cache({"HOME": "/h", "XDG_CACHE_HOME": "/c"}) == Path("/c/relaydesk/models")
    relative = {"HOME": "/h", "XDG_CACHE_HOME": "relative"}
    assert paths.model_cache(relative) == Path("/h/.cache/relaydesk/models")
