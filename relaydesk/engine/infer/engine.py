"""What every engine offers the gateway, whatever it is."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

import msgspec

DONE = b"[DONE]"


class EngineReply(msgspec.Struct, frozen=True):
    """A whole answer, undecoded. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class EngineStream(Protocol):
    """A streamed answer whose head has arrived.

    With status 200 iterate: each item is one event's payload, ``[DONE]`` not among them. With any other
    status ``error_body`` holds the body (cut at a bound) and there is nothing to iterate. Iterating raises
    `PeerError` ``engine_failed`` where the answer ends early, is broken, or stays silent too long. Leaving
    the context closes the connection at once; to an engine that is how its client leaves.
    """

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def error_body(self) -> bytes: ...
    def relax(self) -> None:
        """The reader is in no hurry from now on: events may come in batches, a tenth of a second late.

        The last ones never do. Reading each token as it comes takes time from an engine on the same cores.
        """
        ...

    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> bytes: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    async def aclose(self) -> None: ...


class Engine(Protocol):
    """One engine that can be asked. All calls raise `PeerError` ``engine_failed`` where it fails."""

    async def stream(self, path: str, body: bytes, *, ends_with_done: bool = True) -> EngineStream:
        """POST ``body`` (JSON) and return once the head is here.

        ``ends_with_done`` says that the route closes with ``[DONE]``, so that a stream without it was cut.
        """
        ...

    async def json(self, method: str, path: str, body: bytes | None = None) -> EngineReply:
        """Ask for a whole answer of any status."""
        ...

    async def health(self) -> bool:
        """Whether it answers and is ready. Never raises for an engine that is not."""
        ...

    async def aclose(self) -> None: ...
