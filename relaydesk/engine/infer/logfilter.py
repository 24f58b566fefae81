"""What of an engine's log may be kept: an allow-list, because the engine can print prompts.

Two phases. While a model loads nobody has sent a prompt, so the engine's complaints pass as text. Once it
serves, only lines whose every word is ours or a number pass; what does not match is dropped, not masked.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final, Literal

from relaydesk.core.text import SafeText, safe_text
from relaydesk.engine.infer.spec import BufferKind, EngineBuffer, EngineSpec, LoadStage

LINE_LIMIT: Final = 4096
LINES_PER_FEED: Final = 512

EventKind = Literal["buffer", "slots", "stage", "error", "note"]


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One kept line: ``text`` for people, and what it tells in figures."""

    kind: EventKind
    text: SafeText
    buffer: EngineBuffer | None = None
    slots: int = 0
    ctx_slot: int = 0
    stage: LoadStage | None = None


# 0.00.331.668 I srv    load_model: text   |   0.00.331.668 I llama_kv_cache: text
_HEAD: Final = re.compile(r"\d+\.\d\d\.\d{3}\.\d{3} ([IWED]) (.*)")
_SOURCE: Final = re.compile(r"(?:(?:srv|slot|cmn|spec|que|res) +)?[\w~()]+: *(?:id +\d+ \| task -?\d+ \| *)?")

_BUFFER: Final = re.compile(
    r"([A-Za-z]\w{0,31}) +(model|KV|compute|output|RS) buffer size = +(\d{1,9}\.\d\d) MiB"
)
_SLOTS: Final = re.compile(r"initializing, n_slots = (\d{1,5}), n_ctx_slot = (\d{1,9}), kv_unified = '\w+'")
_OFFLOADED: Final = re.compile(r"offloaded (\d{1,5})/(\d{1,5}) layers to GPU")
_STAGES: Final[tuple[tuple[re.Pattern[str], LoadStage], ...]] = (
    (re.compile(r"loaded meta data with \d+ key-value pairs and \d+ tensors from .*"), "reading"),
    (re.compile(r"loading model tensors, this can take a while.*"), "loading"),
    (re.compile(r"warming up the model with an empty run.*"), "warming"),
)
_KINDS: Final[dict[str, BufferKind]] = {
    "model": "model",
    "KV": "kv",
    "RS": "kv",
    "compute": "compute",
    "output": "output",
}
# Said by the engine or the C++ runtime with nothing of a request in it, whatever the phase.
_FIXED: Final = re.compile(
    r"prompt eval time = +[\d.]+ ms / +\d+ tokens \( *[\d.]+ ms per token, +[\d.]+ tokens per second\)"
    r"|eval time = +[\d.]+ ms / +\d+ tokens \( *[\d.]+ ms per token, +[\d.]+ tokens per second\)"
    r"|stop processing: n_tokens = \d+, truncated = \d"
    r"|failed to find free space in the KV cache, retrying with smaller batch size"
    r"(?:, i = \d+, n_batch = \d+, ret = -?\d+)?"
    r"|(?:CUDA|HIP|MUSA) error: (?:out of memory|an illegal memory access was encountered"
    r"|unspecified launch failure|device-side assert triggered)"
    r"|terminate called after throwing an instance of "
    r"'std::(?:bad_alloc|runtime_error|out_of_range|length_error)'"
    r"|(?:ggml_\w+: )?insufficient memory \(attempted to allocate +\d+\.\d+ MB\)"
    r"|model loaded"
)
_ASSERT: Final = re.compile(
    r"(?:\S*/)?([\w-]{1,60}\.(?:c|cc|cpp|cu|h|hpp|m)):(\d{1,6}): (?:GGML_ASSERT|fatal error|GGML_ABORT).*"
)


class LogFilter:
    """Splits what an engine prints into lines and keeps the safe ones.

    Memory is bounded by ``LINE_LIMIT``: a longer line is dropped whole. Of one call's bytes the first
    ``LINES_PER_FEED`` lines are looked at, so that a flood cannot hold the loop. ``serving`` is set once the
    engine takes requests.
    """

    def __init__(self, spec: EngineSpec) -> None:
        self.serving = False
        self.dropped = 0
        self._paths = tuple(path for path in (spec.model_path, spec.projector, spec.draft) if path)
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[LogEvent]:
        """The kept lines that end within ``data``."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        events: list[LogEvent] = []
        self.dropped += max(0, len(lines) - LINES_PER_FEED)
        for line in lines[:LINES_PER_FEED]:
            if self._skipping:  # the end of a line that was too long
                self._skipping = False
                self.dropped += 1
                continue
            event = self._line(line) if len(line) <= LINE_LIMIT else None
            if event is None:
                self.dropped += 1
            else:
                events.append(event)
        if len(self._rest) > LINE_LIMIT:
            self._rest = b""
            self._skipping = True
        return events

    def gap(self) -> None:
        """Bytes were thrown away unseen: what comes next begins in the middle of a line."""
        self._rest = b""
        self._skipping = True
        self.dropped += 1

    def _line(self, raw: bytes) -> LogEvent | None:
        line = raw.decode("utf-8", "replace").rstrip()
        match = _HEAD.fullmatch(line)
        level, said = (match[1], match[2]) if match else ("", line)
        source = _SOURCE.match(said)
        text = (said[source.end() :] if source and match else said).strip()
        fixed = self._fixed(text)
        if fixed is not None or self.serving:
            return fixed
        return self._loading(level, text)

    def _fixed(self, text: str) -> LogEvent | None:
        if _FIXED.fullmatch(text):
            return LogEvent("note", safe_text(text))
        if match := _ASSERT.fullmatch(text):
            return LogEvent("error", safe_text(f"the engine stopped itself at {match[1]}:{match[2]}"))
        return None

    def _loading(self, level: str, text: str) -> LogEvent | None:
        if match := _BUFFER.fullmatch(text):
            size = round(float(match[3]) * 1024 * 1024)
            return LogEvent("buffer", safe_text(text), buffer=EngineBuffer(match[1], _KINDS[match[2]], size))
        if match := _SLOTS.fullmatch(text):
            return LogEvent("slots", safe_text(text), slots=int(match[1]), ctx_slot=int(match[2]))
        if _OFFLOADED.fullmatch(text):
            return LogEvent("note", safe_text(text))
        for pattern, stage in _STAGES:
            if pattern.fullmatch(text):
                return LogEvent("stage", safe_text(stage), stage=stage)
        if level == "E":
            return LogEvent("error", safe_text(self._without_paths(text)))
        return None

    def _without_paths(self, text: str) -> str:
        for path in self._paths:
            text = text.replace(path, os.path.basename(path))
        return text
