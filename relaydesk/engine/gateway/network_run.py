"""A run whose answer comes over the relay network."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import msgspec

from relaydesk.core.gateway.output import Output
from relaydesk.core.gateway.usage import Tally, Usage
from relaydesk.engine.gateway.books import Books
from relaydesk.engine.gateway.held import Held
from relaydesk.engine.gateway.journal import RequestRecord
from relaydesk.engine.gateway.network_lease import NetworkEngine, network_lease
from relaydesk.engine.gateway.run import Run
from relaydesk.engine.pool.pool import Pool


class NetworkRun(Run):
    """`Run` whose every choice is an exchange of its own, paid by itself.

    Read to the end: the receipt comes behind the last word. ``model`` is the network's id, ``most`` the
    tokens that one choice may have at most; ``held`` has its engine while it is asked.
    """

    reads_on = True

    def __init__(
        self,
        books: Books,
        output: Output,
        pool: Pool,
        record: RequestRecord,
        engine: NetworkEngine,
        held: set[NetworkEngine],
        *,
        model: str,
        most: int,
        call_prefix: str,
    ) -> None:
        super().__init__(books, output, pool, record, call_prefix=call_prefix, warm=True)
        self._engine = engine
        self._held = held
        self._model = model
        self._most = most

    def _lease(self) -> AbstractAsyncContextManager[Held]:
        return network_lease(self._engine, self._model, len(self._readers), self.record, self._held)

    def _usage(self, tallies: list[Tally], *, cached: bool) -> Usage:
        """A target's count, as far as it can be: what was asked for bounds it."""
        usage = super()._usage(tallies, cached=cached)
        prompt = min(usage.prompt_tokens, self._books.bound)
        completion = min(usage.completion_tokens, self._most * len(tallies))
        return msgspec.structs.replace(
            usage, prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion
        )

    def _used(self) -> tuple[int, int]:
        """What is known to have been read and written where the answer broke off."""
        usage = self._usage([reader.tally for reader in self._readers], cached=False)
        written = usage.completion_tokens
        # Who has begun to answer has read the prompt, which has at least so many tokens.
        floor = self._books.work.prompt_floor if written else 0
        return max(usage.prompt_tokens, floor), written
