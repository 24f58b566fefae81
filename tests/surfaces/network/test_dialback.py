from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from relaydesk.core.hopcheck.dialback import MOST_ASK
from tests.support.edge_rig import checked_node


@pytest.mark.parametrize(
    ("on", "body", "status", "code"),
    [
        ("off", b"{}", 404, "not_found"),
        ("on", b"{}", 400, "bad_request"),
        ("on", b"", 400, "bad_request"),
        ("on", b"x" * (MOST_ASK + 1), 413, "request_too_large"),
    ],
)
async def test_what_is_no_question_is_refused(
    tmp_path: Path, on: str, body: bytes, status: int, code: str
) -> None:
    async with checked_node(tmp_path, dialback=on) as node:
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
        head = f"POST /v1/zs/dialback HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
        found, _, rest = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
    assert found.startswith(f"HTTP/1.1 {status} ".encode())
    assert json.loads(rest)["error"]["code"] == code
    assert b"x-zs-relay-hop: 1" not in found.lower()
