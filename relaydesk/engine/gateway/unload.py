"""A request that lets its model go: a run that asks no engine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable

from relaydesk.core.errors import FaultError
from relaydesk.core.gateway.usage import Usage
from relaydesk.engine.gateway.run import Run


class Unload(Run):
    """`Run` of a plan that unloads. It costs nothing, and needs no room for the model."""

    async def frames(self) -> AsyncGenerator[bytes, None]:
        yield self.output.close(await self._let_go(), self.record.spent())

    async def whole(self, deliver: Callable[[bytes], Awaitable[None]] | None = None) -> bytes:
        body = self.output.whole((), await self._let_go(), self.record.spent())
        if deliver is not None:
            await deliver(body)
        return body

    async def _let_go(self) -> Usage:
        try:
            await self._pool.let_go(self.record.model)
        except FaultError as error:
            self._end(error.fault)
            raise
        finally:
            # Somebody who leaves meanwhile has still let it go.
            self._books.settle(0, 0)
            self.record.finish(200)
        return Usage(0, 0, 0)
