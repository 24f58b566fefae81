"""How long a chat's prompt is, as its engine counts it."""

from __future__ import annotations

from typing import Final

import msgspec

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.faults import engine_fault

# Takes a chat's body; renders the template and counts, but asks no model.
COUNT_PATH: Final = "/v1/chat/completions/input_tokens"


class _Count(msgspec.Struct):
    input_tokens: int


_COUNT: Final = msgspec.json.Decoder(_Count)


def counted(status: int, body: bytes) -> int:
    """The tokens in an engine's answer.

    Raises `PeerError`: what the engine said is wrong, or ``engine_failed`` where it is no count.
    """
    if status != 200:
        fault = engine_fault(status, body)
        raise PeerError(fault.code, fault.message, fault.hint, param=fault.param)
    try:
        count = _COUNT.decode(body).input_tokens
    except (msgspec.MsgspecError, ValueError, RecursionError):
        count = -1
    if count < 0:
        raise PeerError("engine_failed", "the engine did not say how many tokens there are")
    return count
