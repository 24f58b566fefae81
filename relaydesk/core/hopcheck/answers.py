"""Whose words an answer is: the node's own, or those of something in front of it."""

from __future__ import annotations

import zlib
from typing import Any, Final

import msgspec

from relaydesk.core.hopcheck.model import MOST_BODY, Exchange
from relaydesk.core.relay.catalogue import CATALOGUE, RELAY_REFUSALS, UPSTREAM_UNREACHABLE, read_error
from relaydesk.core.relay.hop import has_marker

# Says in a timed answer's body that it is one, so that nothing else is taken for it.
PROBED: Final = "zs_probe"
_RELAYS: Final = RELAY_REFUSALS | {UPSTREAM_UNREACHABLE}


def marked(exchange: Exchange) -> bool:
    """Whether the answer carries the hop marker."""
    return has_marker(exchange.headers)


def code_of(exchange: Exchange) -> str:
    """The error code in the answer's body, empty for none."""
    return read_error(plain(exchange)).code


def plain(exchange: Exchange) -> bytes:
    """The beginning of the body, without gzip or deflate where that can be undone."""
    encoding = exchange.value("Content-Encoding").lower()
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return exchange.body
    try:
        return zlib.decompressobj(47).decompress(exchange.body, MOST_BODY)
    except zlib.error:
        return exchange.body


def own_words(exchange: Exchange) -> bool:
    """Whether the body is one that a relay's handler writes: a relay's refusal, or a probe's answer."""
    return code_of(exchange) in _RELAYS or probe_answer(exchange) is not None or _unread(exchange)


def from_relaydesk(exchange: Exchange) -> bool:
    """Whether the body is any of a relaydesk's listeners: one of the catalogue's codes, or details."""
    return code_of(exchange) in CATALOGUE or details_of(exchange) is not None or own_words(exchange)


def probe_answer(exchange: Exchange) -> dict[str, Any] | None:
    """What the node says to a probe with a nonce, None where this is no such answer.

    Of a timed answer it is what the first chunk says.
    """
    body = plain(exchange)
    if body.startswith(b"data: "):
        body = body[6:].partition(b"\n")[0]
    found = _object(body)
    return found if found is not None and PROBED in found else None


def details_of(exchange: Exchange) -> dict[str, Any] | None:
    """The details a node gave, None where this is none."""
    found = _object(plain(exchange)) if exchange.status == 200 else None
    return found if found is not None and "proto_version" in found and "operator_id" in found else None


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    return found if isinstance(found, dict) else None


def _unread(exchange: Exchange) -> bool:
    """A body in an encoding that is not undone here: it gets the benefit of the doubt where it is marked."""
    encoding = exchange.value("Content-Encoding").lower()
    return encoding not in ("", "identity", "gzip", "x-gzip", "deflate") and marked(exchange)
