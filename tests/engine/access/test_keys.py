from __future__ import annotations

import asyncio
import hmac
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.access.caller import Caller
from relaydesk.core.access.key import KeySpec
from relaydesk.core.errors import FaultError
from relaydesk.core.events import Event, KeysChanged
from relaydesk.engine.access.key_ring import KeyRing
from relaydesk.engine.access.keys import Authenticator
from relaydesk.engine.access.quotas import Quotas
from relaydesk.engine.bus import Bus
from relaydesk.engine.clock import SystemRng
from relaydesk.store.db import Database
from relaydesk.store.keys import KeysRepo
from relaydesk.store.secrets import FileSecrets
from relaydesk.store.usage import UsageRepo
from relaydesk.store.usage_log import UsageLog
from tests.support.clock import FakeClock

GIVEN = "k-0123456789abcdef"


def authenticator(folder: Path, given: str = "", bus: Bus | None = None) -> Authenticator:
    database, clock, rng = Database(folder / "hub.db"), FakeClock(), SystemRng()
    quotas = Quotas(UsageRepo(database), UsageLog(folder / "usage.log"), clock, "boot", lambda _: None)
    ring = KeyRing(KeysRepo(database), quotas, clock, rng, bus or Bus())
    return Authenticator.open(given, ring, FileSecrets(folder), clock, rng, bus or Bus())


def opened(made: Authenticator, *keys: str) -> str:
    """The name of the key that lets in, empty where none does."""
    caller = made.check(keys)
    return caller.name if caller is not None else ""


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
    assert (opened(authenticator(tmp_path, GIVEN), *keys) == "default") is opens


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
    looked: list[bytes] = []
    compared: list[bytes] = []
    find, compare = made.ring.find, hmac.compare_digest

    def found(presented: bytes) -> KeySpec | None:
        looked.append(presented)
        return find(presented)

    def counted(presented: bytes, expected: bytes) -> bool:
        compared.append(presented)
        return compare(presented, expected)

    monkeypatch.setattr(made.ring, "find", found)
    monkeypatch.setattr(hmac, "compare_digest", counted)
    made.check(keys)
    # Once with the default key and once with a named one, or with nobody's.
    assert (len(looked), len(compared)) == (count, 2 * count)


def test_the_longest_key_that_a_setting_may_give_opens(tmp_path: Path) -> None:
    longest = "k" * 512
    assert opened(authenticator(tmp_path, longest), longest) == "default"


def test_a_key_is_made_once_and_kept_privately(tmp_path: Path) -> None:
    first = authenticator(tmp_path)
    secret = first.secret()
    assert len(secret) == 64
    second = authenticator(tmp_path)
    assert second.secret() == secret
    assert opened(second, secret) == "default"
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
    assert opened(made, new) == "default"
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
    assert opened(made, GIVEN) == "default"


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
    assert opened(made, old) == "default"


async def test_named_keys_open_until_revoked_and_keys_for_paths_in_paths_only(tmp_path: Path) -> None:
    made = authenticator(tmp_path, GIVEN)
    database = made.ring._repo._database
    await database.open()
    await made.ring._quotas.open()
    spec, secret = await made.ring.add("ann", {})
    _, in_path = await made.ring.add("path", {"in_path": True, "models": ["m"]})
    assert opened(made, secret) == "ann"
    assert opened(made, "wrong", secret, GIVEN) == "ann"
    assert opened(made, in_path, GIVEN) == "default"
    assert opened(made, in_path) == ""
    for key, name in ((in_path, "path"), (secret, None), (GIVEN, None), ("wrong", None)):
        caller = made.check([], key)
        assert (caller.name if caller else None) == name
    for headers, name in (([GIVEN], "default"), (["wrong"], "path"), ([secret, GIVEN], "ann")):
        caller = made.check(headers, in_path)
        assert caller is not None
        assert caller.name == name
    assert made.check([secret]) == Caller("ann", spec.id, spec)
    assert [view.name for view in made.view().keys] == ["default", "ann", "path"]
    await made.ring.remove("ann")
    assert opened(made, secret) == ""
    await database.close()


def test_the_default_key_may_use_the_network_by_its_own_switch(tmp_path: Path) -> None:
    made = authenticator(tmp_path, GIVEN)
    caller = made.check([GIVEN])
    assert caller is not None and not caller.may_network
    made.default_network = True
    caller = made.check([GIVEN])
    assert caller is not None and caller.may_network
    assert made.view().keys[0].network
