"""Looking at a node from outside before it is listed: is it there, is it who it says, is it trusted?"""

from __future__ import annotations

from typing import Final

from relaydesk.core.relay.directory.record import NodeRecord
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.relay.records.canonical import RecordError
from relaydesk.core.relay.records.details import Details
from relaydesk.core.relay.records.details_check import DetailsError, check_details
from relaydesk.core.relay.ref import Listed
from relaydesk.engine.relay.fetch_details import fetch_details
from relaydesk.engine.relay.outbound.outbound import Outbound
from relaydesk.engine.relay.outbound.unreachable import UnreachableError

LOOK_S: Final = 20.0


async def look(record: NodeRecord, outbound: Outbound, now_s: int) -> None:
    """Ask the node at the record's base URL for its details and compare.

    Whom the certificate of the connection must satisfy is ``outbound``'s. Raises `Refused`: not_seen,
    identity.
    """
    try:
        details = await fetch_details(outbound, record.base_url, LOOK_S)
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
    except RecordError:
        raise Refused("identity", "what answers at the base URL gives no details of a node") from None
    except ValueError:
        raise _unseen("its base URL cannot be asked for") from None
    _compare(record, details, now_s)


def _compare(record: NodeRecord, details: Details, now_s: int) -> None:
    listed = Listed(record.ref, record.owner, record.certificate.signing, record.base_url)
    try:
        check_details(details, listed, now_s, relayed=False)
    except DetailsError as error:
        if error.identity:
            raise Refused(
                "identity",
                "the node at the base URL is another one than the record's",
                "check RELAY_PUBLIC_URL, and that its proxy leads to this node",
            ) from None
        raise Refused(
            "identity",
            f"the node at the base URL shows no key that may be sealed to ({error})",
            "check its clock",
        ) from None


def _unseen(why: str) -> Refused:
    return Refused(
        "not_seen",
        f"the node cannot be reached from outside: {why}",
        "check RELAY_PUBLIC_URL, the name's address and the router's forwarded port",
    )
