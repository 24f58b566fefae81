from __future__ import annotations

from relaydesk.core.hopcheck.asked import asked_header
from relaydesk.engine.clock import SystemRng
from relaydesk.engine.hopcheck.nonces import LIFE_S, MOST, MOST_OPEN, MOST_USES, Nonces
from tests.support.clock import FakeClock


def value(nonce: str) -> str:
    return asked_header(nonce, "echo")[1]


def test_a_nonce_is_good_for_five_minutes() -> None:
    clock = FakeClock()
    nonces = Nonces(clock, SystemRng())
    nonce, ends = nonces.make()
    assert ends == clock.wall_ms() + 300_000
    assert nonces.asked(value(nonce)) is not None
    clock.advance(LIFE_S - 1)
    assert nonces.asked(value(nonce)) is not None
    clock.advance(2)
    assert nonces.asked(value(nonce)) is None


def test_no_other_is_good() -> None:
    nonces = Nonces(FakeClock(), SystemRng())
    nonce, _ = nonces.make()
    other = nonce[:-1] + ("0" if nonce[-1] != "0" else "1")
    assert nonces.asked(value(other)) is None
    assert nonces.asked(value("0" * 32)) is None
    assert nonces.asked("") is None
    assert nonces.asked(value(nonce)) is not None


def test_uses_nonces_and_answers_at_once_are_bounded() -> None:
    nonces = Nonces(FakeClock(), SystemRng())
    nonce, _ = nonces.make()
    assert sum(nonces.asked(value(nonce)) is not None for _ in range(MOST_USES + 10)) == MOST_USES
    kept, _ = nonces.make()
    nonces.open = MOST_OPEN
    assert nonces.asked(value(kept)) is None
    nonces.open = 0
    assert nonces.asked(value(kept)) is not None
    for _ in range(MOST):
        nonces.make()
    assert nonces.asked(value(kept)) is None
