"""Real workers: what they open, tell, free and leave behind."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from relaydesk.core.errors import EnvError, PeerError
from relaydesk.core.pool.setup import EngineSetup
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.infer.client import EngineClient
from relaydesk.engine.infer.spec import LoadProgress
from relaydesk.engine.infer.worker import WorkerProcess

pytestmark = pytest.mark.engine
Make = Callable[..., WorkerProcess]
CHAT = "/v1/chat/completions"
SECRET = "Xylophonsecret"


def chat(max_tokens: int, words: str = "Say hello.", **fields: object) -> bytes:
    body = {
        "messages": [{"role": "user", "content": words}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "stream": True,
        "return_progress": True,
        "ignore_eos": True,
        "id_slot": 1,
        "cache_prompt": False,
    }
    return json.dumps(body | fields).encode()


def client_of(worker: WorkerProcess, key: str = "") -> EngineClient:
    return EngineClient(worker.socket_path, key or worker.key, SystemClock())


async def browser_get(worker: WorkerProcess, path: str) -> tuple[int, str]:
    """What a page of another origin would get even with the key: status and head, in lower case."""
    reader, writer = await asyncio.open_unix_connection(worker.socket_path)
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\nAccept-Encoding: gzip\r\n"
        f"Origin: http://evil.example\r\nAuthorization: Bearer {worker.key}\r\n\r\n".encode()
    )
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    writer.close()
    return int(head.split()[1]), head


async def busy(client: EngineClient) -> int:
    metrics = (await client.json("GET", "/metrics")).body.decode()
    return int(metrics.partition("\nllamacpp:requests_processing ")[2].split("\n")[0])


async def freed_within(client: EngineClient) -> float:
    started = time.monotonic()
    while await busy(client):
        await asyncio.sleep(0.01)
    return time.monotonic() - started


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_a_worker_chats_and_is_measured(make_worker: Make) -> None:
    worker = make_worker(ctx_total=4096)
    told: list[LoadProgress] = []
    ready = await worker.start(30, told.append)
    assert worker.state == "ready"
    assert (ready.pid, ready.slots, ready.ctx_slot) == (worker.pid, 2, 2048)
    # f16 keys and values of 30 layers, 3 heads of 64, 4096 tokens; weights by the file's tensors.
    assert ready.kv_bytes == 2 * 30 * 4096 * 3 * 64 * 2
    assert 96_000_000 < ready.weights_bytes < 98_400_000
    assert ready.compute_bytes > 0
    assert ready.rss_bytes > ready.weights_bytes
    assert all(0 <= step.fraction <= 0.99 for step in told if step.fraction is not None)
    client = client_of(worker)
    async with await client.stream(CHAT, chat(4)) as stream:
        events = [json.loads(event) async for event in stream]
    assert {event["model"] for event in events} == {"smollm2"}
    assert any("prompt_progress" in event for event in events)
    assert sum(bool(event["choices"][0]["delta"].get("content")) for event in events) == 4
    # Whoever embedded here would wait until nobody writes.
    assert (await client.json("POST", "/v1/embeddings", b'{"input": "hello there"}')).status == 501
    await client.aclose()
    await worker.stop()


async def test_an_embedder_embeds(make_worker: Make) -> None:
    worker = make_worker(ctx_total=256, slots=1, setup=EngineSetup(128, "mean"))
    ready = await worker.start(30)
    assert (ready.slots, ready.ctx_slot) == (1, 256)
    client = client_of(worker)
    reply = await client.json("POST", "/v1/embeddings", b'{"input": "hello there"}')
    vector = json.loads(reply.body)["data"][0]["embedding"]
    assert (reply.status, len(vector)) == (200, 576)
    assert 0.99 < sum(part * part for part in vector) < 1.01
    too_long = await client.json("POST", "/v1/embeddings", json.dumps({"input": [5] * 129}).encode())
    assert too_long.status >= 400
    await client.aclose()
    await worker.stop()


async def test_the_door_is_locked_and_nothing_leaks(
    make_worker: Make, runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAY_API_KEY", "rk-do-not-inherit")
    worker = make_worker()
    await worker.start(30)
    proc = Path(f"/proc/{worker.pid}")
    seen = (proc / "environ").read_bytes() + (proc / "cmdline").read_bytes()
    assert worker.key.encode() not in seen
    assert b"RELAY_" not in seen
    assert b"rk-do-not-inherit" not in seen
    assert psutil.Process(worker.pid).net_connections("inet") == []
    assert os.getsid(worker.pid) == worker.pid  # a terminal's ^C does not reach it
    assert stat.S_IMODE(runtime_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE(Path(worker.socket_path).stat().st_mode) & 0o077 == 0
    stranger, client = client_of(worker, "wrong"), client_of(worker)
    for path in ("/v1/models", "/slots", "/props", "/metrics", "/tokenize"):
        assert (await stranger.json("GET", path)).status in (401, 404)
    async with await stranger.stream(CHAT, chat(1)) as refused:
        assert refused.status == 401
    for path in ("/", "/slots", "/metrics", "/tools", "/cors-proxy"):
        assert (await client.json("GET", path)).status >= 400, path
    assert (await browser_get(worker, "/"))[0] == 404
    status, head = await browser_get(worker, "/v1/models")
    assert status == 200
    assert "evil.example" not in head
    assert "allow-origin: *" not in head
    assert "allow-credentials" not in head
    models = await client.json("GET", "/v1/models")
    assert worker.spec.model_path.encode() not in models.body
    async with await client.stream(CHAT, chat(2, SECRET)) as stream:
        assert [event async for event in stream]
    await client.aclose()
    await worker.stop()
    assert worker.lines
    assert not [line for line in worker.lines if SECRET in line or worker.key[-4:] in line]


async def test_a_client_that_leaves_frees_its_slot(make_worker: Make) -> None:
    worker = make_worker(metrics=True, ctx_total=8192)
    await worker.start(30)
    client = client_of(worker)
    async with await client.stream(CHAT, chat(2000)) as stream:
        async for event in stream:
            if b'"content":"' in event:
                break
        assert await busy(client) == 1
    generating = await freed_within(client)
    async with await client.stream(CHAT, chat(5, "word " * 3500)) as stream:
        steps = [json.loads(await anext(stream))["prompt_progress"]["time_ms"] for _ in range(3)]
        assert await busy(client) == 1
    prefill = await freed_within(client)
    batch_s = (steps[2] - steps[1]) / 1000
    print(f"slot freed after {generating:.3f} s, in prefill {prefill:.3f} s with {batch_s:.3f} s a batch")
    assert generating <= 1
    # The engine notices between two batches, and may have begun one more by then. A whole prompt here is 27.
    assert prefill <= 3 * batch_s + 0.3
    await client.aclose()
    await worker.stop()


async def test_kill_9_of_a_worker_ends_its_stream_with_an_error(make_worker: Make, runtime_dir: Path) -> None:
    worker = make_worker()
    await worker.start(30)
    client = client_of(worker)

    async def cut_off() -> None:
        async with await client.stream(CHAT, chat(900)) as stream:
            await anext(stream)
            os.kill(worker.pid, 9)
            async for _ in stream:
                pass

    with pytest.raises(PeerError) as caught:
        await cut_off()
    assert caught.value.fault.code == "engine_failed"
    end = await asyncio.wait_for(asyncio.shield(worker.exited), 2)
    assert (end.code, end.wanted, worker.state) == (-9, False, "exited")
    assert "killed" in end.reason
    assert list(runtime_dir.iterdir()) == []
    assert not await client.health()
    await client.aclose()


NODE = """
import asyncio, sys, uvloop
from pathlib import Path
from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.infer.spec import EngineSpec
from relaydesk.engine.infer.worker import WorkerProcess

async def main():
    spec = EngineSpec(model_path=sys.argv[1], alias="m", ctx_total=512, slots=1, threads=1)
    worker = WorkerProcess(spec, Path(sys.argv[2]), SystemRng(), SystemClock())
    start = asyncio.ensure_future(worker.start(60))
    while not worker.pid or (sys.argv[3] == "ready" and not start.done()):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    print(worker.pid, flush=True)
    await asyncio.sleep(60)

uvloop.run(main())
"""


@pytest.mark.parametrize("when", ["ready", "loading"])
async def test_kill_9_of_the_node_leaves_no_worker(when: str, smollm2: Path, runtime_dir: Path) -> None:
    model = smollm2
    if when == "loading":  # a pipe that nobody writes: the load hangs in native code
        model = runtime_dir.parent / "pipe.gguf"
        os.mkfifo(model)
    root = str(Path(__file__).parents[3])
    node = subprocess.Popen(
        [sys.executable, "-c", NODE, str(model), str(runtime_dir), when],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert node.stdout is not None
    worker = int(await asyncio.to_thread(node.stdout.readline))
    assert not gone(worker)
    node.kill()
    node.wait()
    killed = time.monotonic()
    while not gone(worker) and time.monotonic() - killed < 5:
        await asyncio.sleep(0.005)
    took = time.monotonic() - killed
    print(f"worker gone {took:.3f} s after the node ({when})")
    node.stdout.close()
    assert took <= 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"hello, this is no model", "is not a GGUF file"),
        (None, "cannot be opened"),
        (5_000_000, "not within the file bounds"),
        (b"zzzzz", "does not know the architecture 'zzzzz'"),
    ],
    ids=["junk", "missing", "truncated", "unknown architecture"],
)
async def test_a_bad_file_is_one_sentence(
    make_worker: Make,
    smollm2: Path,
    tmp_path: Path,
    runtime_dir: Path,
    content: bytes | int | None,
    reason: str,
) -> None:
    path = tmp_path / "bad.gguf"
    if isinstance(content, int):
        with smollm2.open("rb") as whole:
            path.write_bytes(whole.read(content))
    elif content == b"zzzzz":
        with smollm2.open("rb") as whole:
            head = bytearray(whole.read(2_000_000))
        at = head.index(b"llama", head.index(b"general.architecture"))
        head[at : at + 5] = content
        path.write_bytes(head)
        os.truncate(path, smollm2.stat().st_size)
    elif content is not None:
        path.write_bytes(content)
    worker = make_worker(model_path=str(path))
    with pytest.raises(EnvError) as caught:
        await worker.start(30)
    fault = caught.value.fault
    assert fault.code == "model_load_failed"
    assert reason in fault.message
    assert fault.hint
    assert str(tmp_path) not in fault.sentence
    assert gone(worker.pid)
    assert list(runtime_dir.iterdir()) == []


async def test_too_little_memory_is_told_with_its_figure(make_worker: Make) -> None:
    worker = make_worker(ctx_total=16_000_000, slots=1)
    with pytest.raises(
        EnvError, match=r"not enough memory, CPU has no \d+ MiB left: choose a smaller context"
    ):
        await worker.start(60)


async def test_a_load_that_hangs_is_ended_at_its_time(make_worker: Make, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    worker = make_worker(model_path=str(tmp_path / "pipe.gguf"))
    started = time.monotonic()
    with pytest.raises(EnvError) as caught:
        await worker.start(1.0)
    assert caught.value.fault.code == "model_load_timeout"
    assert time.monotonic() - started < 2
    assert worker.exited.result().code == -9
    assert gone(worker.pid)


async def test_a_start_given_up_leaves_nothing(make_worker: Make, runtime_dir: Path) -> None:
    worker = make_worker()
    start = asyncio.ensure_future(worker.start(30))
    while not worker.pid:
        await asyncio.sleep(0.01)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert worker.exited.done()
    assert gone(worker.pid)
    assert list(runtime_dir.iterdir()) == []


async def test_an_interpreter_that_is_not_there_is_told(make_worker: Make) -> None:
    worker = make_worker(python="/nowhere/python")
    with pytest.raises(EnvError, match="cannot be started"):
        await worker.start(5)
    await worker.stop()
    assert worker.state == "exited"


@pytest.mark.long
async def test_a_worker_that_prints_for_ever_is_ended_at_its_time(make_worker: Make, tmp_path: Path) -> None:
    chatty = tmp_path / "python"
    line = "0.00.682.639 E srv init: model loaded"
    chatty.write_text(f"#!/bin/sh\nyes 'not a status' & yes '{line}' >&2\n")
    chatty.chmod(0o700)
    worker = make_worker(python=str(chatty))
    before = psutil.Process().memory_info().rss
    with pytest.raises(EnvError, match="did not load within 1 s"):
        await worker.start(1.0)
    assert psutil.Process().memory_info().rss - before < 32 * 2**20
    assert len(worker.lines) == 40


@pytest.mark.long
async def test_ten_lives_leave_nothing_behind(make_worker: Make, runtime_dir: Path) -> None:
    async def life() -> None:
        worker = make_worker(ctx_total=256, slots=1)
        await worker.start(60)
        client = client_of(worker)
        async with await client.stream(CHAT, chat(1, id_slot=0)) as stream:
            assert [event async for event in stream]
        await client.aclose()
        await worker.stop()
        assert worker.exited.result().wanted

    await life()  # threads and caches of the first use
    me = psutil.Process()
    descriptors = me.num_fds()
    others = me.children(recursive=True)  # what other tests keep for the whole session
    for _ in range(5):
        await asyncio.gather(life(), life())
    await asyncio.sleep(0.05)
    assert me.num_fds() <= descriptors
    assert me.children(recursive=True) == others
    assert list(runtime_dir.iterdir()) == []
