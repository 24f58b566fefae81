"""One request for embeddings on its way through an engine.

Texts are embedded one after the other, in pieces where a text is longer than the engine computes at once:
an engine ends what it has begun though its client left, so what it begins is kept short. Between two pieces
others have their turn.
"""

from __future__ import annotations

import asyncio
from typing import Final, NoReturn

import msgspec

from relaydesk.core.access.caller import Caller
from relaydesk.core.access.quota import Ask, Grant
from relaydesk.core.errors import Fault, FaultError, PeerError
from relaydesk.core.gateway.completions.prompt import Prompt
from relaydesk.core.gateway.embeddings.engine import (
    EMBED_PATH,
    about_input,
    embedded,
    far_body,
    piece_body,
    single,
    too_long,
)
from relaydesk.core.gateway.embeddings.pieces import count, first, later, shortened, tokens_of
from relaydesk.core.gateway.embeddings.request import EmbedRequest
from relaydesk.core.gateway.embeddings.vector import Mean, vector_of
from relaydesk.core.gateway.output import Spent
from relaydesk.core.gateway.prompt_count import TOKENIZE_PATH, tokenize_body
from relaydesk.engine.access.quotas import Quotas
from relaydesk.engine.gateway.journal import RequestRecord
from relaydesk.engine.infer.engine import EngineReply
from relaydesk.engine.pool.lease import Lease
from relaydesk.engine.pool.pool import Pool
from relaydesk.engine.pool.registry import Entry

# Tokens of a text's beginning that each of its further pieces begins with.
ANCHOR: Final = 4

_GONE: Final = Fault("client_closed", "the client left before its texts were embedded")
_INTERNAL: Final = Fault("internal_error", "relaydesk failed on this request", "look for it in the hub's log")


class EmbedResult(msgspec.Struct, frozen=True):
    """What came of a request: a vector for each input (float32, little endian), under the name asked for."""

    request: EmbedRequest
    model: str
    vectors: tuple[bytes, ...]
    prompt_tokens: int
    spent: Spent


class Sizes(msgspec.Struct, frozen=True):
    """What an engine takes: ``limit`` tokens a text, ``piece`` of them at once."""

    limit: int
    piece: int


def sizes_of(model: Entry, engine: Entry, context: int) -> Sizes:
    """What ``engine``, which is the model's own or its embedder, takes; ``context`` is the model's.

    An embedding model cannot read further than it was trained to: encoders have no place for more.
    """
    if model.header is None:
        return Sizes(0, 0)
    if engine is not model:
        return Sizes(context, engine.setup.batch)
    limit = min(context, model.header.context_length or context)
    return Sizes(limit, limit)


class Embedding:
    """One checked request. Use `run`, once: its record and its key's books are closed whichever way it ends.

    ``runner`` is the name of the engine that embeds for the record's model, ``sizes`` what it takes.
    """

    def __init__(
        self,
        request: EmbedRequest,
        pool: Pool,
        quotas: Quotas,
        caller: Caller,
        record: RequestRecord,
        runner: str,
        sizes: Sizes,
    ) -> None:
        self._request = request
        self._pool = pool
        self._quotas = quotas
        self._key = caller.id
        self._record = record
        self._runner = runner
        self._sizes = sizes
        self._total = 0
        self._done = 0

    async def run(self) -> EmbedResult:
        """Embed. Raises `FaultError`: what is refused, and why it failed."""
        grant: Grant | None = None
        try:
            self._pool.check(self._runner)
            grant = await self._quotas.admit(self._key, Ask(prompt=self._request.bound, limit=0))
            async with self._pool.lease(self._runner, self._record, self._request.keep_alive_s) as lease:
                vectors = await (self._near if lease.extensions else self._far)(lease, grant)
            result = EmbedResult(
                self._request,
                self._request.model or self._record.model,
                tuple(vectors),
                self._done,
                self._record.spent(),
            )
            self._record.settle(prompt=self._done, cached=0, completion=0, finish_reasons=[])
            self._record.finish(200)
        except FaultError as error:
            self._record.finish(error.fault.rule.status, error.fault)
            raise
        except Exception:
            self._record.finish(_INTERNAL.rule.status, _INTERNAL)
            raise
        finally:
            # Only a client that left, or a node that stops, ends this with the record still open.
            self._record.finish(_GONE.rule.status, _GONE)
            if grant is not None:
                self._quotas.settle(self._key, grant, self._done, 0)
        return result

    async def _far(self, lease: Lease, grant: Grant) -> list[bytes]:
        """All inputs at once: another server's own business is how."""
        if not self._request.inputs:
            return []
        if grant.recount:
            self._quotas.recount(self._key, grant, self._request.bound)
        async with lease.slots.slot(self._record.key):
            self._record.prefill()
            reply = await self._ask(lease, EMBED_PATH, far_body(lease.alias, self._request))
            found = embedded(reply.status, reply.body, len(self._request.inputs))
        self._done = found.prompt_tokens
        vectors = []
        for raw in found.vectors:
            vectors.append(vector_of(raw))
            await asyncio.sleep(0)  # thousands of them would hold the loop
        return vectors

    async def _near(self, lease: Lease, grant: Grant) -> list[bytes]:
        """One text after the other, all of them counted first: nothing is computed for a request in vain."""
        texts = [await self._tokens(lease, each) for each in self._request.inputs]
        self._total = sum(map(count, texts))
        if grant.recount:
            self._quotas.recount(self._key, grant, self._total)
        return [await self._vector(lease, ids) for ids in texts]

    async def _tokens(self, lease: Lease, text: Prompt) -> bytes:
        """The text's token ids, no more than the model can read. Raises `PeerError` where there are more."""
        ids = await self._tokenized(lease, text.body)
        tokens, limit = count(ids), self._sizes.limit
        if tokens <= limit:
            return ids
        if not self._request.truncate:
            raise too_long(tokens, limit, text.at)
        return shortened(ids, limit, await self._tokenized(lease, b'""'))

    async def _vector(self, lease: Lease, ids: bytes) -> bytes:
        """The vector of one text: the engine's own where it is short enough, else the mean over its pieces.

        A causal model gives the first tokens of a text a state unlike that of all others, whatever they are.
        So each piece begins with the text's own first ones again, and what these add is taken out.
        """
        size, anchor = self._sizes.piece, first(ids, ANCHOR)
        tokens = count(ids)
        if tokens <= size:
            return await self._piece(lease, ids, tokens, normal=True)
        mean = Mean()
        mean.add(await self._piece(lease, first(ids, size), size), size)
        again = await self._piece(lease, anchor, 0)
        for piece in later(ids, size, size - ANCHOR):
            new = count(piece)
            mean.add(await self._piece(lease, anchor + b"," + piece, new), ANCHOR + new)
            mean.add(again, -ANCHOR)
        return mean.vector()

    async def _piece(self, lease: Lease, ids: bytes, new: int, *, normal: bool = False) -> bytes:
        """The vector of ``ids``, ``new`` of which were not read before; ``normal``: of length 1."""
        async with lease.slots.slot(self._record.key):
            self._record.prefill()
            reply = await self._ask(lease, EMBED_PATH, piece_body(lease.alias, ids, normal=normal))
        vector = single(reply.status, reply.body)
        self._done += new
        self._record.progress(self._done, self._total)
        return vector

    async def _tokenized(self, lease: Lease, text: bytes) -> bytes:
        reply = await self._ask(lease, TOKENIZE_PATH, tokenize_body(text))
        return tokens_of(reply.status, reply.body)

    async def _ask(self, lease: Lease, path: str, body: bytes) -> EngineReply:
        if lease.fault is not None:
            _fail(lease.fault)
        try:
            return await lease.engine.json("POST", path, body)
        except PeerError as error:
            _fail(about_input(await lease.why(error.fault)))


def _fail(fault: Fault) -> NoReturn:
    raise PeerError(fault.code, fault.message, fault.hint, param=fault.param, retry_after=fault.retry_after)
