"""One completion's stream as an engine sends it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec

from relaydesk.core.errors import Fault, PeerError
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.piece import ChoiceStream, Piece


class _Legacy(msgspec.Struct):
    """Logprobs in the shape that OpenAI gives this route: lists side by side."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None = None


_LEGACY: Final = msgspec.json.Decoder(_Legacy)


class TextStream(ChoiceStream):
    """`Reader` of ``/v1/completions``. Its pieces are like a chat's: logprobs have a chat's shape in both."""

    __slots__ = ()

    def read(self, data: bytes, kind: str = "message") -> Piece | None:
        try:
            piece = super().read(data, kind)
        except PeerError as error:
            raise _error(about_prompt(error.fault)) from None
        # llama.cpp answers here in a chat's shape already.
        if piece is not None and b'"tokens"' in piece.logprobs and b'"content"' not in piece.logprobs[:12]:
            piece.logprobs = _as_chat(piece.logprobs)
        return piece


def about_prompt(fault: Fault) -> Fault:
    """A fault that speaks of a chat's messages, said about the prompt."""
    if fault.param != "messages":
        return fault
    return replace(fault, param="prompt", hint="shorten the prompt" if fault.hint else "")


def _as_chat(data: bytes) -> bytes:
    try:
        legacy = _LEGACY.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise PeerError("engine_failed", "the engine sent logprobs of an unknown shape") from None
    tops = legacy.top_logprobs or []
    content = [
        {
            "token": token,
            "logprob": legacy.token_logprobs[number] if number < len(legacy.token_logprobs) else None,
            "bytes": None,
            "top_logprobs": [
                {"token": other, "logprob": logprob, "bytes": None}
                for other, logprob in ((tops[number] if number < len(tops) else None) or {}).items()
            ],
        }
        for number, token in enumerate(legacy.tokens)
    ]
    return encode({"content": content})


def _error(fault: Fault) -> PeerError:
    return PeerError(fault.code, fault.message, fault.hint, param=fault.param, retry_after=fault.retry_after)
