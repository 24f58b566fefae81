from __future__ import annotations

import os
import socket

from relaydesk.surfaces.control.peer import peer_uid


def test_the_peer_of_a_pair_is_ourselves() -> None:
    first, second = socket.socketpair(socket.AF_UNIX)
    with first, second:
        assert peer_uid(first) == os.geteuid()


def test_who_cannot_be_known_is_nobody() -> None:
    sock = socket.socket(socket.AF_UNIX)
    sock.close()
    assert peer_uid(sock) is None
