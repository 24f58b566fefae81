"""Dial-back: a peer looks at this node from outside, and tells status and headers (design §6; ours).

The question is signed by the asker's node key and says nothing but who asks, whom and when: where the peer
looks is in the peer's own directory, and what it sends is always the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from relaydesk.core.hopcheck.model import Exchange, Kind
from relaydesk.core.relay.directory.envelope import (
    SKEW_S,
    Signer,
    encode_envelope,
    parse_envelope,
    read_payload,
    seal,
    unseal,
)
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.relay.hop import RELAY_PATH
from relaydesk.core.relay.ref import NodeRef

PATH: Final = "/v1/zs/dialback"
TAG: Final = b"relaydesk-dialback-v1\0"
# The one request that a peer sends.
HEADERS: Final = (("X-Zs-Relay-Target", "check"), ("Accept", "application/json"))
MOST_ASK: Final = 2048
MOST_ANSWER: Final = 64 * 1024
MOST_HEADERS: Final = 64
MOST_VALUE: Final = 512
# How often one asker is looked at.
EACH_S: Final = 60.0
# What a peer waits for an answer.
LOOK_S: Final = 6.0
_WHAT: Final = "the question"


class _Ask(msgspec.Struct, frozen=True):
    operator: int
    node: int
    to: str
    at: int


class _Answer(msgspec.Struct, frozen=True):
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """Who asks, and the address of the key that signed."""

    ref: NodeRef
    signing: str


_ASK: Final = msgspec.json.Decoder(_Ask)
_ANSWER: Final = msgspec.json.Decoder(_Answer)
_KINDS: Final[tuple[Kind, ...]] = ("resolve", "refused", "timeout", "tls", "broken")


def ask(ref: NodeRef, key: str, sign: Signer, to: str, at_s: int) -> bytes:
    """A question of node ``ref`` to the node whose signing address is ``to``."""
    return encode_envelope(seal(TAG, _Ask(ref.operator, ref.node, to, at_s), key, sign))


def read_ask(data: bytes, own: str, now_s: int) -> Question:
    """A question to the node with the signing address ``own``. Raises `Refused`.

    Whether the key is that node's is for whoever has a directory to say.
    """
    signed = unseal(parse_envelope(data, MOST_ASK, _WHAT), TAG, _WHAT)
    found = read_payload(signed.payload, _ASK, _WHAT)
    if found.to != own:
        raise Refused("wrong_key", "the question is for another node")
    if abs(found.at - now_s) > SKEW_S:
        raise Refused("expired", "the question is not of this moment", "check the clocks of both machines")
    return Question(NodeRef(found.operator, found.node), signed.key)


def answer(status: int, headers: tuple[tuple[str, str], ...], kind: str = "", problem: str = "") -> bytes:
    """What a peer tells of what it saw: never a body."""
    cut = tuple((name[:64], value[:MOST_VALUE]) for name, value in headers[:MOST_HEADERS])
    return msgspec.json.encode(_Answer(status, cut, problem[:200], kind))


def read_answer(data: bytes, base_url: str, by: str) -> Exchange:
    """A peer's answer as an exchange with ``base_url``. Raises `ValueError`."""
    if len(data) > MOST_ANSWER:
        raise ValueError("a peer's answer is too long")
    try:
        found = _ANSWER.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError("a peer's answer cannot be read") from error
    if not 0 <= found.status <= 599 or len(found.headers) > MOST_HEADERS:
        raise ValueError("a peer's answer cannot be read")
    kind: Kind = next((each for each in _KINDS if each == found.kind), "broken") if not found.status else ""
    problem = f"{found.problem[:200]} (seen by {by})" if not found.status else ""
    return Exchange(
        "POST",
        base_url + RELAY_PATH,
        HEADERS,
        status=found.status,
        headers=found.headers,
        kind=kind,
        problem=problem,
    )
