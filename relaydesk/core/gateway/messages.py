"""The conversation: checked message by message and rebuilt as the JSON that an engine gets.

Rules: ``developer`` is ``system``; the system messages that open a conversation become one, joined by a
blank line (many templates refuse a second); a later one stays where it is. Text parts are joined by a line
feed, as the engine itself would. ``content`` null or absent is empty text. ``function`` is ``tool``.
Text is never decoded: strings are passed on, or joined, as JSON.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import (
    decode,
    decoder,
    encode,
    invalid,
    present,
    require_string,
    unsupported,
)
from relaydesk.core.text import safe_text

MAX_MESSAGES: Final = 8192
MAX_PARTS: Final = 8192
MAX_CALLS: Final = 256
# Below this size counting entries first is not worth it.
_SMALL: Final = 256 * 1024

_ROLES: Final = {
    "system": b"system",
    "developer": b"system",
    "user": b"user",
    "assistant": b"assistant",
    "tool": b"tool",
    "function": b"tool",
}
_HEADS: Final = {role: b',{"role":"%b","content":' % role for role in _ROLES.values()}
_EMPTY: Final = b'""'
_NOTHING: Final = Raw()


class _Message(msgspec.Struct):
    role: str
    content: Raw = Raw()
    tool_calls: Raw = Raw()
    tool_call_id: Raw = Raw()
    name: Raw = Raw()
    reasoning_content: Raw = Raw()
    function_call: Raw = Raw()


class _Part(msgspec.Struct):
    type: str
    text: Raw = Raw()
    refusal: Raw = Raw()
    image_url: Raw = Raw()


class _ImageUrl(msgspec.Struct):
    url: str


class _Function(msgspec.Struct):
    name: str
    arguments: str | None = None


class _Call(msgspec.Struct):
    function: _Function
    id: str | None = None
    type: str | None = None


_MESSAGES: Final = decoder(list[_Message])
_PARTS: Final = decoder(list[_Part])
_IMAGE: Final = msgspec.json.Decoder(str | _ImageUrl)
_CALLS: Final = decoder(list[_Call])
_ANY: Final = decoder(Raw)


class Conversation(msgspec.Struct, frozen=True):
    """``body`` is the JSON list for the engine; ``image_at`` names the first image part, None without.

    ``with_calls`` says that there are tool calls or their results in it; ``begun_at`` names a last message
    that is the assistant's, which the engine continues, None where it begins anew.
    """

    body: bytes
    count: int
    image_at: str | None = None
    with_calls: bool = False
    begun_at: str | None = None


def rebuild_messages(raw: Raw, system: Raw = _NOTHING, addition: bytes = b"") -> Conversation:
    """Check and rebuild ``messages``.

    ``system`` is the client's text, or parts, that goes before them; ``addition`` is ours, a JSON string for
    the end of the leading system message. Raises `PeerError` whose ``param`` names the message.
    """
    data = present(raw)
    if not data:
        raise invalid("messages", "messages is missing")
    _bound(data, b'"role"', MAX_MESSAGES, "messages")
    messages = decode(_MESSAGES, data, "messages")
    if not messages:
        raise invalid("messages", "messages is empty: at least one message is needed")
    if len(messages) > MAX_MESSAGES:
        raise invalid("messages", f"messages has {len(messages)} entries, allowed is {MAX_MESSAGES}")
    # One flat list, joined once: a long prompt is then copied as rarely as can be.
    pieces: list[bytes] = []
    leading: list[bytes] = []
    if before := present(system):
        leading.append(_content(before, "system", images=False)[0])
    image_at: str | None = None
    with_calls = False
    for number, message in enumerate(messages):
        at = f"messages[{number}]"
        role = _ROLES.get(message.role)
        if role is None:
            raise invalid(f"{at}.role", f"{at}.role {safe_text(message.role, 40)!r} is not a known role")
        content, image = _content(present(message.content), f"{at}.content", images=role == b"user")
        image_at = image_at or image
        if role == b"system" and not pieces:
            leading.append(content)
        else:
            with_calls = with_calls or role == b"tool" or _has_calls(message)
            pieces += (_HEADS[role], content, _extras(message, role, at))
    if addition:
        leading.append(addition)
    if leading:
        pieces[:0] = (_HEADS[b"system"], _join(leading, b"\\n\\n"), b"}")
    pieces[0] = b"[" + pieces[0].removeprefix(b",")
    begun_at = f"messages[{len(messages) - 1}]" if messages[-1].role == "assistant" else None
    if begun_at and _has_calls(messages[-1]):
        where = f"{begun_at}.tool_calls"
        raise invalid(
            where, f"{where} has no results behind it: add a message of the role tool for each call"
        )
    return Conversation(b"".join((*pieces, b"]")), len(messages), image_at, with_calls, begun_at)


def _content(data: bytes, at: str, *, images: bool) -> tuple[bytes, str | None]:
    """The content as JSON for the engine, and where its first image stands."""
    if not data:
        return _EMPTY, None
    if data[:1] != b"[":
        return require_string(data, at), None
    _bound(data, b'"type"', MAX_PARTS, at)
    texts: list[bytes] = []
    rebuilt: list[bytes] = []
    image_at: str | None = None
    parts: list[_Part] = decode(_PARTS, data, at)
    for number, part in enumerate(parts):
        where = f"{at}[{number}]"
        if part.type in ("text", "refusal"):
            field = part.text if part.type == "text" else part.refusal
            text = require_string(present(field) or _EMPTY, f"{where}.{part.type}")
            texts.append(text)
            rebuilt.append(b'{"type":"text","text":%b}' % text)
        elif part.type == "image_url" and images:
            image_at = image_at or where
            rebuilt.append(_image(present(part.image_url), f"{where}.image_url"))
        else:
            kind = safe_text(part.type, 40)
            raise unsupported(where, f"{where} is a part of type {kind!r}, which is not supported here")
    if image_at:
        return b"[" + b",".join(rebuilt) + b"]", image_at
    return _join(texts, b"\\n"), None


def _image(data: bytes, at: str) -> bytes:
    """An image part. Only inline data: an engine that fetches addresses would fetch for strangers."""
    if not data:
        raise invalid(at, f"{at} is missing")
    found = decode(_IMAGE, data, at)
    url = found if isinstance(found, str) else found.url
    if not (url.startswith("data:image/") and ";base64," in url[:128]):
        raise unsupported(
            at, f"{at} must be an inline image (data:image/...;base64,...)", "send the image itself"
        )
    return b'{"type":"image_url","image_url":{"url":%b}}' % encode(url)


def _extras(message: _Message, role: bytes, at: str) -> bytes:
    """The further fields that mean something to a template in this role, and the message's end."""
    if role == b"user" or role == b"system":
        return b"}"
    extras = b""
    if role == b"tool":
        for name, raw in (("tool_call_id", message.tool_call_id), ("name", message.name)):
            value = present(raw)
            if value:
                extras += b',"%b":%b' % (name.encode(), require_string(value, f"{at}.{name}"))
    elif role == b"assistant":
        if present(message.function_call):
            raise unsupported(f"{at}.function_call", f"{at}.function_call is not supported", "use tool_calls")
        reasoning = present(message.reasoning_content)
        if reasoning:
            extras += b',"reasoning_content":%b' % require_string(reasoning, f"{at}.reasoning_content")
        calls = present(message.tool_calls)
        if calls:
            extras += _calls(calls, f"{at}.tool_calls")
    return extras + b"}"


def _has_calls(message: _Message) -> bool:
    return message.role == "assistant" and bool(present(message.tool_calls).strip(b"[ \t\r\n]"))


def _calls(data: bytes, at: str) -> bytes:
    """Earlier tool calls. Arguments that are no JSON break templates later, so they are refused by name."""
    calls = decode(_CALLS, data, at)
    if len(calls) > MAX_CALLS:
        raise invalid(at, f"{at} has {len(calls)} entries, allowed is {MAX_CALLS}")
    rebuilt = []
    for number, call in enumerate(calls):
        where = f"{at}[{number}]"
        if call.type not in (None, "function"):
            raise unsupported(f"{where}.type", f"{where}.type must be 'function'")
        arguments = call.function.arguments or "{}"
        try:
            _ANY.decode(arguments)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            param = f"{where}.function.arguments"
            raise invalid(param, f"{param} is not valid JSON") from None
        function = {"name": call.function.name, "arguments": arguments}
        entry: dict[str, object] = {"type": "function", "function": function}
        rebuilt.append(entry if call.id is None else {"id": call.id, **entry})
    return b',"tool_calls":%b' % encode(rebuilt) if rebuilt else b""


def _join(texts: list[bytes], separator: bytes) -> bytes:
    """JSON strings joined as one, without decoding them; empty ones leave no separator."""
    if len(texts) == 1:
        return texts[0]
    return b'"' + separator.join(text[1:-1] for text in texts if text != _EMPTY) + b'"'


def _bound(data: bytes, key: bytes, limit: int, at: str) -> None:
    """Refuse a large list of too many entries undecoded: inside text the key's quotes would be escaped."""
    if len(data) > _SMALL and data.count(key) > limit:
        raise invalid(at, f"{at} has too many entries, allowed is {limit}")
