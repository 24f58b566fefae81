"""Where the secrets are: files, or the system's keyring. They are moved once, when the setting changes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from relaydesk.core.errors import EnvError
from relaydesk.core.ports import Rng
from relaydesk.store.keyring_calls import KeyringCalls
from relaydesk.store.keyring_secrets import RECORD_FILE, KeyringSecrets, Record, read_record
from relaydesk.store.secrets import FileSecrets, Secrets

KEYRING: Final = "keyring"


class SecretStore:
    """`Secrets` in the place that ``wanted`` (RELAY_SECRETS: ``file`` or ``keyring``) names.

    `prepare` comes first. It looks where the secrets were left and moves them if need be; a place that was
    recorded and cannot be reached is an error, never a reason to begin anew.
    """

    def __init__(self, state_dir: Path, wanted: str, rng: Rng) -> None:
        self._files = FileSecrets(state_dir)
        self._wanted = wanted
        self._rng = rng
        self._now: Secrets = self._files

    @property
    def place(self) -> str:
        """Where they are, for people."""
        return self._now.place

    def prepare(self) -> None:
        """Find the secrets, or move them. Needs the state lock; waits for a keyring two seconds at most.

        Raises `EnvError` ``secret_failed``.
        """
        self._files.prepare()
        record = read_record(self._files.directory / RECORD_FILE)
        if record is None and self._wanted != KEYRING:
            return
        if record is None:
            record = Record(f"relaydesk {self._rng.token_bytes(8).hex()}", "")
        kept = KeyringSecrets(self._files, record, KeyringCalls(record.service))
        try:
            kept.load()
            if self._wanted == KEYRING:
                kept.adopt()
                self._now = kept
            else:
                kept.give_back()
        except EnvError as error:
            raise self._told(error, record) from error

    def get(self, name: str) -> str | None:
        """The secret, or None where there is none."""
        return self._now.get(name)

    def put(self, name: str, secret: str) -> None:
        """Store a secret."""
        self._now.put(name, secret)

    def rotate(self, name: str, secret: str) -> str | None:
        """Replace a secret and give back the one that it was."""
        return self._now.rotate(name, secret)

    def remove(self, name: str) -> bool:
        """Delete a secret; false where there was none."""
        return self._now.remove(name)

    def _told(self, error: EnvError, record: Record) -> EnvError:
        """The way out depends on where the secrets are."""
        if self._wanted == KEYRING or not record.names:
            return error
        return EnvError(
            "secret_failed",
            f"the secrets are in the system keyring ({record.backend}) and cannot be moved back to files: "
            f"{error.fault.message}",
            error.fault.hint,
        )


def stored_secret(state_dir: Path, name: str) -> str | None:
    """A secret where no node is running. Nothing is moved or made. Raises `EnvError` ``secret_failed``."""
    files = FileSecrets(state_dir)
    record = read_record(files.directory / RECORD_FILE)
    if record is None:
        return files.get(name)
    kept = KeyringSecrets(files, record, KeyringCalls(record.service))
    kept.load()
    return kept.get(name)
