"""A sealed answer that is not streamed: its body, and the receipt in its header (wire §4.7)."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Final

from relaydesk.core.errors import Fault, as_peer_error
from relaydesk.core.relay.exchange.refused import sealed_fault
from relaydesk.core.relay.sealed.body import open_body
from relaydesk.core.relay.sealed.box import Exchange as Sealed
from relaydesk.core.relay.sealed.envelope import SealedError
from relaydesk.core.relay.sealed.headers import RECEIPT_HEADER, open_receipt
from relaydesk.engine.relay.asking.answered import Answered
from relaydesk.engine.relay.exchange.bill import Bill
from relaydesk.engine.relay.exchange.stream import ON_LOOP, unproved
from relaydesk.engine.relay.outbound.outbound import UnreachableError

# As much as an engine of our own may answer, in base64.
LIMIT: Final = 88 * 1024 * 1024


async def read_whole(answered: Answered, sealed: Sealed, bill: Bill) -> bytes:
    """The plaintext, once its receipt holds. Closes ``answered`` and tells ``bill``.

    Raises `PeerError`: ``upstream_unreachable`` where it broke off, ``operator_inconsistent_response`` where
    it or its receipt does not hold, or what a sealed error says.
    """
    ref = bill.reservation.ref
    try:
        async with answered:
            body = await answered.read(LIMIT)
    except UnreachableError as error:
        said = f"the answer of node {ref} broke off ({error.reason})"
        raise as_peer_error(Fault("upstream_unreachable", said, "send the request again")) from None
    try:
        if len(body) > ON_LOOP:
            plain, found = await asyncio.to_thread(_opened, sealed, body)
        else:
            plain, found = _opened(sealed, body)
    except SealedError as error:
        said = f"the answer of node {ref} does not hold: {error}"
        raise as_peer_error(Fault("operator_inconsistent_response", said, "send the request again")) from None
    failed = not 200 <= answered.status < 300
    value = answered.headers.get(RECEIPT_HEADER)
    receipt = None if value is None else open_receipt(sealed, value)
    wrong = await bill.settle(receipt, found, failed=failed)
    if failed:
        raise as_peer_error(sealed_fault(ref, answered.status, plain))
    if wrong:
        raise as_peer_error(unproved(bill, wrong))
    return plain


def _opened(sealed: Sealed, body: bytes) -> tuple[bytes, str]:
    plain = open_body(sealed, body, LIMIT)
    return plain, hashlib.sha256(plain).hexdigest()
