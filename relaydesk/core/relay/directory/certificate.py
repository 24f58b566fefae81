"""An owner's word that a key signs for one of its nodes (design §6): the owner key may stay offline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from relaydesk.core.relay.address import decode_address, operator_id
from relaydesk.core.relay.directory import envelope as env
from relaydesk.core.relay.directory.envelope import Envelope, Signer
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.relay.ref import NodeRef

MAX_BYTES: Final = 2048
DAY_S: Final = 86_400
# Three years: what is longer is forgotten by those who would have to withdraw it.
LONGEST_S: Final = 1096 * DAY_S
_WHAT: Final = "the node's certificate"


class _Payload(msgspec.Struct, frozen=True):
    """``owner`` and ``signing`` are addresses, times are seconds since 1970."""

    owner: str
    node_id: int
    signing: str
    issued_at: int
    expires_at: int


_DECODER: Final = msgspec.json.Decoder(_Payload)


@dataclass(frozen=True, slots=True)
class NodeCertificate:
    """A certificate whose signature is good. ``envelope`` is it as it travels; times are in seconds."""

    owner: str
    node_id: int
    signing: str
    issued_at: int
    expires_at: int
    envelope: Envelope

    @property
    def ref(self) -> NodeRef:
        """The node that it is for."""
        return NodeRef(operator_of(self.owner), self.node_id)

    def encode(self) -> bytes:
        """As JSON, for a file."""
        return env.encode_envelope(self.envelope)


def operator_of(owner: str) -> int:
    """An operator's id: the first 53 bits of SHA-256 of its owner key. Raises `ValueError`."""
    return operator_id(decode_address(owner))


def issue_certificate(
    owner: str, sign: Signer, *, node_id: int, signing: str, issued_at: int, expires_at: int
) -> NodeCertificate:
    """Certify the key ``signing``; ``sign`` is the owner key's. Raises `Refused` malformed for odd values."""
    payload = _Payload(owner, node_id, signing, issued_at, expires_at)
    _check(payload)
    env.check_window(issued_at, expires_at, None, LONGEST_S, _WHAT)
    return _made(payload, env.seal(env.CERTIFICATE, payload, owner, sign))


def read_certificate(data: bytes, now_s: int | None) -> NodeCertificate:
    """A certificate out of a file; None for the time takes one of any time. Raises `Refused`."""
    return open_certificate(env.parse_envelope(data, MAX_BYTES, _WHAT), now_s)


def open_certificate(envelope: Envelope, now_s: int | None) -> NodeCertificate:
    """Check a certificate: signed by the owner that it names, and valid at ``now_s``. Raises `Refused`."""
    if len(envelope.payload) > MAX_BYTES:
        raise Refused("too_large", f"{_WHAT} is larger than {MAX_BYTES} bytes")
    signed = env.unseal(envelope, env.CERTIFICATE, _WHAT)
    payload = env.read_payload(signed.payload, _DECODER, _WHAT)
    _check(payload)
    if payload.owner != signed.key:
        raise Refused("wrong_key", f"{_WHAT} is not signed by the owner that it names")
    env.check_window(payload.issued_at, payload.expires_at, now_s, LONGEST_S, _WHAT)
    return _made(payload, envelope)


def _check(payload: _Payload) -> None:
    env.check_number(payload.node_id, "node_id", _WHAT)
    for address in (payload.owner, payload.signing):
        try:
            decode_address(address)
        except ValueError:
            raise Refused("malformed", f"{_WHAT} has an address that is none") from None
    if payload.owner == payload.signing:
        # One key for both would put the owner key, which may stay offline, on the node.
        raise Refused("malformed", f"{_WHAT} certifies the owner key itself")


def _made(payload: _Payload, envelope: Envelope) -> NodeCertificate:
    return NodeCertificate(
        payload.owner, payload.node_id, payload.signing, payload.issued_at, payload.expires_at, envelope
    )
