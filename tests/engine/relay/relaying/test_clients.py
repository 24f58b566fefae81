from __future__ import annotations

from relaydesk.engine.relay.relaying.clients import Clients, Rate
from tests.support.clock import FakeClock


def test_a_name_says_nothing_of_its_address() -> None:
    clients = Clients(bytes(32))
    name = clients.name("192.0.2.77")
    assert "192.0.2.77" not in name
    assert "c000024d" not in name
    assert name == clients.name("192.0.2.77") == clients.name("::ffff:192.0.2.77")
    assert name != clients.name("192.0.2.78")
    assert name != Clients(bytes([1]) * 32).name("192.0.2.77")


def test_all_of_a_64_are_one() -> None:
    clients = Clients(bytes(32))
    assert clients.name("2001:db8::1") == clients.name("2001:db8::ffff:1")
    assert clients.name("2001:db8::1") != clients.name("2001:db8:0:1::1")


def test_waits_are_whole_seconds_and_full_buckets_are_forgotten() -> None:
    clock = FakeClock()
    rate = Rate(clock)
    assert [rate.take("a", 2) for _ in range(3)] == [0, 0, 30]
    assert rate.take("b", 2) == 0
    clock.advance(29.5)
    assert rate.take("a", 2) == 1
    clock.advance(1)
    assert rate.take("a", 2) == 0
    clock.advance(200)
    assert rate.take("c", 2) == 0
    assert len(rate._buckets) == 1
