from __future__ import annotations

import datetime as dt
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from relaydesk.core.errors import EnvError
from relaydesk.core.tls.names import home_constraints
from relaydesk.engine.tls import authority as module
from relaydesk.engine.tls.authority import CA_FILE, KEY_FILE, Authority, open_authority, renew_authority
from relaydesk.engine.tls.files import read_file
from relaydesk.store.files import atomic_write

WANTED = home_constraints("hub")


@pytest.fixture
def directory(hub: Any) -> Path:
    return Path(hub.state) / "tls"


def opened(hub: Any, directory: Path) -> Authority:
    return open_authority(directory, WANTED, hub.clock)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_the_next_start_has_the_same_authority(hub: Any, directory: Path) -> None:
    first = opened(hub, directory)
    before = contents(directory)
    again = open_authority(directory, home_constraints("renamed"), hub.clock)
    assert again.fingerprint == first.fingerprint and again.constraints == WANTED
    assert contents(directory) == before
    pairs = first.fingerprint.split(":")
    assert len(pairs) == 32 and all(len(p) == 2 and p == p.upper() for p in pairs)
    life = first.certificate.not_valid_after_utc - first.certificate.not_valid_before_utc
    assert life == dt.timedelta(days=3650)


def test_rights_are_right_whatever_the_umask(hub: Any, directory: Path) -> None:
    old = os.umask(0)
    try:
        opened(hub, directory)
    finally:
        os.umask(old)
    assert stat.S_IMODE((directory / KEY_FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE((directory / CA_FILE).stat().st_mode) == 0o644
    assert b"PRIVATE" not in (directory / CA_FILE).read_bytes()
    assert sorted(contents(directory)) == [KEY_FILE, CA_FILE]


def test_a_key_is_never_readable_by_others_while_it_is_written(
    hub: Any, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    real = os.fsync

    def watching(fd: int) -> None:
        modes.extend(stat.S_IMODE(p.stat().st_mode) for p in directory.iterdir() if KEY_FILE in p.name)
        real(fd)

    monkeypatch.setattr(os, "fsync", watching)
    opened(hub, directory)
    assert modes
    assert set(modes) == {0o600}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620])
def test_a_readable_key_is_refused_with_the_cure(hub: Any, directory: Path, mode: int) -> None:
    opened(hub, directory)
    (directory / KEY_FILE).chmod(mode)
    with pytest.raises(EnvError) as caught:
        opened(hub, directory)
    sentence = caught.value.fault.sentence
    assert f"mode {mode:04o}" in sentence and f"chmod 600 {directory / KEY_FILE}" in sentence


def damaged(bundle: bytes) -> dict[str, bytes]:
    other = bundle.replace(b"-----BEGIN CERTIFICATE-----\nM", b"-----BEGIN CERTIFICATE-----\nN")
    return {
        "empty": b"",
        "cut": bundle[: len(bundle) // 2],
        "no certificate": bundle.split(b"-----BEGIN CERTIFICATE")[0],
        "broken base64": other,
        "garbage": b"\x00\xff" * 100,
    }


@pytest.mark.parametrize("kind", list(damaged(b"x")))
def test_a_damaged_key_file_is_a_sentence_and_untouched(hub: Any, directory: Path, kind: str) -> None:
    opened(hub, directory)
    path = directory / KEY_FILE
    path.write_bytes(damaged(path.read_bytes())[kind])
    before = contents(directory)
    with pytest.raises(EnvError, match=r"damaged and was left as it is.*renew-ca") as caught:
        opened(hub, directory)
    assert str(path) in caught.value.fault.message
    assert contents(directory) == before


def test_a_foreign_half_is_a_sentence_and_untouched(hub: Any, directory: Path, tmp_path: Path) -> None:
    opened(hub, directory)
    stranger = open_authority(tmp_path / "other", WANTED, hub.clock)
    (directory / CA_FILE).write_bytes(stranger.pem)
    before = contents(directory)
    with pytest.raises(EnvError, match="does not belong to the key"):
        opened(hub, directory)
    assert contents(directory) == before
    key = (directory / KEY_FILE).read_bytes().split(b"-----BEGIN CERT")[0]
    (directory / KEY_FILE).write_bytes(key + stranger.pem)
    with pytest.raises(EnvError, match="do not belong together"):
        opened(hub, directory)


def test_a_leaf_in_place_of_the_authority_is_no_authority(hub: Any, directory: Path) -> None:
    hub.service().prepare()
    (directory / KEY_FILE).write_bytes((directory / "leaf.pem").read_bytes())
    with pytest.raises(EnvError, match="damaged"):
        opened(hub, directory)


def test_a_missing_key_is_a_sentence_and_a_missing_certificate_comes_back(hub: Any, directory: Path) -> None:
    first = opened(hub, directory)
    (directory / CA_FILE).unlink()
    assert opened(hub, directory).fingerprint == first.fingerprint
    assert (directory / CA_FILE).read_bytes() == first.pem
    (directory / KEY_FILE).unlink()
    with pytest.raises(EnvError, match=r"its key .* is missing"):
        opened(hub, directory)
    assert (directory / CA_FILE).read_bytes() == first.pem


class Killed(BaseException):
    """Stands for SIGKILL between two steps: no handler of ours runs for it in production either."""


@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("renewing", [False, True])
def test_a_kill_between_any_two_files_leaves_a_startable_hub(
    hub: Any, directory: Path, monkeypatch: pytest.MonkeyPatch, after: int, renewing: bool
) -> None:
    old = opened(hub, directory).fingerprint if renewing else None
    written: list[str] = []

    def write(path: Path, data: bytes, mode: int) -> None:
        if len(written) == after:
            raise Killed
        written.append(path.name)
        atomic_write(path, data, mode)

    monkeypatch.setattr(module, "atomic_write", write)
    act = renew_authority if renewing else open_authority
    try:
        act(directory, WANTED, hub.clock)
    except Killed:
        pass
    monkeypatch.undo()
    now = opened(hub, directory)
    assert (directory / CA_FILE).read_bytes() == now.pem
    if renewing:
        assert (now.fingerprint == old) is (after == 0)


def test_renewal_replaces_a_damaged_authority_and_takes_new_names(hub: Any, directory: Path) -> None:
    first = opened(hub, directory)
    wide = home_constraints("hub", ["hub.example.com"])
    second = renew_authority(directory, wide, hub.clock)
    assert second.fingerprint != first.fingerprint
    assert open_authority(directory, WANTED, hub.clock).constraints == wide
    names = {a.certificate.subject.rfc4514_string() for a in (first, second)}
    assert len(names) == 2
    (directory / KEY_FILE).write_bytes(b"rubbish")
    third = renew_authority(directory, WANTED, hub.clock)
    assert opened(hub, directory).fingerprint == third.fingerprint


def test_a_clock_that_was_never_set_makes_no_authority(hub: Any, directory: Path) -> None:
    hub.clock.forward_days(-20000)
    with pytest.raises(EnvError, match=r"clock says 19.*set the clock"):
        opened(hub, directory)
    assert not directory.exists()


def test_an_authority_at_its_end_is_a_sentence(hub: Any, directory: Path) -> None:
    opened(hub, directory)
    hub.clock.forward_days(3651)
    with pytest.raises(EnvError, match=r"valid from .* to .* and today is .*renew-ca"):
        opened(hub, directory)


def test_a_place_that_cannot_be_written_is_a_sentence(hub: Any, tmp_path: Path) -> None:
    (tmp_path / "file").symlink_to("absent")
    with pytest.raises(EnvError, match=r"cannot make the directory .*RELAY_STATE_DIR"):
        open_authority(tmp_path / "file" / "tls", WANTED, hub.clock)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(EnvError, match="no space left"):
            opened(hub, tmp_path / "tls")
    assert not any(path.is_file() for path in (tmp_path / "tls").iterdir())


def full(_fd: int) -> None:
    raise OSError(28, "No space left on device")


def test_what_is_no_small_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="not a regular file"):
        read_file(Path("/dev/zero"))
    with pytest.raises(EnvError, match="cannot read"):
        read_file(tmp_path)
    (tmp_path / "big").write_bytes(b"x" * (1 << 20) + b"x")
    with pytest.raises(EnvError, match="larger than 1 MiB"):
        read_file(tmp_path / "big")


def test_the_public_file_is_exactly_one_certificate(hub: Any, directory: Path) -> None:
    made = opened(hub, directory)
    assert x509.load_pem_x509_certificates((directory / CA_FILE).read_bytes()) == [made.certificate]
    key = serialization.load_pem_private_key((directory / KEY_FILE).read_bytes(), None)
    assert key.public_key() == made.certificate.public_key()
