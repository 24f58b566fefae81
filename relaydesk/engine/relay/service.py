"""The relay network as one part of a node: who it is there, whom it knows, what it does for others.

Off, it is nothing but a section that says so. On, it is opened after the node's certificate is there; where
the settings leave no door that others could use (`core/relay/door`), it stays closed and says why.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from relaydesk.core.commands import (
    BlockOperator,
    Command,
    FetchStatement,
    ForgetOperator,
    ImportCertificate,
    IssueCredit,
    Outcome,
    ProbeRelays,
    RedeemCredit,
    ResolveDispute,
    ShowLedger,
    ShowOperators,
    ShowStatement,
    TrustOperator,
)
from relaydesk.core.errors import EnvError
from relaydesk.core.events import NetworkChanged, RelaysChanged
from relaydesk.core.relay.door import NO_DIRECTORY, NO_PUBLIC_URL, Door
from relaydesk.core.relay.records.details import OfferedModel
from relaydesk.core.relay.version import PROTO_VERSION
from relaydesk.core.text import SafeText, safe_text
from relaydesk.core.view.ledger import LedgerView
from relaydesk.core.view.network import HopsView, NetworkModelView, NetworkView, RelayingView, RelaysView
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.ledger.commands import LedgerCommands
from relaydesk.engine.ledger.service import LedgerService
from relaydesk.engine.relay.asking.view import offers_view
from relaydesk.engine.relay.commands import RelayCommands
from relaydesk.engine.relay.directory.commands import OperatorCommands
from relaydesk.engine.relay.entrance import entrance
from relaydesk.engine.relay.exchange.commands import AccountCommands
from relaydesk.engine.relay.exchange.redeemer import Redeemer
from relaydesk.engine.relay.parts import Ground, Parts, Said, assemble
from relaydesk.engine.relay.relaying.circuits import GB
from relaydesk.engine.relay.trusted import distrust
from relaydesk.engine.supervisor import Service
from relaydesk.store.secrets import Secrets

_log: Final = logging.getLogger(__name__)

# How often what changes without an event is looked at: counts, and whether the certificate is trusted.
LOOK_S: Final = 5.0
_CERTIFICATE_S: Final = 30.0

_COMMANDS: Final[tuple[type[Command], ...]] = (
    ProbeRelays,
    ShowOperators,
    TrustOperator,
    BlockOperator,
    ForgetOperator,
    ImportCertificate,
    ShowLedger,
    IssueCredit,
    RedeemCredit,
    ShowStatement,
    FetchStatement,
    ResolveDispute,
)


class NetworkService:
    """Make it inside the loop.

    After `open`, ``parts`` is None where the network is off or refused; ``listening`` are the URLs of the
    network listener, which whoever opens it sets.
    """

    name = "relay network"

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self._bus = ground.bus
        self._alerts = ground.alerts
        self._settings = ground.settings
        self._server_tls: ssl.SSLContext | None = None
        self._distrusted = ""
        self._seen: tuple[object, ...] = ()
        self.door = Door()
        self.parts: Parts | None = None
        self.listening: tuple[str, ...] = ()
        self.offers: Callable[[], tuple[OfferedModel, ...]] = tuple

    @property
    def on(self) -> bool:
        """Whether the operator wants it."""
        return self._settings().network == "on"

    @property
    def operator(self) -> str:
        """The operator's id; empty where the network is not up."""
        return str(self.parts.identity.operator_id) if self.parts is not None else ""

    async def look_at_settings(self) -> Door:
        """Find out how the listener is to be opened; `open` comes next."""
        if self.on:
            self.door = await entrance(self._settings())
        return self.door

    async def open(self, secrets: Secrets, server_tls: ssl.SSLContext | None) -> None:
        """Put everything together; ``server_tls`` is what the listener will serve, None for plain HTTP.

        Raises `FaultError` where the disk or the settings' files fail. A refusal is no error: it is an alert.
        """
        if not self.on:
            return
        if self.ground.lab:
            self._alerts.raise_alert(
                "network_lab",
                "the relay network is open to private addresses (RELAY_ALLOW_PRIVATE)",
                "turn it off unless this is a lab",
            )
        if self.door.problem:
            self._alerts.raise_alert(
                "network_refused",
                f"the relay network stays closed: {self.door.problem}",
                self.door.hint,
                severity="error",
            )
            _log.error("the relay network stays closed: %s", _sentence(self.door))
            return
        self._server_tls = server_tls
        said = Said(self._changed, self._book_changed, self._wanted, lambda: self.offers())
        self.parts = await assemble(self.ground, said, secrets)
        settings = self._settings()
        if not settings.directories:
            _log.warning("%s", NO_DIRECTORY)
        if not settings.public_url:
            _log.info("no directory will list this node: %s", NO_PUBLIC_URL)
        await self._look_at_certificate()

    def register(self, dispatcher: Dispatcher) -> None:
        """Offer the commands about the network; each says why where it is off."""
        parts = self.parts
        if parts is None:
            for kind in _COMMANDS:
                dispatcher.on(kind, self._closed)
            return
        RelayCommands(parts.asker).register(dispatcher)
        OperatorCommands(parts.book, parts.identity, parts.publisher).register(dispatcher)
        LedgerCommands(parts.ledger, parts.purse).register(dispatcher)
        redeemer = Redeemer(parts.accounts, parts.asker, parts.purse)
        AccountCommands(parts.accounts, redeemer).register(dispatcher)

    def services(self) -> tuple[Service, ...]:
        """What the supervisor runs."""
        parts = self.parts
        if parts is None:
            return ()
        kept = () if parts.keeper is None else (parts.keeper,)
        ledger = LedgerService(parts.ledger, self.ground.clock)
        own = (parts.meter, parts.scrubber, parts.keys, ledger, self)
        return (*own, parts.sources, parts.publisher, *kept, parts.settler, *parts.asker.services())

    async def run(self) -> None:
        """Look at what changes without saying so, until cancelled."""
        waited = 0.0
        while True:
            await asyncio.sleep(LOOK_S)
            waited += LOOK_S
            if waited >= _CERTIFICATE_S:
                waited = 0.0
                await self._look_at_certificate()
            seen = self._relaying(), *self._offers()
            if seen != self._seen:
                self._seen = seen
                self._changed()

    async def tickets_over(self) -> None:
        """While the node goes down: wait for those whom it has given tickets."""
        if self.parts is not None and self.parts.target is not None:
            await self.parts.target.tickets_over()

    async def close(self) -> None:
        """Close connections and write down what was counted."""
        parts, self.parts = self.parts, None
        if parts is not None:
            await parts.exchange.aclose()
            await parts.verified.aclose()
            await parts.outbound.aclose()
            await parts.ledger.close()
            try:
                await parts.meter.save()
            except EnvError as error:
                _log.error("what was relayed this month is not written down: %s", error.fault.sentence)

    def view(self) -> NetworkView:
        """The section ``network``."""
        settings = self._settings()
        parts = self.parts
        base = NetworkView(
            on=self.on,
            public_url=safe_text(settings.public_url),
            proto_version=PROTO_VERSION,
            problem=safe_text(_sentence(self.door), 512),
            lab=self.ground.lab,
        )
        if parts is None:
            return base
        identity = parts.identity
        offers, more = self._offers()
        return NetworkView(
            on=True,
            operator=str(identity.operator_id),
            owner=identity.owner_addr,
            node=identity.node_id,
            signing=identity.signing_addr,
            public_url=base.public_url,
            listening=self.listening,
            proto_version=PROTO_VERSION,
            newest_version=safe_text(parts.asker.newest_version()),
            unpublished=self._unpublished(parts),
            lab=self.ground.lab,
            ephemeral_expires_at_ms=parts.keys.advert().expiry * 1000,
            directories=parts.sources.views(),
            relaying=self._relaying(),
            offers=offers,
            more_offers=more,
        )

    def relays_view(self) -> RelaysView:
        """The section ``relays``."""
        return self.parts.asker.relays_view() if self.parts is not None else RelaysView()

    def hops_view(self) -> HopsView:
        """The section ``hops``."""
        return self.parts.asker.hops_view() if self.parts is not None else HopsView()

    def ledger_view(self) -> LedgerView:
        """The section ``ledger``."""
        parts = self.parts
        return LedgerCommands(parts.ledger, parts.purse).view() if parts is not None else LedgerView()

    def _wanted(self) -> str:
        """What to publish: nothing where nobody could use it."""
        url = self._settings().public_url
        return url if not self._distrusted else ""

    def _unpublished(self, parts: Parts) -> SafeText:
        return safe_text(self._distrusted, 512) if self._distrusted else parts.publisher.unpublished()

    async def _look_at_certificate(self) -> None:
        """A certificate that callers refuse is not published (design §6)."""
        parts, url = self.parts, self._settings().public_url
        host = urlsplit(url).hostname
        if parts is None or self._server_tls is None or not host:
            return
        why = await asyncio.to_thread(distrust, self._server_tls, parts.trust, host)
        said = f"other nodes would not trust the certificate for {host}: {why}" if why else ""
        if said == self._distrusted:
            return
        self._distrusted = said
        if said:
            self._alerts.raise_alert(
                "network_distrusted",
                f"this node is not published: {said}",
                "serve a certificate of a public authority (RELAY_TLS_DOMAIN) for that name",
                severity="error",
            )
        else:
            self._alerts.clear("network_distrusted")
        parts.publisher.changed()
        self._changed()

    def _relaying(self) -> RelayingView:
        parts = self.parts
        if parts is None:
            return RelayingView()
        ended = parts.forwarder.ended
        answered = ended["answered"]
        failed = ended["broken_off"] + ended["relay_upstream_unreachable"] + ended["relay_build_request"]
        caps = self.ground.caps()
        return RelayingView(
            open=parts.forwarder.circuits.open,
            limit=caps.circuits,
            forwarded=answered,
            refused=ended.total() - answered - failed,
            failed=failed,
            month_bytes=parts.meter.this_month,
            month_limit_bytes=caps.monthly_gb * GB,
        )

    def _offers(self) -> tuple[tuple[NetworkModelView, ...], int]:
        """What others offer, and how many models more than are shown."""
        return offers_view(self.parts.exchange.market.models() if self.parts is not None else ())

    async def _closed(self, _command: Command) -> Outcome:
        """What every command about the network says while it is not up."""
        if self.on:
            raise EnvError("conflict", f"the relay network is closed: {self.door.problem}", self.door.hint)
        raise EnvError("conflict", "the relay network is off", "set RELAY_NETWORK=on and start the node anew")

    def _changed(self) -> None:
        self._bus.publish(NetworkChanged())

    def _book_changed(self) -> None:
        if self.parts is not None:
            self.parts.asker.report.listing_changed()
        self._bus.publish(NetworkChanged())
        self._bus.publish(RelaysChanged())


def _sentence(door: Door) -> str:
    return f"{door.problem}: {door.hint}" if door.problem else ""
