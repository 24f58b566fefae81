from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import FaultError
from relaydesk.core.events import Event, KeysChanged
from relaydesk.engine.access import keys as module
from relaydesk.engine.access.keys import Authenticator
from relaydesk.engine.bus import Bus
from relaydesk.engine.clock import SystemRng
from relaydesk.store.secrets import FileSecrets
from tests.support.clock import FakeClock

GIVEN = "k-0123456789abcdef"


def authenticator(folder: Path, given: str = "", bus: Bus | None = None) -> Authenticator:
    return Authenticator.open(given, FileSecrets(folder), FakeClock(), SystemRng(), bus or Bus())


@pytest.mark.parametrize(
    ("keys", "opens"),
    [
        ([GIVEN], True),
        (["wrong", GIVEN], True),
        ([GIVEN, "wrong"], True),
        ([], False),
        ([""], False),
        ([GIVEN + "x"], False),
        ([GIVEN[:-1], GIVEN + " "], False),
        (["\udcff\udc80"], False),
    ],
)
def test_who_gets_in(tmp_path: Path, keys: list[str], opens: bool) -> None:
    assert (authenticator(tmp_path, GIVEN).check(keys) == "default") is opens


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(st.text(max_size=80), max_size=3))
def test_nothing_but_the_key_opens(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    made = authenticator(tmp_path_factory.getbasetemp(), GIVEN)
    assert made.check(texts) is None or GIVEN in texts


@pytest.mark.parametrize(("keys", "count"), [([], 1), ([""], 1), (["x"], 1), ([GIVEN, "x", "y"], 3)])
def test_a_comparison_is_made_whatever_came(
    tmp_path: Path, keys: list[str], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = authenticator(tmp_path, GIVEN)
    compared: list[str] = []
    real = module.matches

    def counted(presented: str, expected: bytes) -> bool:
        compared.append(presented)
        return real(presented, expected)

    monkeypatch.setattr(module, "matches", counted)
    made.check(keys)
    assert len(compared) == count


def test_the_longest_key_that_a_setting_may_give_opens(tmp_path: Path) -> None:
    longest = "k" * 512
    assert authenticator(tmp_path, longest).check([longest]) == "default"


def test_a_key_is_made_once_and_kept_privately(tmp_path: Path) -> None:
    first = authenticator(tmp_path)
    secret = first.secret()
    assert len(secret) == 64
    second = authenticator(tmp_path)
    assert second.secret() == secret
    assert second.check([secret]) == "default"
    files = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and secret in path.read_text("utf-8", "replace")
    ]
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600]


def test_a_given_key_is_not_stored(tmp_path: Path) -> None:
    assert authenticator(tmp_path, GIVEN).given
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not authenticator(tmp_path).given
    assert authenticator(tmp_path).secret() != GIVEN


def test_no_view_shows_it(tmp_path: Path) -> None:
    for setting, source in ((GIVEN, "RELAY_API_KEY"), ("", "state directory")):
        made = authenticator(tmp_path, setting)
        (key,) = made.view().keys
        assert (key.name, key.source) == ("default", source)
        assert made.secret() not in repr(made.view())
        assert made.secret() not in repr(vars(made))
        assert len(key.fingerprint) == 8


async def test_rotation_replaces_the_key_at_once_and_for_good(tmp_path: Path) -> None:
    bus = Bus()
    events: list[Event] = []
    bus.listen(events.append)
    made = authenticator(tmp_path, bus=bus)
    old, fingerprint = made.secret(), made.view().keys[0].fingerprint
    new = await made.rotate()
    assert made.check([old]) is None
    assert made.check([new]) == "default"
    assert made.secret() == new
    assert made.view().keys[0].fingerprint != fingerprint
    assert events == [KeysChanged()]
    assert authenticator(tmp_path).secret() == new


async def test_rotations_at_once_leave_the_key_that_is_stored(tmp_path: Path) -> None:
    made = authenticator(tmp_path)
    rotated = await asyncio.gather(*(made.rotate() for _ in range(5)))
    assert len(set(rotated)) == 5
    assert authenticator(tmp_path).secret() == made.secret()
    assert made.secret() in rotated


async def test_a_given_key_is_not_rotated(tmp_path: Path) -> None:
    made = authenticator(tmp_path, GIVEN)
    with pytest.raises(FaultError) as caught:
        await made.rotate()
    assert caught.value.fault.code == "refused"
    assert made.check([GIVEN]) == "default"


async def test_a_key_that_cannot_be_stored_is_not_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = authenticator(tmp_path)
    old = made.secret()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.unlink()
            path.mkdir()  # whoever runs the tests may write anything but over a folder
    with pytest.raises(FaultError):
        await made.rotate()
    assert made.check([old]) == "default"
