"""Directories, records and certificates written from the design alone, by `cryptography` and `json`.

Nothing of ours signs here, so that what our code takes is not only what our code makes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

NOW: Final = 1_700_000_000
DAY: Final = 86_400


@dataclass(frozen=True)
class Key:
    """A key by the name that it is made of."""

    name: str

    @property
    def seed(self) -> bytes:
        return hashlib.sha256(self.name.encode()).digest()

    @property
    def private(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.seed)

    @property
    def public(self) -> bytes:
        return self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    @property
    def address(self) -> str:
        check = hashlib.new("sha512_256", self.public).digest()[-4:]
        return base64.b32encode(self.public + check).decode().rstrip("=")

    @property
    def operator(self) -> int:
        """Our operator id of an owner key."""
        return int(hashlib.sha256(self.public).hexdigest()[:14], 16) >> 3

    def seal(self, what: str, payload: Any) -> dict[str, str]:
        """An envelope: ``what`` is directory, record or certificate."""
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        digest = hashlib.sha256(f"relaydesk-{what}-v1\0".encode() + data).digest()
        signature = base64.b64encode(self.private.sign(digest)).decode()
        return {"payload": base64.b64encode(data).decode(), "key": self.address, "sig": signature}


ANN, BOB, EVE = Key("ann"), Key("bob"), Key("eve")
KEEPER, OTHER = Key("keeper"), Key("other keeper")


def node_key(owner: Key, node: int = 0) -> Key:
    """The signing key of an owner's node."""
    return Key(f"{owner.name}/{node}")


def certificate(owner: Key, node: int = 0, signer: Key | None = None, **changes: Any) -> dict[str, str]:
    """An owner's certificate for its node's key."""
    payload = {
        "owner": owner.address,
        "node_id": node,
        "signing": node_key(owner, node).address,
        "issued_at": NOW - DAY,
        "expires_at": NOW + 30 * DAY,
    }
    return (signer or owner).seal("certificate", payload | changes)


def record(
    owner: Key,
    node: int = 0,
    *,
    signer: Key | None = None,
    cert: dict[str, str] | None = None,
    **changes: Any,
) -> dict[str, str]:
    """A node's record, signed by its own key unless said otherwise."""
    payload = {
        "operator_id": owner.operator,
        "node_id": node,
        "version": 1,
        "issued_at": NOW - 60,
        "base_url": f"https://{owner.name}{node}.example.org",
        "staging": False,
        "status": "active",
        "certificate": certificate(owner, node) if cert is None else cert,
    }
    return (signer or node_key(owner, node)).seal("record", payload | changes)


def document(
    keeper: Key = KEEPER,
    *,
    admits: tuple[Key, ...] = (ANN, BOB),
    evicts: tuple[Key, ...] = (),
    records: list[dict[str, str]] | None = None,
    signer: Key | None = None,
    **changes: Any,
) -> bytes:
    """A directory as JSON."""
    operators = [{"owner": each.address, "status": "active", "name": each.name} for each in admits]
    operators += [{"owner": each.address, "status": "evicted"} for each in evicts]
    payload = {
        "name": "test",
        "version": 7,
        "issued_at": NOW - 3600,
        "expires_at": NOW + 3600,
        "operators": operators,
        "records": [record(each) for each in admits] if records is None else records,
    }
    return json.dumps(
        (signer or keeper).seal("directory", payload | changes) | {"key": keeper.address}
    ).encode()
