"""What a node says of itself to directories: signed by its certified key or its owner, and versioned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from relaydesk.core.relay.directory import envelope as env
from relaydesk.core.relay.directory.certificate import NodeCertificate, open_certificate
from relaydesk.core.relay.directory.envelope import Envelope, Signer
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.relay.ref import NodeRef

MAX_BYTES: Final = 8192
_WHAT: Final = "the node's record"

Status = Literal["active", "retired"]


class _Payload(msgspec.Struct, frozen=True):
    """``certificate`` is the owner's, whole; ``issued_at`` is in seconds since 1970."""

    operator_id: int
    node_id: int
    version: int
    issued_at: int
    base_url: str
    staging: bool
    status: Status
    certificate: Envelope


_DECODER: Final = msgspec.json.Decoder(_Payload)


class Rank(msgspec.Struct, frozen=True, order=True):
    """Which of two records of a node is the newer.

    A later certificate comes first: whoever has a node's old key cannot outdo the new one by a high version.
    """

    certified_at: int
    version: int


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A record whose signatures are good. ``digest`` names its content, ``envelope`` is it as it travels.

    ``base_url`` is as the node wrote it; whether it may be dialed says ``base_url.check_base_url``.
    """

    ref: NodeRef
    version: int
    issued_at: int
    base_url: str
    staging: bool
    status: Status
    certificate: NodeCertificate
    digest: bytes
    envelope: Envelope

    @property
    def owner(self) -> str:
        """The owner's address."""
        return self.certificate.owner

    @property
    def rank(self) -> Rank:
        """Its place among the records of this node."""
        return Rank(self.certificate.issued_at, self.version)

    def encode(self) -> bytes:
        """As JSON, for a file or a request."""
        return env.encode_envelope(self.envelope)


def issue_record(
    certificate: NodeCertificate,
    key: str,
    sign: Signer,
    *,
    version: int,
    issued_at: int,
    base_url: str,
    staging: bool = False,
    status: Status = "active",
) -> NodeRecord:
    """A record of the certificate's node; ``key`` is the address of the key that ``sign`` signs with."""
    ref = certificate.ref
    payload = _Payload(
        ref.operator, ref.node, version, issued_at, base_url, staging, status, certificate.envelope
    )
    envelope = env.seal(env.RECORD, payload, key, sign)
    return open_record(envelope, issued_at)


def read_record(data: bytes, now_s: int) -> NodeRecord:
    """A record out of a request or a file. Raises `Refused`."""
    return open_record(env.parse_envelope(data, MAX_BYTES, _WHAT), now_s)


def open_record(envelope: Envelope, now_s: int) -> NodeRecord:
    """Check a record and the certificate in it at ``now_s`` (seconds). Raises `Refused`."""
    if len(envelope.payload) > MAX_BYTES:
        raise Refused("too_large", f"{_WHAT} is larger than {MAX_BYTES} bytes")
    signed = env.unseal(envelope, env.RECORD, _WHAT)
    payload = env.read_payload(signed.payload, _DECODER, _WHAT)
    env.check_number(payload.version, "version", _WHAT, least=1)
    env.check_number(payload.issued_at, "issued_at", _WHAT)
    certificate = open_certificate(payload.certificate, now_s)
    if signed.key not in (certificate.signing, certificate.owner):
        raise Refused("wrong_key", f"{_WHAT} is signed by neither its certified key nor its owner")
    ref = NodeRef(payload.operator_id, payload.node_id)
    if ref != certificate.ref:
        raise Refused("wrong_key", f"{_WHAT} is of another node than its certificate")
    if payload.issued_at > now_s + env.SKEW_S:
        raise Refused("future", f"{_WHAT} was issued in the future", "check the clocks of both machines")
    return NodeRecord(
        ref,
        payload.version,
        payload.issued_at,
        payload.base_url,
        payload.staging,
        payload.status,
        certificate,
        signed.digest,
        envelope,
    )
