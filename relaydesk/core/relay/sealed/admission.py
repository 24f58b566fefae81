"""The tag that proves an inference request comes from whoever reserved its ticket (wire §4.4).

A ticket's id is public once it is paid for. Only the payer and the node know the response key, so that
nobody else can spend the ticket or change the body.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

DOMAIN: Final = b"zs-admission-v1\0"
TAG_SIZE: Final = 32


def admission_tag(key: bytes, ticket_id: str, tx_id: str, body: bytes) -> bytes:
    """The tag of a request: HMAC-SHA256 under the response key over the ids as sent and the body's hash."""
    said = ticket_id.encode() + b"\0" + tx_id.encode() + b"\0" + hashlib.sha256(body).digest()
    return hmac.digest(key, DOMAIN + said, "sha256")


def tag_holds(tag: bytes, key: bytes, ticket_id: str, tx_id: str, body: bytes) -> bool:
    """Whether ``tag`` is the request's, in time that does not depend on it."""
    return hmac.compare_digest(tag, admission_tag(key, ticket_id, tx_id, body))
