from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from relaydesk.core.access.caller import Caller
from relaydesk.core.commands import Reload
from relaydesk.core.errors import FaultError
from relaydesk.core.gateway.chat import chat_plan
from relaydesk.core.gateway.incoming import Incoming
from relaydesk.core.pool.model import ModelSpec
from relaydesk.engine.node import Node
from tests.support import gguf_builder
from tests.support.scripted_engine import Script, ScriptedStarter, answer, piece

WHO = Caller("k", "k")

MakeNode = Callable[..., Node]
CHAT = msgspec.json.encode({"messages": [{"role": "user", "content": "Hi"}]})


@asynccontextmanager
async def opened(node: Node) -> AsyncIterator[ScriptedStarter]:
    """A node that is open, with scripted engines."""
    starter = ScriptedStarter()
    node.pool._starter = starter
    await node.take()
    await node.open()
    try:
        yield starter
    finally:
        await node.close()


async def add(node: Node, folder: Path, name: str = "tiny", **fields: object) -> None:
    path = folder / f"{name}.gguf"
    path.write_bytes(gguf_builder.tiny())
    spec = msgspec.convert({"name": name, "path": str(path), "ctx": 512, "slots": 2, **fields}, ModelSpec)
    await node.registry.add(spec)


async def until(holds: Callable[[], object]) -> None:
    for _ in range(500):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to that")


async def test_a_nodes_life(make_node: MakeNode) -> None:
    node = make_node()
    assert node.meta().phase == "starting"
    assert not node.accepting()
    async with opened(node):
        view = await node.api.snapshot()
        for section in ("meta", "models", "workers", "requests", "keys", "health", "log", "alerts", "jobs"):
            assert getattr(view, section).state == "ready", section
        assert not node.accepting()
        node.ready(("http://127.0.0.1:1",))
        assert node.accepting()
        meta = node.meta()
        assert (meta.phase, meta.listening, meta.node) == ("ready", ("http://127.0.0.1:1",), node.node_id)
        await asyncio.wait_for(node.drain(asyncio.Event()), 1)
        assert not node.accepting()
    assert node.meta().phase == "stopped"


async def test_what_survives_a_restart(make_node: MakeNode, tmp_path: Path) -> None:
    first = make_node()
    async with opened(first):
        await add(first, tmp_path)
        key = first.authenticator.secret()
        assert await first.claim_first_key() == key
        assert await first.claim_first_key() == ""
    second = make_node()
    async with opened(second):
        assert second.node_id == first.node_id
        assert second.authenticator.secret() == key
        assert await second.claim_first_key() == ""
        assert [entry.spec.name for entry in second.registry.entries()] == ["tiny"]


async def test_a_first_start_that_failed_does_not_count_as_the_one_that_showed_the_key(
    make_node: MakeNode, tmp_path: Path
) -> None:
    broken = make_node(v1_tls="on", tls_cert=str(tmp_path / "no"), tls_key=str(tmp_path / "no"))
    await broken.take()
    with pytest.raises(FaultError):
        await broken.open()
    # It let go of everything: the next one starts at once.
    async with opened(node := make_node()):
        assert await node.claim_first_key() == node.authenticator.secret()


async def test_two_nodes_do_not_share_a_state_directory(make_node: MakeNode) -> None:
    async with opened(make_node()):
        other = make_node()
        with pytest.raises(FaultError) as caught:
            await other.take()
        assert caught.value.fault.code == "state_locked"
    await other.take()
    await other.close()


async def test_a_given_key_is_not_claimed(make_node: MakeNode) -> None:
    async with opened(node := make_node(api_key="k-0123456789abcdef")):
        assert await node.claim_first_key() == ""


async def test_models_to_be_loaded_ahead(make_node: MakeNode, tmp_path: Path) -> None:
    async with opened(node := make_node(host_memory_mb="100")) as starter:
        await add(node, tmp_path, "a", preload=True)
        await add(node, tmp_path, "b")
        await add(node, tmp_path, "large", preload=True, ctx=1 << 20)
        node.ready(())
        await until(lambda: node.pool.is_warm("a"))
        await until(lambda: node.pool.runner("large").life.error)
        # What does not fit is said and stops nothing.
        assert starter.alive == ["a"]
        assert node.pool.runner("large").life.state == "cold"
        assert node.pool.runner("b").life.state == "cold"
        assert node.accepting()


async def test_draining_lets_answers_end_and_takes_none(make_node: MakeNode, tmp_path: Path) -> None:
    async with opened(node := make_node()) as starter:
        await add(node, tmp_path)
        node.ready(())
        starter.reply = lambda _: answer("a", "b", delay=0.1)
        run = await node.gateway.open(CHAT, chat_plan, Incoming(WHO, "/v1", "r"))
        task = asyncio.create_task(run.whole())
        await until(lambda: starter.open)
        drained = asyncio.create_task(node.drain(asyncio.Event()))
        await asyncio.sleep(0.02)
        with pytest.raises(FaultError) as caught:
            await node.gateway.open(CHAT, chat_plan, Incoming(WHO, "/v1", "late"))
        assert caught.value.fault.code == "shutting_down"
        assert b'"content":"ab"' in await task
        await asyncio.wait_for(drained, 1)


@pytest.mark.parametrize("hurried", [False, True])
async def test_what_takes_too_long_ends_with_the_reason_wherever_it_is(
    make_node: MakeNode, tmp_path: Path, hurried: bool
) -> None:
    async with opened(node := make_node(drain_timeout="30s" if hurried else "100ms")) as starter:
        await add(node, tmp_path)
        await add(node, tmp_path, "other")
        node.ready(())
        starter.reply = lambda _: Script([piece("x"), asyncio.Event()])

        async def ask(number: int, model: str) -> bytes:
            body = msgspec.json.encode({"model": model, "messages": [{"role": "user", "content": "Hi"}]})
            run = await node.gateway.open(body, chat_plan, Incoming(WHO, "/v1", f"r{number}"))
            return await run.whole()

        tasks = [asyncio.create_task(ask(number, "tiny")) for number in range(3)]  # one waits for a slot
        await until(lambda: starter.open == 2)
        starter.gate.clear()
        tasks.append(asyncio.create_task(ask(3, "other")))  # waits for its load
        await until(lambda: len(starter.starts) == 2)
        node.pool.runner("tiny").leaving = True
        tasks.append(asyncio.create_task(ask(4, "tiny")))  # is held back
        await until(lambda: node.pool.runner("tiny").parked)
        hurry = asyncio.Event()
        if hurried:
            hurry.set()
        await asyncio.wait_for(node.drain(hurry), 2)
        done, pending = await asyncio.wait(tasks, timeout=1)
        assert not pending
        for task in done:
            error = task.exception()
            assert isinstance(error, FaultError)
            assert error.fault.code == "shutting_down"
        assert node.journal.in_flight == 0
        assert starter.alive == []


async def test_closing_in_the_middle_of_everything_leaves_no_engine(
    make_node: MakeNode, tmp_path: Path
) -> None:
    async with opened(node := make_node()) as starter:
        for name in ("a", "b"):
            await add(node, tmp_path, name)
        await until(lambda: node.pool.runner("a").want(force=True) is None and node.pool.is_warm("a"))
        starter.gate.clear()
        node.pool.runner("b").want(force=True)
        await until(lambda: len(starter.starts) == 2)
        node.pool.runner("a").unload(force=False)
    assert starter.alive == []
    assert starter.cancelled == 1
    assert node.pool.runner("a").want(force=True) is not None  # nothing starts any more
    await asyncio.sleep(0.05)
    assert len(starter.starts) == 2


async def test_the_default_key_on_the_network_by_its_settings(make_node: MakeNode) -> None:
    up = {"network": "on", "allow_private": "on", "network_listen": "127.0.0.1:0"}
    given = {"api_key": "k-0123456789abcdef", "default_key_credit_per_day": "0.25USD"}
    body = msgspec.json.encode({"model": "net/a", "messages": [{"role": "user", "content": "Hi"}]})
    async with opened(node := make_node(**up, **given)):
        node.ready(())

        async def code() -> str:
            caller = node.authenticator.check(["k-0123456789abcdef"])
            assert caller is not None
            with pytest.raises(FaultError) as caught:
                await (await node.gateway.open(body, chat_plan, Incoming(caller, "/v1", "r"))).whole()
            return caught.value.fault.code

        assert await code() == "refused"
        node._environ["RELAY_DEFAULT_KEY_NETWORK"] = "on"  # type: ignore[index]
        node._environ["RELAY_DEFAULT_KEY_CREDIT_PER_DAY"] = "7"  # type: ignore[index]
        outcome = await node.api.call(Reload())
        assert outcome.value["applied"] == ["default_key_network", "default_key_credit_per_day"]
        # The real exchange: nobody has been found yet.
        assert await code() == "no_operator"
        (key,) = node.authenticator.view().keys
        assert (key.network, key.credit_per_day) == (True, 7)
    async with opened(node := make_node(**given, default_key_network="on")):
        node.ready(())
        assert node.access.quotas.credits.standing("default").limit == 250_000
        assert await code() == "no_operator"
