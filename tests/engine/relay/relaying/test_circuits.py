from __future__ import annotations

from collections.abc import Callable

import pytest

from relaydesk.core.relay.catalogue import WireError
from relaydesk.engine.relay.relaying.circuits import GB, Caps, Circuits
from relaydesk.engine.relay.relaying.meter import RelayMeter
from tests.support.clock import FakeClock
from tests.support.hop_rig import NoMeterFile


class Rig:
    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self.clock = FakeClock()
        self.meter = RelayMeter(self.clock, NoMeterFile())  # type: ignore[arg-type]
        self.circuits = Circuits(self.clock, self.meter, lambda: self.caps, bytes(32))


def refused(call: Callable[[], None]) -> WireError:
    with pytest.raises(WireError) as caught:
        call()
    assert (caught.value.code, caught.value.status) == ("relay_busy", 503)
    assert caught.value.retry_after is not None
    return caught.value


def test_circuits_run_out_and_come_back() -> None:
    rig = Rig(Caps(circuits=2))
    rig.circuits.take("a")
    rig.circuits.take("b")
    assert "no circuit free" in refused(lambda: rig.circuits.take("c")).message
    assert rig.circuits.open == 2
    rig.circuits.release("a", 10)
    rig.circuits.take("c")


@pytest.mark.parametrize(("circuits", "most"), [(256, 64), (9, 2), (3, 1), (1, 1)])
def test_one_client_gets_a_quarter(circuits: int, most: int) -> None:
    rig = Rig(Caps(circuits=circuits))
    for _ in range(most):
        rig.circuits.take("a")
    refused(lambda: rig.circuits.take("a"))
    assert rig.circuits.open == most
    if circuits > most:
        rig.circuits.take("b")
        rig.circuits.release("b")
    rig.circuits.release("a")
    rig.circuits.take("a")
    refused(lambda: rig.circuits.take("a"))
    for _ in range(most):
        rig.circuits.release("a")
    assert (rig.circuits.open, rig.circuits._held._counts) == (0, {})


def test_one_address_is_not_another() -> None:
    rig = Rig(Caps(per_minute=2))
    for _ in range(2):
        rig.circuits.admit("192.0.2.1")
    assert refused(lambda: rig.circuits.admit("192.0.2.1")).retry_after == 30
    rig.circuits.admit("192.0.2.2")
    rig.clock.advance(31)
    rig.circuits.admit("192.0.2.1")


def test_the_months_bytes() -> None:
    rig = Rig(Caps(monthly_gb=1))
    rig.circuits.take("a")
    rig.circuits.carry(GB - 1)
    rig.circuits.take("a")
    rig.circuits.release("a", 1)
    refused(lambda: rig.circuits.take("a"))
    # What runs goes on, and the operator may say otherwise at any time.
    rig.circuits.carry(5)
    rig.caps = Caps(monthly_gb=0)
    rig.circuits.take("a")
    rig.caps = Caps(monthly_gb=1)
    rig.clock.advance(32 * 86_400)
    rig.circuits.take("a")


def test_no_address_stays_behind() -> None:
    rig = Rig(Caps())
    client = rig.circuits.admit("192.0.2.77")
    rig.circuits.take(client)
    kept = [*rig.circuits._rate._buckets._full_after, *rig.circuits._held._counts]
    assert kept == [client, client]
    assert not any("192.0.2.77" in each or "c000024d" in each for each in kept)
