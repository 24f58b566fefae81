"""Where a request's time went: waiting, loading, the prompt, the answer. The parts add up to the whole.

A record has three marks from its start (the model was there, a slot was given, the first token came) and its
end. Each part is the time between two of them, so nothing is counted twice and nothing is left out.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from relaydesk.core.view.sections import RequestView

PartName = Literal["waited", "load", "prompt", "answer"]

NAMES: Final[tuple[PartName, ...]] = ("waited", "load", "prompt", "answer")
# Where a request that ended without a first token stood, by what it failed with.
_IN_LOAD: Final = frozenset({"model_load_failed", "model_load_timeout", "model_unavailable"})


class Part(msgspec.Struct, frozen=True, gc=False):
    """One part. ``ms`` is None where the request never came so far; ``open``: it is still in it.

    ``tokens`` were read or made in it, ``cached`` of them not read at all; ``tokens_per_s`` is 0 where no
    rate can be told.
    """

    name: PartName
    ms: int | None = None
    tokens: int = 0
    cached: int = 0
    tokens_per_s: float = 0.0
    open: bool = False


class Timing(msgspec.Struct, frozen=True, gc=False):
    """All four parts in the order of `NAMES`, and their sum. ``loaded``: the model was loaded already."""

    parts: tuple[Part, ...]
    total_ms: int
    loaded: bool
    running: bool

    def ms(self, name: PartName) -> int | None:
        """One part's time."""
        return self.parts[NAMES.index(name)].ms

    @property
    def largest(self) -> PartName | None:
        """The part that took longest; None where all took nothing."""
        part = max(self.parts, key=lambda each: each.ms or 0)
        return part.name if part.ms else None


def parts(view: RequestView, now_ms: int = 0) -> Timing:
    """The time of one request by parts; ``now_ms`` is wall-clock time, for one that still runs."""
    running = view.total_ms is None
    total = max(0, now_ms - view.started_at_ms) if view.total_ms is None else view.total_ms
    times = _times(view, total)
    stands = _stands(view) if running else None
    read = view.prompt_done if running else view.prompt_tokens
    fresh = max(0, read - view.cached_tokens)
    prompt_ms = times["prompt"]
    answer_rate = view.tokens_per_s if times["answer"] is not None else 0.0
    rates = {
        "prompt": round(fresh * 1000 / prompt_ms, 1) if prompt_ms and fresh else 0.0,
        "answer": answer_rate,
    }
    return Timing(
        parts=tuple(
            Part(
                name=name,
                ms=times[name],
                tokens={"prompt": read, "answer": view.completion_tokens}.get(name, 0),
                cached=view.cached_tokens if name == "prompt" else 0,
                tokens_per_s=rates.get(name, 0.0),
                open=name == stands,
            )
            for name in NAMES
        ),
        total_ms=total,
        loaded=times["load"] is None and (view.queue_ms is not None or view.first_token_ms is not None),
        running=running,
    )


def _times(view: RequestView, total: int) -> dict[PartName, int | None]:
    """Differences of marks that only go forward: the records' own are rounded one by one."""
    stands = _stands(view)
    first = total if view.first_token_ms is None else min(view.first_token_ms, total)
    load = view.load_ms
    wait = view.queue_ms
    if stands == "load":
        return {"waited": None, "load": total, "prompt": None, "answer": None}
    if stands == "waited":
        loading = None if load is None else min(load, total)
        return {"waited": total - (loading or 0), "load": loading, "prompt": None, "answer": None}
    there = min(load or 0, first)
    given = min(there + (wait or 0), first)
    return {
        "waited": given - there,
        "load": None if load is None else there,
        "prompt": first - given,
        "answer": None if view.first_token_ms is None else total - first,
    }


def _stands(view: RequestView) -> PartName:
    """The part a request is in, or was in when it ended."""
    if view.first_token_ms is not None:
        return "answer"
    if view.queue_ms is not None:
        return "prompt"
    if view.load_ms is not None:
        return "waited"
    loading = view.state == "loading" or (view.fault is not None and view.fault.code in _IN_LOAD)
    return "load" if loading else "waited"
