"""The gateway: from a request's bytes to a run, all decided that can be before an engine is asked."""

from __future__ import annotations

from collections.abc import Callable

from relaydesk.core.errors import FaultError, PeerError
from relaydesk.core.gateway.choose import choose_model
from relaydesk.core.gateway.chunk import new_identity
from relaydesk.core.gateway.request import check_capabilities, parse_chat
from relaydesk.core.ports import Clock, Rng
from relaydesk.engine.gateway.journal import Journal
from relaydesk.engine.gateway.run import ChatRun
from relaydesk.engine.pool.pool import Pool


class Gateway:
    """Opens runs. ``accepting`` is false while the node starts or drains."""

    def __init__(
        self, pool: Pool, journal: Journal, clock: Clock, rng: Rng, accepting: Callable[[], bool]
    ) -> None:
        self._pool = pool
        self._journal = journal
        self._clock = clock
        self._rng = rng
        self._accepting = accepting

    async def open_chat(self, body: bytes, *, key: str, request_id: str) -> ChatRun:
        """Check a chat request and open its run.

        Raises `FaultError` for everything that is wrong with it or with its model's placement; nothing has
        been loaded or waited for by then.
        """
        if not self._accepting():
            raise PeerError(
                "shutting_down", "this hub is not taking requests now", "try again soon", retry_after=5
            )
        request = parse_chat(body)
        name = choose_model(request.model, self._pool.registry.names())
        await self._pool.registry.recheck(name)
        check_capabilities(request, self._pool.registry.capabilities(name))
        record = self._journal.open(
            request_id,
            model=name,
            key=key,
            route="/v1/chat/completions",
            stream=request.stream,
            choices=request.n,
        )
        try:
            self._pool.check(name)
        except FaultError as error:
            record.finish(error.fault.rule.status, error.fault)
            raise
        public_name = request.model or name
        identity = new_identity(self._rng, public_name, self._clock.wall_ms())
        return ChatRun(request, identity, self._pool, record, warm=self._pool.is_warm(name))
