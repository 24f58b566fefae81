"""A worker never outlives its node, however the node ends."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1


def lock_down() -> None:
    """Files of this process are its user's only, and a crash leaves no core file: it would hold prompts."""
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        try:
            with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
                score.write("300")  # short of memory, the kernel takes a model before the node
        except OSError:
            pass


def die_with_parent(parent: int, pipe_fd: int) -> threading.Thread:
    """Tie this process to ``parent``, which holds the other end of ``pipe_fd`` open.

    Linux: the kernel kills us when the parent ends. Elsewhere a forked guard reads the pipe, because the
    engine's constructor holds the interpreter lock for as long as a load takes and no thread of ours runs.
    Everywhere a thread also watches the pipe. The thread ends only with the process.
    """
    if sys.platform == "linux":
        _set_death_signal()
    else:
        guard_by_fork(pipe_fd)
    if os.getppid() != parent:  # it died before the tie held
        os._exit(1)
    thread = threading.Thread(target=_exit_at_eof, args=(pipe_fd,), name="parent-watch", daemon=True)
    thread.start()
    return thread


def guard_by_fork(pipe_fd: int) -> int:
    """Fork a process that kills this one when ``pipe_fd`` ends, and ends with it; its pid."""
    worker = os.getpid()
    guard = os.fork()
    if guard:
        return guard
    try:
        _read_to_end(pipe_fd)
        if os.getppid() == worker:
            os.kill(worker, signal.SIGKILL)
    finally:
        os._exit(0)


def _set_death_signal() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")


def _exit_at_eof(pipe_fd: int) -> None:
    _read_to_end(pipe_fd)
    os._exit(0)


def _read_to_end(pipe_fd: int) -> None:
    try:
        while os.read(pipe_fd, 4096):
            pass
    except OSError:
        pass  # a broken pipe is an ended one
