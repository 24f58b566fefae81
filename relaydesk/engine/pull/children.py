"""Child processes of a pull: bounded in time and output, gone when the node is, without our secrets."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relaydesk.core.errors import EnvError

TETHER: Final = Path(__file__).with_name("tether.py")
_TAIL: Final = 16 << 10
_TICK_S: Final = 0.25

# What an installer or an HTTP client needs to find its settings, proxies and certificates. Everything
# else, our own secrets first of all, stays here.
_PASSED: Final = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LC_[A-Z]+|TMPDIR|XDG_[A-Z_]+|PIP_[A-Z_]+|UV_[A-Z_]+|VIRTUAL_ENV|PYTHONPATH"
    r"|PYTHONHOME|PYTHONUSERBASE|NETRC|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    r"|(HTTP|HTTPS|ALL|NO)_PROXY|(http|https|all|no)_proxy"
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: its exit code, the last of its standard error, and all of its standard output."""

    code: int
    errors: str
    output: bytes


class TookTooLong(Exception):
    """The child was ended because its time was up."""


def child_environment(environ: Mapping[str, str], also: re.Pattern[str] | None = None) -> dict[str, str]:
    """The part of the environment a child may see."""
    return {
        name: value
        for name, value in environ.items()
        if _PASSED.fullmatch(name) or (also is not None and also.fullmatch(name))
    }


async def run_tethered(
    command: Sequence[str], *, env: Mapping[str, str], timeout_s: float, tick: Callable[[], None]
) -> Ended:
    """Run ``command`` to its end, calling ``tick`` a few times a second. Its standard output is dropped.

    Raises `TookTooLong`; a cancelled caller takes the child, and the child's children, along.
    """
    process = await _start([sys.executable, "-P", str(TETHER), *command], env, output=False)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(timeout_s), asyncio.TaskGroup() as group:
            ticking = group.create_task(_tick(tick), name="pull-tick")
            errors = await _tail(process.stderr)
            code = await process.wait()
            ticking.cancel()
    except TimeoutError:
        raise TookTooLong from None
    finally:
        await _end(process)
    return Ended(code, errors, b"")


async def ask_child(
    program: Path, question: bytes, *, env: Mapping[str, str], timeout_s: float, limit: int
) -> Ended:
    """Start a program of ours, write one line, read its answer of at most ``limit`` bytes.

    Standard input stays open until the answer is there: the program ends itself when it closes.
    Raises `TookTooLong`.
    """
    process = await _start([sys.executable, "-P", str(program)], env, output=True)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    answer = bytearray()
    try:
        async with asyncio.timeout(timeout_s), asyncio.TaskGroup() as group:
            errors = group.create_task(_tail(process.stderr), name="pull-child-errors")
            process.stdin.write(question + b"\n")
            while len(answer) <= limit and (block := await process.stdout.read(1 << 16)):
                answer += block
            if len(answer) > limit:
                _kill(process)
            await process.wait()
    except TimeoutError:
        raise TookTooLong from None
    finally:
        await _end(process)
    if len(answer) > limit:
        return Ended(1, f"an answer of more than {limit} bytes", b"")
    return Ended(process.returncode or 0, errors.result(), bytes(answer))


async def _start(
    command: Sequence[str], env: Mapping[str, str], *, output: bool
) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=pipe,
            stdout=pipe if output else asyncio.subprocess.DEVNULL,
            stderr=pipe,
            env=dict(env),
            start_new_session=True,
        )
    except OSError as error:
        raise EnvError(
            "pull_failed", f"cannot start {command[0]}: {error.strerror}", "check this Python installation"
        ) from error


async def _tick(tick: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(_TICK_S)
        tick()


async def _tail(stream: asyncio.StreamReader) -> str:
    kept = b""
    while block := await stream.read(1 << 14):
        kept = (kept + block)[-_TAIL:]
    return kept.decode("utf-8", "replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    _kill(process)
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    """End the child's whole session; it was started as one, so its id is the group's."""
    if process.returncode is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # gone already; macOS says "not permitted" for a group of zombies
