from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relaydesk.config.load import load
from relaydesk.core.commands import (
    CancelJob,
    Command,
    Reload,
    RenewCa,
    RotateDefaultKey,
    ShowConfig,
    ShowDefaultKey,
    ShowRequest,
    Stop,
)
from relaydesk.core.view.sections import FaultView
from relaydesk.engine.node import Node

MakeNode = Callable[..., Node]


@pytest.fixture
async def node(make_node: MakeNode) -> AsyncIterator[Node]:
    node = make_node()
    await node.take()
    await node.open()
    yield node
    await node.close()


async def do(node: Node, command: Command) -> Any:
    outcome = await node.api.call(command)
    assert outcome.ok, outcome.fault
    return outcome.value


async def refused(node: Node, command: Command) -> FaultView:
    outcome = await node.api.call(command)
    assert not outcome.ok
    assert outcome.fault is not None
    return outcome.fault


async def test_the_key_is_shown_and_rotated(node: Node) -> None:
    shown = (await do(node, ShowDefaultKey()))["key"]
    assert node.authenticator.check([shown])
    rotated = (await do(node, RotateDefaultKey()))["key"]
    assert rotated != shown
    assert not node.authenticator.check([shown])
    assert (await do(node, ShowDefaultKey()))["key"] == rotated


async def test_a_request_by_its_id(node: Node) -> None:
    record = node.journal.open("mine", model="m", key="k", route="/", stream=False, choices=1)
    assert (await do(node, ShowRequest("mine")))["state"] == "queued"
    record.finish(200)
    assert (await do(node, ShowRequest("mine")))["status"] == 200
    fault = await refused(node, ShowRequest("x" * 500))
    assert fault.code == "request_not_found"
    assert len(fault.message) < 150


async def test_config_shows_where_each_value_is_from_and_no_secret(make_node: MakeNode) -> None:
    node = make_node(api_key="k-0123456789abcdef", queue="7")
    await node.take()
    await node.open()
    try:
        rows = {row["name"]: row for row in await do(node, ShowConfig())}
        assert rows["RELAY_QUEUE"]["value"] == "7"
        assert "RELAY_QUEUE" in rows["RELAY_QUEUE"]["origin"]
        assert rows["RELAY_HEARTBEAT"]["origin"] == "default"
        assert "k-0123456789abcdef" not in str(rows)
        assert (await refused(node, RotateDefaultKey())).code == "refused"
    finally:
        await node.close()


async def test_reload_applies_what_it_can_and_names_what_it_cannot(node: Node) -> None:
    before = node.loaded
    environ = node._environ
    assert isinstance(environ, dict)
    environ |= {
        "RELAY_QUEUE": "9",
        "RELAY_HOST_MEMORY_MB": "77",
        "RELAY_THREADS": "3",
        "RELAY_KEEP_ALIVE": "-1",
    }
    value = await do(node, Reload())
    assert set(value["applied"]) == {"queue", "host_memory_mb", "keep_alive"}
    assert value["needs_restart"] == ["threads"]
    assert node.loaded.settings.threads == before.settings.threads
    assert node.loaded.origins["threads"] == before.origins["threads"]
    assert "RELAY_QUEUE" in node.loaded.origins["queue"]
    assert node.pool.memory.read().total_bytes() == 77 << 20
    assert (node._limits().queue, node._limits().keep_alive_s) == (9, -1)
    assert await do(node, Reload()) == {"applied": [], "needs_restart": ["threads"]}


async def test_a_reload_of_nonsense_changes_nothing(node: Node) -> None:
    environ = node._environ
    assert isinstance(environ, dict)
    before = node.loaded
    environ["RELAY_QUEUE"] = "lots"
    fault = await refused(node, Reload())
    assert (fault.code, fault.param) == ("bad_setting", "RELAY_QUEUE")
    assert node.loaded == before


async def test_a_flag_of_this_process_outlives_a_reload(make_node: MakeNode) -> None:
    node = make_node()
    environ = node._environ
    assert isinstance(environ, dict)
    node.loaded = load(env=environ, flags={"queue": "5"})
    await node.take()
    await node.open()
    try:
        environ["RELAY_QUEUE"] = "9"
        assert (await do(node, Reload()))["applied"] == []
        assert node.loaded.settings.queue == 5
        assert node.loaded.origins["queue"].startswith("flag ")
    finally:
        await node.close()


async def test_a_settings_file_that_was_written_since_counts(node: Node, tmp_path: Path) -> None:
    file = tmp_path / "config" / "relaydesk" / "relaydesk.toml"
    file.parent.mkdir(parents=True)
    file.write_text('heartbeat = "3s"\n')
    assert (await do(node, Reload()))["applied"] == ["heartbeat"]
    assert node.loaded.settings.heartbeat == 3.0
    file.write_text("nonsense = 1\n")
    assert (await refused(node, Reload())).code == "bad_setting"
    assert node.loaded.settings.heartbeat == 3.0


async def test_the_ca_of_a_plain_hub(node: Node) -> None:
    assert (await refused(node, RenewCa())).code == "conflict"


async def test_the_ca_of_a_hub_with_tls(make_node: MakeNode) -> None:
    node = make_node(v1_tls="on")
    await node.take()
    await node.open()
    try:
        before = node.meta().fingerprint
        value = await do(node, RenewCa())
        assert value["fingerprint"] == node.meta().fingerprint != before
        assert Path(value["ca_path"]).is_file()
    finally:
        await node.close()


async def test_jobs_are_cancelled_by_id(node: Node) -> None:
    assert (await refused(node, CancelJob("job_nothing"))).code == "not_found"

    async def for_ever(_: object) -> None:
        await asyncio.Event().wait()

    job = node._jobs.start("load", "x", for_ever)
    await do(node, CancelJob(job))
    assert node._jobs.view().jobs[0].state == "cancelled"


async def test_stop(node: Node) -> None:
    assert not node.stop_requested.is_set()
    await do(node, Stop())
    assert node.stop_requested.is_set()


async def test_a_read_only_front_may_only_look(node: Node) -> None:
    reader = node.api.read_only()
    for command in (Stop(), RotateDefaultKey(), Reload(), ShowDefaultKey()):
        outcome = await reader.call(command)
        assert not outcome.ok, command
        assert outcome.fault is not None
        assert outcome.fault.code == "refused"
    assert (await reader.call(ShowConfig())).ok
    assert not node.stop_requested.is_set()
    assert msgspec.json.encode(await reader.snapshot(), enc_hook=str)
