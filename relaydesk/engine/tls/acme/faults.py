"""From what the ACME and HTTP libraries raise to one sentence and the next step."""

from __future__ import annotations

from typing import Final

import acme.errors
import requests
import urllib3.exceptions
from acme import messages

from relaydesk.core.errors import Fault, FaultError
from relaydesk.core.text import safe_text
from relaydesk.core.tls.problem import problem_code, problem_fault
from relaydesk.engine.tls.acme.plan import AcmePlan

_WAIT: Final = "see whether its address in RELAY_ACME_DIRECTORY is right; this is tried again"
_CLOCK_WORDS: Final = ("has expired", "not yet valid")
_TIMEOUTS: Final = (
    requests.exceptions.Timeout,
    urllib3.exceptions.TimeoutError,
    acme.errors.TimeoutError,
    TimeoutError,
)
_CONNECTION: Final = (
    requests.exceptions.ConnectionError,
    requests.exceptions.ChunkedEncodingError,
    urllib3.exceptions.ProtocolError,
)


def fault_of(error: Exception, plan: AcmePlan) -> Fault:
    """What ``error`` means. An error that says nothing of itself is a server that does not speak ACME."""
    if isinstance(error, FaultError):
        return error.fault
    proving = isinstance(error, acme.errors.ValidationError | acme.errors.IssuanceError)
    for name, problem in _problems(error):
        return _refusal(problem, name, plan, proving)
    server = safe_text(plan.server, 80)
    if isinstance(error, requests.exceptions.SSLError):
        return _untrusted(str(error), server, plan)
    if isinstance(error, _TIMEOUTS):
        return Fault("tls_failed", f"{server} did not answer in time", "wait; this is tried again")
    if isinstance(error, _CONNECTION) or _is_local(error):
        return Fault("tls_failed", f"{server} cannot be reached ({_cause(error)})", _WAIT)
    if isinstance(error, acme.errors.ClientError) and isinstance(
        response := _first(error), requests.Response
    ):
        return Fault("tls_failed", f"{server} answered with HTTP {response.status_code} and no reason", _WAIT)
    return Fault("tls_failed", f"{server} answered with something that is not ACME ({_words(error)})", _WAIT)


def _words(error: Exception) -> str:
    try:
        text = str(error)
    except Exception:
        text = ""  # the library's errors look into what the server sent
    return safe_text(f"{type(error).__name__}: {text}" if text else type(error).__name__, 120)


def _is_local(error: Exception) -> bool:
    """An error of the system's; those of the HTTP library count as such by their class."""
    return isinstance(error, OSError) and not isinstance(error, requests.exceptions.RequestException)


def _first(error: Exception) -> object:
    return error.args[0] if error.args else None


def _problems(error: Exception) -> list[tuple[str, messages.Error]]:
    """The server's own words, wherever the library put them, each with the name it is about, if any."""
    if isinstance(error, messages.Error):
        # The parts say more than a "compound" around them.
        return [("", part) for part in (*(error.subproblems or ()), error)] if error.typ else []
    if isinstance(error, acme.errors.IssuanceError):
        return _problems(error.error)
    if isinstance(error, acme.errors.ValidationError):
        return [
            (str(getattr(authz.body.identifier, "value", "")), each.error)
            for authz in error.failed_authzrs
            for each in authz.body.challenges or ()
            if each.error
        ]
    return []


def _refusal(problem: messages.Error, name: str, plan: AcmePlan, proving: bool) -> Fault:
    names = problem.identifier.value if problem.identifier is not None else name or plan.shown
    code = problem_code(str(problem.typ))
    said = str(problem.detail or problem.title or "")
    return problem_fault(plan.server, code, said, str(names), plan.challenge if proving else None)


def _untrusted(text: str, server: str, plan: AcmePlan) -> Fault:
    if any(word in text for word in _CLOCK_WORDS):
        return Fault(
            "tls_failed",
            f"the certificate of {server} itself is not valid at the time this machine's clock shows",
            "set the clock, or have the server's certificate renewed",
        )
    if "CERTIFICATE_VERIFY_FAILED" not in text:
        return Fault("tls_failed", f"{server} cannot be reached (no TLS on that port)", _WAIT)
    hint = "check that RELAY_ACME_CA is its CA" if plan.ca else "name the file of its CA in RELAY_ACME_CA"
    return Fault("tls_failed", f"the certificate of {server} itself is not trusted here", hint)


def _cause(error: BaseException) -> str:
    """The innermost reason: the libraries wrap it several times."""
    seen: set[int] = set()
    reason = ""
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        if isinstance(current, OSError) and current.strerror:
            reason = current.strerror
        inner = current.args[0] if current.args and isinstance(current.args[0], BaseException) else None
        current = getattr(current, "reason", None) or inner or current.__cause__ or current.__context__
        if not isinstance(current, BaseException):
            break
    return safe_text(reason.lower() or type(error).__name__, 100)
