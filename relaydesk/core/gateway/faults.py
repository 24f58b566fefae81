"""What an engine's error means to the client: the engine's words, our codes.

An engine's numeric ``code`` is never passed on, nor is its status where it speaks of our own dealings with
it (a wrong key, a missing route).
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.scrub import scrub_engine

_OVERFLOW_TYPES: Final = frozenset({"exceed_context_size_error", "context_length_exceeded"})
_OVERFLOW_WORDS: Final = re.compile(
    r"exceeds? the available context size|maximum context length|context (?:length|window|size) exceeded"
    r"|prompt is too long",
    re.IGNORECASE,
)
# A template that refuses a conversation does so every time.
_TEMPLATE_WORDS: Final = re.compile(r"jinja|chat template|raise_exception", re.IGNORECASE)
_IMAGE_WORDS: Final = re.compile(r"image input is not supported|mmproj", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d{1,12}")
# Which field an engine's words are about: the first that fits.
_FIELDS: Final = (
    (re.compile(r"grammar|schema|response_format|samplers", re.IGNORECASE), "response_format"),
    (re.compile(r"jinja|template|raise_exception|assistant message|\brole", re.IGNORECASE), "messages"),
    (re.compile(r"\btools?\b", re.IGNORECASE), "tools"),
)
# A field that llama.cpp names itself.
_NAMED: Final = re.compile(r"Field '([a-z_]{1,40})'")


def context_fault(prompt_tokens: int | None, context: int | None, *, at_least: bool = False) -> Fault:
    """The context is too small for the prompt, in all the words by which clients recognise it.

    Some look for "maximum context length", some for "prompt is too long", some for "context window".
    """
    if context is None:
        sentence = "The prompt is too long: it exceeds this model's maximum context length"
    else:
        sentence = f"The prompt is too long: this model's maximum context length is {context} tokens"
        if prompt_tokens is not None:
            count = f"at least {prompt_tokens}" if at_least else prompt_tokens
            sentence += f", but the prompt has {count} tokens"
        sentence += ", which exceeds the context window"
    return Fault("context_length_exceeded", sentence, "shorten the messages", param="messages")


def engine_fault(status: int, body: bytes) -> Fault:
    """The fault behind an engine's error ``body``; ``status`` 0 where it came inside a stream."""
    detail = _detail(body)
    text = scrub_engine(_text(detail.get("message")))
    code = _number(detail.get("code"))
    if status == 0:
        status = code if code is not None and 400 <= code < 600 else 500
    kinds = {_text(detail.get("type")), _text(detail.get("code"))}
    if kinds & _OVERFLOW_TYPES or (status in (400, 413, 422) and _OVERFLOW_WORDS.search(text)):
        return _overflow(detail, text)
    if _IMAGE_WORDS.search(text):
        return Fault(
            "unsupported", "this model takes text only, and the messages hold an image", param="messages"
        )
    if status in (400, 422) or (status == 500 and _TEMPLATE_WORDS.search(text)):
        sentence = text or "the engine refused the request without a reason"
        return Fault("engine_rejected", sentence, param=_field(text))
    if status == 413:
        return Fault("request_too_large", "the engine finds the request too large")
    if status == 429:
        return Fault("queue_full", "the engine is busy", "try again shortly", retry_after=1)
    if status == 501:
        return Fault("unsupported", text or "the engine does not support this request")
    if status == 503:
        return Fault("engine_failed", "the engine is not ready", "try again shortly", retry_after=1)
    if status in (401, 403, 404, 405):
        return Fault("engine_failed", "the engine does not answer as it should", "see `relaydesk doctor`")
    return Fault("engine_failed", f"the engine failed: {text}" if text else "the engine failed")


def _field(text: str) -> str | None:
    """The client's field that an engine complains about, None where its words do not tell."""
    named = _NAMED.search(text)
    if named:
        return named[1]
    return next((field for words, field in _FIELDS if words.search(text)), None)


def _overflow(detail: dict[str, Any], text: str) -> Fault:
    prompt, context = _number(detail.get("n_prompt_tokens")), _number(detail.get("n_ctx"))
    if context is None:
        # Other engines put both numbers in words: the context first, or what it is compared with last.
        found = re.search(r"(?:length|window|size)\D{0,20}?(\d{1,12})", text)
        context = int(found[1]) if found else None
        others = [int(n) for n in _NUMBER.findall(text) if context is not None and int(n) > context]
        prompt = others[0] if others else None
    return context_fault(prompt, context)


def _detail(body: bytes) -> dict[str, Any]:
    """The ``error`` of a body in any usual shape, or an empty one."""
    try:
        value = msgspec.json.decode(body) if len(body) <= 64 * 1024 else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    if isinstance(value, dict) and "error" in value:
        value = value["error"]
    if isinstance(value, str):
        return {"message": value}
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12 else None
