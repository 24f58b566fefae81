"""The commands about relays, carried out."""

from __future__ import annotations

import re
from typing import Final

from relaydesk.core.codec import to_builtins
from relaydesk.core.commands import Outcome, ProbeRelays
from relaydesk.core.errors import LocalError
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.text import safe_text
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.relay.asking.asker import Asker

_REF: Final = re.compile(r"([0-9]{1,20}):([0-9]{1,20})")
_MOST_ID: Final = 2**64 - 1


class RelayCommands:
    """Handlers for what is asked of the asking side."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def register(self, dispatcher: Dispatcher) -> None:
        """Offer all handlers."""
        dispatcher.on(ProbeRelays, self.probe)

    async def probe(self, command: ProbeRelays) -> Outcome:
        """``value``: ``{"probes": [...]}``, each attempt as a `HopView`."""
        ref = parse_ref(command.ref) if command.ref else None
        if ref is not None and self._asker.peers.get(ref) is None:
            own = ref == self._asker.peers.self_ref
            raise LocalError(
                "not_found",
                f"{ref} is this node, which does not ask itself"
                if own
                else f"no directory admits node {ref}",
                "see `relaydesk relays`",
                param="ref",
            )
        hops = await self._asker.probe_all(ref)
        return Outcome(ok=True, value={"probes": [to_builtins(hop) for hop in hops]})


def parse_ref(text: str) -> NodeRef:
    """``operator:node``. Raises `LocalError` ``invalid_request``."""
    found = _REF.fullmatch(text)
    if found is None or max(int(found[1]), int(found[2])) > _MOST_ID:
        raise LocalError(
            "invalid_request",
            f"{safe_text(text, 48)!r} names no node",
            "give OPERATOR:NODE as `relaydesk relays` shows them",
            param="ref",
        )
    return NodeRef(int(found[1]), int(found[2]))
