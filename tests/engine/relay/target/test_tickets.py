"""Tickets in memory: seen as often as one likes, spent once, counted until they are given back."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.records.ticket import Ticket
from relaydesk.engine.relay.target import tickets as module
from relaydesk.engine.relay.target.tickets import PROMISE_S, TICKET_LIFE_S, Held, Tickets
from tests.support.clock import FakeClock


def held(clock: FakeClock, number: int, model: str = "m") -> Held:
    ticket = Ticket(
        ticket_id=base64.b64encode(number.to_bytes(16)).decode(), operator_id=1, node_id=0, input_count=1,
        max_output_count=1, input_rate=0, output_rate=0, max_price=0, min_price=0, model=model,
        expires_at=clock.wall_ms() // 1000 + TICKET_LIFE_S, commit_k="",
    )  # fmt: skip
    return Held(ticket, bytes(32), "age1", "PAYER", 1, 100)


def test_a_ticket_is_seen_and_then_spent_once() -> None:
    clock = FakeClock()
    tickets, one = Tickets(clock), held(clock, 1)
    name = one.ticket.ticket_id
    assert tickets.peek(name) is None and tickets.consume(name) is None
    tickets.add(one)
    assert tickets.peek(name) is one and tickets.peek(name) is one and tickets.waiting == 1
    assert tickets.consume(name) is one
    assert tickets.peek(name) is None and tickets.consume(name) is None
    assert (tickets.waiting, tickets.spent, tickets.promised("m")) == (0, 1, 1)
    tickets.release(one)
    tickets.release(one)
    assert (tickets.spent, tickets.promised()) == (0, 0)


def test_an_expired_one_is_seen_but_not_spent() -> None:
    clock = FakeClock()
    tickets, one = Tickets(clock), held(clock, 1)
    tickets.add(one)
    clock.advance(TICKET_LIFE_S + 1)
    assert tickets.peek(one.ticket.ticket_id) is one
    assert tickets.consume(one.ticket.ticket_id) is None
    assert tickets.spent == 0


def test_expired_ones_hold_nothing() -> None:
    clock = FakeClock()
    tickets = Tickets(clock)
    tickets.add(held(clock, 1))
    clock.advance(TICKET_LIFE_S - 1)
    tickets.add(held(clock, 2, "other"))
    assert tickets.waiting == 2
    clock.advance(2)
    assert tickets.waiting == 1


def test_a_ticket_keeps_a_slot_for_a_short_while_and_is_good_for_longer() -> None:
    clock = FakeClock()
    tickets, one = Tickets(clock), held(clock, 1)
    tickets.add(one)
    tickets.add(held(clock, 2, "other"))
    clock.advance(PROMISE_S - 1)
    assert (tickets.promised("m"), tickets.promised()) == (1, 2)
    clock.advance(1)
    assert (tickets.promised("m"), tickets.promised()) == (0, 0)
    assert tickets.consume(one.ticket.ticket_id) is one
    assert (tickets.promised("m"), tickets.promised()) == (1, 1)


def test_there_is_a_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TICKETS", 2)
    clock = FakeClock()
    tickets = Tickets(clock)
    one = held(clock, 1)
    tickets.add(one)
    tickets.add(held(clock, 2))
    assert tickets.full
    assert tickets.consume(one.ticket.ticket_id) is one and tickets.full
    tickets.release(one)
    assert not tickets.full


def test_a_repr_holds_neither_key_nor_payer() -> None:
    shown = repr(held(FakeClock(), 1))
    assert "PAYER" not in shown and "x00" not in shown


@given(st.lists(st.tuples(st.sampled_from(("add", "drop", "consume", "release", "wait")), st.integers(0, 3))))
def test_whatever_happens_the_counts_add_up(steps: list[tuple[str, int]]) -> None:
    clock = FakeClock()
    tickets = Tickets(clock)
    spent: set[int] = set()
    made: dict[int, Held] = {}
    for step, number in steps:
        if step == "add" and number not in made:
            made[number] = held(clock, number)
            tickets.add(made[number])
        elif step == "wait":
            clock.advance(50)
        elif number in made and step == "drop":
            tickets.drop(made[number])
        elif number in made and step == "consume":
            if tickets.consume(made[number].ticket.ticket_id) is not None:
                assert number not in spent
                spent.add(number)
        elif number in spent and step == "release":
            tickets.release(made[number])
            spent.discard(number)
            # An id is random: it is never issued again.
    assert tickets.spent == len(spent)
    assert tickets.spent <= tickets.promised() <= tickets.waiting + tickets.spent
