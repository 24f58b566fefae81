"""The keys a request presents, in every spelling that clients use.

``Authorization`` with Bearer, Basic (the key is the password, or the user name where there is no password)
or the bare key; ``x-api-key``; ``api-key``. The rule where a request carries several: each is looked at in
that order, what opens nothing is passed over, and the first that opens something counts. Clients need it:
some send two headers, one of them empty or with a placeholder, and proxies leave their own passwords in.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Sequence
from typing import Final

from relaydesk.core.errors import PeerError

# What clients send in place of a key that nobody typed in.
_PLACEHOLDERS: Final = frozenset({"undefined", "null", "none"})
# Longer than any key we make or accept, in any spelling: a megabyte of header is not worth hashing.
LIMIT: Final = 1024
# More than any client sends; each costs a comparison.
MOST: Final = 8

_KEY_HEADERS: Final = ("x-api-key", "api-key")


def presented(headers: Iterable[tuple[str, str]]) -> list[str]:
    """What may be a key in a request's headers (names in any case), in the order in which it counts.

    At most `MOST`, none of them empty.
    """
    found: dict[str, list[str]] = {"authorization": [], **{name: [] for name in _KEY_HEADERS}}
    for name, value in headers:
        values = found.get(name.lower())
        if values is not None and len(value) <= LIMIT:
            values.append(value)
    keys = [_authorization(value) for value in found["authorization"]]
    keys += [_plain(value) for name in _KEY_HEADERS for value in found[name]]
    return [key for key in keys if key][:MOST]


def unauthorized(candidates: Sequence[str]) -> PeerError:
    """The refusal of a request whose ``candidates`` open nothing: it tells a missing key from a wrong one."""
    hint = "send the header Authorization: Bearer <key>; the hub shows it with `relaydesk token --api`"
    if all(key.lower() in _PLACEHOLDERS for key in candidates):
        return PeerError("invalid_api_key", "no API key was given", hint)
    return PeerError("invalid_api_key", "the API key is not valid", hint)


def _authorization(value: str) -> str:
    """The key in one ``Authorization`` header (RFC 9110 §11.6.2), empty where there is none.

    The scheme is read in any case. A word without a scheme is the key itself.
    """
    scheme, _, rest = value.strip().partition(" ")
    if scheme.lower() == "basic":
        return _basic(rest.strip())
    return _plain(value)


def _plain(value: str) -> str:
    """A key as it was pasted: spaces and line ends around it go, and so does its scheme, however often."""
    words = value.split()
    while words and words[0].lower() == "bearer":
        del words[0]
    # No key has a space in it: what has is a scheme of its own, and nothing of ours.
    return words[0] if len(words) == 1 else ""


def _basic(encoded: str) -> str:
    """The key in Basic credentials (RFC 7617 §2), empty where they cannot be read."""
    try:
        user, _, password = binascii.a2b_base64(encoded, strict_mode=True).decode("latin-1").partition(":")
    except (binascii.Error, ValueError):
        return ""
    return _plain(password) if password.strip() else _plain(user)
