from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError
from relaydesk.surfaces.control.bind import PATH_LIMIT, SocketFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "control.sock"


def test_made_for_its_owner_only_and_the_umask_is_put_back(path: Path) -> None:
    before = os.umask(0o002)
    try:
        file = SocketFile(path)
        assert os.umask(0o002) == 0o002
    finally:
        os.umask(before)
    mode = path.stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600
    file.sock.close()


def test_a_dead_nodes_socket_is_replaced(path: Path) -> None:
    dead = SocketFile(path)
    dead.sock.close()
    inode = path.stat().st_ino
    file = SocketFile(path)
    file.sock.listen()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(os.fspath(path))
    assert inode != path.stat().st_ino or not dead.sock.fileno() >= 0
    file.sock.close()


def test_something_else_in_the_way_is_left_alone(path: Path) -> None:
    path.write_text("precious")
    with pytest.raises(EnvError, match="is not a socket"):
        SocketFile(path)
    assert path.read_text() == "precious"


def test_a_link_in_the_way_is_left_alone(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.sock"
    other = SocketFile(target)
    path.symlink_to(target)
    with pytest.raises(EnvError, match="is not a socket"):
        SocketFile(path)
    assert target.exists()
    other.sock.close()


def test_too_long_a_path_is_named_before_anything_is_touched(tmp_path: Path) -> None:
    path = tmp_path / ("x" * PATH_LIMIT)
    with pytest.raises(EnvError, match=f"the system allows {PATH_LIMIT}") as caught:
        SocketFile(path)
    assert caught.value.fault.code == "bad_setting"
    assert caught.value.fault.param == "RELAY_SOCKET"


def test_the_longest_path_works(tmp_path: Path) -> None:
    room = PATH_LIMIT - len(os.fsencode(tmp_path)) - 1
    path = tmp_path / ("x" * room)
    file = SocketFile(path)
    assert path.exists()
    file.sock.close()


def test_a_missing_directory_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="cannot be made: No such file"):
        SocketFile(tmp_path / "none" / "control.sock")


def test_remove_takes_only_its_own(path: Path) -> None:
    first = SocketFile(path)
    path.rename(path.with_suffix(".moved"))
    second = SocketFile(path)
    first.remove()
    assert path.exists()
    second.remove()
    assert not path.exists()
    second.remove()
    first.sock.close()
    second.sock.close()


def test_a_socket_that_somebody_listens_on_is_left_to_them(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(path))
        server.listen()
        with pytest.raises(EnvError, match="a running program listens") as caught:
            SocketFile(path)
        assert caught.value.fault.code == "conflict" and "RELAY_SOCKET" in caught.value.fault.hint
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(os.fspath(path))


def test_a_busy_program_counts_as_alive(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as waiting:
        server.bind(os.fspath(path))
        server.listen(0)
        waiting.connect(os.fspath(path))
        with pytest.raises(EnvError, match="a running program listens"):
            SocketFile(path)
