"""Secrets in the system's keyring, with a record of which they are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.store.files import atomic_write, file_error, sync_dir
from relaydesk.store.keyring_calls import KeyringCalls
from relaydesk.store.secrets import FileSecrets

RECORD_FILE: Final = "keyring.json"


class Record(msgspec.Struct, frozen=True):
    """``secrets/keyring.json``: where this state directory's secrets are. Holds none itself.

    A keyring cannot be asked for a list, and an empty answer must be told from a secret that was never
    there: hence ``names``. ``service`` is this state directory's alone.
    """

    service: str
    backend: str
    names: tuple[str, ...] = ()


class KeyringSecrets:
    """The same calls as `FileSecrets`. All secrets are read once, by `load`; `get` asks nobody."""

    place: Final = "system keyring"

    def __init__(self, files: FileSecrets, record: Record, calls: KeyringCalls) -> None:
        self._files = files
        self._path = files.directory / RECORD_FILE
        self._record = record
        self._calls = calls
        self._secrets: dict[str, str] = {}

    def load(self) -> None:
        """Read every recorded secret; one that is not there is an error and never counts as absent."""
        if not self._record.names:
            return
        found = self._calls.read(self._record.names)
        missing = [name for name, secret in found.items() if not secret]
        if missing:
            raise EnvError(
                "secret_failed",
                f"the system keyring ({self._record.backend}) holds no {', '.join(missing)} for {self._path}",
                f"open the keyring they were stored in; or remove {self._path} and start with new secrets, "
                "which every client then needs",
            )
        self._secrets = {name: secret for name, secret in found.items() if secret}

    def adopt(self) -> None:
        """Take over what lies in files: store, read back, record, and only then remove the files.

        A file beside a secret of the same name is what a killed move left; where the two differ nobody can
        say which is right.
        """
        files = {
            name: secret for name in self._files.names() if (secret := self._files.get(name)) is not None
        }
        check_same(files, self._secrets, self._path)
        fresh = {name: secret for name, secret in files.items() if name not in self._secrets}
        if fresh:
            self._write(fresh)
        for name in files:
            self._files.remove(name)

    def give_back(self) -> None:
        """The way back: write the files, then forget the record, and only then empty the keyring."""
        files = {
            name: secret for name in self._files.names() if (secret := self._files.get(name)) is not None
        }
        check_same(files, self._secrets, self._path)
        for name, secret in self._secrets.items():
            if name not in files:
                self._files.put(name, secret)
        try:
            self._path.unlink()
            sync_dir(self._path.parent)
        except OSError as error:
            raise file_error(error, "remove", self._path, "secret_failed") from error
        self._calls.forget(self._secrets)

    def get(self, name: str) -> str | None:
        """The secret, or None where there is none."""
        self._files.path(name)  # refuses what is no name
        return self._secrets.get(name)

    def put(self, name: str, secret: str) -> None:
        """Store a secret; the old one holds until the new one was read back."""
        self._files.path(name)
        if not secret or secret.endswith(("\n", "\r")):
            raise LocalError("invalid_request", "a secret has 1 byte to 64 KiB and no line end behind it")
        self._write({name: secret})

    def rotate(self, name: str, secret: str) -> str | None:
        """Replace a secret and give back the one that it was."""
        old = self.get(name)
        self.put(name, secret)
        return old

    def remove(self, name: str) -> bool:
        """Delete a secret; false where there was none."""
        if self.get(name) is None:
            return False
        left = dict(self._secrets)
        del left[name]
        self._keep(left, self._record.backend)
        self._calls.forget([name])
        return True

    def _write(self, secrets: dict[str, str]) -> None:
        backend = self._calls.write(secrets, {name: self._secrets.get(name) for name in secrets})
        try:
            self._keep({**self._secrets, **secrets}, backend)
        except EnvError:
            # What is not written down would be there and count as absent.
            self._calls.forget(name for name in secrets if name not in self._secrets)
            raise

    def _keep(self, secrets: dict[str, str], backend: str) -> None:
        """Write down which secrets there are."""
        record = Record(self._record.service, backend, tuple(sorted(secrets)))
        if record != self._record:
            try:
                atomic_write(self._path, msgspec.json.encode(record))
            except EnvError as error:
                raise EnvError("secret_failed", error.fault.message, error.fault.hint) from error
        self._record = record
        self._secrets = secrets


def read_record(path: Path) -> Record | None:
    """The record; None where the secrets are files. Raises `EnvError` ``secret_failed``."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise file_error(error, "read", path, "secret_failed") from error
    try:
        return msgspec.json.decode(data, type=Record)
    except msgspec.MsgspecError as error:
        raise EnvError(
            "secret_failed",
            f"{path}, which says where the secrets are, is damaged",
            "restore it from a backup; without it nobody knows that they are in the keyring",
        ) from error


def check_same(files: dict[str, str], kept: dict[str, str], record: Path) -> None:
    """Raise ``secret_failed`` where a file and the keyring disagree."""
    differing = sorted(name for name, secret in files.items() if kept.get(name, secret) != secret)
    if differing:
        raise EnvError(
            "secret_failed",
            f"{', '.join(differing)} is in the keyring and, with another text, in {record.parent}",
            "remove the file that is wrong, or the keyring's entry",
        )
