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
    old = VoucherCode(code.ref, secret, old=True)
    assert old.text.startswith("rdv1.")
    assert parse_code(old.text) == old
    assert old.id == code.id
    assert code.id == hashlib.sha256(b"relaydesk-voucher-code-v1\0" + secret).hexdigest()
    assert code.text not in repr(code)
    assert repr(secret) not in repr(code)


@given(st.text(max_size=60) | st.from_regex(r"rdv[12]\.[0-9]{1,21}\.[0-9]{1,21}\.[a-z0-9]{30,40}"))
def test_anything_else_is_no_code(text: str) -> None:
    try:
        found = parse_code(text)
    except ValueError:
        return
    assert parse_code(found.text) == found


@given(U64, U64, st.binary(min_size=20, max_size=20), st.data())
def test_a_mistyped_code_is_refused(operator: int, node: int, secret: bytes, data: st.DataObject) -> None:
    """One character instead of another, or two neighbours that changed places."""
    good = VoucherCode(NodeRef(operator, node), secret).text
    at = data.draw(st.integers(5, len(good) - 2))
    other = data.draw(st.sampled_from("234567" if good[at].isdigit() else "abcdefghijklmnopqrstuvwxyz"))
    for wrong in (
        good[:at] + other + good[at + 1 :],
        good[:at] + good[at + 1] + good[at] + good[at + 2 :],
        good[:-6],
        good.replace("rdv2", "rdv1"),
    ):
        if wrong != good:
            with pytest.raises(ValueError, match="voucher code") as caught:
                parse_code(wrong)
            assert good[-38:] not in str(caught.value)


def test_which_of_the_two_is_wrong_is_said() -> None:
    good = VoucherCode(NodeRef(12, 1), bytes(20)).text
    with pytest.raises(ValueError, match="mistyped"):
        parse_code(good.replace("12", "21"))
    with pytest.raises(ValueError, match="not all of it"):
        parse_code(good[:-1])


@pytest.mark.parametrize(
    "text", ["", "rdv1.1.1." + "a" * 31, f"rdv1.{2**64}.1." + "a" * 32, "rdv1.١.1." + "a" * 32]
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="no voucher"):
        parse_code(text)
