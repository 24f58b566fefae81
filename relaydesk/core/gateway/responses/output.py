"""An answer as clients of OpenAI's ``responses`` read it: typed events of a stream, or one object.

Events are numbered from 0. Items come one after the other: one is closed before the next opens. The text
of every item is kept until the end, because the last event repeats all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.answer import Answer
from relaydesk.core.gateway.call_deltas import CallSequence
from relaydesk.core.gateway.decode import encode, present
from relaydesk.core.gateway.output import Identity, Spent
from relaydesk.core.gateway.piece import Piece
from relaydesk.core.gateway.responses.errors import error_members, failure
from relaydesk.core.gateway.responses.out_items import (
    MESSAGE,
    REASONING,
    REFUSAL,
    CallItem,
    Event,
    OutItem,
    TextItem,
    TextKind,
)
from relaydesk.core.gateway.sse import HEARTBEAT
from relaydesk.core.gateway.typed_event import typed_event
from relaydesk.core.gateway.usage import Usage

# What an answer was cut off by, by the engine's finish reason. Any other reason is a whole answer.
_CUT: Final = {b'"length"': b"max_output_tokens", b'"content_filter"': b"content_filter"}
_NOTHING: Final = b'""'


class _Logprobs(msgspec.Struct):
    content: Raw = Raw()


_LOGPROBS: Final = msgspec.json.Decoder(_Logprobs)


class ResponsesOutput:
    """`Output` of one response. ``echo`` is the members that repeat the request, as JSON."""

    media_type: Final = "text/event-stream"
    heartbeat: Final = HEARTBEAT

    def __init__(self, identity: Identity, echo: bytes) -> None:
        self._token = identity.token
        self._head = b'{"id":"resp_%b","object":"response","created_at":%d,"model":%b,%b' % (
            identity.token.encode(),
            identity.created,
            encode(identity.model),
            echo,
        )
        self._number = 0
        self._done: list[bytes] = []
        self._item: OutItem | None = None
        self._calls = CallSequence()
        self._logprobs = b""
        self._finish = b""

    def piece(self, choice: int, piece: Piece) -> bytes:
        frames = b"" if self._number else self._start()
        events: list[Event] = []
        if piece.logprobs:
            self._keep_logprobs(piece.logprobs)
        for kind, text in (
            (REASONING, piece.reasoning),
            (MESSAGE, piece.content),
            (REFUSAL, piece.refusal),
        ):
            if text:
                item = self._text_item(kind, events)
                events += item.add(text, self._take_logprobs() if kind is MESSAGE else b"")
        for delta in self._calls.read(piece.calls) if piece.calls else ():
            if delta.name is not None or self._item is None:
                self._close_item(events)
                self._item = CallItem(self._token, len(self._done), delta.id, delta.name or "")
                events += self._item.open()
            events += self._item.add(delta.arguments)
        if piece.finish:
            self._finish = piece.finish
        return frames + self._say(events)

    def close(self, usage: Usage, spent: Spent) -> bytes:
        frames = b"" if self._number else self._start()
        events: list[Event] = []
        if self._item is None and not self._done:
            self._text_item(MESSAGE, events)
        cut = _CUT.get(self._finish)
        self._close_item(events, b"incomplete" if cut else b"completed")
        status = b"incomplete" if cut else b"completed"
        whole = self._response(status, self._done, cut=cut, usage=usage)
        events.append(Event(b"response." + status, b'"response":' + whole))
        return frames + self._say(events)

    def error(self, fault: Fault) -> bytes:
        """Two events: readers look for either."""
        frames = b"" if self._number else self._start()
        items = self._done if self._item is None else [*self._done, self._item.json(b"incomplete")]
        failed = self._response(b"failed", items, error=failure(fault))
        return frames + self._say(
            [
                Event(b"response.failed", b'"response":' + failed),
                Event(b"error", error_members(fault)),
            ]
        )

    def whole(self, answers: Sequence[Answer], usage: Usage, spent: Spent) -> bytes:
        answer = answers[0]
        cut = _CUT.get(answer.finish)
        items: list[OutItem] = []
        for kind, text in (
            (REASONING, answer.reasoning),
            (MESSAGE, answer.content),
            (REFUSAL, answer.refusal),
        ):
            if text:
                logprobs = answer.logprobs.get("content", []) if answer.logprobs and kind is MESSAGE else []
                item = TextItem(kind, self._token, len(items))
                item.take(text, b",".join(map(bytes, logprobs)))
                items.append(item)
        for call in answer.calls:
            made = CallItem(self._token, len(items), call.id, call.name)
            made.add(call.arguments)
            items.append(made)
        if not items:
            items.append(TextItem(MESSAGE, self._token, 0))
        last = len(items) - 1
        said = [
            item.json(b"incomplete" if cut and number == last else b"completed")
            for number, item in enumerate(items)
        ]
        return self._response(b"incomplete" if cut else b"completed", said, cut=cut, usage=usage)

    def _start(self) -> bytes:
        response = b'"response":' + self._response(b"in_progress", ())
        return self._say([Event(b"response.created", response), Event(b"response.in_progress", response)])

    def _text_item(self, kind: TextKind, events: list[Event]) -> TextItem:
        """The open item, where it is of this kind; else a new one."""
        item = self._item
        if isinstance(item, TextItem) and item.kind is kind:
            return item
        self._close_item(events)
        self._item = item = TextItem(kind, self._token, len(self._done))
        events += item.open()
        return item

    def _close_item(self, events: list[Event], status: bytes = b"completed") -> None:
        item, self._item = self._item, None
        if item is None:
            return
        if isinstance(item, TextItem) and item.kind is MESSAGE and self._logprobs:
            item.take(_NOTHING, self._take_logprobs())
        events += item.close(status)
        self._done.append(item.json(status))

    def _keep_logprobs(self, data: bytes) -> None:
        """Entries wait for the text that they belong to: it may come a piece later."""
        content = present(_LOGPROBS.decode(data).content)
        if content[:1] == b"[" and len(content) > 2:
            self._logprobs += (b"," if self._logprobs else b"") + content[1:-1]

    def _take_logprobs(self) -> bytes:
        taken, self._logprobs = self._logprobs, b""
        return taken

    def _response(
        self,
        status: bytes,
        items: Sequence[bytes],
        *,
        cut: bytes | None = None,
        error: bytes = b"null",
        usage: Usage | None = None,
    ) -> bytes:
        return b'%b,"status":"%b","error":%b,"incomplete_details":%b,"output":[%b],"usage":%b}' % (
            self._head,
            status,
            error,
            b'{"reason":"%b"}' % cut if cut else b"null",
            b",".join(items),
            b"null" if usage is None else _usage(usage),
        )

    def _say(self, events: Sequence[Event]) -> bytes:
        frames = []
        for event in events:
            frames.append(
                typed_event(
                    event.type,
                    b'{"type":"%b","sequence_number":%d,%b}' % (event.type, self._number, event.members),
                )
            )
            self._number += 1
        return b"".join(frames)


def _usage(usage: Usage) -> bytes:
    """Reasoning is counted among the output; engines do not tell it apart."""
    details = usage.prompt_tokens_details
    return encode(
        {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {
                "cached_tokens": details.cached_tokens if details is not None else 0,
                "cache_write_tokens": 0,
            },
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.total_tokens,
        }
    )
