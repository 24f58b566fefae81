"""One hop: what asks a relay for it, and which headers cross it in each direction (wire §1.3).

Everything that crosses is on a list. What is on none stays: it could name the client to the target, or let
a target speak as the relay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.ref import NodeRef

RELAY_PATH: Final = "/v1/zs/relay"
DETAILS_PATH: Final = "/v1/zs/details"
RESERVE_PATH: Final = "/v1/zs/reserve"
ATTESTATION_PATH: Final = "/v1/zs/attestation"
# Ours beside the wire's paths; only relays that announce it forward it (design §6).
LEDGER_PATH: Final = "/v1/zs/ledger"
TARGET_HEADER: Final = "X-Zs-Relay-Target"
NODE_HEADER: Final = "X-Zs-Relay-Target-Node"
PATH_HEADER: Final = "X-Zs-Relay-Path"
METHOD_HEADER: Final = "X-Zs-Relay-Method"
# Presence says that a relay's handler ran; the value is kept for later meanings (wire §2.1).
HOP_HEADER: Final = "X-Zs-Relay-Hop"
HOP_VALUE: Final = "1"

INNER_PATHS: Final = frozenset(
    {
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/images/generations",
        "/v1/images/edits",
        "/v1/models",
        RESERVE_PATH,
        DETAILS_PATH,
        ATTESTATION_PATH,
    }
)
MODEL_PREFIX: Final = "/v1/models/"
METHODS: Final = ("GET", "POST")
MOST_PATH: Final = 2048

_NUMBER: Final = re.compile(r"[0-9]{1,20}")
_MOST_ID: Final = 2**64 - 1
# Visible ASCII: what a request line can carry. No fragment, and no backslash, which some read as a slash.
_PATH: Final = re.compile(r"/[!-\"$-\[\]-~]*")
_HEADER_NAME: Final = re.compile(r"[a-z0-9-]+")
_HEADER_VALUE: Final = re.compile(r"[!-~](?:[ -~\t]*[!-~])?")
_FORWARDED: Final = ("Content-Type", "Accept")
_MOST_FORWARDED: Final = 256
_COPIED_ONCE: Final = frozenset({"content-type", "retry-after"})


class HopRequest(NamedTuple):
    """What a relay is asked for: the target, the inner path with its query, and the inner method."""

    ref: NodeRef
    path: str
    method: str


def parse_relay_headers(headers: Iterable[tuple[str, str]], also: frozenset[str] = frozenset()) -> HopRequest:
    """The four relay headers of a request, names in any case.

    Raises `WireError` ``relay_bad_target``, ``relay_bad_path`` or ``relay_bad_method`` for one that is
    missing, there twice or malformed. ``also`` are paths of ours beside the wire's (`allowed_path`).
    """
    found: dict[str, list[str]] = {}
    for name, value in headers:
        lowered = name.lower()
        if lowered.startswith("x-zs-relay-"):
            found.setdefault(lowered, []).append(value)
    operator = _id(found, TARGET_HEADER)
    node = _id(found, NODE_HEADER)
    path = _single(found, PATH_HEADER, "relay_bad_path")
    if not allowed_path(path, also):
        raise WireError("relay_bad_path", f"{PATH_HEADER} is not one of the paths that are relayed")
    method = _single(found, METHOD_HEADER, "relay_bad_method")
    if method not in METHODS:
        raise WireError("relay_bad_method", f"{METHOD_HEADER} must be GET or POST")
    return HopRequest(NodeRef(operator, node), path, method)


def allowed_path(path: str, also: frozenset[str] = frozenset()) -> bool:
    """Whether an inner path, with or without a query, may be relayed.

    The list is closed, and only the part before the first ``?`` is compared. One hop and no more: the relay
    path itself is on no list. ``also`` names further paths, which only nodes that announce them take.
    """
    if len(path) > MOST_PATH or not _PATH.fullmatch(path):
        return False
    place = path.partition("?")[0]
    if place in INNER_PATHS or place in also:
        return True
    model = place.removeprefix(MODEL_PREFIX)
    if model == place or not model or "/" in model:
        return False
    # A server may undo the escapes of dots before it looks at the segments.
    plain = re.sub("%2[eE]", ".", model)
    return ".." not in plain and plain != "."


def relay_headers(request: HopRequest) -> list[tuple[str, str]]:
    """The four headers a caller asks a relay with."""
    return [
        (TARGET_HEADER, str(request.ref.operator)),
        (NODE_HEADER, str(request.ref.node)),
        (PATH_HEADER, request.path),
        (METHOD_HEADER, request.method),
    ]


def relay_url(base_url: str) -> str:
    """Where a relay takes hops."""
    return base_url.rstrip("/") + RELAY_PATH


def target_url(base_url: str, path: str) -> str:
    """Where a relay sends what it was given: the inner path and its query as they came."""
    return base_url.rstrip("/") + path


def forwarded_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The request headers a target gets: ``Content-Type`` and ``Accept``, each once.

    What is too long or no plain text stays behind like every other header.
    """
    values: dict[str, str] = {}
    for name, value in headers:
        if _HEADER_VALUE.fullmatch(value) and len(value) <= _MOST_FORWARDED:
            values.setdefault(name.lower(), value)
    return [(name, values[name.lower()]) for name in _FORWARDED if name.lower() in values]


def copied_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The response headers of a target that go back to the caller.

    ``Content-Type``, ``Retry-After`` and every ``X-Zs-*`` but the marker, which is the relay's own word.
    """
    copied: list[tuple[str, str]] = []
    once: set[str] = set()
    for name, value in headers:
        lowered = name.lower()
        if not _HEADER_NAME.fullmatch(lowered) or (value and not _HEADER_VALUE.fullmatch(value)):
            continue
        if lowered in _COPIED_ONCE and lowered not in once:
            once.add(lowered)
            copied.append((name, value))
        elif lowered.startswith("x-zs-") and lowered != HOP_HEADER.lower():
            copied.append((name, value))
    return copied


def has_marker(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether a relay's answer carries the hop marker, whatever its value."""
    return any(name.lower() == HOP_HEADER.lower() for name, _ in headers)


def _id(found: dict[str, list[str]], name: str) -> int:
    text = _single(found, name, "relay_bad_target")
    if not _NUMBER.fullmatch(text) or int(text) > _MOST_ID:
        raise WireError("relay_bad_target", f"{name} must be a decimal number below 2^64")
    return int(text)


def _single(found: dict[str, list[str]], name: str, code: str) -> str:
    values = found.get(name.lower(), [])
    if len(values) != 1:
        raise WireError(code, f"{name} is missing" if not values else f"{name} is there more than once")
    return values[0]
