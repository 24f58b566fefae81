"""Details of another node, asked for directly: a relay's of its target, a keeper's of a newcomer."""

from __future__ import annotations

import asyncio
from typing import Final

from relaydesk.core.relay.hop import DETAILS_PATH, target_url
from relaydesk.core.relay.records.details import DETAILS_LIMIT, Details, decode_details
from relaydesk.engine.relay.outbound.outbound import Outbound, UnreachableError

# Decoding more than this would hold up the loop.
_ON_LOOP: Final = 64 * 1024


async def fetch_details(outbound: Outbound, base_url: str, limit_s: float) -> Details:
    """What answers at a node's base URL, unchecked, within ``limit_s``.

    Raises `UnreachableError`, `TimeoutError`, `RecordError` where it gives no details, `ValueError` for a URL
    that cannot be asked for.
    """
    async with asyncio.timeout(limit_s):
        reply = await outbound.send(
            target_url(base_url, DETAILS_PATH), "GET", [("Accept", "application/json")], head_s=limit_s
        )
        async with reply:
            if reply.status != 200:
                raise UnreachableError("broken", f"it answered {reply.status} for its details")
            body = await reply.read(DETAILS_LIMIT)
    return await read_details(body)


async def read_details(body: bytes) -> Details:
    """`decode_details`, beside the loop where there is much of it. Raises `RecordError`."""
    if len(body) > _ON_LOOP:
        return await asyncio.to_thread(decode_details, body)
    return decode_details(body)
