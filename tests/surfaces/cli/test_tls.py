"""`relaydesk tls renew-ca`."""

from __future__ import annotations

from typing import Any

from relaydesk.core.commands import RenewCa


def test_asks_and_says_who_must_be_told(cli: Any, node: Any) -> None:
    refused = cli("tls", "renew-ca")
    assert (refused.code, node.seen) == (4, [])
    assert "every client that trusts it must be given the new ca.pem" in refused.err
    node.answer(RenewCa, {"fingerprint": "AA:BB", "ca_path": "/s/tls/ca.pem", "new": 1})
    result = cli("tls", "renew-ca", "--yes")
    assert (result.code, node.seen) == (0, [RenewCa()])
    assert (
        "fingerprint  AA:BB\nCA file      /s/tls/ca.pem\nGive the new CA file to every client" in result.out
    )


def test_a_node_that_says_nothing(cli: Any, node: Any) -> None:
    assert cli("tls", "renew-ca", "--yes").out.startswith("Give the new CA file")
