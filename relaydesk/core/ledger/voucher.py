"""Voucher codes: credit at one node for whoever has the code.

``rdv1.<operator>.<node>.<32 characters of base32>``: the numbers say whom it is for, the rest is 160 random
bits. The ledger keeps only the hash of those.
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
_CODE: Final = re.compile(r"rdv1\.([0-9]{1,20})\.([0-9]{1,20})\.([a-z2-7]{32})")
_DOMAIN: Final = b"relaydesk-voucher-code-v1\0"


@dataclass(frozen=True, slots=True)
class VoucherCode:
    """A code taken apart. ``id`` (64 hex digits) is what the ledger knows it by."""

    ref: NodeRef
    secret: bytes = field(repr=False)

    @property
    def id(self) -> str:
        return hashlib.sha256(_DOMAIN + self.secret).hexdigest()

    @property
    def text(self) -> str:
        """The code itself: a bearer's secret."""
        return f"rdv1.{self.ref.operator}.{self.ref.node}.{base64.b32encode(self.secret).decode().lower()}"


def parse_code(text: str) -> VoucherCode:
    """A code as people paste it: case and white space around it do not matter. Raises `ValueError`."""
    found = _CODE.fullmatch(text.strip().lower()) if len(text) < 200 else None
    if found is None:
        raise ValueError("no voucher code")
    operator, node = int(found[1]), int(found[2])
    if max(operator, node) >= 1 << 64:
        raise ValueError("no voucher code")
    try:
        secret = base64.b32decode(found[3].upper())
    except binascii.Error as error:
        raise ValueError("no voucher code") from error
    return VoucherCode(NodeRef(operator, node), secret)
