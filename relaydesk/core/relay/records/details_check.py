"""Whether details are a listed node's own: its identity, and a key that may be sealed to (wire §5.1)."""

from __future__ import annotations

from typing import Final

from relaydesk.core.relay.address import decode_address
from relaydesk.core.relay.records.canonical import RecordError
from relaydesk.core.relay.records.details import Details
from relaydesk.core.relay.records.ephemeral import Holds, check_ephemeral
from relaydesk.core.relay.ref import Listed

_REFUSED: Final = {
    Holds.BAD_SIGNATURE: "the advert of its key is not signed by the key that the directory names",
    Holds.FROM_THE_FUTURE: "the advert of its key is from the future: one of the two clocks is wrong",
    Holds.BAD_LIFE: "the advert of its key would hold longer than any may",
    Holds.EXPIRED: "the advert of its key has expired",
}
# Of what differs, so much is named.
_NAMED: Final = 2


class DetailsError(RecordError):
    """Why they are not. ``identity``: another node answers; else it is the key that does not hold."""

    def __init__(self, why: str, *, identity: bool = False) -> None:
        super().__init__(why)
        self.identity = identity


def check_details(details: Details, listed: Listed, now_s: int, *, relayed: bool) -> bool:
    """Whether the key in a node's own details is stale, which it may only be where a relay kept them.

    Raises `DetailsError`, with a sentence, where they name another node than ``listed`` or advertise no key
    that may be sealed to at ``now_s`` (seconds since 1970).
    """
    found = (details.operator_id, details.node_id, details.owner_addr, details.signing_addr)
    wanted = (*listed.ref, listed.owner, listed.signing)
    names = ("operator", "number", "owner", "signing key")
    wrong = [name for name, a, b in zip(names, found, wanted, strict=True) if a != b]
    if wrong:
        named = " and ".join(wrong[:_NAMED])
        raise DetailsError(f"its details name another {named} than the directory", identity=True)
    advert = details.ephemeral
    if advert is None:
        raise DetailsError("its details advertise no key")
    try:
        public = decode_address(listed.signing)
    except ValueError as error:
        raise DetailsError("the directory names no key of it that could have signed") from error
    holds = check_ephemeral(advert, listed.ref, public, now_s, relayed=relayed)
    if not holds.usable:
        raise DetailsError(_REFUSED[holds])
    return holds is Holds.STALE
