"""Embeddings through scripted engines: pieces, order, refusals, books, and who leaves."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relaydesk.core.access.caller import Caller
from relaydesk.core.errors import Fault, FaultError, PeerError
from relaydesk.core.gateway.chat import chat_plan
from relaydesk.core.gateway.embeddings.request import EmbedRequest, parse_embedding
from relaydesk.core.gateway.embeddings.vector import numbers_of
from relaydesk.core.gateway.incoming import Incoming
from relaydesk.engine.gateway.embed import ANCHOR, EmbedResult
from tests.support import gguf_builder
from tests.support.scripted_engine import DIMENSIONS, Script, whole
from tests.support.scripted_hub import ScriptedHub

ANN = Incoming(Caller("ann", "ann"), "/v1/embeddings", "r", "10.0.0.9")
EMBEDDER = "tiny (embeddings)"


async def embed(hub: ScriptedHub, incoming: Incoming = ANN, **fields: Any) -> EmbedResult:
    return await hub.gateway.embed(msgspec.json.encode(fields), parse_embedding, incoming)


async def refused(hub: ScriptedHub, **fields: Any) -> Fault:
    with pytest.raises(FaultError) as caught:
        await embed(hub, **fields)
    assert hub.journal.in_flight == 0
    return caught.value.fault


def engine_asked(hub: ScriptedHub, name: str = EMBEDDER) -> list[list[int]]:
    """The token ids that the engine was given to embed, one list a request."""
    return [body["input"] for path, body in hub.starter.engine(name).asked if path == "/v1/embeddings"]


def own(text: str) -> tuple[float, ...]:
    """What the scripted engine makes of a text by itself."""
    reply = json.loads(whole("/v1/embeddings", {"input": list(text.encode())}).body)
    return struct.unpack(f"<{DIMENSIONS}f", base64.b64decode(reply["data"][0]["embedding"]))


def add_embedding_model(hub: ScriptedHub, **changes: Any) -> Path:
    path = hub.dir / "embedding.gguf"
    path.write_bytes(gguf_builder.tiny(**{"llama__pooling_type": 3, **changes}))
    return path


async def test_vectors_are_the_engines_own_and_in_order(hub: ScriptedHub) -> None:
    result = await embed(hub, input=["red", "blue", "red"], model="tiny")
    vectors = [numbers_of(vector) for vector in result.vectors]
    assert vectors == [own("red"), own("blue"), own("red")]
    assert (result.model, result.prompt_tokens) == ("tiny", 10)
    assert result.spent.total > 0
    (view,) = hub.journal.view().recent
    assert (view.id, view.route, view.status, view.state) == ("r", "/v1/embeddings", 200, "done")
    assert (view.model, view.prompt_tokens, view.completion_tokens, view.choices) == ("tiny", 10, 0, 3)
    await hub.idle()


async def test_a_model_that_writes_embeds_in_an_engine_beside_it(hub: ScriptedHub) -> None:
    await embed(hub, input="red")
    assert hub.starter.alive == [EMBEDDER]
    setup = hub.starter.setups[EMBEDDER]
    assert (setup.pooling, setup.batch) == ("mean", 128)
    await hub.warm()
    assert not hub.starter.setups["tiny"].embeds
    assert sorted(hub.starter.alive) == ["tiny", EMBEDDER]


async def test_a_long_text_is_the_mean_over_its_pieces(hub: ScriptedHub) -> None:
    text = "".join(chr(97 + place % 26) for place in range(300))
    (vector,) = (await embed(hub, input=text)).vectors
    pieces = engine_asked(hub)
    ids = list(text.encode())
    anchor = ids[:ANCHOR]
    assert pieces == [ids[:128], anchor, anchor + ids[128:252], anchor + ids[252:]]
    expected = [0.0] * DIMENSIONS
    for sign, piece in ((1, pieces[0]), (1, pieces[2]), (-1, anchor), (1, pieces[3]), (-1, anchor)):
        for place, token in enumerate(piece):
            expected[token % DIMENSIONS] += sign / (1 + place)
    length = math.hypot(*expected)
    assert numbers_of(vector) == pytest.approx([each / length for each in expected], abs=1e-5)
    assert hub.journal.view().recent[0].prompt_tokens == 300


async def test_a_text_of_just_one_piece_is_the_engines_own(hub: ScriptedHub) -> None:
    text = "x" * 128
    (vector,) = (await embed(hub, input=text)).vectors
    assert numbers_of(vector) == own(text)
    assert len(engine_asked(hub)) == 1


async def test_too_long_is_refused_before_anything_is_computed(hub: ScriptedHub) -> None:
    fault = await refused(hub, input=["short", "x" * 513])
    assert (fault.code, fault.param) == ("context_length_exceeded", "input[1]")
    assert "maximum context length is 512 tokens" in fault.message
    assert "513" in fault.message
    assert engine_asked(hub) == []
    assert len((await embed(hub, input="x" * 512)).vectors) == 1


async def test_a_text_may_be_cut_where_its_client_wants_that(hub: ScriptedHub) -> None:
    def request(_: bytes) -> EmbedRequest:
        parsed = parse_embedding(msgspec.json.encode({"input": "x" * 600}))
        return msgspec.structs.replace(parsed, truncate=True)

    result = await hub.gateway.embed(b"", request, ANN)
    assert result.prompt_tokens == 512


async def test_nothing_is_loaded_by_a_refusal(hub: ScriptedHub) -> None:
    assert (await refused(hub, input=[1, 2])).code == "invalid_request"
    assert (await refused(hub, input="a", model="nobody")).code == "model_not_found"
    assert (await refused(hub, input="a", dimensions=3)).param == "dimensions"
    assert (await refused(hub)).param == "input"
    hub.accepting = False
    assert (await refused(hub, input="a")).code == "shutting_down"
    assert hub.starter.starts == []


async def test_a_model_made_to_embed_does_so_itself_and_writes_nothing(hub: ScriptedHub) -> None:
    await hub.add("nomic", path=str(add_embedding_model(hub)), slots=4, ctx=512)
    (vector,) = (await embed(hub, input="x" * 300, model="nomic")).vectors
    assert numbers_of(vector) == own("x" * 300)  # in one piece
    assert hub.starter.setups["nomic"].pooling == "file"
    assert hub.starter.starts[-1].slots == 1
    body = msgspec.json.encode({"model": "nomic", "messages": [{"role": "user", "content": "Hi"}]})
    with pytest.raises(PeerError) as caught:
        await hub.gateway.open(body, chat_plan, ANN)
    assert (caught.value.fault.code, caught.value.fault.param) == ("unsupported", "model")


async def test_a_model_made_to_embed_reads_no_further_than_it_was_trained_to(hub: ScriptedHub) -> None:
    path = add_embedding_model(hub, llama__context_length=256)
    await hub.add("bert", path=str(path), ctx=2048)
    fault = await refused(hub, input="x" * 257, model="bert")
    assert "maximum context length is 256 tokens" in fault.message


async def test_a_model_that_ranks_does_neither(hub: ScriptedHub) -> None:
    path = hub.dir / "rank.gguf"
    path.write_bytes(gguf_builder.tiny(llama__pooling_type=4))
    await hub.add("rank", path=str(path))
    assert (await refused(hub, input="a", model="rank")).param == "model"


async def test_a_far_server_is_asked_once_and_for_everything(hub: ScriptedHub) -> None:
    await hub.add("far", kind="url", url="http://127.0.0.1:1/v1")
    items = [{"index": 1, "embedding": [3.0, 4.0]}, {"index": 0, "embedding": [1.0, 2.0]}]
    answer = json.dumps({"data": items, "usage": {"prompt_tokens": 9}}).encode()
    hub.starter.whole = lambda _path, _body: Script(body=answer)
    result = await embed(hub, input=[[5], [6, 7]], model="far", dimensions=2, encoding_format="base64")
    assert [numbers_of(vector) for vector in result.vectors] == [(1.0, 2.0), (3.0, 4.0)]
    assert result.prompt_tokens == 9
    ((path, body),) = hub.starter.engine("far").asked
    assert path == "/v1/embeddings"
    assert body == {
        "model": "far",
        "encoding_format": "base64",
        "input": [[5], [6, 7]],
        "dimensions": 2,
    }


async def test_an_engine_that_fails_is_said_and_recorded(hub: ScriptedHub) -> None:
    error = b'{"error":{"code":500,"message":"boom","type":"server_error"}}'
    hub.starter.whole = lambda path, body: (
        whole(path, body) if "token" in path else Script(status=500, body=error)
    )
    assert (await refused(hub, input="a")).code == "engine_failed"
    (view,) = hub.journal.view().recent
    assert (view.status, view.state) == (502, "failed")
    await hub.idle()


async def test_an_engine_that_dies_is_the_reason(hub: ScriptedHub) -> None:
    gate = asyncio.Event()
    hub.starter.whole = lambda path, body: (
        whole(path, body) if "token" in path else Script(before=[gate], body=b"{}")
    )
    asking = asyncio.create_task(embed(hub, input="a"))
    await hub.until(lambda: hub.starter.open == 1)
    hub.starter.crash(EMBEDDER, "it was killed (SIGKILL)")
    with pytest.raises(PeerError) as caught:
        await asking
    assert "SIGKILL" in caught.value.fault.message
    assert hub.journal.view().recent[0].state == "failed"


async def test_leaving_ends_the_engine_request_and_charges_what_was_read(hub: ScriptedHub) -> None:
    spec, _ = await hub.ring.add("ann", {"tokens_per_day": 10_000})
    incoming = Incoming(Caller("ann", spec.id, spec), "/v1/embeddings", "r")
    gate = asyncio.Event()
    hub.starter.whole = lambda path, body: held(path, body, gate)
    asking = asyncio.create_task(embed(hub, incoming, input=["red", "blue"]))
    await hub.until(
        lambda: engine_asked(hub) == [list(b"red"), list(b"blue")] if hub.starter.engines else False
    )
    asking.cancel()
    await asyncio.wait([asking])
    assert asking.cancelled()
    await hub.idle()
    (view,) = hub.journal.view().recent
    assert (view.status, view.state) == (499, "cancelled")
    standing = hub.quotas.standing(spec.id)
    assert (standing.used, standing.reserved, standing.running) == (3, 0, 0)


def held(path: str, body: dict[str, Any], gate: asyncio.Event) -> Script:
    """The scripted engine's answer, but to ``blue`` only once the gate is open."""
    script = whole(path, body)
    if path == "/v1/embeddings" and body["input"] == list(b"blue"):
        return Script(body=script.body, before=[gate])
    return script


async def test_what_is_embedded_counts_for_the_day(hub: ScriptedHub) -> None:
    spec, _ = await hub.ring.add("ann", {"tokens_per_day": 30})
    incoming = Incoming(Caller("ann", spec.id, spec), "/v1/embeddings", "r")
    await embed(hub, incoming, input="x" * 20)
    assert hub.quotas.standing(spec.id).used == 20
    # The bound is more than what is left; the exact count decides.
    with pytest.raises(PeerError):
        await embed(hub, incoming, input="x" * 10)
    assert engine_asked(hub) == [[120] * 20]
    await embed(hub, incoming, input="x" * 9)
    assert hub.quotas.standing(spec.id).used == 29
    with pytest.raises(PeerError) as caught:
        await embed(hub, incoming, input="xx")
    assert caught.value.fault.code == "tokens_per_day_exceeded"
    assert hub.quotas.standing(spec.id).used == 29
    await hub.idle()


async def test_texts_of_two_requests_take_turns(hub: ScriptedHub) -> None:
    def slowly(path: str, body: dict[str, Any]) -> Script:
        return Script(body=whole(path, body).body, before=[0.02] if path == "/v1/embeddings" else [])

    hub.starter.whole = slowly
    first = asyncio.create_task(embed(hub, input=["aa"] * 6))
    await hub.until(lambda: bool(hub.starter.engines) and len(engine_asked(hub)) >= 1)
    await embed(hub, Incoming(ANN.caller, ANN.route, "s"), input="bb")
    await first
    order = engine_asked(hub)
    assert len(order) == 7
    assert order.index(list(b"bb")) < 6
