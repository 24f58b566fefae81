"""Earlier tool calls and their results as plain text, for templates that do not speak tools.

Such a template drops calls in silence, and gives results a role that its model never saw. So a call becomes
the JSON that a forced call is asked for in, and the results between two answers become one message of the
user, joined with what the user says next.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.json_text import joined

_EMPTY: Final = b'""'
_GAP: Final = rb"\n\n"


class _Function(msgspec.Struct):
    name: str
    arguments: str


class _Call(msgspec.Struct):
    function: _Function
    id: str | None = None


class _Message(msgspec.Struct):
    role: str
    content: Raw
    tool_calls: list[_Call] = []
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: Raw = Raw()


_MESSAGES: Final = msgspec.json.Decoder(list[_Message])


def told_calls(messages: bytes) -> bytes:
    """``messages`` as `rebuild_messages` leaves them, without tool calls and without the role tool."""
    pieces: list[bytes] = []
    results: list[bytes] = []
    names: dict[str, str] = {}
    for message in _MESSAGES.decode(messages):
        content = bytes(message.content)
        if message.role == "tool":
            name = names.get(message.tool_call_id or "", message.name or "")
            results.append(_result(name, content))
            continue
        if message.role == "user" and results:
            content = _before(results, content)
            results = []
        elif results:
            pieces.append(_message("user", joined(results, _GAP)))
            results = []
        names |= {call.id: call.function.name for call in message.tool_calls if call.id is not None}
        texts = [content, *map(_told, message.tool_calls)] if message.tool_calls else [content]
        told = joined([text for text in texts if text != _EMPTY] or [_EMPTY], rb"\n")
        pieces.append(_message(message.role, told, bytes(message.reasoning_content)))
    if results:
        pieces.append(_message("user", joined(results, _GAP)))
    return b"[" + b",".join(pieces) + b"]"


def _message(role: str, content: bytes, reasoning: bytes = b"") -> bytes:
    more = b',"reasoning_content":' + reasoning if reasoning else b""
    return b'{"role":"%b","content":%b%b}' % (role.encode(), content, more)


def _told(call: _Call) -> bytes:
    """A call as the text of its JSON. The arguments were JSON already; they are not written anew."""
    return encode(
        f'{{"name": {encode(call.function.name).decode()}, "arguments": {call.function.arguments}}}'
    )


def _result(name: str, content: bytes) -> bytes:
    said = f"The function {name} returned:" if name else "The function returned:"
    return joined([encode(said), content], rb"\n")


def _before(results: list[bytes], content: bytes) -> bytes:
    """Results and what the user said behind them, which may be a list of parts."""
    if content[:1] == b"[":
        return b'[{"type":"text","text":%b},%b' % (joined(results, _GAP), content[1:])
    return joined([*results, *([content] if content != _EMPTY else [])], _GAP)
