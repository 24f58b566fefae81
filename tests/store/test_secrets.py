from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.store.secrets import FileSecrets

SECRET = "sk-do-not-show-me"


@pytest.fixture
def secrets(tmp_path: Path) -> FileSecrets:
    made = FileSecrets(tmp_path)
    made.prepare()
    return made


def refusal(call: object, *args: object) -> EnvError:
    with pytest.raises(EnvError) as caught:
        call(*args)  # type: ignore[operator]
    assert caught.value.fault.code == "secret_failed"
    assert caught.value.fault.hint
    assert SECRET not in caught.value.fault.sentence
    return caught.value


def test_life_of_a_secret(secrets: FileSecrets) -> None:
    assert secrets.get("key") is None
    secrets.put("key", SECRET)
    assert secrets.get("key") == SECRET
    assert stat.S_IMODE(secrets.path("key").stat().st_mode) == 0o600
    assert stat.S_IMODE(secrets.directory.stat().st_mode) == 0o700
    assert secrets.rotate("key", "new") == SECRET
    assert secrets.get("key") == "new"
    assert secrets.remove("key")
    assert not secrets.remove("key")
    assert secrets.get("key") is None
    assert secrets.rotate("key", "first") is None


def test_one_line_end_is_the_editors(secrets: FileSecrets) -> None:
    for raw in (b"abc\n", b"abc\r\n", b"abc"):
        secrets.put("key", "x")
        secrets.path("key").write_bytes(raw)
        assert secrets.get("key") == "abc"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o644])
def test_wrong_rights(secrets: FileSecrets, mode: int) -> None:
    secrets.put("key", SECRET)
    secrets.path("key").chmod(mode)
    exc = refusal(secrets.get, "key")
    assert exc.fault.hint == f"`chmod 600 {secrets.path('key')}`"
    assert f"{mode:04o}" in exc.fault.message


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")
def test_wrong_owner(secrets: FileSecrets) -> None:
    secrets.put("key", SECRET)
    os.chown(secrets.path("key"), 65534, 65534)
    assert refusal(secrets.get, "key").fault.hint == f"chown 0 {secrets.path('key')}"


@pytest.mark.parametrize("raw", [b"", b"\n", b"\xff\xfe", b"x" * 70_000])
def test_a_damaged_secret_is_not_an_absent_one(secrets: FileSecrets, raw: bytes) -> None:
    secrets.put("key", "x")
    secrets.path("key").write_bytes(raw)
    refusal(secrets.get, "key")


def test_what_is_no_file(secrets: FileSecrets, tmp_path: Path) -> None:
    os.mkfifo(secrets.path("fifo"), 0o600)
    secrets.path("dir").mkdir()
    (tmp_path / "elsewhere").write_text(SECRET)
    (tmp_path / "elsewhere").chmod(0o600)
    secrets.path("link").symlink_to(tmp_path / "elsewhere")
    for name in ("fifo", "dir", "link"):
        refusal(secrets.get, name)


@pytest.mark.parametrize("name", ["", "../key", "a/b", ".x", "A", "x" * 65, "a\n", "a.b"])
def test_names_stay_inside(secrets: FileSecrets, name: str) -> None:
    for call in (secrets.get, secrets.remove, secrets.path):
        with pytest.raises(LocalError, match="secret's name"):
            call(name)


@pytest.mark.parametrize("secret", ["", "x\n", "x" * 70_000])
def test_what_would_not_read_back_is_not_stored(secrets: FileSecrets, secret: str) -> None:
    with pytest.raises(LocalError, match="a secret has"):
        secrets.put("key", secret)
    assert secrets.get("key") is None


def test_leftovers_go(secrets: FileSecrets) -> None:
    (secrets.directory / ".key.tmp-1-0").write_text(SECRET)
    secrets.prepare()
    assert os.listdir(secrets.directory) == []


def test_a_full_disk_keeps_the_old_secret(small_disk: object) -> None:
    secrets = FileSecrets(small_disk.path)  # type: ignore[attr-defined]
    secrets.prepare()
    secrets.put("key", "old")
    small_disk.fill()  # type: ignore[attr-defined]
    refusal(secrets.put, "key", SECRET * 1000)
    assert secrets.get("key") == "old"
    assert os.listdir(secrets.directory) == ["key"]
