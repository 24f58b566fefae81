"""The worker process: llama.cpp's server behind a private socket.

``python -m relaydesk.engine.infer.child.main`` reads one line from stdin, the `EngineOrder`; tells what
happens as JSON lines on stdout (``loading``, ``ready``, ``failed`` with ``message``); logs on stderr; ends
when stdin ends or on TERM, whose default action is the fastest end there is. Exit codes: 0 the node let
go, 2 no usable order, 3 the model did not load, 4 no engine library.
"""

from __future__ import annotations

import os
import sys
import time

import msgspec

from relaydesk.engine.infer.child.guard import die_with_parent, lock_down
from relaydesk.engine.infer.child.params import engine_params
from relaydesk.engine.infer.spec import EngineOrder

_LOG_FLUSH_S = 0.25
_ORDER_LIMIT = 4 * 1024 * 1024  # a chat template may be long


def main() -> int:
    status = _own_status()
    lock_down()
    try:
        order = msgspec.json.decode(_read_line(0), type=EngineOrder)
    except msgspec.MsgspecError as error:
        _tell(status, "failed", f"the worker got no usable order ({type(error).__name__})")
        return 2
    watch = die_with_parent(order.parent, 0)
    try:
        import xllamacpp
    except ImportError as error:
        _tell(status, "failed", f"the engine library cannot be loaded: {error}")
        return 4
    _tell(status, "loading")
    try:
        server = xllamacpp.Server(engine_params(xllamacpp, order))
    except Exception as error:  # whatever the binding raises, the node wants a sentence
        time.sleep(_LOG_FLUSH_S)  # the engine logs by a thread of its own, and the reason is in its log
        _tell(status, "failed", str(error))
        return 3
    _tell(status, "ready")
    watch.join()
    del server
    return 0


def _own_status() -> int:
    """Keep stdout for status; whatever else this process prints, native code included, goes to stderr."""
    status = os.dup(1)
    os.dup2(2, 1)
    return status


def _read_line(fd: int) -> bytes:
    """The first line of ``fd``; nothing behind it is lost to a buffer."""
    parts: list[bytes] = []
    size = 0
    while size < _ORDER_LIMIT:
        piece = os.read(fd, 65536)
        parts.append(piece)
        size += len(piece)
        if not piece or piece.endswith(b"\n"):
            break
    return b"".join(parts)


def _tell(status: int, event: str, message: str = "") -> None:
    try:
        os.write(status, msgspec.json.encode({"event": event, "message": message}) + b"\n")
    except OSError:
        pass  # the node is gone; the watch ends us


if __name__ == "__main__":
    sys.stdout = sys.stderr
    # No interpreter teardown: the engine's threads may still run, and nothing here needs flushing.
    os._exit(main())
