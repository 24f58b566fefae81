from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.ledger.voucher import VoucherCode, parse_code
from relaydesk.core.relay.ref import NodeRef

U64 = st.integers(0, 2**64 - 1)


@given(U64, U64, st.binary(min_size=20, max_size=20))
def test_codes_and_back(operator: int, node: int, secret: bytes) -> None:
    code = VoucherCode(NodeRef(operator, node), secret)
    assert parse_code(f" {code.text.upper()}\n") == code
    assert code.id == hashlib.sha256(b"relaydesk-voucher-code-v1\0" + secret).hexdigest()
    assert code.text not in repr(code)
    assert repr(secret) not in repr(code)


@given(st.text(max_size=60) | st.from_regex(r"rdv1\.[0-9]{1,21}\.[0-9]{1,21}\.[a-z0-9]{30,34}"))
def test_anything_else_is_no_code(text: str) -> None:
    try:
        found = parse_code(text)
    except ValueError:
        return
    assert parse_code(found.text) == found


@pytest.mark.parametrize(
    "text", ["", "rdv1.1.1." + "a" * 31, f"rdv1.{2**64}.1." + "a" * 32, "rdv1.١.1." + "a" * 32]
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="no voucher"):
        parse_code(text)
