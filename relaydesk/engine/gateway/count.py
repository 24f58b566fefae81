"""Counting a prompt's tokens by the model that would read it."""

from __future__ import annotations

from typing import Final

from relaydesk.core.errors import Fault, FaultError, PeerError
from relaydesk.core.gateway.prompt_count import counted
from relaydesk.core.gateway.work import Work
from relaydesk.engine.gateway.held import Held
from relaydesk.engine.gateway.journal import RequestRecord
from relaydesk.engine.pool.pool import Pool

_GONE: Final = Fault("client_closed", "the client left before its prompt was counted")


async def count_prompt(pool: Pool, record: RequestRecord, work: Work) -> int:
    """Tokens of the prompt of ``work``, which has one choice. Loads its model where it is cold.

    The engine counts beside its answers, so that no slot is waited for. The record is closed either way.
    Raises `FaultError`: ``unsupported`` for a server registered by URL, whose tokenizer is out of reach.
    """
    try:
        pool.check(record.model)
        async with pool.lease(record.model, record) as lease:
            count = await counted_by(lease, record.model, work)
            record.finish(200)
    except FaultError as error:
        record.finish(error.fault.rule.status, error.fault)
        raise
    finally:
        # Only a client that left ends this without a fault and without a count.
        record.finish(_GONE.rule.status, _GONE)
    return count


async def counted_by(lease: Held, model: str, work: Work) -> int:
    """Tokens of all prompts of ``work``, asked of the engine that a lease holds. Raises `PeerError`."""
    if not lease.extensions:
        raise PeerError("unsupported", f"the server behind {model} does not count tokens")
    counting = work.counting(lease.alias)
    try:
        replies = [await lease.engine.json("POST", path, body) for path, body in counting.requests]
        return counting.known + sum(counted(reply.status, reply.body) for reply in replies)
    except PeerError as error:
        fault = work.blamed(await lease.why(error.fault))
        raise PeerError(
            fault.code, fault.message, fault.hint, param=fault.param, retry_after=fault.retry_after
        ) from error
