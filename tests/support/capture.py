"""What goes over an interface, frame by frame, from a raw socket in a process of its own.

``python -m tests.support.capture INTERFACE FILE`` writes a pcap file until its input ends.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from tests.support.namespaces import Namespace

_ETH_P_ALL: Final = 3
_SOL_PACKET: Final = 263
_PACKET_STATISTICS: Final = 6
# A frame of a virtual link may be as large as a segment before it is cut up.
_MOST: Final = 256 * 1024
_FILE_HEAD: Final = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, _MOST, 1)
_FRAME_HEAD: Final = struct.Struct("<IIII")
_ETHER: Final = 14


class Flow(NamedTuple):
    """One direction of a connection."""

    source: str
    source_port: int
    to: str
    to_port: int


class Capture:
    """The frames at one namespace's interface. A context manager; on leaving, `frames` are all there."""

    def __init__(self, namespace: Namespace, file: Path) -> None:
        self._namespace = namespace
        self._file = file
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.support.capture", self._namespace.interface, str(self._file)]
        self._process = subprocess.Popen(
            [*self._namespace.prefix, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"capturing\n"
        return self

    def stop(self) -> None:
        """End it; fails where frames were lost."""
        process, self._process = self._process, None
        if process is None:
            return
        time.sleep(0.1)  # what is on its way
        out, _ = process.communicate(timeout=20)
        assert process.returncode == 0
        assert out == b"lost 0\n", out

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.stop()
        elif self._process is not None:
            self._process.kill()
            self._process.communicate()

    def frames(self) -> Iterator[bytes]:
        """Every frame as it was on the wire, both ways."""
        data = self._file.read_bytes()
        at = len(_FILE_HEAD)
        while at < len(data):
            _, _, length, _ = _FRAME_HEAD.unpack_from(data, at)
            at += _FRAME_HEAD.size
            yield data[at : at + length]
            at += length

    def raw(self) -> bytes:
        """All frames, one after the other."""
        return self._file.read_bytes()

    def streams(self) -> dict[Flow, bytes]:
        """The bytes of each TCP connection in their order, each direction for itself. IPv4 only."""
        segments: dict[Flow, dict[int, bytes]] = {}
        starts: dict[Flow, int] = {}
        for frame in self.frames():
            found = _tcp(frame)
            if found is None:
                continue
            flow, number, syn, data = found
            start = starts.setdefault(flow, number + 1 if syn else number)
            if data:
                at = (number - start) & 0xFFFFFFFF
                known = segments.setdefault(flow, {})
                if len(data) > len(known.get(at, b"")):
                    known[at] = data
        return {flow: _joined(known) for flow, known in segments.items()}


def _tcp(frame: bytes) -> tuple[Flow, int, bool, bytes] | None:
    """Flow, sequence number, whether it begins the connection, and data of an IPv4 TCP segment."""
    if frame[12:14] != b"\x08\x00" or frame[_ETHER + 9] != socket.IPPROTO_TCP:
        return None
    words = (frame[_ETHER] & 15) * 4
    total = int.from_bytes(frame[_ETHER + 2 : _ETHER + 4], "big") or len(frame) - _ETHER
    source, to = (socket.inet_ntoa(frame[_ETHER + at : _ETHER + at + 4]) for at in (12, 16))
    segment = frame[_ETHER + words : _ETHER + total]
    source_port, to_port, number = struct.unpack_from("!HHI", segment)
    return (
        Flow(source, source_port, to, to_port),
        number,
        bool(segment[13] & 2),
        segment[segment[12] // 16 * 4 :],
    )


def _joined(segments: dict[int, bytes]) -> bytes:
    """Segments by their place; what was sent twice counts once."""
    joined = bytearray()
    for at in sorted(segments):
        assert at <= len(joined), "a segment is missing"
        joined[at : at + len(segments[at])] = segments[at]
    return bytes(joined)


def _capture(interface: str, file: Path) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL)) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024 * 1024)
        sock.bind((interface, 0))
        sock.setblocking(False)
        print("capturing", flush=True)
        with file.open("wb") as out:
            out.write(_FILE_HEAD)
            ended = False
            while not ended:
                ready, _, _ = select.select([sock, sys.stdin], [], [])
                ended = sys.stdin in ready and not os.read(sys.stdin.fileno(), 1)
                while True:
                    try:
                        frame = sock.recv(_MOST)
                    except BlockingIOError:
                        break
                    out.write(_FRAME_HEAD.pack(0, 0, len(frame), len(frame)) + frame)
        _, lost = struct.unpack("II", sock.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
    print("lost", lost, flush=True)


if __name__ == "__main__":
    _capture(sys.argv[1], Path(sys.argv[2]))
