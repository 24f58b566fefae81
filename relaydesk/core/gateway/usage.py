"""What one choice cost, as far as its engine said, and what a request cost over its choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec


class Tally(msgspec.Struct):
    """The account of one choice, kept up while its stream runs.

    ``completion_tokens`` is exact once ``exact`` is true; before that (and for good, where the stream dies)
    it counts the pieces that carried text, each of which is at least one token. ``progress`` is
    (processed, total) prompt tokens.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    exact: bool = False
    progress: tuple[int, int] | None = None
    first_token: bool = False
    finish_reason: str | None = None

    def take_usage(self, data: bytes) -> None:
        """An engine's ``usage`` object: the last word on this choice."""
        usage = _object(data)
        prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        if prompt is None or completion is None:
            return
        self.prompt_tokens = prompt
        self.completion_tokens = completion
        details = usage.get("prompt_tokens_details")
        cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
        self.cached_tokens = min(cached or 0, prompt)
        self.exact = True

    def take_timings(self, data: bytes) -> None:
        """llama.cpp's ``timings``: what was processed and produced so far, where no usage came."""
        if self.exact:
            return
        timings = _object(data)
        cached, read = _count(timings.get("cache_n")), _count(timings.get("prompt_n"))
        produced = _count(timings.get("predicted_n"))
        if cached is not None and read is not None:
            self.prompt_tokens = max(self.prompt_tokens, cached + read)
            self.cached_tokens = cached
        if produced is not None:
            self.completion_tokens = max(self.completion_tokens, produced)

    def take_progress(self, data: bytes) -> None:
        """llama.cpp's ``prompt_progress``: ``total`` is the prompt's length, ``cache`` the part it kept."""
        progress = _object(data)
        total, processed = _count(progress.get("total")), _count(progress.get("processed"))
        if total is None or processed is None:
            return
        self.progress = (min(processed, total), total)
        if not self.exact:
            self.prompt_tokens = total
            self.cached_tokens = min(_count(progress.get("cache")) or 0, total)

    def take_piece(self, tokens: int) -> None:
        """A piece that carried at least ``tokens`` tokens."""
        if tokens and not self.exact:
            self.completion_tokens += tokens
        if tokens:
            self.first_token = True


class _Details(msgspec.Struct):
    cached_tokens: int


class Usage(msgspec.Struct, omit_defaults=True):
    """OpenAI's ``usage``. Prompt tokens include the cached ones."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: _Details | None = None

    @property
    def cached_tokens(self) -> int:
        """The part of the prompt that an engine did not have to read again, 0 where that is not told."""
        return self.prompt_tokens_details.cached_tokens if self.prompt_tokens_details is not None else 0


def total_usage(tallies: Sequence[Tally], *, cached: bool = True) -> Usage:
    """Usage over all choices of a request: the prompt once, every choice's completion.

    ``cached`` is false where the engine's prompt cache is its own business and nothing of it is passed on.
    """
    # The first choice's cache is what the request found; later choices find the first one's prompt.
    prompt = max((t.prompt_tokens for t in tallies), default=0)
    completion = sum(t.completion_tokens for t in tallies)
    details = _Details(tallies[0].cached_tokens if tallies else 0) if cached else None
    return Usage(prompt, completion, prompt + completion, details)


def summed_usage(tallies: Sequence[Tally], choices: int, *, cached: bool = True) -> Usage:
    """Usage over several prompts of ``choices`` choices each, those of the first prompt first."""
    total = Usage(0, 0, 0, _Details(0) if cached else None)
    for start in range(0, len(tallies), choices):
        one = total_usage(tallies[start : start + choices], cached=cached)
        total.prompt_tokens += one.prompt_tokens
        total.completion_tokens += one.completion_tokens
        total.total_tokens += one.total_tokens
        if total.prompt_tokens_details is not None and one.prompt_tokens_details is not None:
            total.prompt_tokens_details.cached_tokens += one.prompt_tokens_details.cached_tokens
    return total


_MAX_COUNT: Final = 2**53


def _count(value: object) -> int | None:
    """A token count, or None for anything an engine should not have sent."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MAX_COUNT:
        return None
    return value


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
