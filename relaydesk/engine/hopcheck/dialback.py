"""Dial-back at both ends: looking at a peer that asks, and asking peers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from relaydesk.core.hopcheck import dialback
from relaydesk.core.hopcheck.model import Exchange
from relaydesk.core.ports import Clock
from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.relay.hop import relay_url
from relaydesk.core.relay.ref import Directory, Listed, NodeRef
from relaydesk.engine.relay.identity import Identity
from relaydesk.engine.relay.outbound.outbound import Outbound, UnreachableError

# Looks at once, over all askers.
_AT_ONCE: Final = 4
# Askers remembered; beyond that the one that asked longest ago may ask again.
_MOST_ASKERS: Final = 4096
# Peers asked, and how long for all of them.
MOST_PEERS: Final = 3
ASK_S: Final = 8.0
_KINDS: Final = {"resolve": "resolve", "connect": "refused", "tls": "tls", "timeout": "timeout"}


class DialbackDesk:
    """Answers questions where the operator lets it (``on``).

    It dials nothing but what its own directory holds for the asker, and sends nothing but one request that
    every relay refuses.
    """

    def __init__(
        self,
        directory: Directory,
        identity: Identity,
        outbound: Outbound,
        clock: Clock,
        on: Callable[[], bool],
    ) -> None:
        self._directory = directory
        self._identity = identity
        self._outbound = outbound
        self._clock = clock
        self._on = on
        self._asked: dict[NodeRef, float] = {}
        self._open = 0

    async def answer(self, data: bytes) -> bytes:
        """What was seen, as JSON. Raises `WireError`: not_found, bad_request, relay_busy."""
        if not self._on():
            raise WireError("not_found", "this node does not look at others (RELAY_DIALBACK)")
        listed = self._asker(data)
        now = self._clock.mono()
        wait = self._asked.get(listed.ref, -dialback.EACH_S) + dialback.EACH_S - now
        if wait > 0:
            raise WireError("relay_busy", "a node is looked at once a minute", retry_after=int(wait) + 1)
        if self._open >= _AT_ONCE:
            raise WireError("relay_busy", "too many are being looked at now")
        self._asked.pop(listed.ref, None)
        self._asked[listed.ref] = now
        if len(self._asked) > _MOST_ASKERS:
            del self._asked[next(iter(self._asked))]
        self._open += 1
        try:
            return await self._look(listed)
        finally:
            self._open -= 1

    def _asker(self, data: bytes) -> Listed:
        now_s = self._clock.wall_ms() // 1000
        try:
            question = dialback.read_ask(data, self._identity.signing_addr, now_s)
        except Refused as refused:
            raise WireError("bad_request", refused.fault.message) from None
        listed = self._directory.find(question.ref)
        # One answer for both: who is listed here is nobody's business.
        if listed is None or listed.signing != question.signing:
            raise WireError("bad_request", "the question is signed by no node that is listed here")
        return listed

    async def _look(self, listed: Listed) -> bytes:
        try:
            async with asyncio.timeout(dialback.LOOK_S):
                reply = await self._outbound.send(
                    relay_url(listed.base_url), "POST", dialback.HEADERS, head_s=dialback.LOOK_S
                )
                async with reply:
                    return dialback.answer(reply.status, tuple(reply.headers.items()))
        except TimeoutError:
            return dialback.answer(0, (), "timeout", f"no answer within {dialback.LOOK_S:g} s")
        except UnreachableError as error:
            return dialback.answer(0, (), _KINDS.get(error.kind, "broken"), error.reason)


@dataclass(frozen=True, slots=True)
class Outlook:
    """Asks peers what they see of this node at the URL it advertises."""

    identity: Identity
    outbound: Outbound
    clock: Clock
    peers: Sequence[Listed]
    base_url: str

    async def look(self) -> Exchange | None:
        """What the first peer that looks has seen; None where none does. One after the other, each once."""
        try:
            async with asyncio.timeout(ASK_S):
                for peer in self.peers[:MOST_PEERS]:
                    found = await self._ask(peer)
                    if found is not None:
                        return found
        except TimeoutError:
            pass
        return None

    async def _ask(self, peer: Listed) -> Exchange | None:
        identity = self.identity
        body = dialback.ask(
            identity.ref, identity.signing_addr, identity.sign, peer.signing, self.clock.wall_ms() // 1000
        )
        headers = (("Content-Type", "application/json"), ("Accept", "application/json"))
        try:
            reply = await self.outbound.send(
                peer.base_url.rstrip("/") + dialback.PATH, "POST", headers, body, head_s=ASK_S
            )
            async with reply:
                if reply.status != 200:
                    return None
                data = await reply.read(dialback.MOST_ANSWER)
            return dialback.read_answer(data, self.base_url, f"node {peer.ref}")
        except (UnreachableError, ValueError):
            return None
