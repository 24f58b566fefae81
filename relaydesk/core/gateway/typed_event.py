"""Server-sent events that carry a type beside their data, for the dialects whose clients read it."""

from __future__ import annotations

from relaydesk.core.gateway.sse import data_frame


def typed_event(kind: bytes, payload: bytes) -> bytes:
    """One event of type ``kind`` carrying ``payload``, which is JSON."""
    return b"event: " + kind + b"\n" + data_frame(payload)
