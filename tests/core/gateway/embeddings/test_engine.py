from __future__ import annotations

import json
from typing import Any

import pytest

from relaydesk.core.errors import Fault, PeerError
from relaydesk.core.gateway.embeddings.engine import (
    about_input,
    embedded,
    far_body,
    piece_body,
    single,
    too_long,
)
from relaydesk.core.gateway.embeddings.request import parse_embedding


def reply(*items: Any, **more: Any) -> bytes:
    return json.dumps({"data": list(items), **more}).encode()


def item(index: int, embedding: Any = (1.0,)) -> dict[str, Any]:
    return {"object": "embedding", "index": index, "embedding": embedding}


def failure(status: int, body: bytes, count: int = 1) -> Fault:
    with pytest.raises(PeerError) as caught:
        embedded(status, body, count)
    return caught.value.fault


def test_a_piece_is_token_ids_and_its_length_is_asked_for_where_it_counts() -> None:
    assert json.loads(piece_body("m", b"1,2", normal=True)) == {
        "model": "m",
        "encoding_format": "base64",
        "input": [1, 2],
    }
    assert json.loads(piece_body("m", b"1", normal=False))["embd_normalize"] == -1


def test_a_far_server_gets_openais_fields_and_every_input() -> None:
    request = parse_embedding(
        b'{"input":["a",\t"b"],"dimensions":4,"encoding_format":"base64","truncate":true,"user":"u"}'
    )
    assert json.loads(far_body("far/model", request)) == {
        "model": "far/model",
        "encoding_format": "base64",
        "input": ["a", "b"],
        "dimensions": 4,
    }
    assert json.loads(far_body("m", parse_embedding(b'{"input":[[1],[2,3]]}')))["input"] == [[1], [2, 3]]


def test_vectors_come_in_the_order_of_the_inputs() -> None:
    body = reply(item(1, [2.0]), item(0, "AACAPw=="), usage={"prompt_tokens": 7})
    found = embedded(200, body, 2)
    assert found.vectors == (b'"AACAPw=="', b"[2.0]")
    assert found.prompt_tokens == 7
    assert single(200, reply(item(0))) == b"\x00\x00\x80?"
    assert embedded(200, reply(item(0)), 1).prompt_tokens == 0


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b"[" * 9999, reply(), reply(item(1)), reply(item(0), item(0)), reply({"index": 0})],
)
def test_what_is_no_answer_is_an_engines_failure(body: bytes) -> None:
    assert failure(200, body).code == "engine_failed"


def test_an_engines_fault_is_about_the_input() -> None:
    body = b'{"error":{"code":400,"type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":4}}'
    fault = failure(400, body)
    assert (fault.code, fault.param) == ("context_length_exceeded", "input")
    assert "messages" not in fault.sentence
    other = Fault("engine_failed", "it broke")
    assert about_input(other) is other


def test_too_long_has_both_numbers_and_a_chats_words() -> None:
    fault = too_long(700, 512, "input[3]").fault
    assert (fault.code, fault.param) == ("context_length_exceeded", "input[3]")
    assert "maximum context length is 512 tokens, but input[3] has 700 tokens" in fault.message
