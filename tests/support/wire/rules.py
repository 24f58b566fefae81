"""What a minimal target advertises, grants and admits, without the HTTP around it (§4, §5).

Written from the wire digest alone. It keeps the order of §4.6 and lies where ``lies`` says so.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.wire import codec, prices
from tests.support.wire.canned import Usage, Words
from tests.support.wire.lies import Document, Lies
from tests.support.wire.server import Seen

KEPT_S = 90  # how long a reply recipient is remembered


class Refusal(Exception):
    """A plain error answer."""

    def __init__(self, status: int, code: str, message: str = "no", **headers: str) -> None:
        super().__init__(code)
        self.status, self.code, self.message, self.headers = status, code, message, headers


class SealedRefusal(Exception):
    """An error after the payment: sealed, and its receipt is for nothing."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


@dataclass
class Held:
    """One ticket of this target's own store."""

    ticket: Document
    key: bytes
    recipient: str
    payer: str
    bound_version: int
    spent: bool = False
    tx_id: str = ""
    receipt: Document | None = None


class Rules:
    """One node of one operator. ``lies``: its knobs. ``words`` and ``usage``: what it answers and counts.

    Seen from outside: ``tickets`` (by id), ``headers`` (inner headers it opened), ``bodies`` (requests it
    opened), ``seen`` (requests as they arrived). ``rates`` are USD per million tokens: input, output.
    """

    def __init__(
        self,
        operator: int = 7,
        node: int = 1,
        *,
        model: str = "lab/tiny",
        rates: tuple[float, float] = (0.5, 2.0),
        window: int = 8192,
        fee_bps: int = 0,
        life_s: int = 300,
        proto_version: str = "9.10",
        now: Callable[[], float] = time.time,
        seed: bytes | None = None,
    ) -> None:
        """``life_s``: a ticket's. ``now``: seconds. ``seed``: of the signing key, random if None."""
        self.operator, self.node, self.model, self.window = operator, node, model, window
        self.rates, self.fee_bps, self.life_s, self.now = rates, fee_bps, life_s, now
        self.proto_version = proto_version
        self.key = Ed25519PrivateKey.from_private_bytes(seed or os.urandom(32))
        self.signing = codec.address(codec.public_of(self.key))
        self.owner = codec.address(hashlib.sha256(codec.public_of(self.key)).digest())
        self.lies, self.words, self.usage = Lies(), Words(), Usage()
        self.tickets: dict[str, Held] = {}
        self.headers: list[Document] = []
        self.bodies: list[bytes] = []
        self.seen: list[Seen] = []
        self.used: dict[str, float] = {}  # reply recipient -> when it was taken
        self.rotate()

    def rotate(self) -> None:
        """A new sealing key; the old one is gone at once."""
        self.secret, self.recipient = codec.new_reply_key()
        self.issued_at = int(self.now())

    def advertised(self) -> Document:
        """The details document, signed."""
        details: Document = {
            "operator_id": self.operator,
            "node_id": self.node,
            "owner_addr": self.owner,
            "signing_addr": self.signing,
            "ephemeral_age_pubkey": self.recipient,
            "ephemeral_issued_at": self.issued_at,
            "ephemeral_expiry": self.issued_at + 25 * 60,
            "models": [
                {
                    "id": self.model,
                    "input_rate_usd_per_1m": self.rates[0],
                    "output_rate_usd_per_1m": self.rates[1],
                    "context_window": self.window,
                    "max_output_tokens": self.window,
                }
            ],
            "oracle_source": "",
            "oracle_healthy": False,
            "min_charge_output_tokens": 1000,
            "version": "minimal",
            "proto_version": self.proto_version,
        }
        self.lies.ephemeral(details)
        signed = codec.ephemeral_bytes(self.operator, self.node, details)
        details["ephemeral_sig"] = codec.signature(self.key, signed)
        self.lies.details(details)
        return details

    def opened(self, body: bytes) -> bytes:
        """The plaintext of an envelope; Malformed."""
        envelope = codec.document(body)
        if set(envelope) != {"ciphertext"}:
            raise codec.Malformed("an envelope has one key")
        return codec.age_open(self.secret, codec.unb64(envelope["ciphertext"]))

    def check_reserve(self, asked: Document) -> None:
        """Refusal where it is not to have a ticket; nothing is kept then."""
        now = self.now()
        if not asked.get("payer_addr"):
            raise Refusal(400, "missing_payer_addr")
        try:
            codec.public_key(asked["payer_addr"])
        except codec.Malformed:
            raise Refusal(400, "invalid_payer_addr") from None
        counts = asked.get("input_count"), asked.get("max_output_count")
        if not all(isinstance(one, int) and one > 0 for one in counts) or "model" not in asked:
            raise Refusal(400, "invalid_reserve")
        if asked.get("input_bound_version", 1) not in (1, 2):
            raise Refusal(400, "invalid_reserve")
        if not codec.is_recipient(asked.get("proxy_recipient")):
            raise Refusal(400, "invalid_proxy_recipient")
        issued = asked.get("payer_issued_at", 0)
        fresh = issued <= now + 30 and now <= issued + 90
        signed = codec.reserve_bytes(
            self.operator, self.node, {"stream": False, "payer_issued_at": 0} | asked
        )
        if not fresh or not codec.is_signed(asked["payer_addr"], signed, asked.get("payer_sig")):
            raise Refusal(401, "invalid_payer_sig", f"node_time={int(now)}")
        if now - self.used.get(asked["proxy_recipient"], -math.inf) <= KEPT_S:
            raise Refusal(409, "reserve_replayed")
        if asked["model"] != self.model:
            raise Refusal(400, "unsupported_model")
        if asked["input_count"] + asked["max_output_count"] > self.window:
            raise Refusal(400, "context_length_exceeded")

    def ticket(self, asked: Document, key: bytes) -> Document:
        """Signed."""
        rates = [prices.rate(usd) for usd in self.rates]
        ticket: Document = {
            "ticket_id": codec.b64(os.urandom(16)),
            "operator_id": self.operator,
            "node_id": self.node,
            "input_count": asked["input_count"],
            "max_output_count": asked["max_output_count"],
            "input_rate": rates[0],
            "output_rate": rates[1],
            "min_price": prices.up(1000 * rates[1], prices.MILLION),
            "expires_at": int(self.now()) + self.life_s,
            "model": asked["model"],
            "stream": asked.get("stream", False),
            "commit_k": codec.b64(hashlib.sha256(key).digest()),
            "input_usage_type": 1,
            "output_usage_type": 1,
            "cache_read_rate": rates[0],
        }
        ticket["max_price"] = prices.max_price(ticket, self.fee_bps)
        self.lies.ticket(ticket)
        return ticket | {"sig": codec.signature(self.key, codec.ticket_bytes(ticket))}

    def admit(self, raw: bytes) -> tuple[Held, bytes]:
        """In the order of the wire; the ticket is spent where the payment is looked up, not before."""
        try:
            header, body = codec.parse_request_frame(self.opened(raw))
        except codec.Malformed as error:
            raise Refusal(400, "bad_envelope", str(error)) from None
        self.headers.append(header)
        if not header.get("ticket_id"):
            raise Refusal(402, "ticket_required")
        held = self.tickets.get(header["ticket_id"])
        if held is None or held.spent:
            raise Refusal(402, "ticket_invalid")
        tx_id = header.get("algorand_tx_id", "")
        tag = codec.admission_tag(held.key, header["ticket_id"], tx_id, body)
        if codec.b64(tag) != header.get("admission_tag"):
            raise Refusal(402, "admission_tag_invalid")
        if header.get("reply_to_public_key") != held.recipient:
            raise Refusal(402, "reply_to_mismatch")
        if self.now() > held.ticket["expires_at"]:
            raise Refusal(402, "ticket_invalid")
        held.spent, held.tx_id = True, tx_id
        if not self.lies.paid(tx_id, held.ticket, header):
            raise Refusal(402, "payment_verification_failed")
        self.bodies.append(body)
        return held, body

    def within(self, held: Held, body: bytes) -> Document:
        """The body, if it is what the ticket is for."""
        if self.lies.sealed_error is not None:
            raise SealedRefusal(*self.lies.sealed_error)
        try:
            asked = codec.document(body)
        except codec.Malformed:
            raise SealedRefusal(400, "model_mismatch") from None
        if asked.get("model") != held.ticket["model"]:
            raise SealedRefusal(400, "model_mismatch")
        if prices.input_bound(body) * 10 > held.ticket["input_count"] * 11:
            raise SealedRefusal(400, "input_budget_exceeded")
        return asked

    def receipt(self, held: Held, parts: list[bytes], status: int, took_ms: int) -> Document:
        """Signed; for nothing unless ``status`` is 200."""
        count_in, count_out, cached = self.usage.counts(self.words) if status == 200 else (0, 0, 0)
        receipt: Document = {
            "ticket_id": held.ticket["ticket_id"],
            "actual_input_count": count_in,
            "actual_output_count": count_out,
            "amount_charged": prices.charge(held.ticket, count_in, count_out, cached),
            "ttft_ms": took_ms,
            "decode_ms": 0,
            "body_hash": codec.body_hash(parts),
            "input_usage_type": 1,
            "output_usage_type": 1,
            "aux_output_usage_type": 0,
            "aux_output_count": 0,
            "cached_input_count": cached,
        }
        self.lies.receipt(receipt)
        receipt["sig"] = codec.signature(self.key, codec.receipt_bytes(receipt))
        self.lies.receipt_sent(receipt)
        return receipt
