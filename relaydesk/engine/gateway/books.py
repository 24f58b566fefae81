"""What one request costs its key: granted before any work, settled whichever way it ends."""

from __future__ import annotations

from relaydesk.core.access.caller import Caller
from relaydesk.core.access.quota import Ask, Grant
from relaydesk.core.gateway.bound import template_bound
from relaydesk.core.gateway.work import Capabilities, Work
from relaydesk.engine.access.quotas import Quotas
from relaydesk.engine.gateway.count import counted_by
from relaydesk.engine.gateway.held import Held

# What an answer may come to where neither its client nor its model says: a far server's.
_UNKNOWN_LIMIT = 32_768


class Books:
    """One request's grant. `work` is it as its key may have it done, `bound` the most its prompt can be."""

    def __init__(self, quotas: Quotas, caller: Caller, grant: Grant, work: Work, bound: int) -> None:
        self.work = work
        self._quotas = quotas
        self._key = caller.id
        self._grant = grant
        self.bound = bound

    @classmethod
    async def open(
        cls, quotas: Quotas, caller: Caller, work: Work, capabilities: Capabilities, context: int
    ) -> Books:
        """Set aside what ``work`` may cost at most; ``context`` is its model's, 0 where not known.

        Raises `PeerError` with one of the three 429 codes, having set nothing aside.
        """
        limit = work.limit or context or _UNKNOWN_LIMIT
        bound = work.prompt_bound + template_bound(capabilities.template_bytes) if work.choices else 0
        grant = await quotas.admit(caller.id, Ask(prompt=bound, limit=limit, choices=work.choices))
        if caller.spec is not None and caller.spec.limits.tokens_per_day and work.limit is None:
            # What was set aside is what it may have: a server behind a URL knows no context of ours.
            work = work.limited(limit)
        return cls(quotas, caller, grant, work, bound)

    async def before_prefill(self, lease: Held, model: str) -> None:
        """Count the prompt exactly where its bound was more than the key has left, and limit the answer.

        Raises `PeerError` ``tokens_per_day_exceeded`` where too little is left; nothing is charged then.
        """
        if not self._grant.recount:
            return
        prompt = await counted_by(lease, model, self.work) if lease.extensions else self.bound
        each = self._quotas.recount(self._key, self._grant, prompt)
        self.work = self.work.limited(each)

    @classmethod
    def free(cls, work: Work, capabilities: Capabilities) -> Books:
        """Books of a request that no key of ours pays for: nothing is granted, nothing charged."""
        return _NoBooks(work, work.prompt_bound + template_bound(capabilities.template_bytes))

    def settle(self, prompt: int, completion: int) -> None:
        """Charge what was used and give back the rest. The second time does nothing."""
        self._quotas.settle(self._key, self._grant, prompt, completion)


class _NoBooks(Books):
    def __init__(self, work: Work, bound: int) -> None:
        self.work = work
        self.bound = bound

    async def before_prefill(self, lease: Held, model: str) -> None:
        """There is nothing to count."""

    def settle(self, prompt: int, completion: int) -> None:
        """There is nobody to charge."""
