from __future__ import annotations

import asyncio
import os
import sys
import tracemalloc

from relaydesk.engine.infer.logfilter import LogEvent, LogFilter
from relaydesk.engine.infer.logpump import KEPT_LINES, LogPump
from relaydesk.engine.infer.spec import EngineSpec

LINE = b"0.00.682.639 I srv          init: model loaded\n"
FLOOD = f"import os\nline = {LINE!r} * 500\nwhile True:\n    os.write(1, line)\n"


def pump(fd: int, events: list[LogEvent] | None = None) -> LogPump:
    keep = LogFilter(EngineSpec(model_path="/m.gguf", alias="m", ctx_total=1))
    return LogPump(fd, keep, events.append if events is not None else lambda event: None)


async def test_lines_arrive_and_the_end_closes() -> None:
    read_end, write_end = os.pipe()
    events: list[LogEvent] = []
    one = pump(read_end, events)
    os.write(write_end, LINE)
    await asyncio.sleep(0.05)
    os.write(write_end, LINE + b"secret\n")
    os.close(write_end)
    await asyncio.sleep(0.1)
    assert [event.text for event in events] == ["model loaded", "model loaded"]
    one.finish()  # after the end: nothing to do


async def test_finish_takes_what_a_dead_process_left() -> None:
    read_end, write_end = os.pipe()
    one = pump(read_end)
    os.write(write_end, LINE * 3)
    one.finish()
    assert list(one.lines) == ["model loaded"] * 3
    os.close(write_end)


async def test_of_one_turn_only_the_head_is_looked_at_and_all_is_taken() -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    wrote = os.write(write_end, LINE * 3000)
    assert wrote > 40 * 1024  # or this pipe is too small to tell
    events: list[LogEvent] = []
    one = pump(read_end, events)
    await asyncio.sleep(0.01)
    assert len(events) == 512
    os.close(write_end)
    one.finish()
    assert len(events) == 512


async def test_a_process_that_prints_for_ever_neither_holds_the_loop_nor_grows() -> None:
    read_end, write_end = os.pipe()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", FLOOD, stdout=write_end)
    os.close(write_end)
    loop = asyncio.get_running_loop()
    try:
        await asyncio.sleep(0.2)
        tracemalloc.start()
        one = pump(read_end)
        late: list[float] = []
        for _ in range(80):
            due = loop.time() + 0.01
            await asyncio.sleep(0.01)
            late.append(loop.time() - due)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    finally:
        process.kill()
        await process.wait()
    one.finish()
    assert len(one.lines) == KEPT_LINES
    assert peak < 1_000_000
    # Bounded by what one turn looks at; two loaded cores and tracing make it slow, not endless.
    assert sorted(late)[len(late) // 2] < 0.05
