"""The conversation of ``/api/chat`` as that of a chat request; text passes as JSON, undecoded.

Roles are lower-cased. Images become parts behind the text. ``thinking`` is ``reasoning_content``, a tool's
name is ``tool_name``, arguments are objects. Calls need no ids here, while some chat templates fail without:
a call that has none gets one, and the results that follow are joined to the calls by name, or in order.
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
    kind_of,
    present,
    require_string,
)
from relaydesk.core.gateway.entries import entries
from relaydesk.core.gateway.field_names import FieldNames
from relaydesk.core.gateway.messages import MAX_CALLS, MAX_MESSAGES
from relaydesk.core.gateway.ollama.images import MAX_IMAGES, image_part

# Long enough for any role, so that a wrong one is still named in full.
_MAX_ROLE: Final = 64


class _Message(msgspec.Struct):
    role: str
    content: Raw = Raw()
    thinking: Raw = Raw()
    images: Raw = Raw()
    tool_calls: Raw = Raw()
    tool_name: str | None = None
    tool_call_id: str | None = None


class _Function(msgspec.Struct):
    name: str
    arguments: Raw = Raw()


class _Call(msgspec.Struct):
    function: _Function
    id: str | None = None


_MESSAGE: Final = decoder(_Message)
_CALL: Final = decoder(_Call)


class Conversation:
    """Builds ``messages`` of a chat request, and notes in ``names`` what the client calls each field."""

    def __init__(self, names: FieldNames) -> None:
        self._names = names
        self._messages: list[bytes] = []
        self._calls = 0
        self._unanswered: list[tuple[str, str]] = []  # (id, name) of calls whose results may follow

    def add_all(self, data: bytes) -> None:
        """The messages in the JSON list ``data``. Raises `PeerError` naming the message at fault."""
        for number, raw in enumerate(entries(data, "messages", MAX_MESSAGES)):
            at = f"messages[{number}]"
            self._add(decode(_MESSAGE, raw, at), at)

    def add_text(self, role: str, data: bytes, at: str, images: bytes = b"", images_at: str = "") -> None:
        """One message out of the string ``data`` at ``at``, and the images beside it."""
        number = len(self._messages)
        self._names.add(f"messages[{number}].content", at)
        head = {"role": role, "content": Raw(self._content(number, data, at, images, images_at))}
        self._messages.append(encode(head))

    @property
    def count(self) -> int:
        """Messages so far."""
        return len(self._messages)

    @property
    def body(self) -> bytes:
        return b"[" + b",".join(self._messages) + b"]"

    def _add(self, message: _Message, at: str) -> None:
        number = len(self._messages)
        fields: dict[str, object] = {
            "role": message.role[:_MAX_ROLE].lower(),
            "content": Raw(
                self._content(
                    number,
                    present(message.content) or b'""',
                    f"{at}.content",
                    present(message.images),
                    f"{at}.images",
                )
            ),
        }
        if thinking := present(message.thinking):
            fields["reasoning_content"] = Raw(require_string(thinking, f"{at}.thinking"))
        if calls := present(message.tool_calls):
            fields["tool_calls"] = self._tool_calls(calls, f"{at}.tool_calls")
        if fields["role"] == "tool":
            call_id, name = self._answered(message.tool_call_id, message.tool_name)
            fields |= {key: value for key, value in (("tool_call_id", call_id), ("name", name)) if value}
        self._messages.append(encode(fields))

    def _content(self, number: int, data: bytes, at: str, images: bytes, images_at: str) -> bytes:
        text = require_string(data, at)
        pictures = entries(images, images_at, MAX_IMAGES) if images else []
        if not pictures:
            return text
        parts = [b'{"type":"text","text":%b}' % text]
        for picture, raw in enumerate(pictures):
            where = f"{images_at}[{picture}]"
            self._names.add(f"messages[{number}].content[{picture + 1}]", where)
            parts.append(image_part(raw, where))
        return b"[" + b",".join(parts) + b"]"

    def _tool_calls(self, data: bytes, at: str) -> list[dict[str, object]]:
        self._unanswered = []
        calls: list[dict[str, object]] = []
        for number, raw in enumerate(entries(data, at, MAX_CALLS)):
            where = f"{at}[{number}]"
            call = decode(_CALL, raw, where)
            arguments = present(call.function.arguments) or b"{}"
            if arguments[:1] not in (b"{", b'"'):
                param = f"{where}.function.arguments"
                raise invalid(param, f"{param} must be an object, not {kind_of(arguments)}")
            # A text is what OpenAI's clients send; anything else is written into one.
            text = Raw(arguments) if arguments[:1] == b'"' else arguments.decode()
            # Nine letters and digits: the strictest templates take no other id.
            call_id = call.id or f"call{self._calls:05d}"
            self._calls += 1
            self._unanswered.append((call_id, call.function.name))
            function = {"name": call.function.name, "arguments": text}
            calls.append({"id": call_id, "type": "function", "function": function})
        return calls

    def _answered(self, call_id: str | None, name: str | None) -> tuple[str | None, str | None]:
        """Id and name of the call that a result belongs to, as far as they can be told."""
        for call in self._unanswered:
            if (call_id in (None, "", call[0])) and (name in (None, "", call[1])):
                self._unanswered.remove(call)
                return call
        return call_id, name
