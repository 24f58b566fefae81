"""A relay network that plays a script: offers, tickets with prices, answers. What asks it runs for real."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.infer.engine import EngineStream
from relaydesk.engine.relay.exchange.market import NetworkModel
from relaydesk.engine.relay.exchange.request import NetworkRequest, Paid
from tests.support.scripted_engine import Script, ScriptedEngine, ScriptedStream, answer

TARGET, RELAY = NodeRef(7, 2), NodeRef(5, 1)
TINY = NetworkModel("lab/tiny", 100_000, 400_000, 4096, 512, 1, True)


@dataclass
class ScriptedNetwork:
    """``price`` is each ticket's highest, ``amount`` what its receipt comes to, None for no receipt.

    ``fault`` is raised before a ticket is opened. ``requests`` are what was asked, ``told`` what was paid.
    """

    models_: tuple[NetworkModel, ...] = (TINY,)
    reply: Callable[[dict[str, Any]], Script] = lambda _: answer("Hel", "lo")
    price: int = 1000
    amount: int | None = 300
    fault: Exception | None = None
    requests: list[NetworkRequest] = field(default_factory=list)
    told: list[Paid] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.script = ScriptedEngine(lambda body: self.reply(body))
        # Tells a cut-off answer's price only when it is asked to.
        self.late: list[Callable[[], None]] = []
        self.tells_late = False

    @property
    def market(self) -> ScriptedNetwork:
        return self

    def models(self) -> tuple[NetworkModel, ...]:
        return self.models_

    def engine(self, request: NetworkRequest) -> Exchanging:
        self.requests.append(request)
        return Exchanging(self, request)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return self.script.bodies


class Exchanging(ScriptedEngine):
    """`Engine` of one request."""

    def __init__(self, network: ScriptedNetwork, request: NetworkRequest) -> None:
        super().__init__(network.reply)
        self._network = network
        self._request = request

    async def stream(  # type: ignore[override]
        self, path: str, body: bytes, *, ends_with_done: bool = True
    ) -> EngineStream:
        network, request = self._network, self._request
        assert path == "/v1/chat/completions"
        if network.fault is not None:
            raise network.fault
        await request.hold(TARGET, network.price)
        return _Answer(network, request, await network.script.stream(path, body))


class _Answer:
    """An answer whose receipt comes at its very end."""

    def __init__(self, network: ScriptedNetwork, request: NetworkRequest, stream: ScriptedStream) -> None:
        self._network, self._request, self._stream = network, request, stream
        self._told = False
        self.status = 200
        self.headers: Mapping[str, str] = {}
        self.error_body = b""

    def relax(self) -> None:
        self._stream.relax()

    def _tell(self, amount: int, *, ok: bool) -> None:
        if not self._told:
            self._told = True
            paid = Paid(RELAY, TARGET, self._network.price, amount, ok)
            self._network.told.append(paid)
            self._request.on_paid(paid)

    def __aiter__(self) -> _Answer:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._stream)
        except StopAsyncIteration:
            known = self._network.amount
            self._tell(self._network.price if known is None else known, ok=known is not None)
            raise

    async def __aenter__(self) -> _Answer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._stream.aclose()
        network = self._network
        if self._told:
            return
        if network.tells_late:
            network.late.append(lambda: self._tell(network.amount or 0, ok=True))
        else:
            self._tell(network.price, ok=False)
