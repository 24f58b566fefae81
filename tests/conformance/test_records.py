"""The network's published vectors: signed bytes, AADs, tags, hashes, and the ends of streams.

They are read from the folder of ``RELAYDESK_VECTORS`` and are no part of this project.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relaydesk.core.relay.address import decode_address, encode_address
from relaydesk.core.relay.records.canonical import b64, digest
from relaydesk.core.relay.records.ephemeral import ephemeral_bytes
from relaydesk.core.relay.records.receipt import decode_receipt, receipt_bytes, receipt_digest
from relaydesk.core.relay.records.reserve import decode_reserve, reserve_bytes
from relaydesk.core.relay.records.ticket import decode_ticket, ticket_bytes
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.sealed.aad import body_aad, frame_aad, header_aad
from relaydesk.core.relay.sealed.admission import admission_tag
from relaydesk.core.relay.sealed.box import Exchange
from relaydesk.core.relay.sealed.response_key import commit_key
from relaydesk.core.relay.sealed.stream import Sealer
from relaydesk.core.relay.sealed.terminal import terminal

_FOLDER = Path(os.environ.get("RELAYDESK_VECTORS") or "nowhere")
if not (_FOLDER / "vectors.json").is_file() or not (_FOLDER / "stream_vectors.json").is_file():
    pytest.skip("RELAYDESK_VECTORS names no folder with the network's vectors", allow_module_level=True)

VECTORS: dict[str, Any] = json.loads((_FOLDER / "vectors.json").read_text())
FRAMES: list[dict[str, Any]] = json.loads((_FOLDER / "stream_vectors.json").read_text())["frames"]


def signed(name: str, made: bytes) -> None:
    assert made.hex() == VECTORS[name]["canonical_bytes_hex"]
    assert digest(made).hex() == VECTORS[name]["sig_digest_hex"]


def json_of(name: str) -> bytes:
    return json.dumps(VECTORS[name]["value"]).encode()


def ref_of(name: str) -> NodeRef:
    return NodeRef(VECTORS[name]["operator_id"], VECTORS[name]["node_id"])


def test_nothing_was_left_out() -> None:
    assert set(VECTORS) == {
        "version", "comment", "aad_body_with_ticket", "aad_body_no_ticket", "aad_frame", "aad_header_receipt",
        "aad_header_settle_group", "admission_tag", "body_hash_single", "body_hash_frames",
        "commit_response_key", "ticket", "receipt", "ephemeral_advertisement", "reserve_request",
        "algorand_address",
    }  # fmt: skip
    assert len(FRAMES) == 39


@pytest.mark.parametrize("name", [name for name in VECTORS if name.startswith("aad_")])
def test_aad(name: str) -> None:
    said = VECTORS[name]
    if "frame_index" in said:
        made = frame_aad(said["tx_id"], said["ticket_id"], said["frame_index"])
    elif "name" in said:
        made = header_aad(said["tx_id"], said["ticket_id"], said["name"])
    else:
        made = body_aad(said["tx_id"], said["ticket_id"])
    assert made.hex() == said["expected_hex"]


def test_admission_tag() -> None:
    said = VECTORS["admission_tag"]
    key, body = bytes.fromhex(said["k_hex"]), bytes.fromhex(said["body_hex"])
    assert admission_tag(key, said["ticket_id"], said["tx_id"], body).hex() == said["expected_hex"]


def test_body_hash() -> None:
    single, frames = VECTORS["body_hash_single"], VECTORS["body_hash_frames"]
    assert hashlib.sha256(bytes.fromhex(single["body_hex"])).hexdigest() == single["expected_hex"]
    sealer = Sealer(Exchange(bytes(32), "TX", "T1"))
    for number, frame in enumerate(frames["frames_hex"]):
        sealer.content(bytes.fromhex(frame), bytes([number] * 12))
    assert sealer.body_hash == frames["expected_hex"]


def test_commitment() -> None:
    said = VECTORS["commit_response_key"]
    assert commit_key(bytes.fromhex(said["k_hex"])) == b64(bytes.fromhex(said["expected_hex"]))


def test_ticket() -> None:
    signed("ticket", ticket_bytes(decode_ticket(json_of("ticket"))))


def test_receipt() -> None:
    receipt = decode_receipt(json_of("receipt"))
    signed("receipt", receipt_bytes(receipt))
    assert receipt_digest(receipt).hex() == VECTORS["receipt"]["sig_digest_hex"]


def test_ephemeral() -> None:
    said = VECTORS["ephemeral_advertisement"]["value"]
    times = (said["ephemeral_issued_at"], said["ephemeral_expiry"])
    ref = ref_of("ephemeral_advertisement")
    signed("ephemeral_advertisement", ephemeral_bytes(ref, said["ephemeral_age_pubkey"], *times))


def test_reserve() -> None:
    request = decode_reserve(json_of("reserve_request"))
    signed("reserve_request", reserve_bytes(request, ref_of("reserve_request")))
    other = msgspec.structs.replace(request, image_n=1, input_bound_version=2)
    signed("reserve_request", reserve_bytes(other, ref_of("reserve_request")))


def test_address() -> None:
    said = VECTORS["algorand_address"]
    assert encode_address(bytes.fromhex(said["pubkey_hex"])) == said["expected_address"]
    assert decode_address(said["expected_address"]).hex() == said["pubkey_hex"]


@pytest.mark.parametrize("said", FRAMES, ids=lambda said: said["name"])
def test_ends_of_streams(said: dict[str, Any]) -> None:
    found = terminal(said["frame"].encode(), said["api"])
    assert (found.terminal, found.error, found.message) == (said["terminal"], said["error"], said["message"])
