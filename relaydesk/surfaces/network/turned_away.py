"""A connection too many: told so in HTTP and closed, so that its client asks elsewhere.

Without an answer, a caller could not tell a full relay from one that is broken.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Final

from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.hop import RELAY_PATH
from relaydesk.surfaces.network.errors import error_response
from relaydesk.surfaces.network.request_line import MOST_BEGUN, place_in

# How long a head may take, and how long what follows it is read and dropped, so that the answer arrives.
WAIT_S: Final = 3.0
LINGER_S: Final = 2.0
_BODY: Final = re.compile(rb"\n(?:content-length:[ \t]*[^0 \t\r]|transfer-encoding:)", re.IGNORECASE)


class TurnedAway(asyncio.Protocol):
    """Takes the transport's protocol's place. It is among ``others`` until it is closed; then ``left`` is
    told."""

    def __init__(
        self,
        transport: asyncio.Transport,
        prefix: str,
        others: set[TurnedAway],
        left: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._prefix = prefix
        self._others = others
        self._left = left
        self._begun = b""
        self._answered = False
        others.add(self)
        self._timer = asyncio.get_running_loop().call_later(WAIT_S, transport.abort)
        transport.set_protocol(self)

    def data_received(self, data: bytes) -> None:
        if self._answered:
            return
        self._begun += data
        if b"\r\n\r\n" in self._begun or b"\n\n" in self._begun or len(self._begun) >= MOST_BEGUN:
            self._answer()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._timer.cancel()
        self._others.discard(self)
        self._left()

    def abort(self) -> None:
        """Close it now."""
        self._transport.abort()

    def _answer(self) -> None:
        self._answered = True
        place = place_in(self._begun, self._prefix)
        waits = _BODY.search(self._begun) is not None
        self._begun = b""
        # A code that only a relay has would be taken for a relay's where a relay asks this node as a target.
        code = "relay_busy" if place == RELAY_PATH else "provider_unavailable"
        response = error_response(place, WireError(code, "too many connections are open", retry_after=2))
        body = response.body
        assert isinstance(body, bytes)
        lines = [f"HTTP/1.1 {response.status} Service Unavailable"]
        lines += [f"{name}: {value}" for name, value in response.headers.items() if name != "Content-Length"]
        lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
        self._transport.write("\r\n".join(lines).encode("latin-1") + body)
        self._timer.cancel()
        if waits:
            # To close with something unread would reset the connection, and the answer be lost.
            self._timer = asyncio.get_running_loop().call_later(LINGER_S, self._transport.abort)
        else:
            self._transport.close()
