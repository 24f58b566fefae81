from __future__ import annotations

from relaydesk.core.hopcheck.record import SIZE, chunk


def test_chunks_are_events_of_one_size() -> None:
    for number in range(10):
        made = chunk(number)
        assert len(made) == SIZE
        assert made.startswith(b"data: {")
        assert made.endswith(b"\n\n")
        assert f'"chunk":{number}'.encode() in made
