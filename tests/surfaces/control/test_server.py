from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import stat
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvloop

from relaydesk.core.codec import schema_fingerprint
from relaydesk.core.commands import (
    AddKey,
    AddModel,
    Command,
    Outcome,
    PullModel,
    RemoveKey,
    RemoveModel,
    RotateDefaultKey,
    SetKey,
    SetModel,
)
from relaydesk.core.errors import EnvError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.view.node_view import SECTIONS
from relaydesk.engine.local import LocalNode
from relaydesk.surfaces.control.routes import BODY_LIMIT
from relaydesk.surfaces.control.server import ControlServer
from tests.contract.rigs import SECRET, LiveNode
from tests.surfaces.control.conftest import Ask


@pytest.fixture
def commands(live: LiveNode) -> list[Command]:
    """Commands that reached the node's handlers for models and keys."""
    got: list[Command] = []

    async def note(command: Command) -> Outcome:
        got.append(command)
        return Outcome(ok=True, value={"done": True})

    changing = (AddKey, SetKey, RemoveKey, RotateDefaultKey)
    for kind in (AddModel, PullModel, SetModel, RemoveModel, *changing):
        live.node._dispatcher.on(kind, note)
    return got


async def test_status_is_the_document(ask: Ask, live: LiveNode) -> None:
    live.clock.advance(7)
    status, document = await ask("GET", "/status")
    assert status == 200
    assert document["node"] == "desk"
    assert document["phase"] == "ready"
    assert {"operator", "listening", "fingerprint", "uptime_s", "workers", "members", "relays"} <= set(
        document
    )


async def test_status_is_one_line(server: ControlServer, session: aiohttp.ClientSession) -> None:
    async with session.get("/status") as response:
        body = await response.read()
    assert body.endswith(b"}\n")
    assert body.count(b"\n") == 1


async def test_models_are_listed(ask: Ask) -> None:
    assert await ask("GET", "/models") == (
        200,
        {
            "models": [],
            "memory": {"source": "ram", "total_mib": 100, "free_mib": 50, "devices": []},
            "incomplete": [],
        },
    )


@pytest.mark.parametrize(
    ("method", "route", "body", "command"),
    [
        ("POST", "/models", {"path": "/a.gguf", "name": "a"}, AddModel(ModelSpec(name="a", path="/a.gguf"))),
        ("POST", "/models", {"reference": "smollm2"}, PullModel("smollm2")),
        ("PATCH", "/models", {"name": "o/r:Q4", "ctx": 5}, SetModel("o/r:Q4", {"ctx": 5})),
        ("PATCH", "/models/o/r:Q4", {"ctx": 5}, SetModel("o/r:Q4", {"ctx": 5})),
        ("PATCH", "/models/o%2Fr%3AQ4", {"ctx": 5}, SetModel("o/r:Q4", {"ctx": 5})),
        ("DELETE", "/models/o/r:Q4", None, RemoveModel("o/r:Q4")),
        ("DELETE", "/models", {"name": "o/r:Q4"}, RemoveModel("o/r:Q4")),
        ("POST", "/keys/default/rotate", None, RotateDefaultKey()),
        ("POST", "/keys", {"name": "ann", "tokens_per_day": 5}, AddKey("ann", {"tokens_per_day": 5})),
        ("PATCH", "/keys", {"name": "ann", "models": ["m"]}, SetKey("ann", {"models": ["m"]})),
        ("PATCH", "/keys/ann", {"in_path": True}, SetKey("ann", {"in_path": True})),
        ("DELETE", "/keys/ann", None, RemoveKey("ann")),
        ("DELETE", "/keys", {"name": "ann"}, RemoveKey("ann")),
        ("POST", "/commands/remove-model", {"name": "a"}, RemoveModel("a")),
        ("POST", "/commands/remove-model", {"command": "remove-model", "name": "a"}, RemoveModel("a")),
        ("POST", "/commands/rotate-default-key", b"", RotateDefaultKey()),
    ],
)
async def test_routes_are_commands(
    ask: Ask, commands: list[Command], method: str, route: str, body: Any, command: Command
) -> None:
    status, answer = await ask(method, route, body)
    assert commands == [command]
    assert (status, answer["ok"], answer["value"]) == (200, True, {"done": True})


@pytest.mark.parametrize(
    ("method", "route"),
    [
        ("GET", "/nodes"),
        ("PATCH", "/nodes"),
        ("DELETE", "/nodes"),
        ("PATCH", "/nodes/n1"),
        ("DELETE", "/nodes/n1"),
        ("POST", "/nodes/token"),
        ("POST", "/nodes/n1/wipe"),
    ],
)
async def test_what_is_not_built_is_501_with_a_sentence(ask: Ask, method: str, route: str) -> None:
    status, answer = await ask(method, route, {} if method != "GET" else None)
    assert status == 501
    assert answer["error"]["code"] == "not_built"
    assert answer["error"]["message"].startswith("this version of relaydesk has ")


@pytest.mark.parametrize(
    ("method", "route", "body", "status", "code"),
    [
        ("POST", "/models", b"{", 400, "invalid_json"),
        ("POST", "/models", b"\xff", 400, "invalid_json"),
        ("POST", "/models", "DEEP", 400, "invalid_json"),
        ("POST", "/models", b"[]", 400, "invalid_request"),
        ("POST", "/models", b'"x"', 400, "invalid_request"),
        ("POST", "/models", {}, 400, "invalid_request"),
        ("PATCH", "/models/a", {"owned": True}, 400, "invalid_request"),
        ("POST", "/keys/default/rotate", {"to": "x"}, 400, "invalid_request"),
        ("POST", "/commands/load-model", {}, 400, "invalid_request"),
        ("POST", "/commands/load-model", {"name": 5}, 400, "invalid_request"),
        ("POST", "/commands/load-model", {"name": "a", "nam": "b"}, 400, "invalid_request"),
        ("POST", "/commands/load-model", {"name": "a", "command": "stop"}, 400, "invalid_request"),
        ("POST", "/commands/launch", {}, 404, "not_found"),
        ("POST", "/commands/load-model", "TOO LONG", 413, "request_too_large"),
        ("GET", "/views/weather", None, 404, "not_found"),
        ("GET", "/watch?topics=weather", None, 400, "invalid_request"),
        ("GET", "/nowhere", None, 404, "not_found"),
        ("DELETE", "/status", None, 405, "method_not_allowed"),
        ("GET", "/commands/load-model", None, 405, "method_not_allowed"),
    ],
)
async def test_bad_requests_are_told_what_is_wrong(
    ask: Ask, commands: list[Command], method: str, route: str, body: Any, status: int, code: str
) -> None:
    # Spelled out here, so that the test's name stays short.
    body = {"TOO LONG": io.BytesIO(b" " * (BODY_LIMIT + 1)), "DEEP": b"[" * 200_000}.get(str(body), body)
    answered, answer = await ask(method, route, body)
    assert (answered, answer["error"]["code"]) == (status, code)
    assert answer["error"]["message"]
    assert commands == []


async def test_a_deep_body_is_told_in_our_words(ask: Ask) -> None:
    _, answer = await ask("POST", "/models", b"[" * 200_000)
    assert answer["error"]["message"] == "the body is nested too deep"


@pytest.mark.parametrize(
    "data", [b"{}", gzip.compress(b'{"name":"' + b"a" * (16 << 20) + b'"}')], ids=["a lie", "a bomb"]
)
async def test_compressed_bodies_are_not_opened(
    server: ControlServer, session: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    headers = {"Content-Encoding": "gzip"}
    async with session.post("http://x/commands/unload-model", data=data, headers=headers) as response:
        answer = await response.json()
    assert (response.status, answer["error"]["code"] in ("invalid_json", "invalid_request")) == (400, True)
    assert not [record for record in caplog.records if record.exc_info]


async def test_views_by_section_and_whole(ask: Ask) -> None:
    status, whole = await ask("GET", "/views")
    assert status == 200
    assert set(whole) == {"seq", *SECTIONS}
    for name in SECTIONS:
        assert (await ask("GET", f"/views/{name}"))[1] == whole[name]


async def test_a_failed_command_has_its_codes_status_and_stays_an_outcome(ask: Ask) -> None:
    status, answer = await ask("POST", "/commands/cancel-job", {"id": "j"})
    assert status == 501
    assert answer["ok"] is False
    assert answer["fault"]["code"] == "not_built"
    assert answer["error"] == answer["fault"]


@pytest.mark.parametrize("access", ["read", "READ", "admin", ""])
async def test_read_only_is_decided_here(ask: Ask, live: LiveNode, access: str) -> None:
    status, answer = await ask("POST", "/commands/load-model", {"name": "m"}, X_Relaydesk_Access=access)
    assert (status, answer["error"]["code"]) == (403, "refused")
    status, answer = await ask("POST", "/commands/show-default-key", {}, X_Relaydesk_Access=access)
    assert status == 403
    assert SECRET not in json.dumps(answer)
    status, _ = await ask("POST", "/commands/fit-model", {"name": "m"}, X_Relaydesk_Access=access)
    assert status == 200
    assert live.loaded == []


async def test_write_access_is_the_default(ask: Ask, live: LiveNode) -> None:
    assert (await ask("POST", "/commands/load-model", {"name": "m"}))[0] == 200
    assert (await ask("POST", "/commands/load-model", {"name": "n"}, X_Relaydesk_Access="write"))[0] == 200
    assert live.loaded == ["m", "n"]


async def test_other_versions_get_no_view_but_the_seeds_routes(ask: Ask, live: LiveNode) -> None:
    for method, route in (("GET", "/watch"), ("GET", "/views"), ("POST", "/commands/load-model")):
        status, answer = await ask(method, route, None, X_Relaydesk_Schema="0" * 16)
        assert (status, answer["error"]["code"]) == (409, "conflict")
        assert "different versions" in answer["error"]["message"]
        assert "restart" in answer["error"]["hint"]
    assert live.loaded == []
    assert (await ask("GET", "/status", None, X_Relaydesk_Schema="0" * 16))[0] == 200
    assert (await ask("GET", "/views", None, X_Relaydesk_Schema=schema_fingerprint()))[0] == 200


async def test_other_users_are_refused(live: LiveNode, path: Path, session: aiohttp.ClientSession) -> None:
    server = ControlServer(live.node, path, live.clock, allowed_uids=[os.geteuid() + 1])
    await server.start()
    try:
        for route in ("/status", "/watch", "/nowhere"):
            async with session.get(route) as response:
                assert response.status == 403
                assert (await response.json())["error"]["code"] == "refused"
    finally:
        await server.close()


async def test_a_bug_is_told_without_details(
    ask: Ask, live: LiveNode, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(self: LocalNode) -> None:
        raise KeyError("sk-detail")

    monkeypatch.setattr(LocalNode, "snapshot", broken)
    status, answer = await ask("GET", "/status")
    assert (status, answer["error"]["code"]) == (500, "internal_error")
    assert "sk-detail" not in json.dumps(answer)
    assert "GET /status failed" in caplog.text


async def test_a_command_runs_to_its_end_though_the_client_left(
    live: LiveNode, server: ControlServer, session: aiohttp.ClientSession
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow(command: AddModel) -> Outcome:
        begun.set()
        await asyncio.sleep(0.2)
        ended.set()
        return Outcome(ok=True)

    live.node._dispatcher.on(AddModel, slow)
    task = asyncio.create_task(session.post("/models", json={"path": "/a"}).__aenter__())
    await asyncio.wait_for(begun.wait(), 2)
    task.cancel()
    await asyncio.wait([task])
    await asyncio.wait_for(ended.wait(), 2)


async def test_close_waits_for_a_command_and_removes_the_socket(
    live: LiveNode, server: ControlServer, session: aiohttp.ClientSession, path: Path
) -> None:
    begun = asyncio.Event()

    async def slow(command: AddModel) -> Outcome:
        begun.set()
        await asyncio.sleep(0.2)
        return Outcome(ok=True)

    live.node._dispatcher.on(AddModel, slow)
    task = asyncio.create_task(session.post("/models", json={"path": "/a"}).__aenter__())
    await asyncio.wait_for(begun.wait(), 2)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    await server.close()
    assert (await task).status == 200
    assert not path.exists()
    with pytest.raises(aiohttp.ClientConnectorError):
        await session.get("/status")


async def test_a_server_that_cannot_bind_says_so_and_can_be_closed(live: LiveNode, path: Path) -> None:
    path.write_text("in the way")
    server = ControlServer(live.node, path, live.clock)
    with pytest.raises(EnvError, match="in the way"):
        await server.start()
    await server.close()
    assert path.read_text() == "in the way"


async def test_a_closed_server_starts_again(server: ControlServer, session: aiohttp.ClientSession) -> None:
    await server.close()
    await server.start()
    async with session.get("/status") as response:
        assert response.status == 200


def test_the_same_on_uvloop(path: Path) -> None:
    # Its sockets are stand-ins: the peer's user must be found there too.
    async def story() -> tuple[int, int, bytes, bool]:
        live = LiveNode()
        server = ControlServer(live.node, path, live.clock, allowed_uids=[os.geteuid()])
        await server.start()
        mode = stat.S_IMODE(path.stat().st_mode)
        connector = aiohttp.UnixConnector(path=str(path))
        async with aiohttp.ClientSession("http://localhost", connector=connector) as session:
            async with session.get("/status") as response:
                status = response.status
            async with session.get("/watch?topics=keys") as response:
                reading = asyncio.create_task(response.content.read())
                await asyncio.sleep(0.05)
                await server.close()
                body = await reading
        await live.stop()
        return status, mode, body, path.exists()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        status, mode, body, exists = runner.run(story())
    assert (status, mode, exists) == (200, 0o600, False)
    first, last = body.splitlines()
    assert set(json.loads(first)) == {"seq", "keys"}
    assert json.loads(last) == {"closed": "stopped"}
