"""Which chunk of a stream says that the model is through, or has failed (wire §4.7).

Behind such a chunk only the settlement follows, so it is read on to ``[DONE]`` even if nobody listens any
more. Chunks are read as JSON and judged by their place in it: text of a prompt that quotes an end is none.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.surrogates import tagged
from relaydesk.core.text import SafeText, safe_text

Api = Literal["chat", "responses"]

MESSAGE_LIMIT: Final = 1024

_NULL: Final = b"null"
_NOTHING: Final = Raw(_NULL)
_CHAT_ENDS: Final = ("stop", "length")
_RESPONSE_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")
# What is left of a chunk that is no JSON, as one that was cut: an end counts where it stands as a member,
# written the compact way. A quote within a JSON string has a backslash before it, so no text can match.
# An end too many costs nothing but to read on; one too few, the receipt.
_CUT_CHAT: Final = re.compile(rb'"finish_reason":"(?:stop|length)"')
_CUT_RESPONSE: Final = re.compile(rb'"type":"response\.(?:completed|incomplete|failed)"')


class Terminal(NamedTuple):
    """``terminal``: nothing but the settlement follows. ``error``: because it failed, with ``message``."""

    terminal: bool
    error: bool
    message: SafeText


class _Chunk(msgspec.Struct, frozen=True):
    type: Raw = _NOTHING
    choices: Raw = _NOTHING
    error: Raw = _NOTHING
    message: Raw = _NOTHING


class _Choice(msgspec.Struct, frozen=True):
    finish_reason: Raw = _NOTHING


class _Error(msgspec.Struct, frozen=True):
    message: Raw = _NOTHING


_NO_OBJECT: Final = _Chunk()
_CHUNK: Final = msgspec.json.Decoder(_Chunk)
_CHOICES: Final = msgspec.json.Decoder(list[Raw])
_CHOICE: Final = msgspec.json.Decoder(_Choice)
_ERROR: Final = msgspec.json.Decoder(_Error)
_TEXT: Final = msgspec.json.Decoder(str)
_BROKEN: Final = (msgspec.MsgspecError, ValueError, RecursionError)

_CONTENT: Final = Terminal(False, False, safe_text(""))
_END: Final = Terminal(True, False, safe_text(""))


def terminal(chunk: bytes, api: Api) -> Terminal:
    """What a chunk of plaintext means for the stream. Never raises, in time linear in its length."""
    found = _chunk(chunk)
    if found is None and b"\\u" in chunk:
        # Engines cut characters in two, and strict readers refuse a chunk that holds half of one.
        chunk = tagged(chunk)
        found = _chunk(chunk)
    if found is None:
        cut = _CUT_CHAT if api == "chat" else _CUT_RESPONSE
        return _END if cut.search(chunk) else _CONTENT
    kind = _text(found.type)
    if kind == "error" or (bytes(found.error) != _NULL and bytes(found.choices) == _NULL):
        return Terminal(True, True, _message(found, kind == "error"))
    if api == "responses":
        return _END if kind in _RESPONSE_ENDS else _CONTENT
    return _END if _chat_ends(found.choices) else _CONTENT


def _chunk(chunk: bytes) -> _Chunk | None:
    try:
        return _CHUNK.decode(chunk)
    except msgspec.ValidationError:
        # JSON, but no object.
        return _NO_OBJECT
    except _BROKEN:
        return None


def _chat_ends(choices: Raw) -> bool:
    try:
        found = _CHOICES.decode(choices)
    except _BROKEN:
        return False
    return any(_finish(choice) in _CHAT_ENDS for choice in found)


def _finish(choice: Raw) -> str:
    try:
        return _text(_CHOICE.decode(choice).finish_reason)
    except _BROKEN:
        return ""


def _message(found: _Chunk, event: bool) -> SafeText:
    """The error's own text, else the event's, else the error as JSON."""
    error = bytes(found.error)
    try:
        inside = _text(_ERROR.decode(error).message)
    except _BROKEN:
        inside = _text(found.error)
    if not inside and event:
        inside = _text(found.message)
    if not inside and error != _NULL:
        inside = msgspec.json.format(error, indent=-1).decode("utf-8", "replace")
    return safe_text(inside, MESSAGE_LIMIT) or safe_text("error")


def _text(raw: Raw) -> str:
    try:
        return _TEXT.decode(raw)
    except _BROKEN:
        return ""
