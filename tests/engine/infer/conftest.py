"""Workers run on uvloop, as the node does, and in a directory short enough for a socket's address."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.infer.spec import EngineSpec
from relaydesk.engine.infer.worker import WorkerProcess


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def runtime_dir() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="rd-", dir="/tmp"))
    yield path / "w"
    shutil.rmtree(path)


@pytest.fixture
async def make_worker(runtime_dir: Path, smollm2: Path) -> AsyncIterator[Callable[..., WorkerProcess]]:
    """Makes workers of the small model, one thread each; ends what a test left running."""
    made: list[WorkerProcess] = []

    def make(python: str = "", **fields: object) -> WorkerProcess:
        given = {"model_path": str(smollm2), "alias": "smollm2", "ctx_total": 2048, "slots": 2, "threads": 1}
        spec = EngineSpec(**(given | fields))  # type: ignore[arg-type]
        options = {"python": python} if python else {}
        worker = WorkerProcess(spec, runtime_dir, SystemRng(), SystemClock(), **options)
        made.append(worker)
        return worker

    yield make
    for worker in made:
        worker.kill()
        if worker.pid:
            await asyncio.wait([worker.exited], timeout=5)
