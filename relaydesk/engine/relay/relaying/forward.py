"""One hop: from a caller's request to the target's answer, in the order of the wire (§1.3).

Nothing here keeps or logs who asks: the client's address meets the rate bucket and goes no further. What
stands for it and the target are known together to the circuit alone, while it is open (design §6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Final, Self

from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.hop import HopRequest, forwarded_headers, parse_relay_headers, target_url
from relaydesk.core.relay.ref import Directory, Listed
from relaydesk.engine.relay.outbound.outbound import Outbound, Reply, UnreachableError
from relaydesk.engine.relay.relaying.circuits import Circuits, busy
from relaydesk.engine.relay.relaying.verified import VerifiedTargets

# Image routes send no headers before they are done (wire §1.3).
HEAD_S: Final = 300.0

# A long stream counts while it runs, but not with every chunk.
_COUNT_EACH: Final = 1024 * 1024

Headers = Sequence[tuple[str, str]]


class Circuit:
    """One open circuit; as a context manager it is given back, and what is left of the answer is dropped."""

    def __init__(
        self, forwarder: Forwarder, client: str, asked: HopRequest, listed: Listed, headers: Headers
    ) -> None:
        self._forwarder = forwarder
        self._client = client
        self._listed = listed
        self._headers = headers
        self._reply: Reply | None = None
        self._uncounted = 0
        self.asked = asked

    async def send(self, body: bytes | AsyncIterator[bytes], length: int | None = None) -> Reply:
        """Send the request on and wait for the head of the answer.

        Raises `WireError` ``relay_upstream_unreachable`` or ``relay_build_request``, and what ``body``
        raises.
        """
        forwarder = self._forwarder
        sent = body if isinstance(body, bytes) else self._counted(body)
        try:
            await forwarder.verified.check(self._listed)
            self._reply = await forwarder.outbound.send(
                target_url(self._listed.base_url, self.asked.path),
                self.asked.method,
                self._headers,
                sent,
                head_s=HEAD_S,
                length=length,
            )
        except UnreachableError as error:
            raise WireError(
                "relay_upstream_unreachable", f"the target was not reached: {error.reason}"
            ) from None
        except ValueError:
            raise WireError("relay_build_request", "no request can be made of this") from None
        if isinstance(body, bytes):
            self.count(len(body))
        return self._reply

    def count(self, carried: int) -> None:
        """Bytes went over the circuit, one way or the other."""
        self._uncounted += carried
        if self._uncounted >= _COUNT_EACH:
            self._forwarder.circuits.carry(self._uncounted)
            self._uncounted = 0

    async def _counted(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in body:
            self.count(len(piece))
            yield piece

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._forwarder.circuits.release(self._client, self._uncounted)
        self._forwarder.ended[_outcome(error)] += 1
        if self._reply is not None:
            await self._reply.aclose()


class Forwarder:
    """``also`` are paths of ours that it forwards beside the wire's; ``ended`` counts circuits by outcome."""

    def __init__(
        self,
        *,
        directory: Directory,
        outbound: Outbound,
        verified: VerifiedTargets,
        circuits: Circuits,
        draining: Callable[[], bool],
        also: frozenset[str] = frozenset(),
    ) -> None:
        self._directory = directory
        self._draining = draining
        self._also = also
        self.outbound = outbound
        self.verified = verified
        self.circuits = circuits
        self.ended: Counter[str] = Counter()

    def open(self, address: str, headers: Headers) -> Circuit:
        """The circuit that a request of the client at ``address`` with these headers gets.

        Raises `WireError`: ``relay_busy``, ``relay_bad_*``, ``relay_unknown_target``.
        """
        try:
            if self._draining():
                raise busy("this relay is going down", 30)
            client = self.circuits.admit(address)
            asked = parse_relay_headers(headers, self._also)
            self.circuits.take(client)
        except WireError as error:
            self.ended[error.code] += 1
            raise
        listed = self._directory.find(asked.ref)
        if listed is None:
            self.circuits.release(client)
            self.ended["relay_unknown_target"] += 1
            raise WireError("relay_unknown_target", "this relay's directories list no such node")
        return Circuit(self, client, asked, listed, forwarded_headers(headers))


def _outcome(error: BaseException | None) -> str:
    """One word for how a circuit ended."""
    if error is None:
        return "answered"
    if isinstance(error, WireError):
        return error.code
    return "broken_off"
