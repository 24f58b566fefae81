"""What a request asks of an engine, whatever dialect it came in: the other side of `output`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.output import Identity, Output
from relaydesk.core.gateway.piece import Piece
from relaydesk.core.gateway.usage import Tally, Usage


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a model can do. Reading and writing text is ``completion``, which embedding models cannot.

    ``embeds_ids`` says that token ids to embed are its own business: so it is with a far server.
    ``infill_tokens`` are its own for what stands before a gap, what stands behind it, and the gap; None where
    they are not known. ``vocabulary`` is its number of tokens, ``dimensions`` the length of its embeddings,
    ``template_bytes`` that of its chat template: 0 where not known.
    """

    completion: bool = True
    tools: bool = False
    images: bool = False
    thinking: bool = False
    embedding: bool = False
    embeds_ids: bool = False
    infill: bool = False
    infill_tokens: tuple[int, int, int] | None = None
    vocabulary: int = 0
    template_bytes: int = 0
    dimensions: int = 0


class Reader(Protocol):
    """Reads one choice's events. ``tally`` is its account, right after every `read`."""

    @property
    def tally(self) -> Tally: ...

    def read(self, data: bytes) -> Piece | None:
        """The piece in one event, None where it has nothing for the client. Raises `PeerError`."""
        ...

    def end(self) -> None:
        """The engine's body has ended. Raises `PeerError` ``engine_failed`` where the answer has not."""
        ...


class Counting(msgspec.Struct, frozen=True):
    """Engine requests, path and body, whose counts add up; ``known`` tokens come to them."""

    requests: tuple[tuple[str, bytes], ...]
    known: int = 0


class Work(Protocol):
    """A checked request, as engine requests: one for each choice, each with a slot of its own.

    ``model`` is what the client named, None for nothing; ``path`` the engine's route.
    """

    @property
    def model(self) -> str | None: ...
    @property
    def stream(self) -> bool: ...
    @property
    def choices(self) -> int: ...
    @property
    def path(self) -> str: ...

    @property
    def limit(self) -> int | None:
        """The most tokens that the client wants of each choice; None lets it go on to its end."""
        ...

    @property
    def prompt_bound(self) -> int:
        """At least as many tokens as all prompts have, each once; what a template adds is not in it.

        No model is needed to know it: a token stands for at least one byte.
        """
        ...

    @property
    def prompt_floor(self) -> int:
        """At most as many tokens as the longest prompt has; 0 where there is no telling."""
        ...

    def limited(self, limit: int) -> Work:
        """The same work with at most ``limit`` tokens a choice."""
        ...

    def counting(self, alias: str) -> Counting:
        """What tells how many tokens the prompts really have."""
        ...

    def fitted(self, capabilities: Capabilities) -> Work:
        """The same work as this model can do it.

        Raises `PeerError` ``unsupported``, naming the field, where it cannot.
        """
        ...

    def body(
        self, choice: int, *, alias: str, slot: int | None, cache_prompt: bool, extensions: bool
    ) -> bytes:
        """The engine request of one choice.

        ``alias`` is the name the engine knows the model by. ``extensions`` is false for an engine that knows
        only OpenAI's fields: progress, slot and prompt cache are then its own business. ``cache_prompt`` is
        the gateway's decision; a client may forbid what it allows, never allow what it forbids.
        """
        ...

    def reader(self, choice: int, call_prefix: str) -> Reader:
        """Reads that choice's events; ``call_prefix`` begins the ids of tool calls that have none."""
        ...

    def usage(self, tallies: Sequence[Tally], *, cached: bool) -> Usage:
        """What the request cost, from the accounts of its choices.

        ``cached`` is false where the engine's prompt cache is its own business and not told.
        """
        ...

    def blamed(self, fault: Fault) -> Fault:
        """An engine's fault, said about the field that this work came from."""
        ...


class Plan(msgspec.Struct, frozen=True):
    """What a dialect makes of a request's body: what to ask, and how to say the answer.

    ``keep_alive_s`` is how long the model is to stay loaded afterwards where the client said so: seconds, -1
    for ever. ``unload``: the model is to go, and nothing is asked.
    """

    work: Work
    output: Callable[[Identity], Output]
    keep_alive_s: int | None = None
    unload: bool = False
