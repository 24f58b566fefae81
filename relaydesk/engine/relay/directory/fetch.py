"""Reading a directory from its place: bounded in size and time, nothing followed, nothing unpacked."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from relaydesk.core.relay.directory.document import MAX_BYTES
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.relay.directory.source import Source
from relaydesk.engine.relay.outbound.outbound import Outbound
from relaydesk.engine.relay.outbound.unreachable import UnreachableError

FETCH_S: Final = 20.0
_ERROR_BYTES: Final = 16 * 1024
_ETAG: Final = re.compile(r'(?:W/)?"[!#-~]{0,120}"')


class _Why(msgspec.Struct, frozen=True):
    code: str | None = None


class _Said(msgspec.Struct, frozen=True):
    """A hub's error, in OpenAI's shape."""

    error: _Why = _Why()


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a place gave: ``data`` is None where it says that nothing changed since ``etag``."""

    data: bytes | None
    etag: str = ""


async def fetch(source: Source, etag: str, outbound: Outbound) -> Fetched:
    """Read a directory; ``etag`` is of the last reading, empty for none. Raises `Refused`."""
    if not source.is_url:
        return Fetched(await asyncio.to_thread(read_file, Path(source.place)))
    try:
        async with asyncio.timeout(FETCH_S):
            return await _fetch_url(source.document_url, etag, outbound)
    except TimeoutError:
        raise Refused("not_seen", f"the directory was not complete within {FETCH_S:g} s") from None
    except UnreachableError as error:
        raise Refused("not_seen", f"the directory cannot be read ({error.reason})") from None
    except ValueError:
        raise Refused("not_seen", "the directory's URL cannot be asked for", "correct it") from None


async def _fetch_url(url: str, etag: str, outbound: Outbound) -> Fetched:
    headers = [("Accept", "application/json")]
    if etag:
        headers.append(("If-None-Match", etag))
    async with await outbound.send(url, "GET", headers, head_s=FETCH_S) as reply:
        if reply.status == 304 and etag:
            return Fetched(None, etag)
        if 300 <= reply.status < 400:
            raise Refused(
                "not_seen", "the directory's server sends elsewhere", "pin the URL that it really has"
            )
        if reply.status != 200:
            require_no_hub(reply.status, await reply.read(_ERROR_BYTES))
            raise Refused("not_seen", f"the directory's server answered {reply.status}")
        if reply.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Refused("malformed", "the directory came compressed, though that was not asked for")
        data = await reply.read(MAX_BYTES)
        tag = reply.headers.get("ETag", "")
        return Fetched(data, tag if _ETAG.fullmatch(tag) else "")


def require_no_hub(status: int, body: bytes) -> None:
    """Raises `Refused` ``not_a_directory`` where a hub's port for clients answered: it asks for a key."""
    if status != 401:
        return
    try:
        code = msgspec.json.decode(body, type=_Said).error.code
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return
    if code == "invalid_api_key":
        raise Refused(
            "not_a_directory",
            "that is a hub's port for clients, not a network listener's",
            "give the port of the keeper's RELAY_NETWORK_LISTEN, usually 8384, or its RELAY_PUBLIC_URL",
        )


def read_file(path: Path) -> bytes:
    """A file of at most `MAX_BYTES`. Blocks. Raises `Refused`."""
    try:
        # Not blocking: a FIFO in the file's place must not hang the thread.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Refused("not_seen", f"{path} is no regular file")
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Refused("not_seen", f"{path} cannot be read ({reason})") from None
    if len(data) > MAX_BYTES:
        raise Refused("too_large", f"{path} is larger than {MAX_BYTES} bytes")
    return data
