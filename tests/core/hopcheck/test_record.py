from __future__ import annotations

from relaydesk.core.hopcheck.record import SIZE, chunk, held_back


def test_chunks_are_events_of_one_size() -> None:
    for number in range(10):
        made = chunk(number)
        assert len(made) == SIZE
        assert made.startswith(b"data: {")
        assert made.endswith(b"\n\n")
        assert f'"chunk":{number}'.encode() in made


def test_a_buffer_is_told_from_a_busy_machine() -> None:
    for busy in (
        (0, 200, 400, 600, 800, 1000),
        (700, 700, 700, 900, 1100, 1300),
        (0, 200, 900, 900, 900, 1000),
    ):
        assert not held_back(busy, 200)
    for buffer in ((5,) * 6, (1000,) * 6, (0, 1000, 1000, 1000, 1000, 1000)):
        assert held_back(buffer, 200)
