"""A worker without a hub, in a process of its own: the baseline. Prints where it listens and its key.

``python -m tests.bench.bare MODEL``; it ends when its input does. Its orders are what the hub gives an
engine for the same model, slots, context and threads.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import uvloop

from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.infer.spec import EngineSpec
from relaydesk.engine.infer.worker import WorkerProcess
from tests.bench.rig import CTX, SLOTS


async def main(model: str, directory: str, name: str) -> None:
    """Run one worker until standard input ends."""
    spec = EngineSpec(model_path=model, alias=name, ctx_total=CTX * SLOTS, slots=SLOTS, threads=1)
    worker = WorkerProcess(spec, Path(directory), SystemRng(), SystemClock(), *sys.argv[4:5])
    await worker.start(60)
    try:
        print(json.dumps({"unix": worker.socket_path, "key": worker.key, "pid": worker.pid}), flush=True)
        await asyncio.to_thread(sys.stdin.read)
    finally:
        await worker.stop()


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:4]))
