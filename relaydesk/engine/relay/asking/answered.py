"""What comes of asking through relays: an answer whose body is still to be read, or none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Literal, Self

from relaydesk.core.errors import PeerError
from relaydesk.core.relay.blame import Verdict, safe_after_payment
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.schedule import retry_after_ms
from relaydesk.core.view.network import HopView
from relaydesk.engine.relay.asking.judge import Judged
from relaydesk.engine.relay.outbound.outbound import Reply


class Answered:
    """An answer through a relay. Read it to its end or `aclose` it; as a context manager it closes.

    ``tried`` are all attempts, the last of them this one; ``code`` is that of an error body, empty where
    there is none.
    """

    def __init__(self, reply: Reply, tried: Sequence[Judged], code: str, begun: bytes) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self.tried = tried
        self.code = code
        self._reply = reply
        self._begun = begun

    @property
    def relay(self) -> NodeRef:
        """Through whom it came."""
        return self.tried[-1].relay

    @property
    def verdict(self) -> Verdict:
        """What was made of it."""
        return self.tried[-1].verdict

    @property
    def hops(self) -> tuple[HopView, ...]:
        """The records of all attempts as they stand now."""
        return tuple(each.hop for each in self.tried)

    @property
    def may_repeat(self) -> bool:
        """Whether the same bytes may go through another relay though it was paid (wire §2.5)."""
        return safe_after_payment(self.code)

    @property
    def retry_after_ms(self) -> int:
        """What ``Retry-After`` asks for, 0 where it does not."""
        return retry_after_ms(self.headers.get("Retry-After"))

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises `UnreachableError` where it breaks off."""
        begun, self._begun = self._begun, b""
        if begun:
            yield begun
        while piece := await self._reply.next_chunk():
            yield piece

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises `UnreachableError`, also where it is longer than ``limit`` bytes."""
        begun, self._begun = self._begun, b""
        return begun + await self._reply.read(max(0, limit - len(begun)))

    async def aclose(self) -> None:
        """Be done with it."""
        await self._reply.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.aclose()


class NotReachedError(PeerError):
    """No answer of the target came back; every attempt of ``hops`` failed in a way that may pass.

    ``no_relay_available``: there was nobody to ask through, and nothing was sent (wire §3.5).
    ``operators_unreachable``: relays were asked; ``target_down`` where it was the target by all accounts.
    """

    def __init__(
        self,
        code: Literal["no_relay_available", "operators_unreachable"],
        message: str,
        hint: str,
        *,
        hops: Sequence[Judged] = (),
        target_down: bool = False,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(code, message, hint, retry_after=retry_after)
        self.hops = tuple(each.hop for each in hops)
        self.target_down = target_down
