"""The gateway: from a request's bytes to a run, all decided that can be before an engine is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from relaydesk.core.access.quota import Ask
from relaydesk.core.errors import Fault, FaultError, PeerError, as_peer_error
from relaydesk.core.gateway.choose import choose_model
from relaydesk.core.gateway.decode import unsupported
from relaydesk.core.gateway.embeddings.request import EmbedRequest, check_embedding
from relaydesk.core.gateway.faults import context_fault
from relaydesk.core.gateway.incoming import Incoming
from relaydesk.core.gateway.output import Identity
from relaydesk.core.gateway.work import Capabilities, Plan, Work
from relaydesk.core.ports import Clock, Rng
from relaydesk.engine.access.audit import Audit
from relaydesk.engine.access.quotas import Quotas
from relaydesk.engine.gateway.books import Books
from relaydesk.engine.gateway.count import count_prompt
from relaydesk.engine.gateway.embed import Embedding, EmbedResult, sizes_of
from relaydesk.engine.gateway.journal import Journal, RequestRecord
from relaydesk.engine.gateway.network_lease import Network
from relaydesk.engine.gateway.outward import CAPABILITIES, Outward
from relaydesk.engine.gateway.run import Run, Stranger
from relaydesk.engine.gateway.unload import Unload
from relaydesk.engine.pool.pool import Pool

_GONE: Final = Fault("client_closed", "the client left before its request began")


class Gateway:
    """Opens runs. ``accepting`` is false while the node starts or drains.

    ``network`` is the asking side of the relay network, None while it is not up.
    """

    def __init__(
        self,
        pool: Pool,
        journal: Journal,
        quotas: Quotas,
        audit: Audit,
        clock: Clock,
        rng: Rng,
        accepting: Callable[[], bool],
        network: Callable[[], Network | None] = lambda: None,
    ) -> None:
        self._pool = pool
        self._journal = journal
        self._quotas = quotas
        self._audit = audit
        self._clock = clock
        self._rng = rng
        self._accepting = accepting
        self._outward = Outward(network, quotas, pool)

    def refuse_away(self, fault: Fault) -> None:
        """The node stops: what the relay network still answers ends with ``fault``."""
        self._outward.refuse_all(fault)

    def check_accepting(self) -> None:
        """Raises `PeerError` ``shutting_down`` while no new work is taken."""
        if not self._accepting():
            raise PeerError(
                "shutting_down", "this hub is not taking requests now", "try again soon", retry_after=5
            )

    async def open(self, body: bytes, plan_of: Callable[[bytes], Plan], incoming: Incoming) -> Run:
        """Check a request by its dialect's ``plan_of``, have its key granted it, and open its run.

        Raises `FaultError` for everything that is wrong with it, with its key's quota or with its model's
        placement; nothing has been loaded by then.
        """
        with self._refusals(incoming):
            self.check_accepting()
            plan = plan_of(body)
            going = self._outward.checked(plan, body, incoming, self._pool.registry.names())
            if going is not None:
                name, work, capabilities = going.name, going.work, CAPABILITIES
            else:
                name = await self._model(plan.work.model, incoming)
                capabilities = self._pool.registry.capabilities(name)
                if plan.work.choices:
                    _require_completion(name, capabilities)
                work = plan.work.fitted(capabilities)
        record = self._record(incoming, name, stream=work.stream, choices=work.choices)
        token = self._rng.token_bytes(12).hex()
        identity = Identity(token, work.model or name, self._clock.wall_ms())
        try:
            if going is not None:
                _require_room(work, going.window)
                return await self._outward.run(going, plan, incoming, record, identity)
            if not plan.unload:
                self._pool.check(name)
            context = self._pool.context(self._pool.registry.entry(name))
            _require_room(work, context)
            books = await Books.open(self._quotas, incoming.caller, work, capabilities, context)
        except FaultError as error:
            record.finish(error.fault.rule.status, error.fault)
            raise
        except BaseException:
            # The client left while its key's books waited for the disk.
            record.finish(_GONE.rule.status, _GONE)
            raise
        kind = Unload if plan.unload else Run
        return kind(
            books,
            plan.output(identity),
            self._pool,
            record,
            call_prefix=f"call_{token}",
            warm=self._pool.is_warm(name),
            keep_alive_s=plan.keep_alive_s,
        )

    def open_stranger(
        self,
        body: bytes,
        plan_of: Callable[[bytes], Plan],
        incoming: Incoming,
        *,
        model: str,
        limit: int,
        stranger: Stranger,
    ) -> Run:
        """Open the run of a request from the relay network, which its ticket has paid for.

        ``model`` is one that is loaded and offered; ``limit`` tokens are the most that all choices may have.
        Whether new work is taken is not asked: a ticket that was issued is honoured. Raises `FaultError`.
        """
        with self._refusals(incoming):
            plan = plan_of(body)
            work = plan.work
            capabilities = self._pool.registry.capabilities(model)
            _require_completion(model, capabilities)
            work = work.fitted(capabilities).limited(_each(limit, work.choices))
        record = self._record(incoming, model, stream=work.stream, choices=work.choices)
        try:
            context = self._pool.context(self._pool.registry.entry(model))
            _require_room(work, context)
        except FaultError as error:
            record.finish(error.fault.rule.status, error.fault)
            raise
        token = self._rng.token_bytes(12).hex()
        return Run(
            Books.free(work, capabilities),
            plan.output(Identity(token, model, self._clock.wall_ms())),
            self._pool,
            record,
            call_prefix=f"call_{token}",
            warm=True,
            stranger=stranger,
        )

    async def count(self, body: bytes, work_of: Callable[[bytes], Work], incoming: Incoming) -> int:
        """How many tokens a request's prompt has. Raises `FaultError` as `open` and a run do."""
        with self._refusals(incoming):
            self.check_accepting()
            work = work_of(body)
            name = await self._model(work.model, incoming)
            capabilities = self._pool.registry.capabilities(name)
            _require_completion(name, capabilities)
            work = work.fitted(capabilities)
            # It costs no tokens, but it is a request like any other.
            grant = await self._quotas.admit(incoming.caller.id, Ask(prompt=0, limit=0, choices=0))
        try:
            record = self._record(incoming, name, stream=False, choices=work.choices)
            return await count_prompt(self._pool, record, work)
        finally:
            self._quotas.settle(incoming.caller.id, grant, 0, 0)

    async def embed(
        self, body: bytes, request_of: Callable[[bytes], EmbedRequest], incoming: Incoming
    ) -> EmbedResult:
        """Check a request by its dialect's ``request_of`` and embed what it asks for.

        Raises `FaultError`; whatever can be refused without an engine is, before one is loaded.
        """
        with self._refusals(incoming):
            self.check_accepting()
            request = request_of(body)
            name = await self._model(request.model, incoming)
            registry = self._pool.registry
            check_embedding(request, registry.capabilities(name))
        entry, engine = registry.entry(name), registry.entry(registry.embedder(name))
        record = self._record(incoming, name, stream=False, choices=len(request.inputs))
        sizes = sizes_of(entry, engine, self._pool.context(entry))
        engine_name = engine.spec.name
        run = Embedding(request, self._pool, self._quotas, incoming.caller, record, engine_name, sizes)
        return await run.run()

    async def _model(self, requested: str | None, incoming: Incoming) -> str:
        """The model of this hub that is meant, out of those that the key may use."""
        every = self._pool.registry.names()
        self._outward.check_here(requested, incoming, every)
        known = [each for each in every if incoming.caller.allows(each.name)]
        if every and not known and not requested:
            raise PeerError(
                "invalid_request", "this key may use none of the models that there are", param="model"
            )
        name = choose_model(requested, known)
        await self._pool.registry.recheck(name)
        return name

    def _record(self, incoming: Incoming, name: str, *, stream: bool, choices: int) -> RequestRecord:
        return self._journal.open(
            incoming.request_id,
            model=name,
            key=incoming.caller.name,
            route=incoming.route,
            stream=stream,
            choices=choices,
            caller=incoming.caller,
            client=incoming.client,
        )

    @contextmanager
    def _refusals(self, incoming: Incoming) -> Iterator[None]:
        """What is refused before it has a model is on record all the same."""
        try:
            yield
        except FaultError as error:
            self._journal.refused(incoming, error.fault)
            self._audit.refused(incoming, error.fault)
            raise


def _require_room(work: Work, context: int) -> None:
    """Refuse what cannot fit, before an engine says it; ``context`` is 0 where it is not known."""
    if 0 < context < (floor := work.prompt_floor):
        raise as_peer_error(work.blamed(context_fault(floor, context, at_least=True)))


def _each(limit: int, choices: int) -> int:
    """What each of several choices may have of a limit for all of them."""
    if choices > limit:
        raise PeerError(
            "invalid_request",
            f"{choices} choices cannot share {limit} tokens of output",
            "reserve more output, or ask for fewer choices",
            param="n",
        )
    return limit // max(choices, 1)


def _require_completion(name: str, capabilities: Capabilities) -> None:
    if not capabilities.completion:
        raise unsupported(
            "model", f"the model {name} only embeds, it writes no text", "ask /v1/embeddings, or use another"
        )
