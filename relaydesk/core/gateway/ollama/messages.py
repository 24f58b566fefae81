"""The conversation of ``/api/chat`` as that of a chat request; text passes as JSON, undecoded.

Roles are lower-cased. Images become parts behind the text. ``thinking`` is ``reasoning_content``, a tool's
name is ``tool_name``, arguments are objects. Calls need no ids here, while some chat templates fail without:
a call that has none gets one, and the results that follow are joined to the calls by name, or in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import NULL, decode, decoder, encode, invalid, kind_of, present
from relaydesk.core.gateway.entries import entries
from relaydesk.core.gateway.field_names import FieldNames
from relaydesk.core.gateway.messages import MAX_CALLS, MAX_MESSAGES
from relaydesk.core.gateway.ollama.images import MAX_IMAGES, image_part

# Long enough for any role, so that a wrong one is still named in full.
_MAX_ROLE: Final = 64
# Below this size counting messages first is not worth it.
_SMALL: Final = 256 * 1024
_EMPTY: Final = b'""'
_QUOTE: Final = 0x22

# JSON as it came: a view into the request's body, or bytes of our own.
Json = memoryview | bytes


class Message(msgspec.Struct):
    """A message as it came; what can be large is kept raw."""

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


_CALL: Final = decoder(_Call)


def check_count(body: bytes) -> None:
    """Refuse a large body of too many messages undecoded: inside text the quotes would be escaped."""
    if len(body) > _SMALL and body.count(b'"role"') > MAX_MESSAGES:
        raise _too_many()


def text_at(raw: Raw, at: str) -> Json:
    """The JSON string in a raw field, not copied; empty text where it is absent or null.

    Raises `PeerError` naming ``at`` for any other value.
    """
    view = memoryview(raw)
    if not view.nbytes or (view.nbytes == len(NULL) and bytes(view) == NULL):
        return _EMPTY
    if view[0] != _QUOTE:
        raise invalid(at, f"{at} must be a string, not {kind_of(bytes(view[:1]))}")
    return view


class Conversation:
    """Builds ``messages`` of a chat request, and notes in ``names`` what the client calls each field."""

    def __init__(self, names: FieldNames) -> None:
        self._names = names
        # JSON in pieces, a comma at each message's head: a long prompt is copied once.
        self._pieces: list[Json] = []
        self._calls = 0
        self._unanswered: list[tuple[str, str]] = []  # (id, name) of calls whose results may follow
        self.count = 0

    def add_all(self, messages: Sequence[Message]) -> None:
        """Add a chat's messages. Raises `PeerError` naming the message at fault."""
        if len(messages) > MAX_MESSAGES:
            raise _too_many()
        for number, message in enumerate(messages):
            self._add(message, f"messages[{number}]")

    def add_text(self, role: str, text: Json, at: str, images: bytes = b"", images_at: str = "") -> None:
        """One message out of the string ``text`` at ``at``, and the images beside it."""
        self._names.add(f"messages[{self.count}].content", at)
        self._put({"role": role}, self._content(text, images, images_at))

    def body(self, fields: bytes) -> bytes:
        """The request: ``fields``, which is a JSON object, and ``messages``."""
        return b"".join((fields[:-1], b',"messages":[', *self._pieces[1:], b"]}"))

    def _add(self, message: Message, at: str) -> None:
        fields: dict[str, object] = {"role": message.role[:_MAX_ROLE].lower()}
        text = text_at(message.content, f"{at}.content")
        content = self._content(text, present(message.images), f"{at}.images")
        if (thinking := text_at(message.thinking, f"{at}.thinking")) is not _EMPTY:
            fields["reasoning_content"] = Raw(thinking)
        if calls := present(message.tool_calls):
            fields["tool_calls"] = self._tool_calls(calls, f"{at}.tool_calls")
        if fields["role"] == "tool":
            call_id, name = self._answered(message.tool_call_id, message.tool_name)
            fields |= {key: value for key, value in (("tool_call_id", call_id), ("name", name)) if value}
        self._put(fields, content)

    def _put(self, fields: dict[str, object], content: Sequence[Json]) -> None:
        self._pieces += (b",", encode(fields)[:-1], b',"content":', *content, b"}")
        self.count += 1

    def _content(self, text: Json, images: bytes, images_at: str) -> Sequence[Json]:
        pictures = entries(images, images_at, MAX_IMAGES) if images else []
        if not pictures:
            return (text,)
        parts: list[Json] = [b'[{"type":"text","text":', text, b"}"]
        for picture, raw in enumerate(pictures):
            where = f"{images_at}[{picture}]"
            self._names.add(f"messages[{self.count}].content[{picture + 1}]", where)
            parts += (b",", image_part(raw, where))
        return (*parts, b"]")

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


def _too_many() -> PeerError:
    return invalid("messages", f"messages has too many entries, allowed is {MAX_MESSAGES}")
