"""What systemd is told: READY once listening, STOPPING, and a watchdog ping out of the loop itself.

The protocol is one datagram of ``KEY=value`` lines to ``$NOTIFY_SOCKET`` (sd_notify(3)); a path that
starts with ``@`` is an abstract socket.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping
from typing import Final

_log: Final = logging.getLogger(__name__)


class SdNotify:
    """Notifications to the service manager; without ``NOTIFY_SOCKET`` every call does nothing."""

    name = "systemd watchdog"

    def __init__(self, environ: Mapping[str, str], pid: int) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        self._interval_s = _watchdog_interval(environ, pid)

    def send(self, *lines: str) -> None:
        """Send one notification; a manager that cannot be reached is logged, never an error."""
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.setblocking(False)
                sock.sendto("\n".join(lines).encode(), address)
        except OSError as error:
            _log.warning("systemd could not be notified: %s", error)

    async def run(self) -> None:
        """Ping the watchdog at half its time-out, from the loop: a stuck loop must be noticed."""
        if not self._address or self._interval_s <= 0:
            return
        while True:
            self.send("WATCHDOG=1")
            await asyncio.sleep(self._interval_s)


def _watchdog_interval(environ: Mapping[str, str], pid: int) -> float:
    try:
        micros = int(environ.get("WATCHDOG_USEC", "0"))
        meant_for = int(environ.get("WATCHDOG_PID", str(pid)))
    except ValueError:
        return 0.0
    return micros / 2_000_000 if micros > 0 and meant_for == pid else 0.0
