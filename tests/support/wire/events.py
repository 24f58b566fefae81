"""Server-sent events, as far as the wire uses them (§4.7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

CONTENT: Final = "zs"
RECEIPT: Final = "zs-receipt"
SETTLE: Final = "zs-settle-group"
COMMENT: Final = ":"  # the name given here to a block that holds comments alone
DONE: Final = b"data: [DONE]\n\n"
KEEP_ALIVE: Final = b": keep-alive\n\n"


@dataclass(frozen=True)
class Event:
    """One block of a stream. ``name`` is empty where the block has none."""

    name: str
    data: str

    @property
    def done(self) -> bool:
        return not self.name and self.data == "[DONE]"


def block(name: str, data: str) -> bytes:
    """An event's bytes."""
    return f"event: {name}\ndata: {data}\n\n".encode()


def parse(raw: bytes) -> Event:
    """One block without its blank line."""
    name, data, fields = "", [], 0
    for line in raw.decode().splitlines():
        field, _, value = line.partition(":")
        fields += field != ""
        if field == "event":
            name = value.removeprefix(" ")
        elif field == "data":
            data.append(value.removeprefix(" "))
    return Event(name, "\n".join(data)) if fields else Event(COMMENT, raw.decode())


class Reader:
    """Cuts a stream's bytes, however they arrive, into events."""

    def __init__(self) -> None:
        self.rest = b""  # what no blank line has ended yet

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that this chunk completes."""
        self.rest += chunk
        while (end := self.rest.find(b"\n\n")) >= 0:
            raw, self.rest = self.rest[:end], self.rest[end + 2 :]
            if raw.strip():
                yield parse(raw)
