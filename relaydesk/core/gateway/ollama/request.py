"""What ``/api/chat`` and ``/api/generate`` have in common, turned into a chat request.

The chat request is written as JSON and checked by `parse_chat` like any other; `FieldNames` turns what it
refuses back into the client's words.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import Fault, PeerError
from relaydesk.core.gateway.chat import ChatWork
from relaydesk.core.gateway.completions.plan import CompletionWork
from relaydesk.core.gateway.completions.request import parse_completion
from relaydesk.core.gateway.decode import (
    T,
    check_text,
    decode,
    decoder,
    encode,
    invalid,
    kind_of,
    present,
    unsupported,
)
from relaydesk.core.gateway.field_names import FieldNames
from relaydesk.core.gateway.fields import RANGES
from relaydesk.core.gateway.ollama.keep_alive import keep_alive_s
from relaydesk.core.gateway.ollama.messages import Conversation, Json
from relaydesk.core.gateway.ollama.options import NAMES, Options, chat_fields
from relaydesk.core.gateway.ollama.output import OllamaOutput, Said
from relaydesk.core.gateway.origin import in_the_words_of
from relaydesk.core.gateway.output import Identity
from relaydesk.core.gateway.request import ChatRequest, parse_chat
from relaydesk.core.gateway.work import Capabilities, Plan
from relaydesk.core.text import safe_text

LEVELS: Final = ("low", "medium", "high", "max")


class Common(msgspec.Struct):
    """The fields of both routes. ``truncate`` and ``shift`` change nothing: no prompt is ever cut here."""

    model: str | None = None
    stream: bool | None = None
    format: Raw = Raw()
    options: Options | None = None
    keep_alive: float | str | None = None
    think: bool | str | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    truncate: bool | None = None
    shift: bool | None = None


class OllamaWork(ChatWork):
    """A chat whose errors are said in the client's words."""

    def __init__(self, request: ChatRequest, names: FieldNames, *, thinks: bool) -> None:
        super().__init__(request)
        self._names = names
        self._thinks = thinks

    def _with(self, request: ChatRequest) -> OllamaWork:
        return OllamaWork(request, self._names, thinks=self._thinks)

    def fitted(self, capabilities: Capabilities) -> ChatWork:
        if self._thinks and not capabilities.thinking:
            model = f'"{safe_text(self.model, 128)}"' if self.model else "this model"
            raise unsupported("think", f"{model} does not support thinking")
        with in_the_words_of(self._names):
            return super().fitted(capabilities)

    def blamed(self, fault: Fault) -> Fault:
        param = fault.param or ""
        theirs = self._names(param)
        if theirs == param:
            return fault
        return replace(fault, param=theirs, hint=fault.hint.replace(param, theirs))


_TEXT: Final = decoder(str)


def opened(kind: msgspec.json.Decoder[T], body: bytes) -> T:
    """The body as its route's fields. Raises `PeerError`."""
    if not body or body.isspace():
        raise PeerError("invalid_json", "the request body is empty", "send a JSON object")
    check_text(body)
    return decode(kind, body)


def field_names() -> FieldNames:
    """The names that both routes share."""
    return FieldNames(
        {
            **NAMES,
            "response_format": "format",
            "response_format.json_schema.schema": "format",
            "chat_template_kwargs": "think",
        }
    )


def chat_of(
    common: Common, conversation: Conversation, names: FieldNames, said: Said, tools: bytes = b""
) -> Plan:
    """A request with something to answer. Raises `PeerError` in the words of ``names``."""
    kept = keep_alive_s(common.keep_alive)
    fields: dict[str, object] = {
        "model": common.model,
        "stream": streams(common),
        "logprobs": common.logprobs,
        "top_logprobs": common.top_logprobs,
        "tools": Raw(tools or b"null"),
        "response_format": _format(common.format),
        "chat_template_kwargs": _thinking(common.think),
        **chat_fields(common.options or Options()),
    }
    with in_the_words_of(names):
        request = parse_chat(conversation.body(encode(fields)))
    work = OllamaWork(request, names, thinks=bool(common.think))
    return Plan(work, lambda identity: OllamaOutput(identity, said), kept)


def completion_of(common: Common, prompt: Json, suffix: Json, said: Said) -> Plan:
    """A bare prompt to go on with, or a gap to fill between it and ``suffix``; both JSON strings.

    Raises `PeerError` in the client's words.
    """
    kept = keep_alive_s(common.keep_alive)
    _check_logprobs(common)
    fields: dict[str, object] = {
        "model": common.model,
        "prompt": Raw(prompt),
        "suffix": Raw(suffix),
        "stream": streams(common),
        **chat_fields(common.options or Options()),
    }
    with in_the_words_of(field_names()):
        request = parse_completion(encode(fields))
    if common.logprobs:
        request = msgspec.structs.replace(request, logprobs=common.top_logprobs or 0)
    return Plan(CompletionWork(request), lambda identity: OllamaOutput(identity, said), kept)


def load_of(common: Common, said: Said) -> Plan:
    """A request with nothing to answer: the model is loaded, or unloaded where it is to be kept for nothing.

    Work without a choice is a lease on the model and no more, and costs no token.
    """
    kept = keep_alive_s(common.keep_alive)
    reason = "unload" if kept == 0 else "load"

    def output(identity: Identity) -> OllamaOutput:
        return OllamaOutput(identity, said, reason)

    request = ChatRequest(
        model=common.model or None, messages=b"[]", message_count=0, stream=streams(common), n=0
    )
    return Plan(ChatWork(request), output, kept, unload=kept == 0)


def streams(common: Common) -> bool:
    """A stream unless it was declined."""
    return common.stream is not False


def _check_logprobs(common: Common) -> None:
    """More alternatives than OpenAI's completions have, as in a chat."""
    low, high = RANGES["top_logprobs"]
    top = common.top_logprobs
    if top is not None and not low <= top <= high:
        raise invalid("top_logprobs", f"top_logprobs is {top}, allowed is {low} to {high}")
    if top and not common.logprobs:
        raise invalid("top_logprobs", "top_logprobs needs logprobs to be true")


def _format(raw: Raw) -> dict[str, object] | None:
    data = present(raw)
    if data[:1] == b"{":
        return {"type": "json_schema", "json_schema": {"schema": Raw(data)}}
    if not data:
        return None
    if data[:1] != b'"':
        raise invalid("format", f"format must be json or a JSON schema, not {kind_of(data)}")
    wanted = decode(_TEXT, data, "format")
    if wanted not in ("", "json"):
        raise invalid("format", f"format {safe_text(wanted, 40)!r} must be json or a JSON schema")
    return {"type": "json_object"} if wanted else None


def _thinking(think: bool | str | None) -> dict[str, object] | None:
    if think is None:
        return None
    if isinstance(think, bool):
        return {"enable_thinking": think}
    if think not in LEVELS:
        raise invalid(
            "think", f"think {safe_text(think, 40)!r} must be true, false or one of {', '.join(LEVELS)}"
        )
    return {"enable_thinking": True, "reasoning_effort": think}
