"""What every answer of the network listener carries, so that browsers of any origin can read it (wire §1.4).

A browser cannot tell a header that it may not see from one that was not sent: without the marker in the
exposed list, every relayed answer would look as if it had come from somewhere else.
"""

from __future__ import annotations

from typing import Final

from multidict import CIMultiDict

from relaydesk.core.relay.hop import (
    HOP_HEADER,
    HOP_VALUE,
    METHOD_HEADER,
    NODE_HEADER,
    PATH_HEADER,
    RELAY_PATH,
    TARGET_HEADER,
)
from relaydesk.core.relay.sealed.headers import RECEIPT_HEADER, SETTLE_GROUP_HEADER
from relaydesk.core.relay.sealed.response_key import RESPONSE_KEY_HEADER

EXPOSED: Final = f"{HOP_HEADER}, {RESPONSE_KEY_HEADER}, {RECEIPT_HEADER}, {SETTLE_GROUP_HEADER}, Retry-After"
ALLOWED: Final = f"Content-Type, Accept, {TARGET_HEADER}, {NODE_HEADER}, {PATH_HEADER}, {METHOD_HEADER}"
_DAY_S: Final = 86_400

_PLAIN: Final = CIMultiDict(
    {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": EXPOSED,
        "Cache-Control": "no-store, no-transform",
        "X-Content-Type-Options": "nosniff",
        "Server": "relaydesk",
    }
)
_MARKED: Final = CIMultiDict([(HOP_HEADER, HOP_VALUE), *_PLAIN.items()])
PREFLIGHT: Final = (
    ("Access-Control-Allow-Methods", "GET, POST, OPTIONS"),
    ("Access-Control-Allow-Headers", ALLOWED),
    ("Access-Control-Max-Age", str(_DAY_S)),
)


def own_headers(place: str) -> CIMultiDict[str]:
    """The headers of any answer at ``place``: on the relay's path the hop marker first of all (wire §2.1)."""
    return (_MARKED if place == RELAY_PATH else _PLAIN).copy()
