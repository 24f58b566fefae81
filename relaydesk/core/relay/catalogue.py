"""The wire's errors (wire §1.5): what each code means on HTTP, its body, and reading the bodies of others.

A receiver goes by ``code`` alone. The wire gives one word for type and code, so ``type`` is the code, except
for what a caller's proxy makes of a broken answer, whose type is ``proxy_error``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from relaydesk.core.text import SafeText, safe_text

Place = Literal["relay", "reserve", "inference", "sealed", "details", "attestation", "caller", "ours"]
"""Where a code is spoken. ``inference`` is in plain text before the seal, ``sealed`` after it with a receipt
of cost 0, ``caller`` is never sent by a node, ``ours`` is not in the wire's table."""


@dataclass(frozen=True, slots=True)
class WireRule:
    """What a code is on HTTP. ``retry_after`` are the usual seconds of ``Retry-After``, None for none."""

    status: int
    type: str
    places: tuple[Place, ...]
    retry_after: int | None = None


def _rules(
    status: int, codes: str, *places: Place, type: str = "", after: int | None = None
) -> dict[str, WireRule]:
    return {code: WireRule(status, type or code, places, after) for code in codes.split()}


CATALOGUE: Final[dict[str, WireRule]] = {
    **_rules(400, "relay_bad_target relay_bad_path relay_bad_method", "relay"),
    **_rules(404, "relay_unknown_target", "relay"),
    **_rules(502, "relay_build_request relay_upstream_unreachable", "relay"),
    **_rules(503, "relay_busy", "relay", after=2),
    **_rules(415, "bad_content_type", "reserve"),
    **_rules(413, "reserve_body_too_large", "reserve"),
    **_rules(
        400,
        "bad_reserve_envelope invalid_reserve invalid_proxy_recipient missing_payer_addr invalid_payer_addr"
        " unsupported_model price_overflow",
        "reserve",
    ),
    **_rules(400, "context_length_exceeded", "reserve", "sealed"),
    **_rules(401, "invalid_payer_sig", "reserve"),
    **_rules(403, "payer_not_opted_in free_quota_exhausted", "reserve"),
    **_rules(409, "reserve_replayed", "reserve"),
    **_rules(429, "no_capacity", "reserve", after=2),
    **_rules(
        503,
        "provider_unavailable node_ephemeral_unavailable payer_optin_unavailable free_quota_unavailable",
        "reserve",
    ),
    **_rules(503, "node_draining", "reserve", "inference"),
    **_rules(400, "bad_envelope", "inference"),
    **_rules(
        402,
        "ticket_required ticket_invalid admission_tag_invalid reply_to_mismatch payment_verification_failed",
        "inference",
    ),
    **_rules(
        400,
        "model_mismatch input_budget_exceeded chain_reserve_insufficient image_budget_exceeded"
        " unknown_builtin_tool",
        "sealed",
    ),
    **_rules(403, "zero_data_retention_required upstream_privacy_required", "sealed"),
    # In place of a model server's own 429, 502, 503 or 504; this status where that was a 504.
    **_rules(503, "provider_overloaded", "sealed"),
    **_rules(503, "no_fresh_ephemeral", "details"),
    **_rules(404, "attestation_disabled", "attestation"),
    **_rules(503, "attestation_unavailable stale_attestation", "attestation"),
    **_rules(400, "invalid_nonce", "attestation"),
    **_rules(429, "attestation_rate_limited", "attestation"),
    **_rules(501, "nonce_unsupported", "attestation"),
    **_rules(
        503,
        "no_relay_available no_operator no_compatible_operator no_ephemeral_capacity operators_busy"
        " operators_unreachable no_production_operator no_funded_operator no_tee_capacity no_pinned_operator"
        " no_tool_capacity",
        "caller",
    ),
    **_rules(400, "max_output_required price_ceiling_exceeded pin_conflicts_with_continuation", "caller"),
    **_rules(502, "ticket_price_rejected", "caller"),
    **_rules(
        502,
        "proxy_error operator_unsealed_response operator_inconsistent_response response_handler"
        " upstream_unreachable",
        "caller",
        type="proxy_error",
    ),
    # What any HTTP server answers beside the wire's own. None of them is a 504: nobody here speaks that.
    **_rules(400, "bad_request", "ours"),
    **_rules(404, "not_found", "ours"),
    **_rules(405, "method_not_allowed", "ours"),
    **_rules(408, "request_timeout", "ours"),
    **_rules(413, "request_too_large", "ours"),
    **_rules(500, "internal_error", "ours"),
}

# Codes by which a relay says that it did not forward: the target never saw the request (wire §2.3, §2.5).
RELAY_REFUSALS: Final = frozenset(
    {"relay_bad_target", "relay_bad_path", "relay_bad_method", "relay_busy", "relay_unknown_target",
     "relay_build_request"}
)  # fmt: skip
UPSTREAM_UNREACHABLE: Final = "relay_upstream_unreachable"


class WireError(Exception):
    """A refusal to another node or its caller. Raises `ValueError` for a code the catalogue does not have.

    ``retry_after`` are seconds or None; ``node_time`` is the Unix time a payer must stamp anew with.
    """

    def __init__(
        self, code: str, message: str, *, retry_after: int | None = None, node_time: int | None = None
    ) -> None:
        rule = CATALOGUE.get(code)
        if rule is None:
            raise ValueError(f"unknown wire code {code!r}")
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = rule.status
        self.type = rule.type
        self.retry_after = rule.retry_after if retry_after is None else retry_after
        self.node_time = node_time

    def body(self) -> bytes:
        """The JSON of the answer."""
        return wire_error(self.code, self.message, self.node_time)


def wire_error(code: str, message: str, node_time: int | None = None) -> bytes:
    """``{"error": {message, type, code}}``. Raises `KeyError` for a code the catalogue does not have.

    ``node_time`` goes into the message and beside it: the wire does not say which of them is read (§8.1).
    """
    fields: dict[str, Any] = {"message": message, "type": CATALOGUE[code].type, "code": code}
    if node_time is not None:
        fields["message"] = f"{message} (node_time={node_time})"
        fields["node_time"] = node_time
    return msgspec.json.encode({"error": fields})


# Bodies of errors are short. A longer one is an answer of something else, and is not read.
MOST_ERROR_BYTES: Final = 64 * 1024
# Stands for a code that is there, but cannot be one: it must count as a code and equal none.
ODD_CODE: Final = "odd_code"
_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NODE_TIME: Final = re.compile(r"node_time=([0-9]{1,12})(?![0-9])")
_MOST_TIME: Final = 10**12


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """What somebody's error body says. ``code`` is empty where the body is none (wire §2.3)."""

    code: str
    message: SafeText
    node_time: int | None = None


NO_REPORT: Final = ErrorReport("", SafeText(""))


class _Body(msgspec.Struct):
    error: msgspec.Raw


def read_error(body: bytes) -> ErrorReport:
    """An error body of another node, or of what stands in front of it. Raises nothing.

    HTML, an empty body, a body that is too long and anything else without a code give an empty ``code``.
    A wrong type in one field does not lose the others.
    """
    if not body or len(body) > MOST_ERROR_BYTES:
        return NO_REPORT
    try:
        raw = msgspec.json.decode(body, type=_Body).error
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return NO_REPORT
    code = _value(fields, "code")
    message = _value(fields, "message")
    message = message if isinstance(message, str) else ""
    if not isinstance(code, str) or not code:
        return ErrorReport("", safe_text(message))
    code = code if _CODE.fullmatch(code) else ODD_CODE
    return ErrorReport(code, safe_text(message), _node_time(_value(fields, "node_time"), message))


def _value(fields: dict[str, msgspec.Raw], name: str) -> Any:
    """One scalar of the error, None where it is absent, something else or broken."""
    raw = fields.get(name)
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=str | int)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def _node_time(field: Any, message: str) -> int | None:
    if isinstance(field, int) and not isinstance(field, bool) and 0 <= field < _MOST_TIME:
        return field
    found = _NODE_TIME.search(message)
    return int(found[1]) if found else None
