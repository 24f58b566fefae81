"""Bodies in and out of the control server: bounded JSON, one shape for what went wrong."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from relaydesk.core.codec import encode, fault_of, fault_view, schema_fingerprint, to_builtins
from relaydesk.core.commands import Outcome
from relaydesk.core.errors import Fault, LocalError
from relaydesk.surfaces.control.routes import SCHEMA_HEADER


def answer(record: Any, status: int = 200) -> web.Response:
    """A record as JSON, with a line end for people who use curl."""
    return web.Response(
        body=encode(record) + b"\n",
        status=status,
        content_type="application/json",
        headers={SCHEMA_HEADER: schema_fingerprint(), "Cache-Control": "no-store"},
    )


def failed(fault: Fault) -> web.Response:
    """What went wrong, with the status of its code."""
    return answer({"error": to_builtins(fault_view(fault))}, fault.rule.status)


def outcome_answer(outcome: Outcome) -> web.Response:
    """What came of a command: the outcome, and ``error`` beside it where it failed."""
    body = to_builtins(outcome)
    if outcome.ok:
        return answer(body)
    if outcome.fault is None:
        return answer(body, 500)
    return answer({**body, "error": body["fault"]}, fault_of(outcome.fault).rule.status)


async def read_object(request: web.Request) -> dict[str, Any]:
    """The request's body as a JSON object; none at all counts as an empty one.

    Raises `LocalError` ``invalid_json`` or ``invalid_request``. Too long a body is aiohttp's 413.
    """
    data = await request.read()
    if not data.strip():
        return {}
    try:
        value: Any = msgspec.json.decode(data)
    except RecursionError:
        raise LocalError("invalid_json", "the body is nested too deep", "send one JSON object") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise LocalError("invalid_json", f"the body is not JSON ({error})", "send one JSON object") from None
    if not isinstance(value, dict):
        raise LocalError("invalid_request", "the body must be a JSON object", "send {…}")
    return value


def text_field(body: dict[str, Any], name: str) -> str:
    """A field that must be a string where it is present; empty where it is not."""
    value = body.get(name, "")
    if not isinstance(value, str):
        raise LocalError("invalid_request", f"{name} must be a string", param=name)
    return value


def refuse_unknown(body: dict[str, Any], allowed: frozenset[str], what: str) -> None:
    """Raise `LocalError` ``invalid_request`` for the first field that ``what`` does not have."""
    for name in body:
        if name not in allowed:
            raise LocalError(
                "invalid_request",
                f"{what} has no field {name!r}",
                f"choose out of {', '.join(sorted(allowed))}" if allowed else "send no fields",
                param=str(name)[:64],
            )
