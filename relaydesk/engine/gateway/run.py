"""One request on its way through an engine and back, streamed or whole.

Every choice is an engine request of its own, with its own slot: ``n`` in one request is counted once by
engines, and shares one slot's cache. Leaving a run early closes its engine connections, which frees the
slots; whatever way a run ends, its record is closed exactly once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Final, NamedTuple

from relaydesk.core.errors import Fault, FaultError, PeerError, as_peer_error
from relaydesk.core.gateway.answer import Answer
from relaydesk.core.gateway.faults import engine_fault
from relaydesk.core.gateway.output import Output
from relaydesk.core.gateway.usage import Tally, Usage
from relaydesk.core.gateway.work import Reader
from relaydesk.core.pool.kvcache import N_UBATCH
from relaydesk.core.pool.slots import Slot
from relaydesk.engine.gateway.books import Books
from relaydesk.engine.gateway.held import Held
from relaydesk.engine.gateway.journal import RequestRecord
from relaydesk.engine.pool.pool import Pool
from relaydesk.engine.tasks import spawn

# Frames of all choices together that may wait for a slow client.
MERGE_LIMIT: Final = 64
CHOICES_AT_ONCE: Final = 16

_INTERNAL: Final = Fault("internal_error", "relaydesk failed on this request", "look for it in the hub's log")
_GONE: Final = Fault("client_closed", "the client left before the answer was complete")


class Stranger(NamedTuple):
    """How somebody from the relay network is served: a model that is loaded, a slot that is lent.

    ``most`` slots strangers may hold at once; one waits ``wait_s`` seconds for his at most.
    """

    most: int
    wait_s: float


class Run:
    """One checked request that its key was granted. Use `frames` or `whole`, once.

    ``warm`` says that its model is loaded, so that an answer is near; ``call_prefix`` begins the ids of tool
    calls that an engine gave none; ``keep_alive_s`` is how long the client wants the model kept afterwards.
    Work without a choice is done once the model is loaded. A ``stranger``'s choices take turns: he holds one
    slot at a time.
    """

    # Whether an answer is read to its very end: what follows the last word may be worth as much.
    reads_on = False

    def __init__(
        self,
        books: Books,
        output: Output,
        pool: Pool,
        record: RequestRecord,
        *,
        call_prefix: str,
        warm: bool,
        keep_alive_s: int | None = None,
        stranger: Stranger | None = None,
    ) -> None:
        work = books.work
        self.stream = work.stream
        self.output = output
        self.warm = warm
        self.record = record
        self._books = books
        self._pool = pool
        self._keep_alive_s = keep_alive_s
        # A request with more choices than these lets others in between: they wait outside the slots' queue.
        self._turns = asyncio.Semaphore(CHOICES_AT_ONCE if stranger is None else 1)
        self._stranger = stranger
        self._readers = [work.reader(number, f"{call_prefix}_{number}") for number in range(work.choices)]

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """The stream in its dialect, frame by frame.

        Raises `FaultError` where it fails: before the first frame by status, after it in-band.
        """
        try:
            async with self._lease() as lease:
                await self._books.before_prefill(lease, self.record.model)
                one = len(self._readers) == 1
                source = self._single(lease) if one else self._merged(lease)
                async with aclosing(source):
                    async for frame in source:
                        yield frame
                usage = self._settle(lease)
            self.record.finish(200)
            yield self.output.close(usage, self.record.spent())
        except FaultError as error:
            self._end(error.fault)
            raise
        except Exception:
            self._end(_INTERNAL)
            raise
        except BaseException:
            # Cancelled or closed: the client left, or the node stops and has said so elsewhere.
            self.leave()
            raise

    async def whole(self, deliver: Callable[[bytes], Awaitable[None]] | None = None) -> bytes:
        """The answer as one body. Raises `FaultError` where it fails.

        ``deliver`` is given the answer before the books are closed: the client need not wait for those.
        """
        try:
            async with self._lease() as lease:
                await self._books.before_prefill(lease, self.record.model)
                answers = [Answer() for _ in self._readers]
                if len(answers) == 1:
                    await self._collect(lease, 0, answers[0])
                else:
                    try:
                        async with asyncio.TaskGroup() as group:
                            for number, answer in enumerate(answers):
                                group.create_task(self._collect(lease, number, answer))
                    except BaseExceptionGroup as errors:
                        raise errors.exceptions[0] from None
                usage = self._settle(lease)
                body = self.output.whole(answers, usage, self.record.spent())
                if deliver is not None:
                    await deliver(body)
            self.record.finish(200)
        except FaultError as error:
            self._end(error.fault)
            raise
        except Exception:
            self._end(_INTERNAL)
            raise
        except BaseException:
            self.leave()
            raise
        return body

    @property
    def exact(self) -> bool:
        """Whether the engine itself has told what every choice used."""
        return all(reader.tally.exact for reader in self._readers)

    def leave(self) -> None:
        """Nobody wants the answer any more. Does nothing where the run has ended by itself."""
        self._end(_GONE)

    def _end(self, fault: Fault) -> None:
        """Close the books and the record on what was done until now, where they are not closed yet."""
        prompt, completion = self._used()
        self._books.settle(prompt, completion)
        self.record.charged(prompt, completion)
        self.record.finish(fault.rule.status, fault)

    def _used(self) -> tuple[int, int]:
        """Tokens read and written so far, from the choices' accounts."""
        usage = self._books.work.usage([reader.tally for reader in self._readers], cached=False)
        if usage.completion_tokens:
            return usage.prompt_tokens, usage.completion_tokens
        if self.record.queue_ms is None or self.record.fault is not None:
            return 0, 0
        # The engine ends the batch that it has begun, whoever has left by then.
        read = self.record.prompt_done + N_UBATCH
        return min(read, usage.prompt_tokens or self._books.work.prompt_bound), 0

    def _usage(self, tallies: list[Tally], *, cached: bool) -> Usage:
        """What the answer cost, once it is there."""
        return self._books.work.usage(tallies, cached=cached)

    def _lease(self) -> AbstractAsyncContextManager[Held]:
        if self._stranger is not None:
            return self._pool.lease_warm(self.record.model, self.record)
        return self._pool.lease(self.record.model, self.record, self._keep_alive_s)

    def _slot(self, lease: Held) -> AbstractAsyncContextManager[Slot]:
        if self._stranger is not None:
            return lease.slots.stranger(self._stranger.most, self._stranger.wait_s)
        return lease.slots.slot(self.record.key)

    async def _single(self, lease: Held) -> AsyncGenerator[bytes, None]:
        reader, say = self._readers[0], self.output.piece
        async with aclosing(self._events(lease, 0, reader)) as events:
            async for data in events:
                piece = reader.read(data)
                if piece is not None and (frame := say(0, piece)):
                    yield frame
        reader.end()

    async def _merged(self, lease: Held) -> AsyncGenerator[bytes, None]:
        """Frames of all choices as they come. The first failure ends all of them.

        No TaskGroup: a generator is resumed by whichever task asks for its next frame, and may be closed.
        """
        queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue(MERGE_LIMIT)
        pumps = [
            spawn(self._pump(lease, number, queue), name=f"choice {number} of {self.record.id}")
            for number in range(len(self._readers))
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
            if pumps:
                await asyncio.wait(pumps)

    async def _pump(self, lease: Held, number: int, queue: asyncio.Queue[bytes | Exception | None]) -> None:
        reader = self._readers[number]
        try:
            async with aclosing(self._events(lease, number, reader)) as events:
                async for data in events:
                    piece = reader.read(data)
                    if piece is not None and (frame := self.output.piece(number, piece)):
                        await queue.put(frame)
            reader.end()
            await queue.put(None)
        except Exception as error:
            # Whatever it is, it ends the run: the reader would wait for this choice for ever.
            await queue.put(error)

    async def _collect(self, lease: Held, number: int, answer: Answer) -> None:
        reader = self._readers[number]
        async with aclosing(self._events(lease, number, reader, hurry=False)) as events:
            async for data in events:
                piece = reader.read(data)
                if piece is not None:
                    answer.add(piece)
        reader.end()

    async def _events(
        self, lease: Held, choice: int, reader: Reader, *, hurry: bool = True
    ) -> AsyncGenerator[bytes, None]:
        """One choice's events as the engine sends them, while a slot is held for it.

        Without ``hurry`` the first token is still read when it comes, the others in batches.
        """
        record = self.record
        async with self._turns, self._slot(lease) as slot:
            if lease.fault is not None:
                raise as_peer_error(lease.fault)
            record.prefill()
            work = self._books.work
            body = work.body(
                choice,
                alias=lease.alias,
                slot=slot.number,
                cache_prompt=slot.may_reuse_cache,
                extensions=lease.extensions,
            )
            tally = reader.tally
            try:
                stream = await lease.engine.stream(work.path, body)
                async with stream:
                    if stream.status != 200:
                        raise as_peer_error(engine_fault(stream.status, stream.error_body))
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
                        if tally.exact and tally.finish_reason is not None and not self.reads_on:
                            return  # all there is to know; the engine's [DONE] says nothing more
            except PeerError as error:
                raise as_peer_error(work.blamed(await lease.why(error.fault))) from error

    def _settle(self, lease: Held) -> Usage:
        tallies: list[Tally] = [reader.tally for reader in self._readers]
        usage = self._usage(tallies, cached=lease.extensions)
        self._books.settle(usage.prompt_tokens, usage.completion_tokens)
        self.record.settle(
            prompt=usage.prompt_tokens,
            cached=usage.cached_tokens,
            completion=usage.completion_tokens,
            finish_reasons=[tally.finish_reason or "" for tally in tallies],
        )
        return usage
