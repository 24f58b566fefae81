"""The real asking side over real HTTP: minimal targets behind minimal relays, and a purse on the disk."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

from relaydesk.core.ledger.paid import PaidTicket
from relaydesk.core.relay.records.details import DETAILS_LIMIT
from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.bus import Bus
from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.ledger.purse import Purse
from relaydesk.engine.relay.age import PyrageAge
from relaydesk.engine.relay.asking.ask import Ask
from relaydesk.engine.relay.asking.asker import Asker
from relaydesk.engine.relay.exchange.exchange import Exchange
from relaydesk.engine.relay.exchange.request import NetworkRequest, Paid
from relaydesk.engine.relay.outbound.outbound import Outbound
from relaydesk.store.db import Database
from relaydesk.store.paid import PaidRepo
from relaydesk.store.secrets import FileSecrets
from tests.support.lab_network import ListedNodes, Stalls
from tests.support.lab_relay import address
from tests.support.wire.relay import MinimalRelay
from tests.support.wire.target import MinimalTarget

CHAT = "/v1/chat/completions"
MODEL = "lab/tiny"


class LateClock(SystemClock):
    """The system's clocks; the one that only goes forward may be ahead."""

    ahead_s = 0.0

    def mono(self) -> float:
        return super().mono() + self.ahead_s


class ExchangeRig:
    """``targets`` and ``relays`` are running, listed, and known to each other. A context manager.

    Waits pass at once, on the clock that only goes forward; ``slept`` has them. ``paid`` is what the exchange
    told of its tickets.
    """

    def __init__(
        self,
        folder: Path,
        targets: Sequence[MinimalTarget] | None = None,
        relays: int = 2,
        *,
        fee_bps: int = 0,
    ) -> None:
        self.folder = folder
        self.targets = [MinimalTarget()] if targets is None else list(targets)
        self.relays = [MinimalRelay() for _ in range(relays)]
        self.clock = LateClock()
        self.directory = ListedNodes()
        self.bus = Bus()
        self.alerts = AlertBoard(self.clock, self.bus)
        self.paid: list[Paid] = []
        self.slept: list[float] = []
        self.outbound = Outbound(SystemClock(), allow_private=lambda: True, tls=ssl.create_default_context)
        self.asker = Asker(
            self.directory,
            None,
            self.outbound,
            self.clock,
            SystemRng(),
            Stalls(),
            self.bus,
            self.alerts,
            lambda: 120.0,
            sleep=self._sleep,
        )
        self.database = Database(folder / "payer.db")
        self._fee_bps = fee_bps

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.ahead_s += seconds
        await asyncio.sleep(0)

    async def __aenter__(self) -> Self:
        self._stack = AsyncExitStack()
        for server in (*self.targets, *self.relays):
            await self._stack.enter_async_context(server)
        for target in self.targets:
            self.enlist(self.ref(target), target.owner, target.signing, target.base_url)
        for at, relay in enumerate(self.relays):
            key = address(bytes([at + 1]) * 32)
            self.enlist(self.relay_ref(at), key, key, relay.base_url)
            relay.peers = {self.ref(target): target.base_url for target in self.targets}
        await self.database.open()
        secrets = FileSecrets(self.folder)
        secrets.prepare()
        self.purse = Purse(self.database, secrets, self.clock, SystemRng(), self.bus, self.alerts)
        await self.purse.start()
        self.exchange = Exchange(
            self.asker,
            self.purse,
            PyrageAge(),
            self.clock,
            fee_bps=lambda: self._fee_bps,
            sleep=self._sleep,
        )
        await self.probe()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.exchange.aclose()
        await self.outbound.aclose()
        await self._stack.aclose()
        await self.database.close()

    def enlist(self, ref: NodeRef, owner: str, signing: str, base_url: str) -> None:
        self.directory.listed[ref] = Listed(ref, owner, signing, base_url)

    def ref(self, target: MinimalTarget) -> NodeRef:
        return NodeRef(target.operator, target.node)

    def relay_ref(self, at: int) -> NodeRef:
        return NodeRef(101 + at, 1)

    async def probe(self, *also: NodeRef) -> None:
        """Fetch the details of every target, and of those beside them, through every relay."""
        targets = [*(self.ref(target) for target in self.targets), *also]
        relays = [ref for ref in self.directory.listed if ref not in targets]
        for target in targets:
            for relay in relays:
                ask = Ask(
                    target=target,
                    path="/v1/zs/details",
                    method="GET",
                    purpose="probe",
                    check=self.asker.peers.check,
                    check_limit=DETAILS_LIMIT,
                )
                await (await self.asker.send(ask, first=relay)).aclose()
        for served in self.targets:
            served.seen.clear()
        for carried in self.relays:
            carried.seen.clear()
            carried.answered.clear()

    def request(self, model: str = MODEL, **fields: Any) -> NetworkRequest:
        return NetworkRequest(model, on_paid=self.paid.append, **fields)

    def body(self, text: str = "hello", *, stream: bool = True, **fields: Any) -> bytes:
        asked: dict[str, Any] = {
            "model": MODEL,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": 64,
            "stream": stream,
        }
        if stream:
            asked["stream_options"] = {"include_usage": True}
        return json.dumps(asked | fields).encode()

    async def stream(
        self, body: bytes | None = None, *, into: list[dict[str, Any]] | None = None, **fields: Any
    ) -> list[dict[str, Any]]:
        """One streamed exchange, read to its end; ``into`` has what came, also where it fails."""
        found = [] if into is None else into
        engine = self.exchange.engine(self.request(**fields))
        async with await engine.stream(CHAT, body or self.body()) as stream:
            assert stream.status == 200
            async for chunk in stream:
                found.append(json.loads(chunk))
        return found

    async def whole(self, body: bytes | None = None, **fields: Any) -> dict[str, Any]:
        """One exchange that is not streamed."""
        engine = self.exchange.engine(self.request(**fields))
        reply = await engine.json("POST", CHAT, body or self.body(stream=False))
        assert reply.status == 200
        answer: dict[str, Any] = json.loads(reply.body)
        return answer

    async def tickets(self, target: MinimalTarget | None = None) -> tuple[PaidTicket, ...]:
        """What the purse has opened at a target."""
        ref = self.ref(target or self.targets[0])
        return await PaidRepo(self.database).read(lambda book: book.tickets(ref))

    @property
    def seen(self) -> list[bytes]:
        """Everything the relays received and sent back, as bytes."""
        asked = [(each.body, each.path, each.headers) for relay in self.relays for each in relay.seen]
        answered = [
            (bytes(body), path, headers) for relay in self.relays for path, headers, body in relay.answered
        ]
        return [
            body + path.encode() + json.dumps(headers).encode() for body, path, headers in (*asked, *answered)
        ]


def text_of(chunks: list[dict[str, Any]]) -> str:
    """The words of streamed chunks."""
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)
