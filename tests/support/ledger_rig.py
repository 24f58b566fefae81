"""A target's ledger over real files, and payers whose keys and signatures come from a second library."""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from relaydesk.core.ledger.extensions import ClaimRequest, OpenRequest, ProtestRequest
from relaydesk.core.ledger.records import Values
from relaydesk.core.ledger.terms import Policy, Terms
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.bus import Bus
from relaydesk.engine.ledger.ledger import Ledger
from tests.support.clock import FakeClock, FakeRng

REF = NodeRef(4_503_599_627_370_495, 2)
VALUES = Values(40, "ab" * 32, 120, 900, 10, 20, 1, 1, 0)


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">I", len(data)) + data


class Key:
    """An Ed25519 key by `cryptography`."""

    def __init__(self, name: str) -> None:
        self.seed = hashlib.sha256(name.encode()).digest()
        self._key = Ed25519PrivateKey.from_private_bytes(self.seed)
        public = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        check = hashes.Hash(hashes.SHA512_256())
        check.update(public)
        self.address = base64.b32encode(public + check.finalize()[-4:]).decode().rstrip("=")

    def sign(self, canonical: bytes) -> bytes:
        return self._key.sign(hashlib.sha256(canonical).digest())

    def sig(self, canonical: bytes) -> str:
        return base64.b64encode(self.sign(canonical)).decode()


NODE, OPERATOR = Key("node"), Key("operator")
ANN, BOB = Key("ann"), Key("bob")


def ticket_id(number: int) -> str:
    return base64.b64encode(hashlib.sha256(f"ticket {number}".encode()).digest()[:16]).decode()


def open_bytes(terms: Terms, ref: NodeRef = REF) -> bytes:
    """What an open record's signature is over, put together from docs/ledger.md."""
    return (
        b"relaydesk-open-v1\0"
        + base64.b64decode(terms.ticket_id)
        + struct.pack(">QQ", ref.operator, ref.node)
        + text(terms.payer)
        + struct.pack(">Qq", terms.max_price, terms.expires_at)
    )


def open_request(terms: Terms, key: Key, ref: NodeRef = REF) -> tuple[OpenRequest, str]:
    """`relaydesk_open` and the transaction's id."""
    data = open_bytes(terms, ref)
    tx_id = base64.b32encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    request = OpenRequest(
        terms.ticket_id,
        ref.operator,
        ref.node,
        terms.payer,
        terms.max_price,
        terms.expires_at,
        key.sig(data),
    )
    return request, tx_id


def claim_request(tx_id: str, ticket: str, values: Values, key: Key) -> ClaimRequest:
    """The payer's claim as an item of `relaydesk_settle`."""
    data = (
        b"relaydesk-claim-v1\0"
        + text(tx_id)
        + base64.b64decode(ticket)
        + text("payer")
        + struct.pack(">Q", values.amount)
        + text(values.receipt_digest)
        + struct.pack(">QQQQ", values.ttft_ms, values.decode_ms, values.input_count, values.output_count)
        + bytes((values.input_usage_type, values.output_usage_type, values.aux_output_usage_type))
    )
    fields: dict[str, Any] = {name: getattr(values, name) for name in Values.__struct_fields__}
    return ClaimRequest(tx_id=tx_id, ticket_id=ticket, **fields, sig=key.sig(data))


def protest_request(tx_id: str, ticket: str, key: Key, body_hash: str = "cd" * 32) -> ProtestRequest:
    """The payer's protest as an item of `relaydesk_settle`."""
    data = b"relaydesk-protest-v1\0" + text(tx_id) + base64.b64decode(ticket) + bytes((1,)) + text(body_hash)
    return ProtestRequest(tx_id, ticket, 1, body_hash, key.sig(data))


class LedgerRig:
    """Ledgers over one file; `start` again is a restart, without a stop before as after a kill."""

    def __init__(self, directory: Path, seed: str = "") -> None:
        self.path = directory / "ledger.db"
        self.clock = FakeClock()
        self.rng = FakeRng(seed)
        self.bus = Bus()
        self.policy: Callable[[], Policy] = Policy
        self.started: list[Ledger] = []
        self.numbers = 0

    async def start(self) -> Ledger:
        ledger = Ledger(
            self.path,
            REF,
            NODE,
            self.clock,
            self.rng,
            self.bus,
            operator=OPERATOR,
            policy=lambda: self.policy(),
            busy_s=0.2,
        )
        await ledger.start()
        self.started.append(ledger)
        return ledger

    async def close(self) -> None:
        for ledger in self.started:
            await ledger.close()

    def terms(self, payer: Key, max_price: int = 100, life_s: int = 300) -> Terms:
        self.numbers += 1
        expires_at = self.clock.wall_ms() // 1000 + life_s
        return Terms(ticket_id(self.numbers), payer.address, "smollm2", max_price, expires_at)

    async def credit(self, ledger: Ledger, payer: Key, amount: int) -> None:
        await ledger.redeem(payer.address, await ledger.issue(amount))

    async def open(self, ledger: Ledger, payer: Key, max_price: int = 100) -> tuple[str, Terms]:
        terms = self.terms(payer, max_price)
        request, tx_id = open_request(terms, payer)
        assert (await ledger.open_(terms, request, tx_id)).tx_id == tx_id
        return tx_id, terms
