"""What an ACME server's refusal means for the operator (problem types of RFC 8555 §6.7)."""

from __future__ import annotations

from typing import Final, Literal

from relaydesk.core.errors import Fault
from relaydesk.core.text import safe_text

ChallengeKind = Literal["http-01", "dns-01"]
_DETAIL: Final = 200
_PREFIX: Final = "urn:ietf:params:acme:error:"

_AT_RIGHTS: Final = {
    "http-01": "let its DNS name lead to this machine, and port 80 of that address to RELAY_ACME_HTTP_LISTEN",
    "dns-01": "see that RELAY_ACME_DNS_HOOK sets the TXT record it is given, adds to what is there, and "
    "returns only once the record can be seen",
}
# What each type means, as the end of "<server> gave no certificate for <name>: …", and what to do.
_MEANING: Final[dict[str, tuple[str, str]]] = {
    "caa": ("a CAA record forbids it", "let the domain's CAA records name this authority, or remove them"),
    "rejectedIdentifier": (
        "it makes none for such a name",
        "set RELAY_TLS_DOMAIN to a name that this authority may vouch for",
    ),
    "unsupportedIdentifier": (
        "it makes none for such a name",
        "set RELAY_TLS_DOMAIN to a name that this authority may vouch for",
    ),
    "rateLimited": ("it was asked too often", "wait; this is tried again when the server allows it"),
    "externalAccountRequired": (
        "it wants an account that was made elsewhere, which relaydesk cannot show",
        "set RELAY_ACME_DIRECTORY to another authority",
    ),
    "invalidContact": ("it does not accept the mail address", "correct or remove RELAY_ACME_EMAIL"),
    "invalidEmail": ("it does not accept the mail address", "correct or remove RELAY_ACME_EMAIL"),
    "unsupportedContact": ("it does not accept the mail address", "correct or remove RELAY_ACME_EMAIL"),
    "userActionRequired": ("its owner has to do something there first", "follow what it says"),
    "serverInternal": ("it has an error of its own", "wait; this is tried again"),
    "unauthorized": ("the account may not do that", "look at what it says"),
    "accountDoesNotExist": ("it no longer knows the account", "wait; the next try makes a new one"),
    "dnssec": ("the domain's DNSSEC is broken", "mend the domain's DNSSEC"),
    "badCSR": ("it does not accept the request's key or names", "set RELAY_ACME_DIRECTORY to another one"),
}
_VALIDATION: Final[dict[str, str]] = {
    "connection": "it could not connect to the name",
    "dns": "it found no usable DNS record for the name",
    "unknownHost": "it found no usable DNS record for the name",
    "unauthorized": "it did not find there what it had asked for",
    "incorrectResponse": "it did not find there what it had asked for",
    "tls": "the name answered with a TLS error",
}


def problem_code(kind: str) -> str:
    """The short name of a problem type; empty for one that is not ACME's."""
    return kind.removeprefix(_PREFIX) if kind.startswith(_PREFIX) else ""


def problem_fault(server: str, code: str, detail: str, names: str, challenge: ChallengeKind | None) -> Fault:
    """One sentence and the next step for a refusal; ``challenge`` where it is about the proof of a name.

    ``server`` is its host, ``names`` what was asked for, ``detail`` the server's own words, which are
    shown as `SafeText`.
    """
    said = safe_text(detail, _DETAIL).strip().rstrip(".")
    if challenge is not None and code in _VALIDATION:
        why, hint = _VALIDATION[code], _AT_RIGHTS[challenge]
    elif code in _MEANING:
        why, hint = _MEANING[code]
    else:
        shown = safe_text(code, 40) or "no reason given"
        why, hint = f"it refused the request ({shown})", "look at what it says, and at its documentation"
    words = f" ({said})" if said else ""
    return Fault(
        "tls_failed",
        f"{safe_text(server, 80)} gave no certificate for {safe_text(names, 120)}: {why}{words}",
        hint,
        param="RELAY_TLS_DOMAIN",
    )
