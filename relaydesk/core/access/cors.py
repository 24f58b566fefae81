"""Cross-origin headers (WHATWG Fetch, "CORS protocol"): what a browser must read before a page may.

Whether an origin is allowed is decided elsewhere (`origins`); for others there are no headers at all. The
headers that a page asks to send are given back to it, because a fixed list breaks with each client library.
"""

from __future__ import annotations

import re
from typing import Final

# What scripts need beside the body; a browser hides every other header.
EXPOSED: Final = ", ".join(
    (
        "x-request-id",
        "retry-after",
        "retry-after-ms",
        "x-should-retry",
        "www-authenticate",
        *(
            f"x-ratelimit-{what}-{unit}"
            for what in ("limit", "remaining", "reset")
            for unit in ("requests", "tokens")
        ),
    )
)
# Short enough that a changed setting is felt; browsers ask again after it.
MAX_AGE_S: Final = 600

_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_METHOD: Final = re.compile(_TOKEN)
_NAMES: Final = re.compile(rf"{_TOKEN}(?:[ \t]*,[ \t]*{_TOKEN})*")


def shared(origin: str) -> dict[str, str]:
    """The headers of an answer that a page of ``origin`` may read."""
    return {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": EXPOSED}


def preflight(origin: str, method: str, names: str, *, private_network: bool) -> dict[str, str]:
    """The headers of the answer to a preflight: whether a request may be sent, not whether it will do.

    ``method`` and ``names`` are what the page wants to send; where they are no HTTP nothing is allowed.
    ``private_network``: a browser asks before a public page reaches a private address.
    """
    headers = {"Access-Control-Allow-Origin": origin, "Access-Control-Max-Age": str(MAX_AGE_S)}
    if _METHOD.fullmatch(method):
        headers["Access-Control-Allow-Methods"] = method
    if _NAMES.fullmatch(names.strip()):
        headers["Access-Control-Allow-Headers"] = names.strip()
    if private_network:
        headers["Access-Control-Allow-Private-Network"] = "true"
    return headers
