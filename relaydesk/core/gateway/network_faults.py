"""The next step for what goes wrong on the relay network, where who found it had none to say (wire §1.5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from relaydesk.core.errors import Fault

_RELAYS: Final = "see `relaydesk relays`"
_AGAIN: Final = "send the request again"
_PINS: Final = "loosen `provider` in the request"
_IGNORE: Final = f"{_AGAIN}; `provider.ignore` rules a node out"
_BALANCE: Final = "see `relaydesk ledger balance`"

_STEPS: Final[dict[str, str]] = {
    "max_output_required": "state max_tokens",
    "price_ceiling_exceeded": "raise provider.max_price, or leave it out",
    "pin_conflicts_with_continuation": _PINS,
    "no_relay_available": _RELAYS,
    "no_operator": "see the list at /v1/models",
    "no_compatible_operator": _RELAYS,
    "no_ephemeral_capacity": _AGAIN,
    "operators_busy": "try again shortly",
    "operators_unreachable": _RELAYS,
    "no_production_operator": "name another model of the list at /v1/models",
    "no_funded_operator": "name another model of the list at /v1/models",
    "no_tee_capacity": "leave X-Zs-Require-TEE out",
    "no_pinned_operator": _PINS,
    "no_tool_capacity": "leave tools out, or name another model",
    "ticket_price_rejected": _IGNORE,
    "credit_missing": "the operator of this hub redeems a voucher with `relaydesk ledger redeem CODE`",
    "payment_verification_failed": _BALANCE,
    "payer_not_opted_in": _BALANCE,
    "free_quota_exhausted": _BALANCE,
    "proxy_error": _AGAIN,
    "operator_unsealed_response": _IGNORE,
    "operator_inconsistent_response": _IGNORE,
    "response_handler": _AGAIN,
    "upstream_unreachable": _AGAIN,
}
# Seconds after which it may go better, for codes whose rule allows another try at all.
_WAITS: Final[dict[str, int]] = {
    "no_relay_available": 30,
    "no_ephemeral_capacity": 30,
    "operators_busy": 2,
    "operators_unreachable": 60,
    "upstream_unreachable": 2,
    "proxy_error": 2,
}


def with_step(fault: Fault) -> Fault:
    """``fault`` with a next step and a time to wait, as far as it has none."""
    return replace(
        fault,
        hint=fault.hint or _STEPS.get(fault.code, ""),
        retry_after=_WAITS.get(fault.code) if fault.retry_after is None else fault.retry_after,
    )
