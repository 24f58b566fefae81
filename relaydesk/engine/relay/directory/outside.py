"""Looking at a node from outside before it is listed: is it there, is it who it says, is it trusted?"""

from __future__ import annotations

import asyncio
from typing import Final

from relaydesk.core.relay.address import decode_address
from relaydesk.core.relay.directory.record import NodeRecord
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.relay.records.canonical import RecordError
from relaydesk.core.relay.records.details import DETAILS_LIMIT, Details, decode_details
from relaydesk.core.relay.records.ephemeral import check_ephemeral
from relaydesk.engine.relay.outbound.outbound import Outbound
from relaydesk.engine.relay.outbound.unreachable import UnreachableError

DETAILS_PATH: Final = "/v1/zs/details"
LOOK_S: Final = 20.0


async def look(record: NodeRecord, outbound: Outbound, now_s: int) -> None:
    """Ask the node at the record's base URL for its details and compare.

    Whom the certificate of the connection must satisfy is ``outbound``'s. Raises `Refused`: not_seen,
    identity.
    """
    try:
        async with asyncio.timeout(LOOK_S):
            body = await _details(record.base_url + DETAILS_PATH, outbound)
    except TimeoutError:
        raise _unseen(f"it gave no details within {LOOK_S:g} s") from None
    except UnreachableError as error:
        if error.kind == "tls":
            raise Refused(
                "not_seen",
                f"the node's certificate is not one that the world trusts ({error.reason})",
                "get one from an ACME server (RELAY_TLS_DOMAIN), or give RELAY_TLS_CERT and RELAY_TLS_KEY",
            ) from None
        raise _unseen(error.reason) from None
    except ValueError:
        raise _unseen("its base URL cannot be asked for") from None
    try:
        details = decode_details(body)
    except RecordError:
        raise Refused("identity", "what answers at the base URL gives no details of a node") from None
    _compare(record, details, now_s)


async def _details(url: str, outbound: Outbound) -> bytes:
    async with await outbound.send(url, "GET", [("Accept", "application/json")], head_s=LOOK_S) as reply:
        if reply.status != 200:
            raise _unseen(f"its {DETAILS_PATH} answered {reply.status}")
        return await reply.read(DETAILS_LIMIT)


def _compare(record: NodeRecord, details: Details, now_s: int) -> None:
    said = (details.operator_id, details.node_id, details.owner_addr, details.signing_addr)
    if said != (*record.ref, record.owner, record.certificate.signing):
        raise Refused(
            "identity",
            "the node at the base URL is another one than the record's",
            "check RELAY_PUBLIC_URL, and that its proxy leads to this node",
        )
    advert = details.ephemeral
    public = decode_address(record.certificate.signing)
    if advert is None or not check_ephemeral(advert, record.ref, public, now_s, relayed=False).usable:
        raise Refused(
            "identity",
            "the node at the base URL shows no key signed by the certified one that is valid now",
            "check its clock",
        )


def _unseen(why: str) -> Refused:
    return Refused(
        "not_seen",
        f"the node cannot be reached from outside: {why}",
        "check RELAY_PUBLIC_URL, the name's address and the router's forwarded port",
    )
