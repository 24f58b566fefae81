"""Runs a command that must not outlive the node: ``python -P tether.py COMMAND…``.

A program of its own, standard library only. Its standard input is a pipe the node holds: when that ends,
however the node ended, the whole process group goes. (Linux's parent-death signal would not reach the
command's own children, and other systems have none.) Start it in a session of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading


def _die_with_the_pipe() -> None:
    while os.read(0, 4096):
        pass
    os.killpg(0, signal.SIGKILL)


def main() -> int:
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    threading.Thread(target=_die_with_the_pipe, daemon=True).start()
    code = command.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
