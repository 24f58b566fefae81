from __future__ import annotations

import struct

import msgspec
import pytest

from relaydesk.core.ledger.ask import read_ask
from relaydesk.core.ledger.refusal import LedgerRefusal
from tests.support.ledger_rig import ANN, BOB, REF, Key, text

NOW = 1_700_000_000


def ask(key: Key = ANN, at: int = NOW, node: int = REF.node, after: int = 3) -> bytes:
    data = b"relaydesk-ledger-v1\0" + text("statement") + text(ANN.address)
    data += struct.pack(">QQQq", REF.operator, node, after, at)
    body = {"want": "statement", "payer": ANN.address, "operator": REF.operator, "node": node}
    return msgspec.json.encode(body | {"after": after, "issued_at": at, "sig": key.sig(data)})


def test_a_question() -> None:
    found = read_ask(ask(), REF, NOW)
    assert (found.payer, found.want, found.after, found.settle) == (ANN.address, "statement", 3, [])


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (ask(BOB), "bad_signature"),
        (ask(at=NOW - 91), "expired"),
        (ask(at=NOW + 31), "expired"),
        (ask(node=9), "bad_record"),
        (ask().replace(b'"after":3', b'"after":4'), "bad_signature"),
        (ask().replace(b"statement", b"everything"), "bad_record"),
        (b"[", "bad_record"),
    ],
)
def test_what_is_refused(body: bytes, code: str) -> None:
    with pytest.raises(LedgerRefusal) as caught:
        read_ask(body, REF, NOW)
    assert caught.value.code == code
