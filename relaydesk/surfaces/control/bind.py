"""The control socket's file: made 0600, taken from a dead node, removed again."""

from __future__ import annotations

import os
import socket
import stat
import sys
from pathlib import Path
from typing import Final

from relaydesk.core.errors import EnvError

# sun_path of sockaddr_un, less the closing zero byte.
PATH_LIMIT: Final = 103 if sys.platform == "darwin" else 107


# Connecting to a local socket waits only for a full backlog: then somebody is there.
_PROBE_S: Final = 1.0


class SocketFile:
    """A bound unix socket and its file. The caller holds the lock on the state directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._remove_stale()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # The mode must be right from the first moment: a chmod afterwards leaves a gap.
            old_mask = os.umask(0o177)
            try:
                self.sock.bind(os.fspath(path))
            finally:
                os.umask(old_mask)
            self._inode = path.stat().st_ino
        except OSError as error:
            self.sock.close()
            raise EnvError(
                "storage_failed",
                f"the control socket {path} cannot be made: {error.strerror or error}",
                "check the rights of its directory, or choose another with RELAY_SOCKET",
            ) from None

    def remove(self) -> None:
        """Remove the file, unless somebody has put another in its place."""
        try:
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()
        except OSError:
            pass  # gone already, or its directory is: either way nothing of ours is left to connect to

    def _remove_stale(self) -> None:
        length = len(os.fsencode(self.path))
        if length > PATH_LIMIT:
            raise EnvError(
                "bad_setting",
                f"the control socket's path has {length} bytes, the system allows {PATH_LIMIT}: {self.path}",
                "choose a shorter RELAY_SOCKET or RELAY_STATE_DIR",
                param="RELAY_SOCKET",
            )
        try:
            mode = self.path.lstat().st_mode
            if stat.S_ISSOCK(mode):
                if _is_alive(self.path):
                    raise EnvError(
                        "conflict",
                        f"a running program listens on the control socket {self.path}",
                        "stop it, or choose another path with RELAY_SOCKET",
                    )
                self.path.unlink()
                return
        except FileNotFoundError:
            return
        except OSError as error:
            raise EnvError(
                "storage_failed",
                f"the control socket {self.path} of an earlier node cannot be removed: {error.strerror}",
                "check the rights of its directory",
            ) from None
        raise EnvError(
            "storage_failed",
            f"{self.path} is in the way of the control socket and is not a socket",
            "move it, or choose another path with RELAY_SOCKET",
        )


def _is_alive(path: Path) -> bool:
    """Whether anybody listens: the state's lock says nothing about a socket elsewhere (RELAY_SOCKET)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_S)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            pass  # too busy to answer, or not of our kind, but alive
        return True
