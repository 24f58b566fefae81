"""What a minimal target answers: the same words each time, whole or in chunks, in the chat dialect."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass
class Words:
    """``pieces``: one content chunk each."""

    pieces: tuple[str, ...] = ("The answer", " is", " forty-two", ".")

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def parts(self, asked: dict[str, Any], usage: Usage, *, stream: bool) -> list[bytes]:
        """Plaintexts in order: chunks of a stream, or one body."""
        counts = usage.counts(self)
        said = {"prompt_tokens": counts[0], "completion_tokens": counts[1], "total_tokens": sum(counts[:2])}
        head: dict[str, Any] = {"id": "chatcmpl-minimal", "created": 1_700_000_000, "model": asked["model"]}
        if not stream:
            message = {"role": "assistant", "content": self.text}
            choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": "stop"}
            head |= {"object": "chat.completion", "choices": [choice], "usage": said}
            return [json.dumps(head).encode()]
        head |= {"object": "chat.completion.chunk"}
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in self.pieces]
        ends = [None] * len(deltas) + ["stop"]
        deltas.append({})
        chunks = [{"index": 0, "delta": d, "finish_reason": end} for d, end in zip(deltas, ends, strict=True)]
        parts = [head | {"choices": [chunk]} for chunk in chunks]
        if (asked.get("stream_options") or {}).get("include_usage"):
            parts.append(head | {"choices": [], "usage": said})
        return [json.dumps(part).encode() for part in parts]


@dataclass
class Usage:
    """What it counts: ``output`` None is one token a piece. ``cached`` is a part of ``input``."""

    input: int = 12
    output: int | None = None
    cached: int = 0

    def counts(self, words: Words) -> tuple[int, int, int]:
        """(input, output, cached)."""
        return self.input, len(words.pieces) if self.output is None else self.output, self.cached
