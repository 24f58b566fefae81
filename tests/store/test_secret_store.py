"""Secrets move with the setting, once, and are never made anew in silence."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import keyring.backends.fail
import keyring.backends.null
import pytest

from relaydesk.core.errors import EnvError
from relaydesk.store import keyring_calls
from relaydesk.store.secret_store import SecretStore, stored_secret
from relaydesk.store.secrets import FileSecrets
from tests.store.test_keyring_calls import until
from tests.support.clock import FakeRng
from tests.support.keyrings import MemoryKeyring, in_use, real_keyring

SECRET = "sk-do-not-show-me"


@pytest.fixture
def backend() -> Iterator[MemoryKeyring]:
    made = MemoryKeyring()
    with in_use(made):
        yield made
    made.gate.set()


def opened(state: Path, wanted: str) -> SecretStore:
    made = SecretStore(state, wanted, FakeRng(wanted))
    made.prepare()
    return made


def refusal(state: Path, wanted: str) -> str:
    with pytest.raises(EnvError) as caught:
        opened(state, wanted)
    assert caught.value.fault.code == "secret_failed"
    assert caught.value.fault.hint
    assert SECRET not in caught.value.fault.sentence
    return caught.value.fault.sentence


def with_two_files(state: Path) -> FileSecrets:
    files = FileSecrets(state)
    files.prepare()
    files.put("default_key", SECRET)
    files.put("url-key", "second")
    return files


def names_in(state: Path) -> set[str]:
    return {path.name for path in (state / "secrets").iterdir()}


def test_files_move_to_the_keyring_once_and_back(tmp_path: Path, backend: MemoryKeyring) -> None:
    with_two_files(tmp_path)
    store = opened(tmp_path, "keyring")
    assert store.place == "system keyring"
    assert (store.get("default_key"), store.get("url-key"), store.get("none")) == (SECRET, "second", None)
    assert names_in(tmp_path) == {"keyring.json"}
    record = tmp_path / "secrets" / "keyring.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert json.loads(record.read_text())["names"] == ["default_key", "url-key"]
    assert sorted(backend.kept.values()) == ["second", SECRET]
    del backend.calls[:]
    again = opened(tmp_path, "keyring")
    assert again.get("default_key") == SECRET
    assert not [call for call in backend.calls if not call.startswith("get")]
    assert stored_secret(tmp_path, "default_key") == SECRET
    back = opened(tmp_path, "file")
    assert (back.place, back.get("default_key"), back.get("url-key")) == ("state directory", SECRET, "second")
    assert names_in(tmp_path) == {"default_key", "url-key"}
    until(lambda: not backend.kept)
    assert opened(tmp_path, "file").get("default_key") == SECRET


def test_the_life_of_a_secret_in_the_keyring(tmp_path: Path, backend: MemoryKeyring) -> None:
    store = opened(tmp_path, "keyring")
    assert backend.calls == [], "a first start with nothing to keep asks nobody"
    assert store.get("key") is None
    store.put("key", SECRET)
    assert store.rotate("key", "new") == SECRET
    assert opened(tmp_path, "keyring").get("key") == "new"
    assert store.remove("key")
    assert not store.remove("key")
    assert opened(tmp_path, "keyring").get("key") is None
    until(lambda: not backend.kept)


@pytest.mark.parametrize("wanted", ["keyring", "file"])
@pytest.mark.parametrize("trouble", ["fail", "null", "hangs", "emptied"])
def test_a_recorded_place_that_cannot_be_reached_is_never_begun_anew(
    tmp_path: Path, backend: MemoryKeyring, monkeypatch: pytest.MonkeyPatch, wanted: str, trouble: str
) -> None:
    with_two_files(tmp_path)
    opened(tmp_path, "keyring")
    before = (tmp_path / "secrets" / "keyring.json").read_bytes()
    monkeypatch.setattr(keyring_calls.KeyringCalls.__init__, "__defaults__", (0.05,))
    if trouble == "fail":
        with in_use(keyring.backends.fail.Keyring()):
            said = refusal(tmp_path, wanted)
    elif trouble == "null":
        with in_use(keyring.backends.null.Keyring()):
            said = refusal(tmp_path, wanted)
    elif trouble == "hangs":
        backend.gate.clear()
        said = refusal(tmp_path, wanted)
    else:
        backend.kept.clear()
        said = refusal(tmp_path, wanted)
    assert ("cannot be moved back to files" in said) is (wanted == "file")
    assert names_in(tmp_path) == {"keyring.json"}
    assert (tmp_path / "secrets" / "keyring.json").read_bytes() == before
    backend.gate.set()


@pytest.mark.parametrize("trouble", ["fail", "null", "hangs"])
def test_a_move_that_cannot_be_made_leaves_the_files(
    tmp_path: Path, backend: MemoryKeyring, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    files = with_two_files(tmp_path)
    monkeypatch.setattr(keyring_calls.KeyringCalls.__init__, "__defaults__", (0.05,))
    if trouble == "hangs":
        backend.gate.clear()
        refusal(tmp_path, "keyring")
    else:
        other = keyring.backends.fail.Keyring() if trouble == "fail" else keyring.backends.null.Keyring()
        with in_use(other):
            refusal(tmp_path, "keyring")
    assert names_in(tmp_path) == {"default_key", "url-key"}
    assert files.get("default_key") == SECRET
    backend.gate.set()
    until(lambda: not backend.kept)
    assert opened(tmp_path, "file").get("default_key") == SECRET


def test_a_move_that_was_killed_halfway_is_finished(tmp_path: Path, backend: MemoryKeyring) -> None:
    with_two_files(tmp_path)
    opened(tmp_path, "keyring")
    # Killed after the record was written and before the files were gone; the same the other way round.
    files = FileSecrets(tmp_path)
    files.put("default_key", SECRET)
    assert opened(tmp_path, "keyring").get("default_key") == SECRET
    assert names_in(tmp_path) == {"keyring.json"}
    files.put("default_key", SECRET)
    assert opened(tmp_path, "file").get("default_key") == SECRET
    assert names_in(tmp_path) == {"default_key", "url-key"}


@pytest.mark.parametrize("wanted", ["keyring", "file"])
def test_two_different_texts_are_for_a_person_to_decide(
    tmp_path: Path, backend: MemoryKeyring, wanted: str
) -> None:
    files = with_two_files(tmp_path)
    opened(tmp_path, "keyring")
    files.put("default_key", "another")
    said = refusal(tmp_path, wanted)
    assert "default_key is in the keyring and, with another text" in said
    assert files.get("default_key") == "another"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"service": 5}', "\xff"])
def test_a_damaged_record_is_no_missing_one(tmp_path: Path, backend: MemoryKeyring, text: str) -> None:
    with_two_files(tmp_path)
    opened(tmp_path, "keyring")
    (tmp_path / "secrets" / "keyring.json").write_text(text)
    for wanted in ("keyring", "file"):
        assert "damaged" in refusal(tmp_path, wanted)
    with pytest.raises(EnvError, match="damaged"):
        stored_secret(tmp_path, "default_key")


def test_a_rotation_that_hangs_keeps_the_old_key(
    tmp_path: Path, backend: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_two_files(tmp_path)
    monkeypatch.setattr(keyring_calls.KeyringCalls.__init__, "__defaults__", (0.2,))
    store = opened(tmp_path, "keyring")
    backend.gate.clear()
    with pytest.raises(EnvError, match="did not answer"):
        store.rotate("default_key", "new-key")
    assert store.get("default_key") == SECRET
    asked = len(backend.calls)
    backend.gate.set()
    until(lambda: len(backend.calls) > asked and SECRET in backend.kept.values())
    until(lambda: "new-key" not in backend.kept.values())
    assert opened(tmp_path, "keyring").get("default_key") == SECRET


def test_a_record_that_cannot_be_written_leaves_nothing_in_the_keyring(
    tmp_path: Path, backend: MemoryKeyring
) -> None:
    store = opened(tmp_path, "keyring")
    (tmp_path / "secrets" / "keyring.json").mkdir()
    (tmp_path / "secrets" / "keyring.json" / "x").touch()
    with pytest.raises(EnvError, match=r"keyring\.json") as caught:
        store.put("key", SECRET)
    assert caught.value.fault.code == "secret_failed"
    assert store.get("key") is None
    until(lambda: not backend.kept)


def test_two_state_directories_do_not_meet(tmp_path: Path, backend: MemoryKeyring) -> None:
    one = SecretStore(tmp_path / "one", "keyring", FakeRng("1"))
    two = SecretStore(tmp_path / "two", "keyring", FakeRng("2"))
    for store, text in ((one, "first"), (two, "second")):
        store.prepare()
        store.put("key", text)
    assert opened(tmp_path / "one", "keyring").get("key") == "first"
    assert opened(tmp_path / "two", "keyring").get("key") == "second"


@pytest.mark.net
def test_a_real_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import keyring.backends.SecretService

    (tmp_path / "home").mkdir()
    with real_keyring(tmp_path / "home") as env:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", env["DBUS_SESSION_BUS_ADDRESS"])
        with in_use(keyring.backends.SecretService.Keyring()):
            with_two_files(tmp_path)
            opened(tmp_path, "keyring")
            assert names_in(tmp_path) == {"keyring.json"}
            store = opened(tmp_path, "keyring")
            assert store.rotate("default_key", "new") == SECRET
            assert opened(tmp_path, "file").get("default_key") == "new"
