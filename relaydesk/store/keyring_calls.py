"""Calls to the system's keyring, each in a thread and within a time.

A keyring may wait for a person who is to type a pass phrase, for a bus that does not answer, or for ever.
The interpreter waits for no thread of ours at its end. One call at a time: while one hangs no other begins.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from relaydesk.core.errors import EnvError
from relaydesk.core.text import safe_text

T = TypeVar("T")
LIMIT_S: Final = 2.0
_log: Final = logging.getLogger(__name__)
_UNLOCK: Final = "unlock the keyring (a prompt may be waiting on a screen) and start again"


@dataclass(slots=True)
class _Call:
    """What passes between a call's thread and who waits for it."""

    done: threading.Event = field(default_factory=threading.Event)
    guard: threading.Lock = field(default_factory=threading.Lock)
    abandoned: bool = False
    error: BaseException | None = None


class KeyringCalls:
    """One ``service`` in the keyring. Errors are `EnvError` ``secret_failed`` and hold no secret's text."""

    def __init__(self, service: str, limit_s: float = LIMIT_S) -> None:
        self.service = service
        self.limit_s = limit_s
        self._busy = threading.Lock()

    def read(self, names: Iterable[str]) -> dict[str, str | None]:
        """The secrets of these names; None where there is none."""
        wanted = tuple(names)

        def work() -> dict[str, str | None]:
            import keyring

            return {name: keyring.get_password(self.service, name) for name in wanted}

        return self._do(work)

    def write(self, secrets: Mapping[str, str], before: Mapping[str, str | None]) -> str:
        """Store secrets and read them back; gives the name of what keeps them. ``before`` is what was there.

        Where it fails or takes too long all of them are as ``before`` again, if need be later.
        """

        def work() -> str:
            import keyring

            for name, secret in secrets.items():
                keyring.set_password(self.service, name, secret)
            if any(keyring.get_password(self.service, name) != secret for name, secret in secrets.items()):
                raise EnvError(
                    "secret_failed",
                    "the system keyring took a secret and did not give it back",
                    "choose another keyring, or set RELAY_SECRETS=file",
                )
            return type(keyring.get_keyring()).__module__.rpartition(".")[2]

        return self._do(work, lambda: self._restore(before), secrets.values())

    def forget(self, names: Iterable[str]) -> None:
        """Delete secrets, without waiting for it: nothing depends on it any more."""
        gone = tuple(names)

        def run() -> None:
            with self._busy:
                try:
                    self._restore(dict.fromkeys(gone))
                except BaseException as error:
                    what = ", ".join(gone)
                    _log.warning("%s may be left in the keyring (%s): %s", what, self.service, _kind(error))

        if gone:
            threading.Thread(target=run, daemon=True, name="keyring-forget").start()

    def _restore(self, before: Mapping[str, str | None]) -> None:
        import keyring
        import keyring.errors

        for name, secret in before.items():
            if secret is not None:
                keyring.set_password(self.service, name, secret)
            elif keyring.get_password(self.service, name) is not None:
                try:
                    keyring.delete_password(self.service, name)
                except keyring.errors.PasswordDeleteError:
                    pass  # somebody else was faster

    def _do(
        self, work: Callable[[], T], undo: Callable[[], None] | None = None, private: Iterable[str] = ()
    ) -> T:
        if not self._busy.acquire(timeout=self.limit_s):
            raise _slow(self.limit_s)
        call = _Call()
        found: list[T] = []

        def run() -> None:
            try:
                try:
                    found.append(work())
                except BaseException as error:
                    call.error = error
                with call.guard:
                    call.done.set()
                    failed = call.abandoned or call.error is not None
                if failed and undo is not None:
                    undo()
            except BaseException:
                pass  # undoing failed as well: who waited has an error already
            finally:
                self._busy.release()

        threading.Thread(target=run, daemon=True, name="keyring").start()
        call.done.wait(self.limit_s)
        with call.guard:
            call.abandoned = not call.done.is_set()
        if call.abandoned:
            raise _slow(self.limit_s)
        if call.error is not None:
            raise _failed(call.error, private) from None
        return found[0]


def _slow(limit_s: float) -> EnvError:
    return EnvError("secret_failed", f"the system keyring did not answer within {limit_s:g} s", _UNLOCK)


def _failed(error: BaseException, private: Iterable[str]) -> EnvError:
    if isinstance(error, EnvError):
        return error
    # Whatever else a keyring raises may quote what it was given.
    known = isinstance(error, OSError) or type(error).__module__.startswith("keyring.")
    text = str(error) if known else ""
    if any(secret in text for secret in private):
        text = ""
    first = safe_text(text.partition("\n")[0], 160)
    shown = f"{_kind(error)}: {first}" if first else _kind(error)
    # Not by its class: that would load the library for whoever keeps secrets in files.
    if _kind(error) == "NoKeyringError":
        return EnvError(
            "secret_failed",
            "there is no system keyring here that could keep secrets",
            "log in to a desktop session that has one, or set RELAY_SECRETS=file",
        )
    return EnvError("secret_failed", f"the system keyring cannot be used ({shown})", _UNLOCK)


def _kind(error: BaseException) -> str:
    return type(error).__name__
