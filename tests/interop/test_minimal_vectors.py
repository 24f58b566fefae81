"""The minimal ones' bytes are the network's: its vectors, read from the folder of ``RELAYDESK_VECTORS``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.wire import codec

VECTORS = Path(os.environ.get("RELAYDESK_VECTORS") or ".none") / "vectors.json"
if not VECTORS.exists():
    pytest.skip("RELAYDESK_VECTORS names no folder of vectors", allow_module_level=True)

CANONICAL: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "ticket": lambda one: codec.ticket_bytes(one["value"]),
    "receipt": lambda one: codec.receipt_bytes(one["value"]),
    "ephemeral_advertisement": lambda one: codec.ephemeral_bytes(
        one["operator_id"], one["node_id"], one["value"]
    ),
    "reserve_request": lambda one: codec.reserve_bytes(one["operator_id"], one["node_id"], one["value"]),
}
HASHED: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "aad_body_with_ticket": lambda one: codec.body_aad(one["tx_id"], one["ticket_id"]),
    "aad_body_no_ticket": lambda one: codec.body_aad(one["tx_id"], one["ticket_id"]),
    "aad_frame": lambda one: codec.frame_aad(one["tx_id"], one["ticket_id"], one["frame_index"]),
    "aad_header_receipt": lambda one: codec.header_aad(one["tx_id"], one["ticket_id"], one["name"]),
    "aad_header_settle_group": lambda one: codec.header_aad(one["tx_id"], one["ticket_id"], one["name"]),
    "admission_tag": lambda one: codec.admission_tag(
        bytes.fromhex(one["k_hex"]), one["ticket_id"], one["tx_id"], bytes.fromhex(one["body_hex"])
    ),
    "body_hash_single": lambda one: bytes.fromhex(codec.body_hash([bytes.fromhex(one["body_hex"])])),
    "body_hash_frames": lambda one: bytes.fromhex(
        codec.body_hash([bytes.fromhex(f) for f in one["frames_hex"]])
    ),
}


@pytest.mark.parametrize("name", CANONICAL)
def test_canonical_bytes_are_the_networks(name: str) -> None:
    one = json.loads(VECTORS.read_text())[name]
    assert CANONICAL[name](one).hex() == one["canonical_bytes_hex"]


@pytest.mark.parametrize("name", HASHED)
def test_other_bytes_are_the_networks(name: str) -> None:
    one = json.loads(VECTORS.read_text())[name]
    assert HASHED[name](one).hex() == one["expected_hex"]


def test_addresses_prices_and_commitments_are_the_networks() -> None:
    every = json.loads(VECTORS.read_text())
    one = every["algorand_address"]
    assert codec.address(bytes.fromhex(one["pubkey_hex"])) == one["expected_address"]
    assert codec.public_key(one["expected_address"]).hex() == one["pubkey_hex"]
    assert every["ticket"]["value"]["commit_k"] == codec.b64(
        bytes.fromhex(every["commit_response_key"]["expected_hex"])
    )
