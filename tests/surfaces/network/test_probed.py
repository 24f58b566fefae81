from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from relaydesk.core.hopcheck.asked import HEADER, Mode, asked_header
from relaydesk.core.hopcheck.faults import SENT_HEADERS, TWICE
from relaydesk.core.hopcheck.record import chunk
from tests.support.edge_rig import CheckedNode, checked_node


async def post(node: CheckedNode, header: str, body: bytes = b"", method: str = "POST") -> tuple[str, bytes]:
    """Head and body as bytes on the wire."""
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    head = (
        f"{method} /v1/zs/relay HTTP/1.1\r\nHost: x\r\n{HEADER}: {header}\r\nContent-Length: {len(body)}\r\n"
    )
    writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
    data = await reader.read()
    writer.close()
    found, _, rest = data.partition(b"\r\n\r\n")
    return found.decode("latin-1"), rest


def value(node: CheckedNode, mode: Mode, seconds: float = 0.0) -> str:
    return asked_header(node.nonce(), mode, seconds)[1]


async def test_every_answer_carries_what_a_relays_does(tmp_path: Path) -> None:
    async with checked_node(tmp_path) as node:
        for mode in ("error", "echo", "headers", "silence"):
            head, _ = await post(node, value(node, mode))  # type: ignore[arg-type]
            assert "X-Zs-Relay-Hop: 1" in head.split("\r\n")
            assert "Access-Control-Expose-Headers: X-Zs-Relay-Hop" in head


async def test_a_stream_comes_in_its_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relaydesk.surfaces.network.probed.GAP_MS", 1)
    async with checked_node(tmp_path) as node:
        head, body = await post(node, value(node, "stream"))
    assert "Content-Type: text/event-stream" in head
    assert "X-Accel-Buffering: no" in head
    assert body == b"".join(b"40\r\n" + chunk(at) + b"\r\n" for at in range(6)) + b"0\r\n\r\n"


async def test_a_failure_an_echo_and_a_silence(tmp_path: Path) -> None:
    async with checked_node(tmp_path) as node:
        head, body = await post(node, value(node, "error"))
        assert head.startswith("HTTP/1.1 502 ")
        assert json.loads(body)["error"]["code"] == "relay_upstream_unreachable"
        _, body = await post(node, value(node, "echo"), b"x" * 70_000)
        assert json.loads(body) == {"zs_probe": "echo", "received": 70_000}
        _, body = await post(node, value(node, "silence", 0.01))
        assert json.loads(body) == {"zs_probe": "silence", "seconds": 0.01}


async def test_headers_each_once_and_one_twice(tmp_path: Path) -> None:
    async with checked_node(tmp_path) as node:
        head, _ = await post(node, value(node, "headers"))
    lines = head.split("\r\n")
    assert all(f"{name}: 1" in lines for name in SENT_HEADERS)
    assert [line for line in lines if line.startswith(TWICE)] == [f"{TWICE}: one", f"{TWICE}: two"]


@pytest.mark.parametrize("header", ["", "nonsense", "0" * 32, "0" * 32 + "; silence=100"])
async def test_without_a_good_nonce_the_header_is_not_there(tmp_path: Path, header: str) -> None:
    async with checked_node(tmp_path) as node:
        node.nonce()
        head, body = await post(node, header)
    assert head.startswith("HTTP/1.1 400 ")
    assert json.loads(body)["error"]["code"] == "relay_bad_target"


async def test_answers_under_way_are_counted_until_they_end(tmp_path: Path) -> None:
    async with checked_node(tmp_path) as node:
        waiting = asyncio.create_task(post(node, value(node, "silence", 0.2)))
        while not node.checks.nonces.open:
            await asyncio.sleep(0.005)
        await waiting
        assert node.checks.nonces.open == 0
