from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError
from relaydesk.store.files import atomic_write, private_dir, sweep_temp


def test_written_whole_with_the_mode_asked_for(tmp_path: Path) -> None:
    target = tmp_path / "x"
    old = os.umask(0o277)
    try:
        atomic_write(target, b"one")
        atomic_write(target, b"two" * 100_000, 0o644)
    finally:
        os.umask(old)
    assert target.read_bytes() == b"two" * 100_000
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    assert os.listdir(tmp_path) == ["x"]


def test_a_link_is_replaced_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "x").symlink_to(tmp_path / "victim")
    atomic_write(tmp_path / "x", b"new")
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (tmp_path / "x").is_symlink()


def test_readers_see_old_or_new_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "x"
    versions = {bytes([digit]) * 50_000 for digit in range(8)}
    atomic_write(target, next(iter(versions)))
    seen: set[bytes] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.add(target.read_bytes())

    readers = [threading.Thread(target=read) for _ in range(2)]
    writers = [
        threading.Thread(target=lambda: [atomic_write(target, item) for item in versions]) for _ in range(2)
    ]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert seen
    assert seen <= versions
    assert os.listdir(tmp_path) == ["x"]


def test_a_full_disk_leaves_the_old_file(small_disk: object) -> None:
    place: Path = small_disk.path  # type: ignore[attr-defined]
    atomic_write(place / "x", b"old")
    small_disk.fill(leave=8192)  # type: ignore[attr-defined]
    with pytest.raises(EnvError, match=r"no space left on device.*free some space") as caught:
        atomic_write(place / "x", b"n" * 200_000)
    assert caught.value.fault.code == "storage_failed"
    assert (place / "x").read_bytes() == b"old"
    assert sorted(os.listdir(place)) == ["ballast", "x"]


def test_a_read_only_disk(small_disk: object) -> None:
    small_disk.read_only()  # type: ignore[attr-defined]
    place: Path = small_disk.path  # type: ignore[attr-defined]
    with pytest.raises(EnvError, match=r"read-only file system.*mount it writable"):
        atomic_write(place / "x", b"n")
    with pytest.raises(EnvError, match="read-only file system"):
        private_dir(place / "state")


def test_a_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="cannot write"):
        atomic_write(tmp_path / "none" / "x", b"n")


def test_sweep(tmp_path: Path) -> None:
    (tmp_path / f".key.tmp-{os.getpid()}-0").write_text("half")
    (tmp_path / ".key").write_text("kept")
    sweep_temp(tmp_path)
    assert os.listdir(tmp_path) == [".key"]


def test_private_dir(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        private_dir(tmp_path / "a" / "b")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    private_dir(tmp_path / "a" / "b")
    (tmp_path / "a" / "b").chmod(0o755)
    private_dir(tmp_path / "a" / "b")
    for mode in (0o770, 0o702, 0o1777):
        (tmp_path / "a" / "b").chmod(mode)
        with pytest.raises(EnvError, match=rf"mode {mode:04o}.*chmod 700 {tmp_path}/a/b"):
            private_dir(tmp_path / "a" / "b")


def test_private_dir_refuses_files_and_links_where_asked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path)
    tmp_path.chmod(0o700)
    private_dir(tmp_path / "link")
    for path, follow in ((tmp_path / "file", True), (tmp_path / "link", False)):
        with pytest.raises(EnvError, match="is not a directory"):
            private_dir(path, follow=follow)
    with pytest.raises(EnvError, match="file"):
        private_dir(tmp_path / "file" / "below")


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a directory away needs root")
def test_private_dir_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    with pytest.raises(EnvError, match="belongs to user 65534 and relaydesk runs as user 0"):
        private_dir(tmp_path / "theirs")
