"""`relaydesk operators`: what the node is asked, what people read, and keys and certificates as files."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from relaydesk.core.commands import (
    BlockOperator,
    ForgetOperator,
    ImportCertificate,
    ShowOperators,
    TrustOperator,
)
from relaydesk.core.relay.address import decode_address
from relaydesk.core.relay.directory.certificate import read_certificate
from relaydesk.core.relay.directory.signing_key import parse_key
from tests.support.directory_world import ANN, BOB, EVE

OWN = {
    "operator": "12",
    "node": 0,
    "owner": ANN.address,
    "signing": BOB.address,
    "self_certified": True,
    "certificate_expires_ms": 0,
}
NODE = {"node": 3, "base_url": "https://e.example.org", "standing": "unknown", "why": "nobody admits it"}
SHOWN = {
    "own": OWN,
    "operators": [
        {"operator": "77", "owner": EVE.address, "name": "eve", "choice": "", "nodes": [NODE]},
        {"operator": "78", "owner": BOB.address, "name": "", "choice": "blocked", "nodes": []},
    ],
    "more": 2,
}


def test_list_shows_who_is_who(cli: Any, node: Any) -> None:
    node.answer(ShowOperators, SHOWN)
    done = cli("operators", "list")
    assert done.code == 0
    for text in (
        "12:0",
        ANN.address,
        BOB.address,
        "the key is kept here",
        "77:3",
        "unknown",
        "blocked",
        "2 more",
    ):
        assert text in done.out, text
    assert cli("operators", "list", "--json").json == SHOWN


def test_list_of_an_empty_network(cli: Any, node: Any) -> None:
    node.answer(ShowOperators, {"own": OWN, "operators": [], "more": 0})
    assert "RELAY_DIRECTORIES" in cli("operators", "list").out


def test_hostile_text_of_a_directory_is_shown_safely(cli: Any, node: Any) -> None:
    hostile = {**NODE, "base_url": "\x1b[2Jx", "why": "\u202ey"}
    operator = {"operator": "7", "owner": EVE.address, "name": "\x1b]0;z", "choice": ""}
    node.answer(ShowOperators, {"own": OWN, "operators": [{**operator, "nodes": [hostile]}]})
    out = cli("operators", "list").out
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_decisions(cli: Any, node: Any) -> None:
    for kind in (TrustOperator, BlockOperator, ForgetOperator):
        node.answer(kind, {"operator": "77", "owner": EVE.address, "name": "eve", "eligible": 1})
    assert "1 of its nodes can be used" in cli("operators", "trust", EVE.address).out
    assert "operator eve (77) is blocked" in cli("operators", "block", EVE.address).out
    assert cli("operators", "forget", EVE.address).code == 4
    assert cli("operators", "forget", EVE.address, "--yes").code == 0
    assert node.seen == [TrustOperator(EVE.address), BlockOperator(EVE.address), ForgetOperator(EVE.address)]


def test_an_owner_key_is_made_offline_and_never_over_another(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "owner.key"
    made = cli("operators", "init", "--out", file, "--json")
    key = parse_key(file.read_text(), "owner")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert made.json["owner"] == key.address
    assert key.text() not in made.out + made.err
    again = cli("operators", "init", "--out", file)
    assert again.code == 1
    assert parse_key(file.read_text(), "owner") == key


def test_a_certificate_is_made_offline(cli: Any, tmp_path: Path) -> None:
    key, out = tmp_path / "owner.key", tmp_path / "node.json"
    owner = cli("operators", "init", "--out", key, "--json").json["owner"]
    options = ("--key", key, "--node", "4", "--days", "30", "--out", out)
    done = cli("operators", "certify", BOB.address, *options)
    assert done.code == 0
    assert "--import" in done.err
    found = read_certificate(out.read_bytes(), int(time.time()))
    assert (found.owner, found.node_id, found.signing) == (owner, 4, BOB.address)
    assert found.expires_at - found.issued_at == 30 * 86_400
    Ed25519PublicKey.from_public_bytes(decode_address(owner))
    assert cli("operators", "certify", BOB.address, *options).code == 1
    on_stdout = cli("operators", "certify", BOB.address, "--key", key)
    assert read_certificate(on_stdout.out.encode(), int(time.time())).node_id == 0


def test_a_certificate_is_handed_over(cli: Any, node: Any, tmp_path: Path) -> None:
    file = tmp_path / "node.json"
    file.write_text("{}")
    node.answer(ImportCertificate, {"in_force": False})
    assert "restart" in cli("operators", "certify", "--import", file).out
    node.answer(ImportCertificate, {"in_force": True})
    assert cli("operators", "certify", "--import", file, "--json").json == {"in_force": True}
    assert node.seen == [ImportCertificate("{}")] * 2


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("certify",), 2),
        (("certify", BOB.address, "--import", "x"), 2),
        (("certify", BOB.address, "--key", "absent"), 1),
        (("certify", "--import", "absent"), 1),
        (("certify", BOB.address, "--days", "0"), 2),
        (("certify", BOB.address, "--node", "-1"), 2),
    ],
)
def test_misuse_is_a_sentence(cli: Any, args: tuple[str, ...], code: int) -> None:
    done = cli("operators", *args)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("relaydesk: ")


def test_a_key_that_is_none_and_an_address_that_is_none(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "k"
    file.write_bytes(b"\xff" * 9)
    assert cli("operators", "certify", BOB.address, "--key", file).code == 2
    file.write_text("x" * 20_000)
    assert cli("operators", "certify", BOB.address, "--key", file).code == 2
    cli("operators", "init", "--out", tmp_path / "o")
    done = cli("operators", "certify", "nobody", "--key", tmp_path / "o")
    assert done.code == 1
    assert json.dumps("nobody") not in done.err
