"""Named keys and their quotas over HTTP, the engine scripted: what it costs, and what is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.access.audit import AuditFilter
from relaydesk.store.usage import UsageRepo
from tests.support.scripted_engine import Script, answer, piece, usage
from tests.support.scripted_hub import KEY, ScriptedHub

CHAT = "/v1/chat/completions"
HI = {"messages": [{"role": "user", "content": "Hi"}]}


class Rig:
    """A hub with a warm model, asked with one key's secret."""

    def __init__(self, hub: ScriptedHub) -> None:
        self.hub = hub
        self.secret = ""
        self.key = ""

    async def key_with(self, **settings: Any) -> None:
        name = f"k{len(self.hub.ring.specs())}"
        spec, self.secret = await self.hub.ring.add(name, settings)
        self.key = spec.id

    async def ask(self, route: str = CHAT, **fields: Any) -> tuple[int, dict[str, str], str]:
        headers = {"Authorization": f"Bearer {self.secret}"}
        body = {
            "model": "tiny",
            **(HI if "messages" not in fields and "prompt" not in fields else {}),
            **fields,
        }
        async with self.hub.session.post(self.hub.url + route, json=body, headers=headers) as response:
            found = {name.lower(): value for name, value in response.headers.items()}
            return response.status, found, await response.text()

    @property
    def used(self) -> int:
        return self.hub.quotas.standing(self.key).used


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with ScriptedHub(tmp_path) as hub:
        await hub.add("tiny")
        await hub.warm("tiny")
        yield Rig(hub)


async def test_headers_say_how_the_key_stands(rig: Rig) -> None:
    await rig.key_with(tokens_per_day=100_000, requests_per_minute=5)
    status, headers, _ = await rig.ask(max_tokens=10)
    assert status == 200
    assert headers["x-ratelimit-limit-requests"] == "5"
    assert headers["x-ratelimit-remaining-requests"] == "4"
    assert headers["x-ratelimit-limit-tokens"] == "100000"
    assert rig.used == 7
    await rig.key_with()
    assert not [name for name in (await rig.ask())[1] if name.startswith("x-ratelimit")]


@pytest.mark.parametrize("route", [CHAT, "/api/chat"])
async def test_three_refusals_with_three_codes(rig: Rig, route: str) -> None:
    def code_of(text: str) -> str:
        error = json.loads(text)["error"]
        return str(error["code"]) if isinstance(error, dict) else error

    await rig.key_with(requests_per_minute=1)
    await rig.ask(route)
    status, headers, text = await rig.ask(route)
    assert (status, 1 <= int(headers["retry-after"]) <= 60) == (429, True)
    assert "requests_per_minute_exceeded" in code_of(text) or "in 60 seconds" in code_of(text)
    assert "x-should-retry" not in headers

    await rig.key_with(tokens_per_day=1)
    status, headers, text = await rig.ask(route)
    assert (status, headers["x-should-retry"]) == (429, "false")
    assert "retry-after" not in headers
    assert "00:00 UTC" in text
    assert rig.used == 0

    await rig.key_with(max_concurrency=1)
    gate = asyncio.Event()
    rig.hub.starter.reply = lambda _: Script([gate, piece("x", "stop"), usage(5, 1)])
    first = asyncio.ensure_future(rig.ask(route))
    while not rig.hub.quotas.standing(rig.key).running:
        await asyncio.sleep(0.01)
    status, headers, text = await rig.ask(route)
    assert (status, headers["retry-after"]) == (429, "1")
    assert "at once" in text
    gate.set()
    assert (await first)[0] == 200
    assert rig.hub.quotas.standing(rig.key).running == 0


@pytest.mark.parametrize(
    ("route", "fields", "cost"),
    [
        (CHAT, {"n": 4}, 5 + 4 * 2),
        (CHAT, {"n_predict": 400, "max_tokens": 4}, 7),
        (CHAT, {"stream": True}, 7),
        (CHAT, {"stream": True, "n": 3}, 5 + 3 * 2),
        ("/v1/completions", {"prompt": ["a", "b", "c"]}, 3 * 7),
        ("/v1/completions", {"prompt": ["a", "b"], "n": 2, "stream": True}, 2 * 5 + 4 * 2),
        ("/api/chat", {}, 7),
        ("/api/generate", {"prompt": "Hi", "stream": False}, 7),
        ("/v1/messages", {"max_tokens": 50}, 7),
        ("/v1/responses", {"input": "Hi", "messages": None}, 7),
    ],
    ids=str,
)
async def test_every_way_costs_what_it_produced(
    rig: Rig, route: str, fields: dict[str, Any], cost: int
) -> None:
    await rig.key_with(tokens_per_day=100_000)
    status, _, text = await rig.ask(route, **fields)
    assert status == 200, text
    assert rig.used == cost
    assert rig.hub.quotas.standing(rig.key).reserved == 0
    if "n_predict" in fields:
        assert all("n_predict" not in body for body in rig.hub.starter.engines["tiny"][-1].bodies)


async def test_what_is_left_is_the_limit_of_an_answer(rig: Rig) -> None:
    await rig.key_with(tokens_per_day=3000)
    await rig.ask()
    body = rig.hub.starter.engines["tiny"][-1].bodies[-1]
    assert body["max_tokens"] == 512, "the model's context, since the client named no limit"


@pytest.mark.parametrize("when", ["before", "between", "failed"])
@pytest.mark.parametrize("stream", [True, False])
async def test_no_way_of_ending_leaks_a_place_or_a_token(rig: Rig, when: str, stream: bool) -> None:
    await rig.key_with(max_concurrency=1, tokens_per_day=100_000)
    never = asyncio.Event()
    steps: dict[str, list[Any]] = {
        "before": [never],
        "between": [piece("one"), piece("two"), never],
        "failed": [piece("one"), b'{"error":{"message":"boom","code":500}}'],
    }
    rig.hub.starter.reply = lambda _: Script(steps[when])
    for _ in range(3):
        asking = asyncio.ensure_future(rig.ask(stream=stream))
        if when == "failed":
            await asking
            continue
        while not rig.hub.quotas.standing(rig.key).running:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await rig.hub.until(lambda: not rig.hub.quotas.standing(rig.key).running)
    standing = rig.hub.quotas.standing(rig.key)
    assert (standing.running, standing.reserved) == (0, 0)
    # Also before a word of an answer the engine has read, and ends the batch that it began.
    assert standing.used > 0
    rig.hub.starter.reply = lambda _: answer("well")
    assert (await rig.ask())[0] == 200


async def test_a_burst_over_both_dialects_never_has_more_than_its_limit_at_the_engine(tmp_path: Path) -> None:
    async with ScriptedHub(tmp_path) as hub:
        await hub.add("tiny", slots=16)
        await hub.warm("tiny")
        rig = Rig(hub)
        await rig.key_with(max_concurrency=3)
        hub.starter.reply = lambda _: answer("a", "b", delay=0.05)
        routes = [CHAT, "/api/chat"] * 15
        statuses = [each[0] for each in await asyncio.gather(*(rig.ask(route) for route in routes))]
        assert sorted(set(statuses)) == [200, 429]
        assert statuses.count(200) >= 3
        assert hub.starter.engines["tiny"][-1].most_open == 3


async def test_the_audit_has_one_record_a_request(rig: Rig, tmp_path: Path) -> None:
    await rig.key_with(requests_per_minute=2, models=["tiny"])
    await rig.ask(stream=True)
    await rig.ask(model="other")
    await rig.ask()
    await rig.ask()
    rig.hub.audit_log.close()
    found = await rig.hub.audit.newest(AuditFilter(), 9)
    assert [(each.outcome, each.status, each.code) for each in found[::-1]] == [
        ("done", 200, ""),
        ("refused", 404, "model_not_found"),
        ("done", 200, ""),
        ("failed", 429, "requests_per_minute_exceeded"),
    ]
    first = found[-1]
    assert (first.key, first.client, first.route) == ("k0", "127.0.0.1", CHAT)
    assert (first.model, first.placement, first.machines) == ("tiny", "host", ("host",))
    assert (first.prompt_tokens, first.completion_tokens) == (5, 2)
    text = b"".join(path.read_bytes() for path in (tmp_path / "audit").iterdir())
    assert rig.secret.encode() not in text
    assert b"Hi" not in text
    assert b"Hello" not in text


async def test_revoking_lets_what_runs_end(rig: Rig) -> None:
    await rig.key_with()
    gate = asyncio.Event()
    rig.hub.starter.reply = lambda _: Script([piece("one"), gate, piece("two", "stop"), usage(5, 2)])
    asking = asyncio.ensure_future(rig.ask(stream=True))
    while not rig.hub.quotas.standing(rig.key).running:
        await asyncio.sleep(0.01)
    await rig.hub.ring.remove("k0")
    assert (await rig.ask())[0] == 401
    gate.set()
    status, _, text = await asking
    assert (status, text.endswith("data: [DONE]\n\n")) == (200, True)
    assert rig.hub.quotas.standing(rig.key).used == 7


async def test_the_default_keys_use_is_shown_too(rig: Rig) -> None:
    rig.secret = KEY
    await rig.ask()
    (default,) = rig.hub.authenticator.view().keys
    assert (default.used, default.running, default.reserved) == (7, 0, 0)


async def test_a_client_that_leaves_while_the_books_wait_for_the_disk_leaves_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.key_with(tokens_per_day=100_000)
    add, waiting = UsageRepo.add, asyncio.Event()

    async def slow(*args: Any) -> None:
        waiting.set()
        await asyncio.sleep(0.1)
        await add(*args)

    monkeypatch.setattr(UsageRepo, "add", slow)
    asking = asyncio.ensure_future(rig.ask())
    await waiting.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await rig.hub.until(lambda: not rig.hub.journal.in_flight)
    await rig.hub.until(lambda: not rig.hub.quotas.standing(rig.key).running)
    assert rig.hub.journal.view().recent[0].state == "cancelled"


async def test_counting_a_prompt_is_a_request_like_any_other(rig: Rig) -> None:
    await rig.key_with(requests_per_minute=1)
    rig.hub.starter.whole = lambda _path, _body: Script(body=b'{"input_tokens":7}')
    route = "/v1/messages/count_tokens"
    assert (await rig.ask(route))[0] == 200
    assert (await rig.ask(route))[0] == 429
    assert rig.used == 0


async def test_refusals_that_come_again_and_again_fill_nothing(rig: Rig) -> None:
    await rig.key_with(tokens_per_day=1)
    for _ in range(20):
        assert (await rig.ask())[0] == 429
    rig.hub.audit_log.close()
    assert len(await rig.hub.audit.newest(AuditFilter(), 99)) == 1
    assert len(rig.hub.journal.view().recent) == 1


async def test_a_key_that_may_use_no_model_is_told_so(rig: Rig) -> None:
    await rig.key_with(models=["other"])
    status, _, text = await rig.ask(model=None)
    assert (status, "may use none of the models" in text) == (400, True)
