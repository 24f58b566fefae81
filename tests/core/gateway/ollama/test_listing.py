"""Lists and pages as pickers read them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import msgspec
from ollama import ListResponse, ProcessResponse, ShowResponse

from relaydesk.core.gateway.ollama.facts import Loaded, facts_of
from relaydesk.core.gateway.ollama.listing import ps_body, show_body, tags_body, version_body
from tests.core.gateway.ollama.test_facts import PLAIN, SPEC, facts

FAR = facts_of(msgspec.structs.replace(SPEC, name="far", kind="url", size_bytes=0), None, PLAIN, 0)
LOADED = msgspec.structs.replace(facts(), loaded=Loaded(1000, 400, 1_796_000_000_000))


def nothing_is_null(value: Any) -> None:
    assert value is not None
    if isinstance(value, dict):
        for each in value.values():
            nothing_is_null(each)
    elif isinstance(value, list):
        for each in value:
            nothing_is_null(each)


def test_tags() -> None:
    body = tags_body([facts(), FAR])
    one, far = json.loads(body)["models"]
    assert one == {
        "name": "qwen3:latest",
        "model": "qwen3:latest",
        "modified_at": "2026-11-30T00:53:20.000+00:00",
        "size": 4321,
        "digest": facts().digest,
        "capabilities": ["completion"],
        "details": {
            "parent_model": "",
            "format": "gguf",
            "family": "llama",
            "families": ["llama"],
            "parameter_size": "9K",
            "quantization_level": "F32",
            "context_length": 2048,
            "embedding_length": 64,
        },
    }
    assert far["details"]["families"] == []
    nothing_is_null([one, far])
    assert ListResponse.model_validate_json(body).models[0].size == 4321
    assert tags_body([]) == b'{"models":[]}'


def test_ps_lists_what_is_loaded() -> None:
    body = ps_body([facts(), LOADED])
    (model,) = json.loads(body)["models"]
    assert (model["size"], model["size_vram"], model["context_length"]) == (1000, 400, 2048)
    assert datetime.fromisoformat(model["expires_at"]).utcoffset() is not None
    nothing_is_null(model)
    assert ProcessResponse.model_validate_json(body).models[0].model == "qwen3:latest"
    assert ps_body([]) == b'{"models":[]}'


def test_show() -> None:
    body = show_body(facts())
    page = json.loads(body)
    assert page["parameters"] == "num_ctx 2048"
    assert page["modelfile"].startswith("FROM qwen3:latest\nPARAMETER num_ctx 2048\nTEMPLATE ")
    assert page["template"] in page["modelfile"]
    assert page["model_info"]["llama.context_length"] == 2048
    assert page["capabilities"] == ["completion"]
    nothing_is_null(page)
    assert ShowResponse.model_validate_json(body).modified_at is not None
    far = json.loads(show_body(FAR))
    assert (far["parameters"], far["template"], far["modelfile"]) == ("", "", "FROM far:latest\n")
    nothing_is_null(far)


def test_the_version_is_one_that_clients_take() -> None:
    numbers = json.loads(version_body())["version"].split(".")
    assert [int(number) for number in numbers] >= [0, 6, 4]
    assert len(numbers) == 3
