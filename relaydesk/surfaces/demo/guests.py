"""Guests of the demo: clients that keep asking, so that the console on its node has something to show."""

from __future__ import annotations

import http.client
import itertools
import threading
from types import TracebackType
from typing import Final, Self

from relaydesk.surfaces.demo.client import Client, DemoFailedError

QUESTIONS: Final = (
    "In one sentence: what is a relay?",
    "Name three rivers of Europe.",
    "Write a haiku about rain.",
    "How do bees find their way home?",
    "Tell a very short story about a lighthouse.",
    "Explain in simple words why the sky is blue.",
)
# Enough that some wait for a slot now and then.
GUESTS: Final = 5
# Seconds between an answer and the next question of the same guest.
PAUSE_S: Final = 3.0
TOKENS: Final = 96
_LEAVE_S: Final = 5.0


class Guests:
    """A context manager: they come when it is entered and are gone when it is left.

    ``asked`` are clients with the model that each asks; every guest goes through them in turn.
    """

    def __init__(self, *asked: tuple[Client, str], count: int = GUESTS, pause_s: float = PAUSE_S) -> None:
        self._asked = asked
        self._pause_s = pause_s
        self._leave = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(number,), name=f"guest {number}", daemon=True)
            for number in range(count)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave.set()
        for thread in self._threads:
            thread.join(_LEAVE_S)

    def _ask(self, number: int) -> None:
        # Not all at once, and not all the same.
        pause_s = self._pause_s * number / len(self._threads)
        for at in itertools.count(number):
            if self._leave.wait(pause_s):
                return
            client, model = self._asked[at % len(self._asked)]
            try:
                client.chat(model, QUESTIONS[at % len(QUESTIONS)], TOKENS, self._read)
            except _LeftError:
                return
            except (DemoFailedError, OSError, http.client.HTTPException):
                pass  # the console's user may unload the model or stop the node: the guest tries again
            pause_s = self._pause_s

    def _read(self, _piece: str) -> None:
        if self._leave.is_set():
            raise _LeftError


class _LeftError(Exception):
    """A guest that leaves within an answer, as clients do."""
