"""This node's own details, as it hands them out (wire §5.1)."""

from __future__ import annotations

from collections.abc import Callable

from relaydesk import __version__
from relaydesk.core.relay.records.details import Details, OfferedModel, encode_details, with_ephemeral
from relaydesk.core.relay.records.ephemeral import Ephemeral
from relaydesk.core.relay.version import PROTO_VERSION
from relaydesk.core.text import safe_text
from relaydesk.engine.relay.ephemerals import Ephemerals
from relaydesk.engine.relay.identity import Identity

# Nothing here is priced in a coin, so there is no oracle whose health could matter (wire §6).
_NO_ORACLE = safe_text("none")


class OwnDetails:
    """The document. ``offers`` says what is served at this moment, ``ledger`` whether ours is kept."""

    def __init__(
        self,
        identity: Identity,
        keys: Ephemerals,
        offers: Callable[[], tuple[OfferedModel, ...]],
        *,
        ledger: bool,
    ) -> None:
        self._identity = identity
        self._keys = keys
        self._offers = offers
        self._ledger = ledger
        self._made: tuple[Ephemeral, tuple[OfferedModel, ...], bytes] | None = None

    def models(self) -> tuple[OfferedModel, ...]:
        """What is served at this moment."""
        return self._offers()

    def body(self) -> bytes:
        """The document as JSON, with a fresh advert of a key. The same bytes until something changes."""
        advert, offers = self._keys.advert(), self._offers()
        made = self._made
        if made is None or made[0] is not advert or made[1] != offers:
            made = self._made = (advert, offers, encode_details(self._document(advert, offers)))
        return made[2]

    def _document(self, advert: Ephemeral, offers: tuple[OfferedModel, ...]) -> Details:
        identity = self._identity
        details = Details(
            operator_id=identity.operator_id,
            node_id=identity.node_id,
            owner_addr=identity.owner_addr,
            signing_addr=identity.signing_addr,
            models=offers,
            oracle_source=_NO_ORACLE,
            oracle_healthy=False,
            min_charge_output_tokens=0,
            version=safe_text(__version__, 32),
            proto_version=PROTO_VERSION,
            relaydesk_ledger=self._ledger,
        )
        return with_ephemeral(details, advert)
