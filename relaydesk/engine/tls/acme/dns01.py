"""TXT records for DNS-01 challenges, set and taken away by the operator's own command.

It is called ``HOOK present NAME VALUE`` and ``HOOK cleanup NAME VALUE``, without a shell, and says by its
exit status whether it worked. One NAME can have two values at a time (a domain and its wildcard).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from relaydesk.core.errors import EnvError
from relaydesk.core.text import SafeText, safe_text
from relaydesk.engine.tasks import cancel_and_wait, finished, spawn

_log: Final = logging.getLogger(__name__)

# A hook may wait until its record can be seen everywhere.
HOOK_S: Final = 180.0
CLEANUP_S: Final = 30.0
_MAX_ERRORS: Final = 4096
_LAST_WORDS_S: Final = 1.0
# The node's own: a command of the operator has no use for its keys and its service manager.
_PRIVATE: Final = ("RELAY", "NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_")


class Dns01Hook:
    """An async context manager: records that were `publish`ed within are taken away at its end."""

    def __init__(
        self,
        hook: Path,
        environ: Mapping[str, str],
        *,
        limit_s: float = HOOK_S,
        cleanup_s: float = CLEANUP_S,
    ) -> None:
        self._hook = hook
        self._env = {name: value for name, value in environ.items() if not name.startswith(_PRIVATE)}
        self._limit_s = limit_s
        self._cleanup_s = cleanup_s
        self._set: list[tuple[str, str]] = []

    async def __aenter__(self) -> Dns01Hook:
        """Look at the command. Raises `EnvError` ``tls_failed`` where it cannot be run."""
        await asyncio.to_thread(self._check)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_exc: object) -> None:
        if self._set:
            # A node that stops has a few seconds.
            hurried = kind is not None and issubclass(kind, asyncio.CancelledError)
            await finished(self._clean(self._cleanup_s / 10 if hurried else self._cleanup_s))

    async def publish(self, place: str, value: str) -> None:
        """Set a record. Raises `EnvError` ``tls_failed`` where the hook fails or takes too long."""
        # Before the call: a hook that was stopped halfway may have set it.
        self._set.append((place, value))
        await self._call("present", place, value, self._limit_s)

    def _check(self) -> None:
        if not self._hook.is_file():
            raise _failed(f"{self._hook} is not there", "name a program in RELAY_ACME_DNS_HOOK")
        if not os.access(self._hook, os.X_OK):
            raise _failed(f"{self._hook} is not executable", f"`chmod +x {self._hook}`")

    async def _clean(self, limit_s: float) -> None:
        for place, value in self._set:
            try:
                await self._call("cleanup", place, value, limit_s)
            except EnvError as error:
                _log.warning("a TXT record at %s may be left: %s", safe_text(place, 120), error.fault.message)

    async def _call(
        self, verb: Literal["present", "cleanup"], place: str, value: str, limit_s: float
    ) -> None:
        async with _Words() as said:
            try:
                process = await asyncio.create_subprocess_exec(
                    self._hook,
                    verb,
                    place,
                    value,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=said.end,
                    env=self._env,
                    start_new_session=True,
                )
            except OSError as error:
                raise _failed(
                    f"{self._hook} cannot be run ({error.strerror or error})",
                    "give a program, or a script with #! and its interpreter in its first line",
                ) from error
            try:
                async with asyncio.timeout(limit_s):
                    code = await process.wait()
            except TimeoutError:
                raise _failed(
                    f"`{self._hook.name} {verb}` had not ended after {limit_s:g} s",
                    "let it end once the record can be seen",
                ) from None
            finally:
                _end(process.pid)
                await process.wait()
            if code:
                words = await said.last()
                raise _failed(
                    f"`{self._hook.name} {verb}` ended with status {code}" + (f" ({words})" if words else ""),
                    f"try it by hand: {self._hook} {verb} {safe_text(place, 120)} test",
                )


class _Words:
    """What a command says on standard error; ``end`` is the descriptor to give it.

    A pipe of our own: waiting for a process must not mean waiting for what it left running, which holds
    the pipe open.
    """

    def __init__(self) -> None:
        self._read, self.end = os.pipe()
        self._kept = b""
        self._pump: asyncio.Task[None] | None = None
        self._transport: asyncio.ReadTransport | None = None

    async def __aenter__(self) -> _Words:
        reader = asyncio.StreamReader()
        self._transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(self._read, "rb")
        )
        self._pump = spawn(self._drain(reader), name="acme-hook-words")
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._close_end()
        await cancel_and_wait(self._pump)
        if self._transport is not None:
            self._transport.close()

    async def last(self) -> SafeText:
        """The last line, once the command has ended."""
        self._close_end()
        if self._pump is not None:
            await asyncio.wait([self._pump], timeout=_LAST_WORDS_S)
        lines = self._kept.decode("utf-8", "replace").strip().splitlines()
        return safe_text(lines[-1] if lines else "", 160)

    async def _drain(self, reader: asyncio.StreamReader) -> None:
        while block := await reader.read(_MAX_ERRORS):
            self._kept = (self._kept + block)[-_MAX_ERRORS:]

    def _close_end(self) -> None:
        if self.end >= 0:
            os.close(self.end)
            self.end = -1


def _end(group: int) -> None:
    """End a hook with everything it started and left in its session."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # nothing of it is left


def _failed(message: str, hint: str) -> EnvError:
    return EnvError("tls_failed", f"the DNS hook {message}", hint, param="RELAY_ACME_DNS_HOOK")
