from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import keyring.backends.fail
import keyring.errors
import pytest

from relaydesk.core.errors import EnvError
from relaydesk.store.keyring_calls import KeyringCalls
from tests.support.keyrings import MemoryKeyring, in_use

SECRET = "sk-do-not-show-me"


@pytest.fixture
def backend() -> Iterator[MemoryKeyring]:
    made = MemoryKeyring()
    with in_use(made):
        yield made
    made.gate.set()


@pytest.fixture
def calls() -> KeyringCalls:
    return KeyringCalls("relaydesk test", limit_s=5)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(EnvError) as caught:
        call()
    assert caught.value.fault.code == "secret_failed"
    assert caught.value.fault.hint
    assert SECRET not in caught.value.fault.sentence
    return caught.value.fault.sentence


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_what_is_written_is_read(backend: MemoryKeyring, calls: KeyringCalls) -> None:
    assert calls.read(["a"]) == {"a": None}
    assert calls.write({"a": SECRET, "b": "y"}, {"a": None, "b": None}) == "keyrings"
    assert calls.read(["a", "b", "c"]) == {"a": SECRET, "b": "y", "c": None}
    calls.forget(["a", "c"])
    until(lambda: calls.read(["a"]) == {"a": None})
    assert backend.kept == {("relaydesk test", "b"): "y"}


def test_a_hanging_keyring_is_left_behind_and_undoes_what_it_did_too_late(backend: MemoryKeyring) -> None:
    calls = KeyringCalls("relaydesk test", limit_s=0.05)
    backend.kept["relaydesk test", "a"] = "old"
    backend.gate.clear()
    said = refusal(lambda: calls.write({"a": SECRET, "b": SECRET}, {"a": "old", "b": None}))
    assert "did not answer within 0.05 s" in said
    assert "unlock" in said
    # No second thread beside the one that hangs.
    asked = len(backend.calls)
    assert "did not answer" in refusal(lambda: calls.read(["a"]))
    assert len(backend.calls) == asked
    backend.gate.set()
    until(lambda: "delete b" in backend.calls)
    patient = KeyringCalls("relaydesk test", limit_s=5)
    assert patient.read(["a", "b"]) == {"a": "old", "b": None}
    until(lambda: not any(thread.name == "keyring" for thread in threading.enumerate()))


def test_no_keyring_at_all(calls: KeyringCalls) -> None:
    with in_use(keyring.backends.fail.Keyring()):
        assert "RELAY_SECRETS=file" in refusal(lambda: calls.read(["a"]))


@pytest.mark.parametrize(
    "error",
    [
        keyring.errors.InitError("Prompt dismissed"),
        keyring.errors.KeyringLocked("locked"),
        ValueError(f"cannot store {SECRET}\nmore"),
        OSError(111, "Connection refused"),
        SystemExit(3),
    ],
)
def test_every_failure_is_a_sentence_without_the_secret(
    backend: MemoryKeyring, calls: KeyringCalls, error: Exception
) -> None:
    backend.fails = error
    for call in (lambda: calls.read(["a"]), lambda: calls.write({"a": SECRET}, {"a": None})):
        assert f"cannot be used ({type(error).__name__}" in refusal(call)
    calls.forget(["a"])


def test_an_error_that_quotes_the_secret_is_named_without_its_words(
    backend: MemoryKeyring, calls: KeyringCalls
) -> None:
    backend.fails = keyring.errors.PasswordSetError(f"cannot store {SECRET}")
    assert "(PasswordSetError):" in refusal(lambda: calls.write({"a": SECRET}, {"a": None}))
    backend.fails = keyring.errors.PasswordSetError("disk full")
    assert "(PasswordSetError: disk full):" in refusal(lambda: calls.write({"a": SECRET}, {"a": None}))


def test_one_that_takes_and_gives_nothing_back(backend: MemoryKeyring, calls: KeyringCalls) -> None:
    backend.forgets = True
    assert "did not give it back" in refusal(lambda: calls.write({"a": SECRET}, {"a": None}))


def test_a_write_that_fails_halfway_is_taken_back(backend: MemoryKeyring, calls: KeyringCalls) -> None:
    class Full(MemoryKeyring):
        def set_password(self, service: str, username: str, password: str) -> None:
            if username == "b":
                raise keyring.errors.PasswordSetError("full")
            super().set_password(service, username, password)

    full = Full()
    with in_use(full):
        assert "full" in refusal(lambda: calls.write({"a": SECRET, "b": SECRET}, {"a": None, "b": None}))
        until(lambda: not full.kept)
