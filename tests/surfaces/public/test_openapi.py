"""The document against a running hub: what it says of a route is what the route does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import jsonschema
import pytest
import schemathesis
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from relaydesk.core.gateway.chat_schema import CHAT_ANSWER, CHAT_REQUEST
from relaydesk.core.gateway.prompt_count import COUNT_PATH
from tests.support.raw_http import RawClient
from tests.support.scripted_engine import Script, answer, whole
from tests.support.scripted_hub import KEY, ScriptedHub


def no_failure(_context: Any, response: schemathesis.Response, case: schemathesis.Case) -> None:
    """Whatever was sent, nothing fails here; routes that only refuse may say that something is not built."""
    refuses = "200" not in case.operation.definition.raw["responses"]
    assert response.status_code < 500 or (refuses and response.status_code == 501), response.text


CHECKS = [
    no_failure,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


async def fetched(hub: ScriptedHub) -> dict[str, Any]:
    async with hub.session.get(f"{hub.url}/openapi.json") as reply:
        assert reply.status == 200
        document: dict[str, Any] = await reply.json()
        return document


async def test_the_document_needs_the_key(hub: ScriptedHub) -> None:
    async with RawClient(hub.port, None) as client:
        client.head("GET", "/openapi.json")
        assert (await client.reply()).status == 401


async def test_it_has_every_route_of_the_hub_and_no_other(hub: ScriptedHub) -> None:
    document = await fetched(hub)
    for path, operations in document["paths"].items():
        for method in ("get", "post", "put", "delete"):
            async with RawClient(hub.port, KEY) as client:
                client.head(method.upper(), re.sub("{.+}", "tiny", path))
                status = (await client.reply()).status
            assert (status == 405) is (method not in operations), (method, path)
    assert schemathesis.openapi.from_dict(document).validate() is None


async def test_routes_without_a_key_say_so(hub: ScriptedHub) -> None:
    for path, operations in (await fetched(hub))["paths"].items():
        for method, operation in operations.items():
            async with RawClient(hub.port, None) as client:
                client.head(method.upper(), re.sub("{.+}", "tiny", path))
                assert ((await client.reply()).status == 401) is ("security" not in operation), path


async def test_a_real_answer_is_as_described(hub: ScriptedHub) -> None:
    for fields in (
        {},
        {"n": 2},
        {"logprobs": True},
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
    ):
        request = {"messages": [{"role": "user", "content": "Hi"}], **fields}
        jsonschema.validate(request, CHAT_REQUEST)
        status, _, body = await hub.chat(**fields)
        assert status in (200, 400), body
        if status == 200:
            jsonschema.validate(body, CHAT_ANSWER)


def obliging(body: dict[str, Any]) -> Script:
    """An engine that keeps to what it is bound to: JSON, or the call that a forced one has to be."""
    if "response_format" not in body:
        return answer("Hello", " there")
    schema = body["response_format"].get("json_schema", {}).get("schema", {})
    call = (schema.get("anyOf") or [schema])[0].get("properties", {})
    names = call.get("name", {}).get("enum") if "arguments" in call else None
    return answer(json.dumps({"name": names[0], "arguments": {}} if names else {}))


def explore(document: dict[str, Any], url: str, examples: int) -> Counter[tuple[str, int]]:
    """Ask every operation with bodies that fit its schema and bodies that do not; what came how often."""
    schema = schemathesis.openapi.from_dict(document)
    came: Counter[tuple[str, int]] = Counter()
    profile = hypothesis.settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in GenerationMode:

            @profile
            @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
            def ask(case: schemathesis.Case) -> None:
                reply = case.call_and_validate(
                    base_url=url, headers={"Authorization": f"Bearer {KEY}"}, checks=CHECKS, timeout=10
                )
                came[case.path, reply.status_code] += 1

            with contextlib.suppress(hypothesis.errors.Unsatisfiable):  # nothing to get wrong in a bare GET
                ask()
    return came


@pytest.fixture
def quiet() -> Iterator[None]:
    logging.getLogger("relaydesk").setLevel(logging.ERROR)
    yield
    logging.getLogger("relaydesk").setLevel(logging.NOTSET)


async def explored(hub: ScriptedHub, examples: int) -> Counter[tuple[str, int]]:
    await hub.warm()

    def counts(path: str, body: dict[str, Any]) -> Script:
        return Script(body=b'{"input_tokens":7}') if path == COUNT_PATH else whole(path, body)

    hub.starter.whole = counts
    hub.starter.reply = obliging
    document = await fetched(hub)
    came = await asyncio.to_thread(explore, document, hub.url, examples)
    await hub.idle(5)
    assert {path for path, _ in came} == set(document["paths"])
    return came


@pytest.mark.usefixtures("quiet")
async def test_no_request_upsets_it(hub: ScriptedHub) -> None:
    await explored(hub, 3)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("quiet")
async def test_no_request_upsets_it_at_length(hub: ScriptedHub, tmp_path: Path) -> None:
    came = await explored(hub, 40)
    for path in ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/api/chat"):
        assert came[path, 200] > 5, path
        assert came[path, 400] > 5, path
