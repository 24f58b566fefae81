"""One file from an HTTP server by ranged GET: resumed after a drop, checked, then given its name.

The access token goes to the Hub's own origin only, and no more once a redirect has left it. A redirect
from TLS to plain HTTP is refused.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp
from yarl import URL

from relaydesk.core.errors import PeerError
from relaydesk.core.text import safe_text
from relaydesk.engine.pull.disk import BLOCK, in_thread, storage_faults
from relaydesk.engine.pull.listing import access_refused
from relaydesk.engine.pull.meter import Meter
from relaydesk.engine.pull.part import Binding, PartFile

MAX_HOPS: Final = 8
RETRIES: Final = 5  # in a row without one new byte
BACK_OFF_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
MAX_WAIT_S: Final = 60.0  # of a server's own Retry-After
CONNECT_S: Final = 10.0
STALL_S: Final = 30.0
_RANGE: Final = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Remote:
    """A file as the Hub lists it. ``sha256`` is given for large files, ``blob`` (git's SHA-1) for others."""

    url: URL
    label: str
    size: int
    sha256: str | None
    blob: str | None
    identity: str


class _TryAgain(Exception):
    """The transfer broke in a way that may pass; ``wait_s`` is what the server asked for."""

    def __init__(self, why: str, wait_s: float = 0.0) -> None:
        super().__init__(why)
        self.wait_s = wait_s


class _Spoiled(Exception):
    """The content is not what was listed; ``resumed`` says part of it came from an earlier run."""

    def __init__(self, resumed: bool) -> None:
        super().__init__()
        self.resumed = resumed


class Fetcher:
    """Fetches files of one repository."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        origin: URL,
        token: str | None,
        sleep: Sleep,
        stall_s: float = STALL_S,
    ) -> None:
        self._session = session
        self._origin = origin.origin()
        self._token = token
        self._sleep = sleep
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=stall_s)

    async def fetch(self, remote: Remote, target: Path, meter: Meter) -> str:
        """Fetch to ``target`` and return the SHA-256. The meter counts the bytes, those resumed too.

        Raises `PeerError` ``pull_failed`` or ``not_found``, `LocalError` ``refused``, `EnvError`. What was
        transferred stays for the next try, unless the content is wrong. A part taken up from an earlier
        run that turns out spoiled is fetched once more from the beginning.
        """
        while True:
            try:
                return await self._attempt(remote, target, meter)
            except _Spoiled as error:
                if not error.resumed:
                    raise PeerError(
                        "pull_failed",
                        f"the content of {remote.label} is not what the Hub lists, so nothing of it was kept",
                        "pull it again; if that fails too, the repository or the way to it is broken",
                    ) from None

    async def _attempt(self, remote: Remote, target: Path, meter: Meter) -> str:
        by_blob = remote.sha256 is None and remote.blob is not None
        part = PartFile(target, Binding(remote.identity, remote.size), git_blob=by_blob)
        stop = threading.Event()
        with storage_faults(part.path):
            await in_thread(lambda: part.open(stop), stop)
            meter.add(part.size)
            try:
                await self._fill(remote, part, meter)
                return await in_thread(lambda: _finish(remote, part))
            except _Spoiled:
                meter.add(-part.size)
                await in_thread(part.discard)
                raise
            finally:
                part.leave()

    async def _fill(self, remote: Remote, part: PartFile, meter: Meter) -> None:
        failures = 0
        reached = False
        while part.size < remote.size:
            before = part.size
            try:
                await self._transfer(remote, part, meter)
                reached = True
            except _TryAgain as error:
                failures = 1 if part.size > before else failures + 1
                if failures > RETRIES:
                    raise self._broken(remote, part, str(error)) from None
                await self._sleep(error.wait_s or BACK_OFF_S[failures - 1])
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                reached = reached or part.size > before
                failures = 1 if part.size > before else failures + 1
                if failures > RETRIES or (not reached and isinstance(error, aiohttp.ClientConnectorError)):
                    raise self._broken(remote, part, _reason(error)) from None
                await self._sleep(BACK_OFF_S[failures - 1])

    async def _transfer(self, remote: Remote, part: PartFile, meter: Meter) -> None:
        headers = {"Accept-Encoding": "identity"}
        if part.size:
            headers["Range"] = f"bytes={part.size}-"
            if part.binding.etag:
                headers["If-Range"] = part.binding.etag
        response = await self._open(remote, headers)
        try:
            self._check_status(remote, response)
            await self._place(remote, response, part, meter)
            etag = response.headers.get("ETag", "")
            strong = etag if etag.startswith('"') and len(etag) < 256 else ""
            await in_thread(lambda: part.remember(strong))
            await self._receive(response, remote.size, part, meter)
        finally:
            response.close()
        if part.size < remote.size:
            raise _TryAgain("the server ended the transfer early")

    async def _receive(
        self, response: aiohttp.ClientResponse, size: int, part: PartFile, meter: Meter
    ) -> None:
        held = bytearray()
        try:
            async for block in response.content.iter_chunked(1 << 18):
                if part.size + len(held) + len(block) > size:
                    raise _Spoiled(part.resumed)
                held += block
                if len(held) >= BLOCK:
                    await self._keep(part, held, meter)
        finally:
            # What came before a drop or a cancellation is good: the next try asks for the rest only.
            await self._keep(part, held, meter)

    async def _keep(self, part: PartFile, held: bytearray, meter: Meter) -> None:
        if held:
            data = bytes(held)
            held.clear()
            await in_thread(lambda: part.write(data))
            meter.add(len(data))

    async def _open(self, remote: Remote, headers: dict[str, str]) -> aiohttp.ClientResponse:
        """GET, following redirects by hand, so that the token stays where it belongs."""
        url, at_home = remote.url, True
        for _ in range(MAX_HOPS):
            at_home = at_home and url.origin() == self._origin
            auth = {"Authorization": f"Bearer {self._token}"} if at_home and self._token else {}
            response = await self._session.get(
                url, headers=headers | auth, allow_redirects=False, timeout=self._timeout
            )
            if response.status not in (301, 302, 303, 307, 308):
                return response
            response.release()
            url = _next_hop(url, response.headers.get("Location", ""), remote)
        raise PeerError(
            "pull_failed", f"{remote.label} redirects more than {MAX_HOPS} times", "try again later"
        )

    def _check_status(self, remote: Remote, response: aiohttp.ClientResponse) -> None:
        status = response.status
        if status in (200, 206, 416):
            return
        if status in (401, 403):
            raise access_refused(remote.label, self._token is not None)
        if status in (404, 410):
            raise PeerError("not_found", f"{remote.label} is gone from the Hub", "list the repository again")
        if status == 429 or status >= 500:
            after = response.headers.get("Retry-After", "")
            wait = min(float(after), MAX_WAIT_S) if after.isdigit() and len(after) < 6 else 0.0
            raise _TryAgain(f"the server answered {status}", wait)
        raise PeerError("pull_failed", f"the server answered {status} for {remote.label}", "try again later")

    async def _place(
        self, remote: Remote, response: aiohttp.ClientResponse, part: PartFile, meter: Meter
    ) -> None:
        """See to it that the body begins where the part ends; raises where it cannot."""
        if response.status == 206:
            match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if match and int(match[1]) == part.size and int(match[3]) == remote.size:
                return
        elif response.status == 200:
            length = response.content_length
            if length is not None and length != remote.size:
                raise PeerError(
                    "pull_failed",
                    f"the Hub lists {remote.label} with {remote.size} bytes and serves {length}",
                    "pull it again in a few minutes",
                )
            if part.size == 0:
                return
        # The server does not know this part, or sends everything: begin again.
        meter.add(-part.size)
        await in_thread(part.restart)
        if response.status != 200:
            raise _TryAgain(f"the server answered {response.status} with another range")

    def _broken(self, remote: Remote, part: PartFile, why: str) -> PeerError:
        at = part.size * 100 // remote.size if remote.size else 0
        kept = f"pull it again: it goes on at {at} %" if part.size else "check the connection"
        return PeerError(
            "pull_failed", f"the transfer of {remote.label} from {remote.url.host} failed: {why}", kept
        )


def _next_hop(url: URL, location: str, remote: Remote) -> URL:
    try:
        target = url.join(URL(location))
    except ValueError:
        target = URL()
    if not location or target.scheme not in ("http", "https") or not target.host:
        raise PeerError("pull_failed", f"{remote.label} redirects to no valid address", "try again later")
    if url.scheme == "https" and target.scheme != "https":
        raise PeerError(
            "pull_failed",
            f"{remote.label} redirects from TLS to plain HTTP at {target.host}",
            "try again later",
        )
    return target


def _finish(remote: Remote, part: PartFile) -> str:
    sha256, blob = part.digests()
    if remote.sha256 is not None:
        good = sha256 == remote.sha256.lower()
    else:
        good = remote.blob is None or blob == remote.blob.lower()
    if not good:
        raise _Spoiled(part.resumed)
    part.finish()
    return sha256


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, aiohttp.ClientSSLError):
        return "its certificate is not trusted here"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "it cannot be reached"
    return safe_text(str(error) or type(error).__name__, 160)
