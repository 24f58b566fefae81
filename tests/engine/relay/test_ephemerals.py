"""Short-lived keys over hours of a clock that may jump."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.records.canonical import public_of
from relaydesk.core.relay.records.ephemeral import (
    KEEP_S,
    LIFE_S,
    ROTATE_S,
    Ephemeral,
    Holds,
    check_ephemeral,
    sign_ephemeral,
)
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.relay.age import PyrageAge
from relaydesk.engine.relay.ephemerals import Ephemerals
from tests.support.clock import FakeClock

REF = NodeRef(42, 7)
SEED = bytes(range(32))


def _made() -> tuple[Ephemerals, FakeClock]:
    clock = FakeClock()

    def advertise(recipient: str, issued_at: int, expiry: int) -> Ephemeral:
        return sign_ephemeral(SEED, REF, recipient, issued_at, expiry)

    return Ephemerals(PyrageAge(), advertise, clock), clock


def _holds(advert: Ephemeral, clock: FakeClock) -> Holds:
    return check_ephemeral(advert, REF, public_of(SEED), clock.wall_ms() // 1000)


def test_a_key_is_advertised_for_twenty_minutes_and_then_another() -> None:
    keys, clock = _made()
    first = keys.advert()
    assert _holds(first, clock) is Holds.FRESH
    assert first.expiry - first.issued_at == LIFE_S
    clock.advance(ROTATE_S - 1)
    assert keys.advert() == first
    clock.advance(1)
    assert keys.advert().age_pubkey != first.age_pubkey


def test_what_was_sealed_just_before_a_turn_still_opens_until_the_key_is_forgotten() -> None:
    keys, clock = _made()
    sealed = PyrageAge().seal(b"a reserve", keys.advert().age_pubkey)
    clock.advance(ROTATE_S)
    keys.advert()
    clock.advance(KEEP_S - 1)
    assert keys.open(sealed) == b"a reserve"
    clock.advance(1)
    with pytest.raises(ValueError, match="still kept"):
        keys.open(sealed)


def test_before_the_first_key_nothing_opens() -> None:
    keys, _ = _made()
    with pytest.raises(ValueError, match="still kept"):
        keys.open(b"age-encryption.org/v1\n")


@pytest.mark.parametrize("jump", [-86_400, -120, LIFE_S, 86_400])
def test_a_clock_that_jumps_gives_a_fresh_advert_at_once(jump: int) -> None:
    keys, clock = _made()
    before = PyrageAge().seal(b"x", keys.advert().age_pubkey)
    clock.set_wall_ms(clock.wall_ms() + jump * 1000)
    assert _holds(keys.advert(), clock) is Holds.FRESH
    assert keys.open(before) == b"x"


@given(st.lists(st.integers(-5000, 5000), max_size=30))
def test_whatever_the_clock_does_the_advert_is_fresh_and_few_keys_are_kept(jumps: list[int]) -> None:
    keys, clock = _made()
    for jump in jumps:
        clock.advance(abs(jump))
        clock.set_wall_ms(clock.wall_ms() + (jump - abs(jump)) * 1000)
        assert _holds(keys.advert(), clock) is Holds.FRESH
        assert len(keys._retired) <= 8
