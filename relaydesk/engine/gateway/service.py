"""The gateway: from a request's bytes to a run, all decided that can be before an engine is asked."""

from __future__ import annotations

from collections.abc import Callable

from relaydesk.core.access.caller import Caller
from relaydesk.core.errors import FaultError, PeerError
from relaydesk.core.gateway.choose import choose_model
from relaydesk.core.gateway.output import Identity, Output
from relaydesk.core.gateway.work import Plan, Work
from relaydesk.core.ports import Clock, Rng
from relaydesk.engine.gateway.count import count_prompt
from relaydesk.engine.gateway.journal import Journal
from relaydesk.engine.gateway.run import Run
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

    def check_accepting(self) -> None:
        """Raises `PeerError` ``shutting_down`` while no new work is taken."""
        if not self._accepting():
            raise PeerError(
                "shutting_down", "this hub is not taking requests now", "try again soon", retry_after=5
            )

    async def open(
        self, body: bytes, plan_of: Callable[[bytes], Plan], *, route: str, caller: Caller, request_id: str
    ) -> Run:
        """Check a request by its dialect's ``plan_of`` and open its run.

        Raises `FaultError` for everything that is wrong with it or with its model's placement; nothing has
        been loaded or waited for by then.
        """
        self.check_accepting()
        plan = plan_of(body)
        name = choose_model(plan.work.model, self._pool.registry.names())
        await self._pool.registry.recheck(name)
        work = plan.work.fitted(self._pool.registry.capabilities(name))
        record = self._journal.open(
            request_id, model=name, key=caller.name, route=route, stream=work.stream, choices=work.choices
        )
        try:
            self._pool.check(name)
        except FaultError as error:
            record.finish(error.fault.rule.status, error.fault)
            raise
        token = self._rng.token_bytes(12).hex()
        output = plan.output(Identity(token, work.model or name, self._clock.wall_ms()))
        return Run(
            work,
            output,
            self._pool,
            record,
            call_prefix=f"call_{token}",
            warm=self._pool.is_warm(name),
            keep_alive_s=plan.keep_alive_s,
        )

    async def count(
        self, body: bytes, work_of: Callable[[bytes], Work], *, route: str, caller: Caller, request_id: str
    ) -> int:
        """How many tokens a request's prompt has. Raises `FaultError` as `open` and a run do."""
        self.check_accepting()
        work = work_of(body)
        name = choose_model(work.model, self._pool.registry.names())
        await self._pool.registry.recheck(name)
        work = work.fitted(self._pool.registry.capabilities(name))
        record = self._journal.open(
            request_id, model=name, key=caller.name, route=route, stream=False, choices=1
        )
        return await count_prompt(self._pool, record, work)

    async def unload(self, plan: Plan, *, route: str, caller: Caller, request_id: str) -> Output:
        """Let go of the plan's model, and what says so. Raises `FaultError`; costs nothing."""
        self.check_accepting()
        work = plan.work
        known = [each for each in self._pool.registry.names() if caller.allows(each.name)]
        name = choose_model(work.model, known)
        record = self._journal.open(
            request_id, model=name, key=caller.name, route=route, stream=work.stream, choices=work.choices
        )
        try:
            await self._pool.let_go(name)
        except FaultError as error:
            record.finish(error.fault.rule.status, error.fault)
            raise
        finally:
            record.finish(200)
        return plan.output(Identity("", work.model or name, self._clock.wall_ms()))
