"""One chat request on its way through an engine and back, streamed or whole.

Every choice is an engine request of its own, with its own slot: ``n`` in one request is counted once by
engines, and shares one slot's cache. Leaving a run early closes its engine connections, which frees the
slots; whatever way a run ends, its record is closed exactly once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

from relaydesk.core.errors import Fault, FaultError, PeerError
from relaydesk.core.gateway.chunk import ChunkRewriter, Identity, call_prefix, usage_frame
from relaydesk.core.gateway.faults import engine_fault
from relaydesk.core.gateway.fold import Fold
from relaydesk.core.gateway.piece import ChoiceStream
from relaydesk.core.gateway.rebuild import engine_body
from relaydesk.core.gateway.request import ChatRequest
from relaydesk.core.gateway.sse import DONE, data_frame
from relaydesk.core.gateway.usage import Tally, Usage, total_usage
from relaydesk.engine.gateway.journal import RequestRecord
from relaydesk.engine.pool.lease import Lease
from relaydesk.engine.pool.pool import Pool
from relaydesk.engine.tasks import spawn

CHAT_PATH: Final = "/v1/chat/completions"
# Frames of all choices together that may wait for a slow client.
MERGE_LIMIT: Final = 64

_INTERNAL: Final = Fault("internal_error", "relaydesk failed on this request", "look for it in the hub's log")
_GONE: Final = Fault("client_closed", "the client left before the answer was complete")


class ChatRun:
    """One checked request. Use `frames` or `whole`, once.

    ``warm`` says that its model is loaded, so that an answer is near.
    """

    def __init__(
        self, request: ChatRequest, identity: Identity, pool: Pool, record: RequestRecord, *, warm: bool
    ) -> None:
        self.stream = request.stream
        self.warm = warm
        self.record = record
        self._request = request
        self._identity = identity
        self._pool = pool

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """The SSE frames, ``[DONE]`` last.

        Raises `FaultError` where it fails: before the first frame by status, after it in-band.
        """
        try:
            async with self._pool.lease(self.record.model, self.record) as lease:
                rewriters = [ChunkRewriter(self._identity, i) for i in range(self._request.n)]
                one = len(rewriters) == 1
                source = self._single(lease, rewriters[0]) if one else self._merged(lease, rewriters)
                async with aclosing(source):
                    async for frame in source:
                        yield frame
                tallies = [rewriter.tally for rewriter in rewriters]
                usage = self._settle(lease, tallies)
                if self._request.include_usage:
                    yield usage_frame(self._identity, usage)
            self.record.finish(200)
            yield data_frame(DONE)
        except FaultError as error:
            self.record.finish(error.fault.rule.status, error.fault)
            raise
        except Exception:
            self.record.finish(_INTERNAL.rule.status, _INTERNAL)
            raise
        except BaseException:
            # Cancelled or closed: the client left, or the node stops and has said so elsewhere.
            self.leave()
            raise

    async def whole(self, deliver: Callable[[bytes], Awaitable[None]] | None = None) -> bytes:
        """The answer as one JSON body. Raises `FaultError` where it fails.

        ``deliver`` is given the answer before the books are closed: the client need not wait for those.
        """
        try:
            async with self._pool.lease(self.record.model, self.record) as lease:
                fold = Fold(self._identity, self._request.n)
                streams = [ChoiceStream(call_prefix(self._identity, i)) for i in range(self._request.n)]
                if len(streams) == 1:
                    await self._collect(lease, 0, streams[0], fold)
                else:
                    try:
                        async with asyncio.TaskGroup() as group:
                            for number, stream in enumerate(streams):
                                group.create_task(self._collect(lease, number, stream, fold))
                    except BaseExceptionGroup as errors:
                        raise errors.exceptions[0] from None
                body = fold.result(self._settle(lease, [stream.tally for stream in streams]))
                if deliver is not None:
                    await deliver(body)
            self.record.finish(200)
        except FaultError as error:
            self.record.finish(error.fault.rule.status, error.fault)
            raise
        except Exception:
            self.record.finish(_INTERNAL.rule.status, _INTERNAL)
            raise
        except BaseException:
            self.leave()
            raise
        return body

    def leave(self) -> None:
        """Nobody wants the answer any more. Does nothing where the run has ended by itself."""
        self.record.finish(_GONE.rule.status, _GONE)

    async def _single(self, lease: Lease, rewriter: ChunkRewriter) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._events(lease, 0, rewriter.tally)) as events:
            async for data in events:
                if frame := rewriter.feed(data):
                    yield frame
        rewriter.end()

    async def _merged(self, lease: Lease, rewriters: list[ChunkRewriter]) -> AsyncGenerator[bytes, None]:
        """Frames of all choices as they come. The first failure ends all of them.

        No TaskGroup: a generator is resumed by whichever task asks for its next frame, and may be closed.
        """
        queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue(MERGE_LIMIT)
        pumps = [
            spawn(self._pump(lease, number, rewriter, queue), name=f"choice {number} of {self.record.id}")
            for number, rewriter in enumerate(rewriters)
        ]
        try:
            running = len(pumps)
            while running:
                item = await queue.get()
                if isinstance(item, bytes):
                    yield item
                elif item is None:
                    running -= 1
                else:
                    raise item
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.wait(pumps)

    async def _pump(
        self,
        lease: Lease,
        number: int,
        rewriter: ChunkRewriter,
        queue: asyncio.Queue[bytes | Exception | None],
    ) -> None:
        try:
            async with aclosing(self._events(lease, number, rewriter.tally)) as events:
                async for data in events:
                    if frame := rewriter.feed(data):
                        await queue.put(frame)
            rewriter.end()
            await queue.put(None)
        except Exception as error:
            # Whatever it is, it ends the run: the reader would wait for this choice for ever.
            await queue.put(error)

    async def _collect(self, lease: Lease, number: int, stream: ChoiceStream, fold: Fold) -> None:
        async with aclosing(self._events(lease, number, stream.tally, hurry=False)) as events:
            async for data in events:
                piece = stream.read(data)
                if piece is not None:
                    fold.add(number, piece)
        stream.end()

    async def _events(
        self, lease: Lease, choice: int, tally: Tally, *, hurry: bool = True
    ) -> AsyncGenerator[bytes, None]:
        """One choice's events as the engine sends them, while a slot is held for it.

        Without ``hurry`` the first token is still read when it comes, the others in batches.
        """
        record = self.record
        async with lease.slots.slot(record.key) as slot:
            if lease.fault is not None:
                raise _error(lease.fault)
            record.prefill()
            body = engine_body(
                self._request,
                alias=lease.alias,
                slot=slot.number,
                cache_prompt=slot.may_reuse_cache,
                choice=choice,
                extensions=lease.extensions,
            )
            try:
                stream = await lease.engine.stream(CHAT_PATH, body)
                async with stream:
                    if stream.status != 200:
                        raise _error(engine_fault(stream.status, stream.error_body))
                    counted = 0
                    async for data in stream:
                        yield data
                        # The consumer has read the event by now, so the account includes it.
                        if tally.completion_tokens > counted:
                            record.token(tally.completion_tokens - counted)
                            if not hurry and counted == 0:
                                stream.relax()
                            counted = tally.completion_tokens
                        elif tally.progress is not None and counted == 0:
                            record.progress(*tally.progress)
                        if tally.exact and tally.finish_reason is not None:
                            return  # all there is to know; the engine's [DONE] says nothing more
            except PeerError as error:
                raise _error(await lease.why(error.fault)) from error

    def _settle(self, lease: Lease, tallies: list[Tally]) -> Usage:
        usage = total_usage(tallies, cached=lease.extensions)
        self.record.settle(
            prompt=usage.prompt_tokens,
            cached=tallies[0].cached_tokens if lease.extensions else 0,
            completion=usage.completion_tokens,
            finish_reasons=[tally.finish_reason or "" for tally in tallies],
        )
        return usage


def _error(fault: Fault) -> PeerError:
    return PeerError(fault.code, fault.message, fault.hint, param=fault.param, retry_after=fault.retry_after)
