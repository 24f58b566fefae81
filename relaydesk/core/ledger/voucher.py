"""Voucher codes: credit at one node for whoever has the code.

``rdv2.<operator>.<node>.<38 characters of base32>``: the numbers say whom it is for, then come 160 random
bits and a checksum over all of it, so that a mistyped code is refused before it is sent anywhere. The ledger
keeps only the hash of the random bits. Codes that begin with ``rdv1`` are older and have no checksum.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass, field
from typing import Final

from relaydesk.core.relay.ref import NodeRef

SECRET_BYTES: Final = 20
# A million units: what one voucher may be worth.
MOST_CREDIT: Final = 10**12
_CODE: Final = re.compile(
    r"(?:rdv1\.([0-9]{1,20})\.([0-9]{1,20})\.([a-z2-7]{32})"
    r"|rdv2\.([0-9]{1,20})\.([0-9]{1,20})\.([a-z2-7]{32})([a-z2-7]{6}))"
)
_DOMAIN: Final = b"relaydesk-voucher-code-v1\0"
_CHECK_DOMAIN: Final = b"relaydesk-voucher-check-v1\0"
_CHECK_CHARS: Final = 6


@dataclass(frozen=True, slots=True)
class VoucherCode:
    """A code taken apart. ``id`` (64 hex digits) is what the ledger knows it by; ``old``: no checksum."""

    ref: NodeRef
    secret: bytes = field(repr=False)
    old: bool = False

    @property
    def id(self) -> str:
        return hashlib.sha256(_DOMAIN + self.secret).hexdigest()

    @property
    def text(self) -> str:
        """The code itself: a bearer's secret."""
        body = f"{self.ref.operator}.{self.ref.node}.{base64.b32encode(self.secret).decode().lower()}"
        return f"rdv1.{body}" if self.old else f"rdv2.{body}{_check(body)}"


def parse_code(text: str) -> VoucherCode:
    """A code as people paste it: case and white space around it do not matter.

    Raises `ValueError` with what is wrong, as a sentence that does not repeat the code.
    """
    found = _CODE.fullmatch(text.strip().lower()) if len(text) < 200 else None
    if found is None:
        raise ValueError("that is no voucher code, or not all of it")
    old = found[1] is not None
    operator, node, secret = found.group(1, 2, 3) if old else found.group(4, 5, 6)
    if not old and _check(f"{operator}.{node}.{secret}") != found[7]:
        raise ValueError("the voucher code is mistyped: its checksum does not hold")
    ref = NodeRef(int(operator), int(node))
    if max(ref) >= 1 << 64:
        raise ValueError("that is no voucher code, or not all of it")
    try:
        return VoucherCode(ref, base64.b32decode(secret.upper()), old)
    except binascii.Error as error:
        raise ValueError("that is no voucher code, or not all of it") from error


def _check(body: str) -> str:
    """Six characters, 30 bits, over everything behind the prefix."""
    digest = hashlib.sha256(_CHECK_DOMAIN + body.encode()).digest()
    return base64.b32encode(digest[:5]).decode().lower()[:_CHECK_CHARS]
