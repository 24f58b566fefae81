"""Every error of the network, in every dialect, says what to do next."""

from __future__ import annotations

import json

import pytest

from relaydesk.core.errors import ERRORS, Fault
from relaydesk.core.gateway.dialect import dialect_reply
from relaydesk.core.gateway.network_faults import _STEPS, with_step
from relaydesk.core.gateway.responses.errors import error_members

# The caller-made rows of the wire's catalogue (§1.5) with the statuses it gives them.
CATALOGUE = {
    400: ("max_output_required", "price_ceiling_exceeded", "pin_conflicts_with_continuation"),
    402: ("credit_missing", "payment_verification_failed"),
    403: ("payer_not_opted_in", "free_quota_exhausted"),
    502: (
        "ticket_price_rejected",
        "proxy_error",
        "operator_unsealed_response",
        "operator_inconsistent_response",
        "response_handler",
        "upstream_unreachable",
    ),
    503: (
        "no_relay_available",
        "no_operator",
        "no_compatible_operator",
        "no_ephemeral_capacity",
        "operators_busy",
        "operators_unreachable",
        "no_production_operator",
        "no_funded_operator",
        "no_tee_capacity",
        "no_pinned_operator",
        "no_tool_capacity",
    ),
}
ROWS = [(status, code) for status, codes in CATALOGUE.items() for code in codes]
WAITING = {"operators_unreachable": 60, "no_relay_available": 30, "operators_busy": 2}


def test_the_table_is_the_catalogue() -> None:
    assert set(_STEPS) == {code for _, code in ROWS}


@pytest.mark.parametrize(("status", "code"), ROWS)
def test_a_step_in_every_dialect(status: int, code: str) -> None:
    fault = with_step(Fault(code, "it did not go"))
    assert fault.hint
    kinds = {402: "billing_error", 403: "permission_error", 400: "invalid_request_error"}
    late = "overloaded_error" if status == 503 and ERRORS[code].retry else "api_error"
    for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"):
        reply = dialect_reply(path, fault)
        body = json.loads(reply.body)
        assert reply.status == status, "nobody says 504 here"
        said = body["error"] if path == "/api/chat" else body["error"]["message"]
        assert said == f"it did not go: {fault.hint}"
        if path == "/v1/messages":
            assert body["type"] == "error"
            assert body["error"]["type"] == kinds.get(status, late)
        elif path != "/api/chat":
            assert body["error"]["code"] == code
            assert body["error"]["type"] == ERRORS[code].type
        assert reply.headers.get("x-should-retry") == (None if ERRORS[code].retry else "false")
        if code in WAITING:
            assert reply.headers["Retry-After"] == str(WAITING[code])
    members = json.loads(b"{" + error_members(fault) + b"}")
    assert (members["code"], members["error"]["code"]) == (code, code)


def test_what_is_known_better_stays() -> None:
    fault = Fault("operators_busy", "m", "h", "p", 7)
    assert with_step(fault) == fault
    other = Fault("engine_failed", "m")
    assert with_step(other) == other
