"""An engine without a model, to see what the hub costs: it takes a worker's orders and answers at once.

It says what llama.cpp's server says, byte for byte where lengths matter, and nothing else: no checks. A model
named ``paced…`` gets a token every 5 ms instead of all at once, one named ``slow…`` every half second; one
named ``late…`` gets everything after 15 ms, in which the hub's code falls out of the processor's caches as it
does while a real engine computes.
Only the standard library and uvloop, because it runs outside the package.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any, Final, cast

import uvloop

# Seconds from one token to the next, by the beginning of the model's name.
PACES_S: Final = {"paced": 0.005, "slow": 0.5}
LATE_S: Final = 0.015
_TAIL: Final = (
    '"created":1796007817,"id":"chatcmpl-6KzHbjB0YJljhTUSFBZKQWDWFQ5aN6JR","model":"m",'
    '"system_fingerprint":"b0-unknown","object":"chat.completion.chunk"'
)
_KEEP: Final = "Keep-Alive: timeout=5, max=100\r\n"
_STREAM_HEAD: Final = (
    "HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nX-Accel-Buffering: no\r\nContent-Type: text/event-stream\r\n"
    f"Transfer-Encoding: chunked\r\n{_KEEP}\r\n"
).encode()


def _frame(choice: str, more: str = "") -> bytes:
    event = f'data: {{"choices":[{choice}],{_TAIL}{more}}}\n\n'.encode()
    return b"%x\r\n%b\r\n" % (len(event), event)


def _delta(delta: str, finish: str = "null") -> str:
    return f'{{"finish_reason":{finish},"index":0,"delta":{delta}}}'


_ROLE: Final = _delta('{"role":"assistant","content":null}')
_OPENING: Final = b"".join(
    _frame(_ROLE, f',"prompt_progress":{{"total":33,"cache":0,"processed":{done},"time_ms":0}}')
    for done in (0, 33)
) + _frame(_ROLE)
_TOKEN: Final = _frame(_delta('{"content":" word"}'))


def _closing(count: int) -> bytes:
    usage = (
        f',"usage":{{"completion_tokens":{count},"prompt_tokens":33,"total_tokens":{count + 33},'
        '"prompt_tokens_details":{"cached_tokens":0}},"timings":{"cache_n":0,"prompt_n":33,"prompt_ms":386.4,'
        f'"predicted_n":{count},"predicted_ms":71.79,"predicted_per_second":41.78}}'
    )
    done = b"data: [DONE]\n\n"
    return _frame(_delta("{}", '"length"')) + _frame("", usage) + b"%x\r\n%b\r\n0\r\n\r\n" % (len(done), done)


def _whole(count: int) -> bytes:
    body = (
        '{"choices":[{"finish_reason":"length","index":0,"message":{"role":"assistant","content":"'
        + " word" * count
        + f'"}}}}],{_TAIL},"usage":{{"completion_tokens":{count},"prompt_tokens":33,'
        + f'"total_tokens":{count + 33}}}}}'
    ).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{_KEEP}\r\n"
    return head.encode() + body


class _Server(asyncio.Protocol):
    def __init__(self, name: str) -> None:
        self._pace_s = next((pace for start, pace in PACES_S.items() if name.startswith(start)), 0.0)
        self._late_s = LATE_S if name.startswith("late") else 0.0
        self._data = b""
        self._left = 0
        self._count = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, rest = self._data.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if len(rest) < length:
            return
        self._data = rest[length:]
        body = json.loads(rest[:length]) if length else {}
        if self._late_s:
            asyncio.get_running_loop().call_later(self._late_s, self._answer, body)
        else:
            self._answer(body)

    def _answer(self, body: dict[str, Any]) -> None:
        count = body.get("max_tokens", 16)
        if not body.get("stream"):
            self._transport.write(_whole(count))
        elif self._pace_s:
            self._transport.write(_STREAM_HEAD + _OPENING)
            self._left = self._count = count
            self._pace()
        else:
            self._transport.write(_STREAM_HEAD + _OPENING + _TOKEN * count + _closing(count))

    def _pace(self) -> None:
        if self._transport.is_closing():
            return
        if self._left:
            self._left -= 1
            self._transport.write(_TOKEN)
            asyncio.get_running_loop().call_later(self._pace_s, self._pace)
        else:
            self._transport.write(_closing(self._count))


async def main() -> None:
    """Read the order, open the socket, say so, and end with the parent's pipe."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    order = json.loads(await reader.readline())
    name = order["spec"]["alias"]
    await loop.create_unix_server(lambda: _Server(name), order["socket"])
    os.write(1, b'{"event":"ready"}\n')
    while await reader.readline():
        pass


if __name__ == "__main__":
    uvloop.run(main())
