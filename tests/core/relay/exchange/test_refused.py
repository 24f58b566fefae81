from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.catalogue import CATALOGUE
from relaydesk.core.relay.exchange.refused import move, plain_fault, reserve_fault, sealed_fault
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.text import safe_text

REF = NodeRef(7, 1)
NONE = safe_text("")


@pytest.mark.parametrize(
    ("status", "code", "step"),
    [
        (401, "invalid_payer_sig", "restamp"),
        (400, "bad_reserve_envelope", "reseal"),
        (400, "bad_body", "reseal"),
        (409, "reserve_replayed", "renew"),
        (403, "payer_not_opted_in", "stop"),
        (403, "free_quota_exhausted", "stop"),
        (429, "no_capacity", "busy"),
        (503, "provider_unavailable", "unavailable"),
        (503, "node_draining", "unavailable"),
        (503, "node_ephemeral_unavailable", "unavailable"),
        (503, "payer_optin_unavailable", "unavailable"),
        (503, "free_quota_unavailable", "unavailable"),
        (400, "unsupported_model", "pass_over"),
        (400, "price_overflow", "pass_over"),
        (400, "invalid_reserve", "pass_over"),
        (413, "reserve_body_too_large", "pass_over"),
        (415, "bad_content_type", "pass_over"),
        (404, "", "pass_over"),
        # The code decides, not the status that a relay may have put on it.
        (200, "free_quota_exhausted", "stop"),
    ],
)
def test_moves_of_the_catalogue(status: int, code: str, step: str) -> None:
    assert move(status, code) == step


def test_every_refusal_of_a_reserve_has_a_move() -> None:
    codes = {code: rule for code, rule in CATALOGUE.items() if "reserve" in rule.places}
    assert {move(rule.status, code) for code, rule in codes.items()} == {
        "restamp", "reseal", "renew", "busy", "unavailable", "pass_over", "stop"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "code", "ours"),
    [
        (402, "payment_verification_failed", "payment_verification_failed"),
        (402, "ticket_required", "operator_inconsistent_response"),
        (402, "reply_to_mismatch", "operator_inconsistent_response"),
        (400, "bad_envelope", "operator_inconsistent_response"),
        (503, "node_draining", "operators_busy"),
        (503, "relay_busy", "operators_unreachable"),
        (404, "relay_unknown_target", "operators_unreachable"),
        (502, "relay_upstream_unreachable", "upstream_unreachable"),
        (504, "", "upstream_unreachable"),
    ],
)
def test_plain_refusals(status: int, code: str, ours: str) -> None:
    assert plain_fault(REF, status, code, NONE).code == ours


def test_the_targets_words_are_shown_and_decide_nothing() -> None:
    words = safe_text("payment_verification_failed: pay me")
    fault = reserve_fault(REF, 400, "unsupported_model", words)
    assert fault.code == "no_operator"
    assert "pay me" in fault.message
    assert "7:1" in fault.message


@pytest.mark.parametrize(
    ("status", "code", "ours", "said"),
    [
        (400, "unsupported_model", "no_operator", "the node at 7:1 no longer serves it"),
        (429, "no_capacity", "operators_busy", "has no room now (no_capacity)"),
        (429, "", "operators_busy", "has no room now (status 429)"),
        (503, "node_draining", "operators_busy", "is stopping"),
        (503, "provider_unavailable", "operators_busy", "takes no requests now"),
    ],
)
def test_a_refused_reserve_says_which_it_is(status: int, code: str, ours: str, said: str) -> None:
    fault = reserve_fault(REF, status, code, NONE)
    assert fault.code == ours
    assert said in fault.message


@given(st.integers(0, 599), st.binary(max_size=200))
def test_any_sealed_error_is_some_fault_of_ours(status: int, body: bytes) -> None:
    assert sealed_fault(REF, status, body).code


@pytest.mark.parametrize(
    ("code", "ours"),
    [
        ("provider_overloaded", "operators_busy"),
        ("context_length_exceeded", "context_length_exceeded"),
        ("upstream_privacy_required", "refused"),
        ("chain_reserve_insufficient", "operator_inconsistent_response"),
    ],
)
def test_sealed_errors(code: str, ours: str) -> None:
    body = json.dumps({"error": {"message": "no", "type": code, "code": code}}).encode()
    assert sealed_fault(REF, 0, body).code == ours
