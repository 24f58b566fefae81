"""The byte rules of the relay network, written from its wire digest alone (§ numbers are that digest's).

No code of relaydesk is used here or beside it: where the node and these modules agree, two programs do.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyrage
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

NONCE_BYTES: Final = 12
HEADER_LIMIT: Final = 65536
MAGIC: Final = b"zsrq"


class Malformed(Exception):
    """Bytes that do not open or do not keep the format; the text says which rule."""


# --- scalars (§4)


def text(value: str) -> bytes:
    """``S``: a length and UTF-8."""
    raw = value.encode()
    return len(raw).to_bytes(4, "big") + raw


def u64(value: int) -> bytes:
    """``U64``; OverflowError where it does not fit."""
    return value.to_bytes(8, "big")


def i64(value: int) -> bytes:
    """``I64``."""
    return value.to_bytes(8, "big", signed=True)


def u8(value: int) -> bytes:
    """``U8``, and ``B`` for a bool."""
    return int(value).to_bytes(1, "big")


def b64(raw: bytes) -> str:
    """Standard, padded."""
    return base64.b64encode(raw).decode()


def unb64(value: object) -> bytes:
    """Strict: Malformed for anything but standard padded base64 text."""
    if not isinstance(value, str):
        raise Malformed("not base64 text")
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise Malformed("not base64") from None


def document(raw: bytes) -> dict[str, Any]:
    """A JSON object; Malformed otherwise."""
    try:
        value = json.loads(raw)
    except ValueError:
        raise Malformed("not JSON") from None
    if not isinstance(value, dict):
        raise Malformed("not a JSON object")
    return value


# --- keys, addresses, signatures (§4.1)


def public_of(key: Ed25519PrivateKey) -> bytes:
    """The 32 bytes of its public half."""
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def address(public: bytes) -> str:
    """58 characters: the key and the last 4 bytes of its SHA-512/256."""
    check = hashlib.new("sha512_256", public).digest()[-4:]
    return base64.b32encode(public + check).decode().rstrip("=")


def public_key(of: str) -> bytes:
    """The key in an address; Malformed where its check does not hold."""
    try:
        raw = base64.b32decode(of + "=" * (-len(of) % 8))
    except ValueError:
        raise Malformed("not an address") from None
    if len(of) != 58 or address(raw[:32]) != of:
        raise Malformed("not an address")
    return raw[:32]


def signature(key: Ed25519PrivateKey, signed: bytes) -> str:
    """Over the SHA-256 of the canonical bytes, in base64."""
    return b64(key.sign(hashlib.sha256(signed).digest()))


def is_signed(by: str, signed: bytes, sig: object) -> bool:
    """Whether the key of this address signed it."""
    try:
        key = Ed25519PublicKey.from_public_bytes(public_key(by))
        key.verify(unb64(sig), hashlib.sha256(signed).digest())
    except (InvalidSignature, Malformed):
        return False
    return True


# --- canonical bytes (§4.2, §4.3, §4.8)


def ephemeral_bytes(operator: int, node: int, details: Mapping[str, Any]) -> bytes:
    """What an advertisement signs; the ids are the directory's."""
    ids = b"zs-ephemeral-v1\0" + u64(operator) + u64(node)
    times = i64(details["ephemeral_expiry"]) + i64(details["ephemeral_issued_at"])
    return ids + text(details["ephemeral_age_pubkey"]) + times


def reserve_bytes(operator: int, node: int, reserve: Mapping[str, Any]) -> bytes:
    """What a payer signs; the ids are signed and not sent."""
    who = b"zs-reserve-v1\0" + text(reserve["payer_addr"]) + u64(operator) + u64(node)
    what = text(reserve["model"]) + u64(reserve["input_count"]) + u64(reserve["max_output_count"])
    answer = u8(reserve["stream"]) + text(reserve["proxy_recipient"])
    return who + what + answer + i64(reserve["payer_issued_at"])


def ticket_bytes(ticket: Mapping[str, Any]) -> bytes:
    """What a ticket signs."""
    counts = ("operator_id", "node_id", "input_count", "max_output_count")
    money = ("input_rate", "output_rate", "max_price", "min_price")
    head = b"zs-ticket-v2\0" + text(ticket["ticket_id"]) + b"".join(u64(ticket[n]) for n in counts + money)
    body = i64(ticket["expires_at"]) + text(ticket["model"]) + u8(ticket["stream"]) + text(ticket["commit_k"])
    types = u8(ticket["input_usage_type"]) + u8(ticket["output_usage_type"])
    return head + body + types + u64(ticket["cache_read_rate"])


def receipt_bytes(receipt: Mapping[str, Any]) -> bytes:
    """What a receipt signs."""
    numbers = ("actual_input_count", "actual_output_count", "amount_charged", "ttft_ms", "decode_ms")
    types = ("input_usage_type", "output_usage_type", "aux_output_usage_type")
    head = b"zs-receipt-v2\0" + text(receipt["ticket_id"]) + b"".join(u64(receipt[n]) for n in numbers)
    tail = b"".join(u8(receipt[n]) for n in types)
    tail += u64(receipt["aux_output_count"]) + u64(receipt["cached_input_count"])
    return head + text(receipt["body_hash"]) + tail


def body_hash(parts: Sequence[bytes]) -> str:
    """SHA-256 of the content in order, lowercase hex."""
    return hashlib.sha256(b"".join(parts)).hexdigest()


# --- sealing (§4.4, §4.5)


def new_reply_key() -> tuple[str, str]:
    """A fresh X25519 identity: (secret, recipient)."""
    identity = pyrage.x25519.Identity.generate()
    return str(identity), str(identity.to_public())


def is_recipient(value: object) -> bool:
    """Whether it is an age X25519 recipient."""
    try:
        pyrage.x25519.Recipient.from_str(value)
    except (pyrage.RecipientError, TypeError):
        return False
    return True


def age_seal(recipient: str, plaintext: bytes) -> bytes:
    """age v1, binary."""
    sealed: bytes = pyrage.encrypt(plaintext, [pyrage.x25519.Recipient.from_str(recipient)])
    return sealed


def age_open(secret: str, sealed: bytes) -> bytes:
    """Malformed where it does not open."""
    try:
        opened: bytes = pyrage.decrypt(sealed, [pyrage.x25519.Identity.from_str(secret)])
    except pyrage.DecryptError:
        raise Malformed("age does not open") from None
    return opened


def seal(key: bytes, plaintext: bytes, aad: bytes) -> bytes:
    """Nonce, ciphertext, tag."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, plaintext, aad)


def unseal(key: bytes, sealed: bytes, aad: bytes) -> bytes:
    """Malformed where it does not open under this AAD."""
    try:
        return ChaCha20Poly1305(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], aad)
    except (InvalidTag, ValueError):
        raise Malformed("sealed bytes do not open") from None


def body_aad(tx_id: str, ticket_id: str) -> bytes:
    """For a whole body."""
    return b"\0".join((b"zs", b"body", tx_id.encode(), ticket_id.encode()))


def frame_aad(tx_id: str, ticket_id: str, index: int) -> bytes:
    """For content and the receipt of a stream."""
    return b"\0".join((b"zs", b"frame", tx_id.encode(), ticket_id.encode(), u64(index)))


def header_aad(tx_id: str, ticket_id: str, name: str) -> bytes:
    """For ``receipt`` or ``settle-group``."""
    return b"\0".join((b"zs", b"hdr", tx_id.encode(), ticket_id.encode(), name.encode()))


def admission_tag(key: bytes, ticket_id: str, tx_id: str, body: bytes) -> bytes:
    """32 bytes: who holds K binds the ticket, the payment and the body."""
    ids = b"zs-admission-v1\0" + ticket_id.encode() + b"\0" + tx_id.encode() + b"\0"
    return hmac.new(key, ids + hashlib.sha256(body).digest(), hashlib.sha256).digest()


def request_frame(header: bytes, body: bytes) -> bytes:
    """The plaintext of a sealed request."""
    return MAGIC + b"\x01" + len(header).to_bytes(4, "big") + header + body


def parse_request_frame(frame: bytes) -> tuple[dict[str, Any], bytes]:
    """(header, body); Malformed for anything else. The tag, where there is one, must be 32 bytes."""
    if len(frame) < 9 or frame[:5] != MAGIC + b"\x01":
        raise Malformed("no zsrq frame of version 1")
    length = int.from_bytes(frame[5:9], "big")
    if length > HEADER_LIMIT or 9 + length > len(frame):
        raise Malformed("the frame's header runs past its end")
    header = document(frame[9 : 9 + length])
    if "admission_tag" in header and len(unb64(header["admission_tag"])) != 32:
        raise Malformed("an admission tag is 32 bytes")
    return header, frame[9 + length :]


def tx_id(of: bytes) -> str:
    """52 characters: unpadded base32 of a SHA-256 (§6)."""
    return base64.b32encode(hashlib.sha256(of).digest()).decode().rstrip("=")
