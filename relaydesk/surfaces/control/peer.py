"""Who is at the other end of a unix socket, asked of the kernel."""

from __future__ import annotations

import socket
import struct
import sys
from typing import Any, Final

# <sys/un.h> of macOS; Python's socket module names neither.
_SOL_LOCAL: Final = 0
_LOCAL_PEERCRED: Final = 1
# struct xucred: u_int version, uid_t uid, short ngroups (padded), gid_t groups[16].
_XUCRED_SIZE: Final = 76


def peer_uid(sock: Any) -> int | None:
    """User id of the process that connected, or None where the system cannot say.

    ``sock`` is a socket or a loop's stand-in for one; only ``getsockopt`` is used.
    """
    try:
        if sys.platform == "darwin":
            data = sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_SIZE)
            return int(struct.unpack_from("II", data)[1])
        # struct ucred: pid, uid, gid (unix(7)).
        data = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
        return int(struct.unpack("iII", data)[1])
    except (OSError, struct.error):
        return None
