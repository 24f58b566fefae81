"""Imported by the hub under measurement at its start, where the bench puts this folder on its path.

``BENCH_ENGINE`` names a program that stands in for the interpreter the hub starts engines with, so that a
scripted engine is supervised and asked by the very code that runs real ones. ``BENCH_PROFILE`` names a file
for a profile of the loop's thread. ``BENCH_STALLS`` names a file of two doubles for the longest time, in
milliseconds, that the loop let a timer wait, and the most processor time it used meanwhile: whoever measures
sets them to nought and reads them.
"""

from __future__ import annotations

import os
import sys

if engine := os.environ.get("BENCH_ENGINE"):
    sys.executable = engine

if profile := os.environ.get("BENCH_PROFILE"):
    import atexit
    import cProfile

    _profiler = cProfile.Profile()
    atexit.register(_profiler.dump_stats, profile)
    _profiler.enable()

if stalls := os.environ.get("BENCH_STALLS"):
    import asyncio
    import mmap
    import struct
    import time
    from collections.abc import Coroutine
    from typing import Any

    import uvloop

    _STEP_S = 0.002
    _shared = mmap.mmap(os.open(stalls, os.O_RDWR), 16)
    _run = uvloop.run

    def _probe(loop: asyncio.AbstractEventLoop, due: float, cpu: float) -> None:
        now, used = time.perf_counter(), time.thread_time()
        worst, most = struct.unpack("2d", _shared[:])
        _shared[:] = struct.pack("2d", max(worst, (now - due) * 1000), max(most, (used - cpu) * 1000))
        loop.call_later(_STEP_S, _probe, loop, now + _STEP_S, used)

    async def _probed(main: Coroutine[Any, Any, Any]) -> Any:
        loop = asyncio.get_running_loop()
        _probe(loop, time.perf_counter(), time.thread_time())
        return await main

    def _run_probed(main: Coroutine[Any, Any, Any], **given: Any) -> Any:
        return _run(_probed(main), **given)

    uvloop.run = _run_probed
