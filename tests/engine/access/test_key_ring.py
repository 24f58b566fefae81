from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.access.compare import digest
from relaydesk.core.access.limits import KeyLimits
from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.events import Event, KeysChanged
from relaydesk.engine.access.key_ring import KeyRing
from relaydesk.engine.access.quotas import Quotas
from relaydesk.engine.bus import Bus
from relaydesk.engine.clock import SystemRng
from relaydesk.store.db import Database
from relaydesk.store.keys import KeysRepo
from relaydesk.store.usage import UsageRepo
from relaydesk.store.usage_log import UsageLog


class Clock:
    wall = 1_796_000_000_000

    def wall_ms(self) -> int:
        return self.wall

    def mono(self) -> float:
        return 0.0


class Rig:
    def __init__(self, directory: Path) -> None:
        self.database = Database(directory / "hub.db")
        self.clock = Clock()
        self.events: list[Event] = []
        self.bus = Bus()
        self.bus.listen(self.events.append)
        log = UsageLog(directory / "usage.log")
        self.quotas = Quotas(UsageRepo(self.database), log, self.clock, "boot", lambda _: None)
        self.ring = self.another()

    def another(self) -> KeyRing:
        return KeyRing(KeysRepo(self.database), self.quotas, self.clock, SystemRng(), self.bus)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path)
    await made.database.open()
    await made.quotas.open()
    yield made
    await made.database.close()


async def test_a_key_opens_until_it_is_revoked(rig: Rig) -> None:
    spec, secret = await rig.ring.add("ann", {"max_concurrency": 2})
    assert rig.ring.find(digest(secret)) == spec
    assert rig.ring.find(digest(secret + "x")) is None
    assert rig.events == [KeysChanged()]
    again = rig.another()
    await again.open()
    assert again.find(digest(secret)) == spec
    assert await rig.ring.remove("ann") == spec
    assert rig.ring.find(digest(secret)) is None
    assert rig.ring.specs() == ()


async def test_the_secret_is_nowhere_in_the_store(rig: Rig, tmp_path: Path) -> None:
    _, secret = await rig.ring.add("ann", {})
    await rig.database.close()
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()
        assert secret.removeprefix("rk-").encode() not in file.read_bytes()


async def test_an_expired_key_opens_nothing(rig: Rig) -> None:
    _, secret = await rig.ring.add("ann", {"expires_ms": rig.clock.wall + 1000})
    assert rig.ring.find(digest(secret)) is not None
    rig.clock.wall += 1000
    assert rig.ring.find(digest(secret)) is None
    _, new = await rig.ring.change("ann", {"expires_ms": 0})
    assert rig.ring.find(digest(secret)) == new


async def test_settings_are_changed_one_by_one_and_limits_hold_at_once(rig: Rig) -> None:
    spec, _ = await rig.ring.add("ann", {"tokens_per_day": 100, "models": ["a", "a", "b"]})
    assert spec.models == ("a", "b")
    assert rig.quotas.standing(spec.id).tokens_left == 100
    old, new = await rig.ring.change("ann", {"requests_per_minute": 5})
    assert (old, new.limits) == (spec, KeyLimits(tokens_per_day=100, requests_per_minute=5))
    assert new.models == ("a", "b")
    await rig.ring.change("ann", {"tokens_per_day": 0, "models": []})
    assert rig.quotas.standing(spec.id).tokens_left is None
    assert rig.ring.spec("ann").models == ()


@pytest.mark.parametrize(
    ("settings", "param"),
    [
        ({"tokens_per_day": -1}, "tokens_per_day"),
        ({"max_concurrency": 1.5}, "max_concurrency"),
        ({"requests_per_minute": 10**30}, "requests_per_minute"),
        ({"models": "a"}, "models"),
        ({"models": ["a b"]}, "models"),
        ({"models": ["a"] * 257}, "models"),
        ({"expires_ms": 5}, "expires_ms"),
        ({"expires_ms": -5}, "expires_ms"),
        ({"expires_ms": "soon"}, "expires_ms"),
        ({"in_path": 1}, "in_path"),
        ({"colour": 1}, "colour"),
        ({"in_path": True}, "models"),
    ],
)
async def test_settings_that_cannot_be(rig: Rig, settings: dict[str, Any], param: str) -> None:
    with pytest.raises(LocalError) as caught:
        await rig.ring.add("ann", settings)
    assert (caught.value.fault.code, caught.value.fault.param) == ("invalid_request", param)
    assert rig.ring.specs() == ()


async def test_names(rig: Rig) -> None:
    await rig.ring.add("ann", {})
    with pytest.raises(LocalError, match="already"):
        await rig.ring.add("ann", {})
    for work in (rig.ring.change("bob", {}), rig.ring.remove("bob")):
        with pytest.raises(LocalError) as caught:
            await work
        assert caught.value.fault.code == "key_not_found"


async def test_a_key_opens_nothing_even_where_its_removal_cannot_be_stored(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, secret = await rig.ring.add("ann", {})

    async def fail(*_: object) -> None:
        raise EnvError("storage_failed", "the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(KeysRepo, "remove", fail)
        with pytest.raises(EnvError):
            await rig.ring.remove("ann")
    assert rig.ring.find(digest(secret)) is None
    # It can be removed once more, when there is room.
    await rig.ring.remove("ann")
    assert rig.ring.specs() == ()


async def test_the_network_and_its_credit(rig: Rig) -> None:
    spec, _ = await rig.ring.add("ann", {"network": True, "credit_per_day": 5000, "models": ["net/a/b", "c"]})
    assert spec.network and spec.limits.credit_per_day == 5000 and spec.models == ("net/a/b", "c")
    hold = await rig.quotas.credits.hold(spec.id, 3000)
    (view,) = rig.ring.views()
    assert (view.network, view.credit_per_day, view.credit_spent, view.credit_held) == (True, 5000, 0, 3000)
    rig.quotas.credits.settle(spec.id, hold, 100)
    _, now = await rig.ring.change("ann", {"network": False, "credit_per_day": 200})
    assert not now.network
    assert rig.ring.views()[0].credit_spent == 100
    assert rig.ring.credit(spec.id).left == 100
    fresh, _ = await rig.ring.add("bob", {})
    assert not fresh.network and rig.ring.credit(fresh.id).limit == 0, "both are off"
    again = rig.another()
    await again.open()
    assert again.specs()[0] == now


@pytest.mark.parametrize(
    ("settings", "param"),
    [
        ({"network": "yes"}, "network"),
        ({"network": 1}, "network"),
        ({"credit_per_day": -1}, "credit_per_day"),
        ({"credit_per_day": 0.5}, "credit_per_day"),
        ({"credit_per_day": True}, "credit_per_day"),
        ({"models": ["net/"]}, "models"),
    ],
)
async def test_what_cannot_be_about_the_network(rig: Rig, settings: dict[str, Any], param: str) -> None:
    with pytest.raises(LocalError) as caught:
        await rig.ring.add("ann", settings)
    assert caught.value.fault.param == param
    assert "no limit" not in caught.value.fault.sentence
