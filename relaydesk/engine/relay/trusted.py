"""Whether others would trust the certificate that this node serves: by asking it as they would.

Both ends of a real handshake, in memory: what OpenSSL makes of the chain is what callers will make of it.
"""

from __future__ import annotations

import ssl
from typing import Final

# A handshake takes a handful of turns; more than this means that it goes in circles.
_TURNS: Final = 16


def distrust(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> str:
    """Why a client with these roots refuses what ``server`` shows for ``name``; empty where it does not.

    Computes for some milliseconds: not on the loop.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    done = [False, False]
    for _ in range(_TURNS):
        for at, end in enumerate(ends):
            try:
                end.do_handshake()
                done[at] = True
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error.verify_message or "it does not hold"
            except ssl.SSLError as error:
                return (error.reason or "the handshake failed").replace("_", " ").lower()
        if all(done):
            return ""
    return "the handshake does not end"
