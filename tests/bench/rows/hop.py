"""What a hop costs: against nginx as a reverse proxy, for each streamed chunk, and for each open circuit.

Everything speaks TLS on both sides, and the target is the same for both. nginx runs one worker, without an
access log and with connections to the target that stay open.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import uvloop

from tests.bench.figure import Budget, Figure, pairs, value
from tests.bench.hop_load import Line, open_line
from tests.bench.hop_nodes import CHUNK
from tests.bench.rig import Child, Context, cpu_s, rss, temporary
from tests.support.lab_tls import LabTls, make_lab_tls

LINES: Final = 16
REQUESTS: Final = 250
STREAMS: Final = 32
CHUNKS: Final = 150
CHUNK_MS: Final = 8
OPEN: Final = 200
FIRSTS: Final = 300
_BODY: Final = b"z" * 600

# One process in the foreground, as whoever runs this.
_NGINX: Final = """
daemon off; master_process off; pid {dir}/pid; error_log {dir}/error.log crit;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 1000000; client_body_buffer_size 16k;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  upstream target {{ server 127.0.0.1:{target}; keepalive 64; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {pem}; ssl_certificate_key {pem};
    {locations}
  }}
}}
"""
_FORWARD: Final = """
    location / {{
      proxy_pass https://target; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_ssl_verify on; proxy_ssl_trusted_certificate {ca};
      proxy_ssl_name localhost; proxy_ssl_server_name on;
    }}
"""
# A target that is quicker than either of what is compared.
_ANSWER: Final = """
    default_type application/json;
    location = /v1/zs/details {{ alias {dir}/details.json; }}
    location = /v1/zs/reserve {{ return 200 "{text}"; }}
"""


class NoNginxError(Exception):
    """The row compares with nginx and there is none."""


def rate(context: Context) -> list[Figure]:
    """Requests a second through the hop and through nginx, one worker each."""
    with _nodes() as (tls, target, relay, stack, directory):
        port = _nginx(stack, directory / "target", tls, 1, _answers(target, directory / "target"))
        # The quick target takes the slow one's place: the same keys, another port.
        listed = json.loads(target["listed"])
        listed[4] = f"https://127.0.0.1:{port.port}"
        quick = _relay(stack, tls, json.dumps(listed))
        front = _nginx(stack, directory / "front", tls, port.port, _FORWARD.format(ca=tls.ca))
        relay = quick
        return uvloop.run(_rates(context, tls, relay, front, listed))


async def _rates(
    context: Context, tls: LabTls, relay: _Process, front: _Process, listed: list[Any]
) -> list[Figure]:
    trust = tls.client()
    through = [
        (front, await _lines(front.port, trust, _post("/v1/zs/reserve"), LINES)),
        (relay, await _lines(relay.port, trust, _hop(listed, "/v1/zs/reserve"), LINES)),
    ]
    seconds: list[list[float]] = [[], []]
    cpu: list[list[float]] = [[], []]
    for turn in range(context.pairs + 1):
        for which, (process, lines) in enumerate(through):
            before, started = process.cpu(), time.perf_counter()
            await asyncio.gather(*(line.run(REQUESTS) for line in lines))
            count = REQUESTS * LINES
            if turn:  # the first is for warming up
                seconds[which].append(count / (time.perf_counter() - started))
                cpu[which].append(count / (process.cpu() - before))
    for _, lines in through:
        for line in lines:
            line.transport.abort()
    budget = Budget(0.06, at_least=True)
    return [
        pairs("hop", "requests a second of its own processor time", "1/s", "ratio", cpu[0], cpu[1],
              against="nginx", budget=budget, digits=3),
        pairs("hop", "requests a second", "1/s", "ratio", seconds[0], seconds[1], against="nginx",
              budget=budget, digits=3),
    ]  # fmt: skip


def chunk(context: Context) -> list[Figure]:
    """Processor time of the relay for each chunk of a stream."""
    with _nodes() as (tls, target, relay, stack, _directory):
        pipe = _relay(stack, tls, target["listed"], "pipe")
        return uvloop.run(_chunk_cost(context, tls, target, relay, pipe))


async def _chunk_cost(
    context: Context, tls: LabTls, target: dict[str, Any], relay: _Process, pipe: _Process
) -> list[Figure]:
    listed, trust = json.loads(target["listed"]), tls.client()

    async def spent(process: _Process, chunks: int) -> float:
        path = f"/v1/chat/completions?chunks={chunks}&ms={CHUNK_MS}"
        lines = await _lines(process.port, trust, _hop(listed, path), STREAMS)
        before = process.cpu()
        await asyncio.gather(*(line.run(1) for line in lines))
        took = process.cpu() - before
        for line in lines:
            if line.bytes < chunks * len(CHUNK):
                raise RuntimeError("a stream was cut short")
            line.transport.abort()
        return took

    each: list[list[float]] = [[], []]
    for turn in range(context.pairs + 1):
        for which, process in enumerate((pipe, relay)):
            few = await spent(process, 1)
            cost = (await spent(process, CHUNKS) - few) / (STREAMS * (CHUNKS - 1)) * 1e6
            if turn:
                each[which].append(cost)
    name = f"processor time of a chunk of {len(CHUNK)} bytes, {STREAMS} streams"
    return [
        value("hop-chunk", name, "µs", each[1], budget=Budget(40.0), digits=1),
        pairs("hop-chunk", "… beyond TLS itself", "µs", "added", *each, against="a bare pipe", digits=1),
    ]


def memory(context: Context) -> list[Figure]:
    """Resident memory of an open circuit, TLS on both sides."""
    each = []
    for _ in range(max(3, context.pairs // 2)):
        with _nodes() as (tls, target, relay, _stack, _directory):
            each.append(uvloop.run(_held(tls, target, relay)))
    budget = Budget(128.0)
    return [value("hop-memory", "an open circuit", "KiB", each, budget=budget, digits=1)]


async def _held(tls: LabTls, target: dict[str, Any], relay: _Process) -> float:
    path = f"/v1/chat/completions?chunks=20&ms={CHUNK_MS}&hold=1"
    request, trust = _hop(json.loads(target["listed"]), path), tls.client()

    async def opened(count: int) -> list[Line]:
        lines = await _lines(relay.port, trust, request, count)
        loop = asyncio.get_running_loop()
        waiting = []
        for line in lines:
            line.began = loop.create_future()
            waiting.append(loop.create_task(line.run(1)))
            await line.began
        await asyncio.sleep(1)
        return lines

    lines = await opened(20)
    before = rss(relay.pid)
    lines += await opened(OPEN)
    held = (rss(relay.pid) - before) / OPEN / 1024
    for line in lines:
        line.transport.abort()
    return held


def first(context: Context) -> list[Figure]:
    """The time to the first chunk through the hop, against asking the target."""
    with _nodes() as (tls, target, relay, _stack, _directory):
        return uvloop.run(_first_chunks(context, tls, target, relay))


async def _first_chunks(
    context: Context, tls: LabTls, target: dict[str, Any], relay: _Process
) -> list[Figure]:
    path, trust = "/v1/chat/completions?chunks=2&ms=1", tls.client()
    [straight] = await _lines(target["port"], trust, _post(path), 1)
    [hopping] = await _lines(relay.port, trust, _hop(json.loads(target["listed"]), path), 1)
    medians: list[list[float]] = [[], []]
    for turn in range(context.pairs + 1):
        for which, line in enumerate((straight, hopping)):
            line.first_s.clear()
            await line.run(FIRSTS)
            if turn:
                medians[which].append(statistics.median(line.first_s) * 1000)
    straight.transport.abort()
    hopping.transport.abort()
    return [
        pairs("hop-first", "the first chunk, p50", "ms", "added", medians[0], medians[1],
              against="asking the target", budget=Budget(1.0), digits=3)
    ]  # fmt: skip


class _Process:
    """What is measured: where it listens, and its processor time."""

    def __init__(self, pid: int, port: int) -> None:
        self.pid = pid
        self.port = port

    def cpu(self) -> float:
        """Seconds; where Linux counts them in nanoseconds, so precisely."""
        try:
            threads = [path.read_text() for path in Path(f"/proc/{self.pid}/task").glob("*/schedstat")]
        except OSError:
            threads = []
        return sum(int(text.split()[0]) for text in threads) / 1e9 if threads else cpu_s(self.pid)


@contextmanager
def _nodes() -> Iterator[tuple[LabTls, dict[str, Any], _Process, ExitStack, Path]]:
    with temporary() as directory, ExitStack() as stack:
        tls = make_lab_tls(directory)
        program = (sys.executable, "-m", "tests.bench.hop_nodes")
        target = stack.enter_context(Child(*program, "target", str(tls.pem), str(tls.ca))).line()
        yield tls, target, _relay(stack, tls, target["listed"]), stack, directory


def _relay(stack: ExitStack, tls: LabTls, listed: str, kind: str = "relay") -> _Process:
    program = (sys.executable, "-m", "tests.bench.hop_nodes")
    child = stack.enter_context(Child(*program, kind, str(tls.pem), str(tls.ca), listed))
    return _Process(child.process.pid, child.line()["port"])


def _answers(target: dict[str, Any], directory: Path) -> str:
    directory.mkdir()
    (directory / "details.json").write_text(target["details"])
    return _ANSWER.format(dir=directory, text="y" * 512)


def _nginx(stack: ExitStack, directory: Path, tls: LabTls, target: int, locations: str) -> _Process:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        raise NoNginxError("no nginx here")
    directory.mkdir(exist_ok=True)
    directory.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = directory / "nginx.conf"
    config.write_text(
        _NGINX.format(dir=directory, port=port, target=target, pem=tls.pem, locations=locations)
    )
    process = subprocess.Popen([program, "-p", str(directory), "-c", str(config)], stderr=subprocess.DEVNULL)
    stack.callback(_end(process))
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.02)
        else:
            return _Process(process.pid, port)
    raise RuntimeError("nginx does not listen")


def _end(process: subprocess.Popen[bytes]) -> Callable[[], None]:
    def end() -> None:
        process.terminate()
        process.wait()

    return end


async def _lines(port: int, trust: ssl.SSLContext, request: bytes, count: int) -> list[Line]:
    return [await open_line(port, trust, request) for _ in range(count)]


def _post(path: str, more: str = "") -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/vnd.zs-reserve+json\r\n"
        f"Accept: application/json\r\n{more}Content-Length: {len(_BODY)}\r\n\r\n"
    ).encode() + _BODY


def _hop(listed: list[Any], path: str) -> bytes:
    return _post(
        "/v1/zs/relay",
        f"X-Zs-Relay-Target: {listed[0]}\r\nX-Zs-Relay-Target-Node: {listed[1]}\r\n"
        f"X-Zs-Relay-Path: {path}\r\nX-Zs-Relay-Method: POST\r\n",
    )
