"""The network with an engine's face: what the gateway runs a request on (`engine/infer/engine.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relaydesk.core.errors import PeerError
from relaydesk.core.relay.prepare import PREFIX
from relaydesk.engine.infer.engine import EngineReply
from relaydesk.engine.relay.exchange.request import NetworkRequest
from relaydesk.engine.relay.exchange.stream import SealedStream

if TYPE_CHECKING:
    from relaydesk.engine.relay.exchange.exchange import Exchange

_JSON = {"content-type": "application/json"}


class ExchangeEngine:
    """`Engine` for one request of one key. Each call is an exchange, with a ticket of its own."""

    def __init__(self, exchange: Exchange, request: NetworkRequest) -> None:
        self._exchange = exchange
        self._request = request

    async def stream(self, path: str, body: bytes, *, ends_with_done: bool = True) -> SealedStream:
        """A streamed exchange; a sealed stream has its own end, whatever the route's is.

        Raises `PeerError` with the catalogue's codes, and `EnvError` where the purse's disk fails.
        """
        return await self._exchange.stream(self._request, path, body)

    async def json(self, method: str, path: str, body: bytes | None = None) -> EngineReply:
        """An exchange that is answered at once, status 200. Raises as `stream` does."""
        if method != "POST" or body is None:
            raise PeerError("unsupported", f"the relay network has no {method} {path}")
        return EngineReply(200, _JSON, await self._exchange.whole(self._request, path, body))

    async def health(self) -> bool:
        """Whether its model can be asked now."""
        found = self._exchange.market.find(self._request.model.removeprefix(PREFIX))
        return found is not None and found.warm

    async def aclose(self) -> None:
        """Nothing of it is held."""
