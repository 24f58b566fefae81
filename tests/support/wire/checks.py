"""What a minimal client holds a target to (§4.2, §4.3, §4.8). Each raises Violation, named by the rule."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from tests.support.wire import codec, prices
from tests.support.wire.exchange import Answer, Reserved, Target, Violation


def check_details(details: Mapping[str, Any], target: Target, now: float) -> None:
    """Who it is, as the directory says, and a key that it signed and that is fresh."""
    said = details.get("operator_id"), details.get("node_id"), details.get("signing_addr")
    if said != (target.operator, target.node, target.signing):
        raise Violation("details: another node's")
    try:
        signed = codec.ephemeral_bytes(target.operator, target.node, details)
        issued, expiry = details["ephemeral_issued_at"], details["ephemeral_expiry"]
    except (KeyError, TypeError, AttributeError):
        raise Violation("details: no sealing key") from None
    if not codec.is_signed(target.signing, signed, details.get("ephemeral_sig")):
        raise Violation("details: signature")
    if issued > now + 60 or not 0 <= expiry - issued <= 40 * 60 or now > expiry + 60:
        raise Violation("details: window")


def check_ticket(
    reserved: Reserved, details: Mapping[str, Any], target: Target, fee_bps: int, now: float
) -> None:
    """What was asked, at an advertised price, signed, and its sums right."""
    ticket, asked = reserved.ticket, reserved.request
    try:
        signed = codec.ticket_bytes(ticket)
        raw_id = codec.unb64(ticket["ticket_id"])
    except (KeyError, TypeError, AttributeError, OverflowError, codec.Malformed):
        raise Violation("ticket: fields") from None
    rules = {
        "signature": codec.is_signed(target.signing, signed, ticket.get("sig")),
        "id": len(raw_id) == 16,
        "node": (ticket["operator_id"], ticket["node_id"]) == (target.operator, target.node),
        "model": ticket["model"] == asked["model"],
        "stream": ticket["stream"] == asked["stream"],
        "commit": ticket["commit_k"] == codec.b64(hashlib.sha256(reserved.key).digest()),
        "key": len(reserved.key) == 32,
        "expiry": ticket["expires_at"] > now,
        "usage": (ticket["input_usage_type"], ticket["output_usage_type"]) == (1, 1),
        "input count": ticket["input_count"] * 10 <= asked["input_count"] * 11,
        "output count": ticket["max_output_count"] <= asked["max_output_count"],
        "cache rate": ticket["cache_read_rate"] <= ticket["input_rate"],
        "max price": ticket["max_price"] == prices.max_price(ticket, fee_bps),
    }
    for name, holds in rules.items():
        if not holds:
            raise Violation(f"ticket: {name}")
    _check_rates(ticket, details)


def _check_rates(ticket: Mapping[str, Any], details: Mapping[str, Any]) -> None:
    """At most twice what is advertised; nothing where there is no reference."""
    model = next((one for one in details.get("models", []) if one.get("id") == ticket["model"]), None)
    if model is None:
        return
    threshold = model.get("long_context_threshold_tokens", 0)
    tier = "long_context_" if threshold > 0 and ticket["input_count"] >= threshold else ""
    for leg in ("input", "output"):
        advertised = prices.rate(model.get(f"{tier}{leg}_rate_usd_per_1m", 0))
        if ticket[f"{leg}_rate"] > 2 * advertised:
            raise Violation(f"ticket: {leg} rate")
    if ticket["min_price"] > 2 * prices.min_price(details, ticket["output_rate"]):
        raise Violation("ticket: min price")


def check_receipt(answer: Answer, target: Target) -> None:
    """Signed by the ticket's key, for these bytes, and a sum that follows from its counts."""
    receipt, ticket = answer.receipt, answer.reserved.ticket
    if receipt is None:
        raise Violation("no receipt", answer)
    try:
        signed = codec.receipt_bytes(receipt)
    except (KeyError, TypeError, AttributeError, OverflowError):
        raise Violation("receipt: fields", answer) from None
    counts = receipt["actual_input_count"], receipt["actual_output_count"], receipt["cached_input_count"]
    rules = {
        "signature": codec.is_signed(target.signing, signed, receipt.get("sig")),
        "ticket": receipt["ticket_id"] == answer.reserved.ticket_id,
        "body hash": receipt["body_hash"] == codec.body_hash(answer.chunks),
        "cached": counts[2] <= counts[0],
        "max price": receipt["amount_charged"] <= ticket["max_price"],
        "amount": receipt["amount_charged"] == prices.charge(ticket, *counts),
        "error for nothing": answer.error is None or receipt["amount_charged"] == 0,
    }
    for name, holds in rules.items():
        if not holds:
            raise Violation(f"receipt: {name}", answer)


def check_key(wrapped: str, answer: Answer) -> None:
    """Before anything else is read: the key is the one that the ticket commits to."""
    try:
        key = codec.age_open(answer.reserved.secret, codec.unb64(wrapped))
    except codec.Malformed:
        raise Violation("response key does not open", answer) from None
    if codec.b64(hashlib.sha256(key).digest()) != answer.reserved.ticket["commit_k"]:
        raise Violation("commit", answer)
