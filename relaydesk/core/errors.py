"""One table of everything that can go wrong, and what each front makes of it.

A `Fault` is a value: a stable code, one sentence, and the next step. `ERRORS` maps the code to what
HTTP, the CLI and clients' retry logic need. Three exception families carry a fault where control flow
needs one: `LocalError` (misuse of ours), `PeerError` (a client, engine or other node broke the rules),
`EnvError` (disk, port, file, process).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Rule:
    """What a code means to each front.

    ``status`` is the HTTP status, ``exit`` the CLI's exit code (design §4), ``type`` OpenAI's error type,
    ``retry`` whether the same request may succeed later (false sends ``x-should-retry: false``).
    """

    status: int
    exit: int
    type: str
    retry: bool = False


_INVALID = "invalid_request_error"
_SERVER = "server_error"
_UNAVAILABLE = "model_unavailable"
_UNREACHED = "network_unavailable"
_PROXY = "proxy_error"

ERRORS: Final[dict[str, Rule]] = {
    # A client's request.
    "invalid_request": Rule(400, 2, _INVALID),
    "invalid_json": Rule(400, 2, _INVALID),
    "context_length_exceeded": Rule(400, 2, _INVALID),
    "unsupported": Rule(400, 2, _INVALID),
    "invalid_api_key": Rule(401, 4, "authentication_error"),
    "refused": Rule(403, 4, "permission_error"),
    "host_not_allowed": Rule(403, 1, "permission_error"),
    "not_found": Rule(404, 1, _INVALID),
    "model_not_found": Rule(404, 1, _INVALID),
    "key_not_found": Rule(404, 1, _INVALID),
    "request_not_found": Rule(404, 1, _INVALID),
    "method_not_allowed": Rule(405, 2, _INVALID),
    "request_timeout": Rule(408, 1, _INVALID, retry=True),
    "conflict": Rule(409, 1, _INVALID),
    "request_too_large": Rule(413, 2, _INVALID),
    "unsupported_media_type": Rule(415, 2, _INVALID),
    # The pool.
    "model_unavailable": Rule(503, 1, _UNAVAILABLE),
    "model_load_failed": Rule(503, 1, _UNAVAILABLE, retry=True),
    "model_load_timeout": Rule(503, 1, _UNAVAILABLE, retry=True),
    "model_unloaded": Rule(503, 1, _UNAVAILABLE, retry=True),
    "tokens_per_day_exceeded": Rule(429, 1, "insufficient_quota"),
    "requests_per_minute_exceeded": Rule(429, 1, "rate_limit_error", retry=True),
    "concurrency_exceeded": Rule(429, 1, "rate_limit_error", retry=True),
    "queue_full": Rule(429, 1, "rate_limit_error", retry=True),
    "engine_failed": Rule(502, 1, _SERVER, retry=True),
    "engine_rejected": Rule(400, 1, _INVALID),
    "shutting_down": Rule(503, 1, _SERVER, retry=True),
    "client_closed": Rule(499, 1, _SERVER),
    "internal_error": Rule(500, 1, _SERVER),
    "not_built": Rule(501, 1, _SERVER),
    # The relay network, as its callers meet it (wire §1.5).
    "max_output_required": Rule(400, 2, _INVALID),
    "price_ceiling_exceeded": Rule(400, 2, _INVALID),
    "pin_conflicts_with_continuation": Rule(400, 2, _INVALID),
    "no_relay_available": Rule(503, 1, _UNREACHED, retry=True),
    "no_operator": Rule(503, 1, _UNREACHED),
    "no_compatible_operator": Rule(503, 1, _UNREACHED),
    "no_ephemeral_capacity": Rule(503, 1, _UNREACHED, retry=True),
    "operators_busy": Rule(503, 1, _UNREACHED, retry=True),
    "operators_unreachable": Rule(503, 1, _UNREACHED, retry=True),
    "no_production_operator": Rule(503, 1, _UNREACHED),
    "no_funded_operator": Rule(503, 1, _UNREACHED),
    "no_tee_capacity": Rule(503, 1, _UNREACHED),
    "no_pinned_operator": Rule(503, 1, _UNREACHED),
    "no_tool_capacity": Rule(503, 1, _UNREACHED),
    "ticket_price_rejected": Rule(502, 1, _UNREACHED),
    "credit_missing": Rule(402, 1, "insufficient_quota"),
    "credit_per_day_exceeded": Rule(429, 1, "insufficient_quota"),
    "payment_verification_failed": Rule(402, 1, "insufficient_quota"),
    "payer_not_opted_in": Rule(403, 1, "permission_error"),
    "free_quota_exhausted": Rule(403, 1, "permission_error"),
    "proxy_error": Rule(502, 1, _PROXY, retry=True),
    "operator_unsealed_response": Rule(502, 1, _PROXY),
    "operator_inconsistent_response": Rule(502, 1, _PROXY),
    "response_handler": Rule(502, 1, _PROXY),
    "upstream_unreachable": Rule(502, 1, _PROXY, retry=True),
    # A directory, a record or a certificate that does not count.
    "directory_refused": Rule(400, 1, _INVALID),
    # This machine.
    "bad_setting": Rule(500, 2, _SERVER),
    "bad_model_file": Rule(400, 1, _INVALID),
    "pull_failed": Rule(502, 1, _SERVER, retry=True),
    "storage_failed": Rule(500, 1, _SERVER),
    "state_locked": Rule(500, 1, _SERVER),
    "port_in_use": Rule(500, 1, _SERVER),
    "tls_failed": Rule(500, 1, _SERVER),
    "secret_failed": Rule(500, 1, _SERVER),
    "no_node": Rule(503, 3, _SERVER),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that went wrong.

    ``message`` is one sentence, ``hint`` the next step (may be empty), ``param`` the request field or
    setting at fault, ``retry_after`` whole seconds after which a retry makes sense.
    """

    code: str
    message: str
    hint: str = ""
    param: str | None = None
    retry_after: int | None = None

    def __post_init__(self) -> None:
        if self.code not in ERRORS:
            raise ValueError(f"unknown error code {self.code!r}")

    @property
    def rule(self) -> Rule:
        """The table's row for this code."""
        return ERRORS[self.code]

    @property
    def sentence(self) -> str:
        """Message and next step as people read it."""
        return f"{self.message.rstrip('.')}: {self.hint}" if self.hint else self.message


class FaultError(Exception):
    """Base of the three families; ``fault`` says what happened."""

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        *,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        self.fault = Fault(code, message, hint, param, retry_after)
        super().__init__(self.fault.sentence)


class LocalError(FaultError):
    """A command, setting or call of ours that cannot be."""


class PeerError(FaultError):
    """A client, an engine or another node broke the rules or failed."""


class EnvError(FaultError):
    """The machine says no: disk, port, file, process, memory."""


def as_peer_error(fault: Fault) -> PeerError:
    """A fault of a client or an engine, ready to be raised."""
    return PeerError(fault.code, fault.message, fault.hint, param=fault.param, retry_after=fault.retry_after)


def raise_fault(fault: Fault) -> None:
    """Raise a fault that crossed a wire or a queue as a value."""
    raise LocalError(fault.code, fault.message, fault.hint, param=fault.param, retry_after=fault.retry_after)
