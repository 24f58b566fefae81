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
from relaydesk.core.gateway.forced import ForcedCall, forced_call
from relaydesk.core.gateway.messages import Conversation, rebuild_messages
from relaydesk.core.gateway.response_format import response_format
from relaydesk.core.gateway.sampling import Sampling, sampling_of
from relaydesk.core.gateway.told_calls import told_calls
from relaydesk.core.gateway.tools import offered, read_tools, tool_offer
from relaydesk.core.gateway.work import Capabilities

__all__ = ["MAX_DEPTH", "ChatRequest", "check_capabilities", "fitted_chat", "parse_chat"]


class ChatRequest(Sampling, frozen=True, kw_only=True):
    """A checked request. Fields of type ``bytes`` are JSON ready for the engine, empty where not given.

    ``limit`` is the smaller of both spellings of the token limit. ``image_at`` names the first image part.
    ``with_calls`` says that there are tool calls or results among the messages. ``forced`` are the functions
    one of which the answer must call, none where it need not; ``tools`` are those that it may. What is asked
    about reasoning is ``template_options``; a far server gets ``effort`` and ``far_template_options``.
    """

    model: str | None
    messages: bytes
    message_count: int
    image_at: str | None = None
    with_calls: bool = False
    stream: bool = False
    include_usage: bool = False
    limit: int | None = None
    n: int = 1
    stop: tuple[str, ...] = ()
    logit_bias: bytes = b""
    logprobs: bool = False
    top_logprobs: int | None = None
    response_format: bytes = b""
    tools: bytes = b""
    forced: tuple[str, ...] = ()
    parallel_tool_calls: bool | None = None
    cache_prompt: bool = True
    template_options: bytes = b""
    effort: str | None = None
    far_template_options: bytes = b""

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
    offer = tool_offer(envelope.tool_choice, read_tools(envelope.tools))
    call = forced_call(offer.tools) if offer.forced else None
    conversation = rebuild_messages(envelope.messages, envelope.system, call.prompt if call else b"")
    tools = b"" if call else offered(offer.tools)
    answer_format = _answer_format(envelope, call, tools)
    if answer_format and conversation.begun_at:
        raise unsupported(
            conversation.begun_at,
            f"{conversation.begun_at} begins the answer, which cannot be bound to a form then",
            "end the conversation with a message of the user or a tool",
        )
    return _request(envelope, conversation, call, tools, answer_format)


def _request(
    envelope: Envelope,
    conversation: Conversation,
    call: ForcedCall | None,
    tools: bytes,
    answer_format: bytes,
) -> ChatRequest:
    local, far = template_options(envelope)
    return ChatRequest(
        model=envelope.model or None,
        messages=conversation.body,
        message_count=conversation.count,
        image_at=conversation.image_at,
        with_calls=conversation.with_calls,
        stream=bool(envelope.stream),
        include_usage=bool(envelope.stream_options and envelope.stream_options.include_usage),
        limit=_limit(envelope),
        n=envelope.n or 1,
        # A stop text would cut the arguments of a call, and its logprobs are of text that nobody sees.
        stop=() if call else stop_texts(envelope.stop),
        **sampling_of(envelope),
        logit_bias=logit_biases(envelope.logit_bias),
        logprobs=bool(envelope.logprobs) and call is None,
        top_logprobs=envelope.top_logprobs,
        response_format=answer_format,
        tools=tools,
        forced=call.names if call else (),
        parallel_tool_calls=envelope.parallel_tool_calls,
        cache_prompt=envelope.cache_prompt is not False,
        template_options=local,
        effort=envelope.reasoning_effort,
        far_template_options=far,
    )


def _answer_format(envelope: Envelope, call: ForcedCall | None, tools: bytes) -> bytes:
    """What binds the answer. Raises `PeerError`.

    A forced answer is a call, so that a format for texts says nothing; it is checked all the same. Beside
    tools that may be called, a format would make every call impossible.
    """
    given = response_format(envelope.response_format)
    if given and tools:
        raise unsupported(
            "response_format",
            "response_format beside tools is not supported: it would keep the model from calling any",
            "use one of them, or tool_choice required or none",
        )
    return call.format if call else given


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


def fitted_chat(request: ChatRequest, capabilities: Capabilities) -> ChatRequest:
    """``request`` as the chosen model can be asked. Raises `PeerError` ``unsupported`` naming the field.

    Where its template does not speak tools, earlier calls and results are told as text.
    """
    check_capabilities(request, capabilities)
    if not request.with_calls or capabilities.tools:
        return request
    return msgspec.structs.replace(request, messages=told_calls(request.messages))


def _limit(envelope: Envelope) -> int | None:
    given = [v for v in (envelope.max_tokens, envelope.max_completion_tokens) if v is not None]
    return min(given, default=None)
