"""HTTP written by hand: for what no client library would send, and for seeing what comes when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """One whole answer; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body decoded."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error in the dialect's shape; fails for any other body."""
        error = self.json["error"]
        assert set(error) <= {"message", "type", "param", "code"}
        assert error["message"]
        assert error["type"]
        code: str = error["code"]
        return code


class RawClient:
    """One connection. A context manager."""

    def __init__(self, port: int, key: str | None) -> None:
        self._port = port
        self._key = key

    async def __aenter__(self) -> RawClient:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.abort()

    def abort(self) -> None:
        """Leave without a word."""
        self.writer.transport.abort()

    def head(self, method: str, path: str, headers: Mapping[str, str] | None = None) -> None:
        """Send a request's head, with the key where there is one."""
        lines = [f"{method} {path} HTTP/1.1", "Host: hub"]
        if self._key is not None:
            lines.append(f"Authorization: Bearer {self._key}")
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n")

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(data)

    def chunk(self, data: bytes) -> None:
        """Send one chunk of a chunked body; an empty one ends it."""
        self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def reply(self, within: float = 3.0) -> Reply:
        """Read one answer with a length, or until the other side closes."""
        async with asyncio.timeout(within):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            lines = head.split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
            }
            status = int(lines[0].split()[1])
            if status < 200:
                return Reply(status, headers, b"")
            length = headers.get("content-length")
            body = await self.reader.readexactly(int(length)) if length else b""
            return Reply(status, headers, body)

    async def line(self, within: float = 3.0) -> bytes:
        """The next line of whatever comes."""
        async with asyncio.timeout(within):
            return await self.reader.readline()
