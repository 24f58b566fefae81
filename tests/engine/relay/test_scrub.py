from __future__ import annotations

import secrets
import subprocess
import sys
from collections import deque
from collections.abc import Iterator

import pytest

from relaydesk.engine.relay.scrub import filled
from tests.support.process_memory import Snapshot

# What a relay does with a request, a hundred times: it reads it, and drops small and large copies of it while
# other objects of the same sizes stay. Then it overwrites. Each step waits for a line.
CHILD = """
import asyncio, sys
from collections import deque
import uvloop
from relaydesk.engine.relay.scrub import Scrubber, filled

class Input(asyncio.Protocol):
    def __init__(self):
        self.came = asyncio.Queue()
    def data_received(self, data):
        self.came.put_nowait(data)

async def main():
    _, given = await asyncio.get_running_loop().connect_read_pipe(Input, sys.stdin)
    text = await given.came.get()
    sizes = [len(text), 100, 300, 480, 600, 1000, 5000, 20000, 60000] * 12
    copies = [(text * (size // len(text) + 1))[:size] for size in sizes]
    kept = [bytes(size) for size in sizes]
    texts = [text.decode() + str(number) for number in range(200)]
    kept += ["_" * len(text) + str(number) for number in range(200)]
    del text, copies, texts
    # Some of what was let go is soon something else's, which lasts and does not fill it.
    queues = [filled(deque()) for _ in range(20)]
    print("dropped", flush=True)
    await given.came.get()
    scrubber = Scrubber()
    scrubber.left()
    running = asyncio.create_task(scrubber.run())
    await asyncio.sleep(2.5)
    print("scrubbed", flush=True)
    await given.came.get()

uvloop.run(main())
"""


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_was_dropped_is_overwritten(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    text = f"a-sentence-that-nobody-else-says-{secrets.token_hex(12)}".encode()
    # The C library gives out up to 31 bytes more than a block asks for, and nobody fills those.
    part = text[-32:]
    child.stdin.write(text)
    assert child.stdout.readline() == b"dropped\n"
    before = Snapshot(child.pid)
    assert before.find(text)
    assert before.find((text * 20)[:1000]), "only small copies were there before"
    child.stdin.write(b"!")
    assert child.stdout.readline() == b"scrubbed\n"
    assert not Snapshot(child.pid).find(part, around=200)


def test_a_filled_queue_is_an_empty_one() -> None:
    queue: deque[int] = deque()
    assert filled(queue) is queue
    assert not queue
    queue.extend(range(200))
    queue.appendleft(-1)
    assert list(queue) == list(range(-1, 200))
