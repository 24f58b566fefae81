"""A target with a key that may be sealed to."""

from __future__ import annotations

from relaydesk.core.ports import Clock
from relaydesk.core.relay.hop import DETAILS_PATH
from relaydesk.core.relay.records.details import DETAILS_LIMIT
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.relay.asking.answered import NotReachedError
from relaydesk.engine.relay.asking.ask import Ask
from relaydesk.engine.relay.asking.asker import Asker
from relaydesk.engine.relay.asking.peers import Peer
from relaydesk.engine.relay.asking.probe import HEAD_S
from relaydesk.engine.relay.exchange.passed_over import no_key, not_reached


async def sealing_peer(
    asker: Asker, clock: Clock, ref: NodeRef, budget_s: float, *, anew: bool = False
) -> Peer:
    """What is known of the target, its ``verified`` details usable now.

    They are fetched, through relays and within ``budget_s``, where they are too old or ``anew`` says so.
    Raises `PassedOver`.
    """
    peer = asker.peers.get(ref)
    if anew or peer is None or not _usable(peer, clock):
        ask = Ask(
            target=ref,
            path=DETAILS_PATH,
            method="GET",
            purpose="probe",
            accept="application/json",
            head_s=HEAD_S,
            check=asker.peers.check,
            check_limit=DETAILS_LIMIT,
        )
        try:
            await (await asker.send(ask, budget_s=budget_s)).aclose()
        except NotReachedError as error:
            # Something answered, and it was not what the directory says it is.
            if any(200 <= hop.status < 300 for hop in error.hops):
                raise no_key(ref) from None
            raise not_reached(ref, error) from None
        peer = asker.peers.get(ref)
    if peer is None or not _usable(peer, clock):
        raise no_key(ref)
    return peer


def _usable(peer: Peer, clock: Clock) -> bool:
    return peer.verified is not None and peer.verified.usable(clock.wall_ms())
