"""A chat request: parsed once, typed, and safe to rebuild for an engine."""

from __future__ import annotations

import msgspec

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import MAX_DEPTH, check_text, decode, unsupported
from relaydesk.core.gateway.fields import (
    ENVELOPE,
    Envelope,
    check_ranges,
    check_refused,
    logit_biases,
    stop_texts,
    template_options,
)
from relaydesk.core.gateway.messages import rebuild_messages
from relaydesk.core.gateway.tools import rebuild_tools, response_format, tool_choice
from relaydesk.core.gateway.work import Capabilities

__all__ = ["MAX_DEPTH", "ChatRequest", "check_capabilities", "parse_chat"]


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A checked request. Fields of type ``bytes`` are JSON ready for the engine, empty where not given.

    ``limit`` is the smaller of both spellings of the token limit. ``image_at`` names the first image part.
    """

    model: str | None
    messages: bytes
    message_count: int
    image_at: str | None = None
    stream: bool = False
    include_usage: bool = False
    limit: int | None = None
    n: int = 1
    stop: tuple[str, ...] = ()
    seed: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repeat_penalty: float | None = None
    repeat_last_n: int | None = None
    typical_p: float | None = None
    logit_bias: bytes = b""
    logprobs: bool = False
    top_logprobs: int | None = None
    response_format: bytes = b""
    tools: bytes = b""
    parallel_tool_calls: bool | None = None
    cache_prompt: bool = True
    template_options: bytes = b""

    def __repr__(self) -> str:
        # A request in a log line or a traceback must not carry the prompt.
        return f"ChatRequest(model={self.model!r}, messages={self.message_count}, n={self.n})"


def parse_chat(body: bytes) -> ChatRequest:
    """Check the body of ``POST /v1/chat/completions``.

    Raises only `PeerError`: ``invalid_json``, ``invalid_request`` or ``unsupported``, with ``param`` naming
    the field where there is one. What depends on the model is left to `check_capabilities`.
    """
    if not body or body.isspace():
        raise PeerError("invalid_json", "the request body is empty", "send a JSON object")
    check_text(body)
    envelope = decode(ENVELOPE, body)
    check_ranges(envelope)
    check_refused(envelope)
    conversation = rebuild_messages(envelope.messages)
    tools = rebuild_tools(envelope.tools)
    if tool_choice(envelope.tool_choice, have_tools=bool(tools)) == "none":
        # Without tools no call is possible: a surer "none" than the engine's.
        tools = b""
    return ChatRequest(
        model=envelope.model or None,
        messages=conversation.body,
        message_count=conversation.count,
        image_at=conversation.image_at,
        stream=bool(envelope.stream),
        include_usage=bool(envelope.stream_options and envelope.stream_options.include_usage),
        limit=_limit(envelope),
        n=envelope.n or 1,
        stop=stop_texts(envelope.stop),
        seed=envelope.seed,
        temperature=envelope.temperature,
        top_p=envelope.top_p,
        top_k=envelope.top_k,
        min_p=envelope.min_p,
        presence_penalty=envelope.presence_penalty,
        frequency_penalty=envelope.frequency_penalty,
        repeat_penalty=envelope.repeat_penalty,
        repeat_last_n=envelope.repeat_last_n,
        typical_p=envelope.typical_p,
        logit_bias=logit_biases(envelope.logit_bias),
        logprobs=bool(envelope.logprobs),
        top_logprobs=envelope.top_logprobs,
        response_format=response_format(envelope.response_format),
        tools=tools,
        parallel_tool_calls=envelope.parallel_tool_calls,
        cache_prompt=envelope.cache_prompt is not False,
        template_options=template_options(envelope),
    )


def check_capabilities(request: ChatRequest, capabilities: Capabilities) -> None:
    """Refuse what the chosen model cannot do. Raises `PeerError` ``unsupported`` naming the field."""
    if request.image_at and not capabilities.images:
        raise unsupported(request.image_at, f"{request.image_at} is an image, and this model takes text only")
    if request.tools and not capabilities.tools:
        raise unsupported(
            "tools",
            "the chat template of this model does not speak tools",
            "leave tools out or use another model",
        )


def _limit(envelope: Envelope) -> int | None:
    given = [v for v in (envelope.max_tokens, envelope.max_completion_tokens) if v is not None]
    return min(given, default=None)
