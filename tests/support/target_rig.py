"""A target over real sockets, with real keys and books, whose engines play scripts; and payers for it."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

import aiohttp

from relaydesk.core.ledger.keys import KeySigner
from relaydesk.core.ledger.terms import Terms
from relaydesk.core.relay.records.ephemeral import sign_ephemeral
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.ledger.ledger import Ledger
from relaydesk.engine.relay.age import PyrageAge
from relaydesk.engine.relay.details import OwnDetails
from relaydesk.engine.relay.ephemerals import Ephemerals
from relaydesk.engine.relay.identity import Identity
from relaydesk.engine.relay.relaying.clients import Clients
from relaydesk.engine.relay.target.desk import Target
from relaydesk.store.secrets import FileSecrets
from relaydesk.surfaces.network.app import make_network_app
from relaydesk.surfaces.network.details import details
from relaydesk.surfaces.network.serving import Rates, serving
from relaydesk.surfaces.network.state import Network, Route
from tests.support.hop_rig import HopRig
from tests.support.ledger_rig import Key, open_request
from tests.support.scripted_hub import ScriptedHub
from tests.support.wire import exchange, prices
from tests.support.wire.client import MinimalClient, Opened
from tests.support.wire.exchange import Reserved, Sent

MODEL = "tiny"
ANN = Key("ann")


class ShiftedClock(SystemClock):
    """The system's, ``shift_s`` later by the wall clock alone, ``passed_s`` later by both."""

    shift_s = 0
    passed_s = 0

    def wall_ms(self) -> int:
        return super().wall_ms() + (self.shift_s + self.passed_s) * 1000

    def mono(self) -> float:
        return super().mono() + self.passed_s


class TargetRig:
    """A context manager. ``rates`` in microUSDC per 1M tokens; ``share`` as the setting for slots."""

    def __init__(
        self,
        directory: Path,
        *,
        rates: tuple[int, int] = (0, 0),
        slots: int = 4,
        ctx: int = 4096,
        share: int | None = None,
    ) -> None:
        self.hub = ScriptedHub(directory / "hub")
        (directory / "hub").mkdir(exist_ok=True)
        self.dir, self.rates, self.slots, self.ctx, self.share = directory, rates, slots, ctx, share
        self.clock = ShiftedClock()
        self.draining = False
        self.heartbeat_s = 10.0
        self.per_minute = 1200
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.hub)
        await self.hub.add(
            MODEL,
            slots=self.slots,
            ctx=self.ctx,
            offer=True,
            input_rate=self.rates[0],
            output_rate=self.rates[1],
        )
        await self.hub.warm(MODEL)
        secrets, rng = FileSecrets(self.dir), SystemRng()
        secrets.prepare()
        self.identity = Identity.open(secrets, self.dir / "network", self.clock, rng)
        self.ledger = Ledger(
            self.dir / "ledger.db", self.ref, KeySigner(self.identity.seed), self.clock, rng, self.hub.bus
        )
        await self.ledger.start()
        age = PyrageAge()
        self.keys = Ephemerals(
            age, lambda *advert: sign_ephemeral(self.identity.seed, self.ref, *advert), self.clock
        )
        self.target = Target(
            self.identity,
            age,
            self.keys,
            self.ledger,
            self.hub.pool,
            lambda: self.hub.gateway,
            self.clock,
            rng,
            share=lambda: self.share,
            draining=lambda: self.draining,
        )
        own = OwnDetails(self.identity, self.keys, self.target.offers.models, ledger=True)
        rates = Rates(Clients(bytes(32)), self.clock, lambda: self.per_minute)
        routes = [
            Route("GET", "/v1/zs/details", details(own)),
            *serving(self.target, lambda: self.heartbeat_s, rates),
        ]
        self.server = make_network_app(Network(forwarder=HopRig().forwarder, clock=self.clock, routes=routes))
        self._listener = await asyncio.get_running_loop().create_server(self.server, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"
        self.http = await self._stack.enter_async_context(aiohttp.ClientSession())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        self.server.pre_shutdown()
        await self.server.shutdown(1)
        await self.ledger.close()
        await self._stack.aclose()

    @property
    def ref(self) -> NodeRef:
        return self.identity.ref

    @property
    def as_listed(self) -> exchange.Target:
        return exchange.Target(self.ref.operator, self.ref.node, self.identity.signing_addr)

    def client(self, relay_url: str = "", payer: Key = ANN) -> MinimalClient:
        """A minimal client of this target; without a relay it comes directly."""
        return MinimalClient(
            relay_url or self.url,
            self.as_listed,
            payer._key,
            direct=not relay_url,
            now=lambda: self.clock.wall_ms() / 1000,
        )

    def paid(self, payer: Key = ANN) -> Opened:
        """Opens with our extension, out of the payer's credit here."""

        def opened(reserved: Reserved) -> tuple[str, dict[str, Any]]:
            ticket = reserved.ticket
            terms = Terms(
                ticket["ticket_id"], payer.address, MODEL, ticket["max_price"], ticket["expires_at"]
            )
            request, tx_id = open_request(terms, payer, self.ref)
            fields = {name: getattr(request, name) for name in request.__struct_fields__}
            return tx_id, {"relaydesk_open": fields}

        return opened

    async def credit(self, amount: int, payer: Key = ANN) -> None:
        """Buy a voucher and redeem it."""
        await self.ledger.redeem(payer.address, await self.ledger.issue(amount))

    async def rest(self) -> None:
        """Wait until nobody is served; fails where a slot, a run or a ticket is left behind."""
        await self.hub.until(lambda: self.target.tickets.spent == 0)
        await self.hub.idle()


def chat(text: str = "Hi", **more: Any) -> dict[str, Any]:
    """A body of a chat with the offered model."""
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **more}


async def reserved(client: MinimalClient, body: dict[str, Any], **more: Any) -> tuple[Any, Reserved, bytes]:
    """The details, a ticket for this body, and the body's bytes."""
    raw, details = json.dumps(body).encode(), await client.details()
    stream = bool(body.get("stream"))
    ticket = await client.reserve(
        details, body["model"], prices.input_bound(raw), more.pop("max_output", 64), stream=stream, **more
    )
    return details, ticket, raw


async def refused(client: MinimalClient, sent: Sent) -> tuple[int, str]:
    """Status and code of an answer that is not sealed."""
    reply = await client.resend(sent)
    assert "x-zs-response-key" not in reply.headers
    return reply.status, reply.error.get("code", "")
