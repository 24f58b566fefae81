"""What a relay network that is up consists of, put together."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from relaydesk.config.model import Settings
from relaydesk.config.paths import Paths
from relaydesk.core.errors import FaultError
from relaydesk.core.ledger.keys import KeySigner
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.relay.directory.source import parse_source
from relaydesk.core.relay.hop import LEDGER_PATH
from relaydesk.core.relay.records.details import OfferedModel
from relaydesk.core.relay.records.ephemeral import Ephemeral, sign_ephemeral
from relaydesk.core.view.network import Standing
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.bus import Bus
from relaydesk.engine.ledger.ledger import Ledger
from relaydesk.engine.ledger.purse import Purse
from relaydesk.engine.looplag import LoopLag
from relaydesk.engine.pool.pool import Pool
from relaydesk.engine.relay.age import PyrageAge
from relaydesk.engine.relay.asking.asker import Asker
from relaydesk.engine.relay.asking.view import Stranger
from relaydesk.engine.relay.details import OwnDetails
from relaydesk.engine.relay.directory.book import Book
from relaydesk.engine.relay.directory.keeper import Keeper
from relaydesk.engine.relay.directory.publisher import Publisher
from relaydesk.engine.relay.directory.shelf import Shelf
from relaydesk.engine.relay.directory.sources import Sources
from relaydesk.engine.relay.entrance import trusting
from relaydesk.engine.relay.ephemerals import Ephemerals
from relaydesk.engine.relay.exchange.accounts import Accounts
from relaydesk.engine.relay.exchange.exchange import Exchange
from relaydesk.engine.relay.exchange.settler import Settler
from relaydesk.engine.relay.identity import Identity
from relaydesk.engine.relay.outbound.outbound import Outbound
from relaydesk.engine.relay.relaying.circuits import Caps, Circuits
from relaydesk.engine.relay.relaying.forward import Forwarder
from relaydesk.engine.relay.relaying.meter import RelayMeter
from relaydesk.engine.relay.relaying.verified import VerifiedTargets
from relaydesk.engine.relay.scrub import Scrubber
from relaydesk.engine.relay.target.desk import Target
from relaydesk.engine.relay.target.serve import Strangers
from relaydesk.store.db import Database
from relaydesk.store.directory import DirectoryRepo
from relaydesk.store.relay_meter import RelayMeterRepo
from relaydesk.store.secrets import Secrets

IDENTITY_FOLDER: Final = "network"
KEEPER_FOLDER: Final = "directory"

_STANDINGS: Final[Mapping[str, Standing]] = {
    "unknown": "unknown",
    "blocked": "blocked",
    "disabled": "disabled",
}


@dataclass(frozen=True, slots=True)
class Ground:
    """What of a node the network stands on. ``settings`` are asked when they matter."""

    paths: Paths
    database: Database
    clock: Clock
    rng: Rng
    lag: LoopLag
    bus: Bus
    alerts: AlertBoard
    settings: Callable[[], Settings]
    draining: Callable[[], bool]
    # What strangers are served with; None for a node that only relays.
    pool: Pool | None = None
    gateway: Callable[[], Strangers] | None = None

    @property
    def lab(self) -> bool:
        """Whether private addresses are allowed."""
        return self.settings().allow_private == "on"

    def caps(self) -> Caps:
        """How much is relayed for others."""
        settings = self.settings()
        return Caps(settings.relay_circuits, settings.relay_per_minute, settings.relay_monthly_gb)


@dataclass(frozen=True, slots=True)
class Said:
    """What the parts tell and ask whoever put them together."""

    changed: Callable[[], None]
    book_changed: Callable[[], None]
    wanted: Callable[[], str]
    offers: Callable[[], tuple[OfferedModel, ...]]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a network that is up."""

    identity: Identity
    keys: Ephemerals
    own: OwnDetails
    outbound: Outbound
    book: Book
    sources: Sources
    publisher: Publisher
    keeper: Keeper | None
    asker: Asker
    meter: RelayMeter
    verified: VerifiedTargets
    forwarder: Forwarder
    scrubber: Scrubber
    trust: ssl.SSLContext
    ledger: Ledger
    purse: Purse
    target: Target | None
    exchange: Exchange
    accounts: Accounts
    settler: Settler


async def assemble(ground: Ground, said: Said, secrets: Secrets) -> Parts:
    """Make all of it. Raises `FaultError` where the disk or a setting's file fails."""
    trust = await asyncio.to_thread(trusting, ground.settings())
    folder = ground.paths.state / IDENTITY_FOLDER
    identity = await asyncio.to_thread(Identity.open, secrets, folder, ground.clock, ground.rng)
    scrubber = Scrubber()
    outbound = Outbound(
        ground.clock,
        allow_private=lambda: ground.lab,
        tls=lambda: trust,
        source=ground.settings().outbound_address,
        left=scrubber.left,
    )
    book, sources, publisher = await _directories(ground, said, identity, outbound)
    meter = RelayMeter(ground.clock, RelayMeterRepo(ground.database))
    await meter.open()
    verified = VerifiedTargets(outbound, ground.clock)
    age = PyrageAge()
    keys = Ephemerals(age, _advertiser(identity), ground.clock)
    ledger, purse = await _books(ground, identity, secrets)
    asker = _asker(ground, book, identity, outbound)
    accounts = Accounts(asker, purse, age, ground.clock)
    target = _target(ground, identity, age, keys, ledger)
    return Parts(
        identity=identity,
        keys=keys,
        own=OwnDetails(identity, keys, said.offers if target is None else target.offers.models, ledger=True),
        outbound=outbound,
        book=book,
        sources=sources,
        publisher=publisher,
        keeper=await _keeper(ground, outbound),
        asker=asker,
        meter=meter,
        verified=verified,
        forwarder=Forwarder(
            directory=book,
            outbound=outbound,
            verified=verified,
            circuits=Circuits(ground.clock, meter, ground.caps, ground.rng.token_bytes(32)),
            draining=ground.draining,
            also=frozenset({LEDGER_PATH}),
        ),
        scrubber=scrubber,
        trust=trust,
        ledger=ledger,
        purse=purse,
        target=target,
        exchange=Exchange(asker, purse, age, ground.clock),
        accounts=accounts,
        settler=Settler(accounts, purse, ground.clock, ground.rng),
    )


async def _books(ground: Ground, identity: Identity, secrets: Secrets) -> tuple[Ledger, Purse]:
    """What others owe this node, and what it owes others."""
    purse = Purse(ground.database, secrets, ground.clock, ground.rng, ground.bus, ground.alerts)
    await purse.start()
    node = KeySigner(identity.seed)
    ledger = Ledger(ground.paths.ledger, identity.ref, node, ground.clock, ground.rng, ground.bus)
    await ledger.start()
    return ledger, purse


async def _directories(
    ground: Ground, said: Said, identity: Identity, outbound: Outbound
) -> tuple[Book, Sources, Publisher]:
    repo = DirectoryRepo(ground.database)
    clock, alerts = ground.clock, ground.alerts
    book = Book(repo, clock, alerts, allow_private=lambda: ground.lab, on_change=said.book_changed)
    await book.open()
    pinned = [parse_source(each) for each in ground.settings().directories]
    sources = Sources(
        pinned,
        book,
        repo,
        outbound,
        clock,
        alerts,
        on_change=said.changed,
        interval_s=lambda: ground.settings().directory_interval,
    )
    await sources.open()
    publisher = Publisher(
        identity, sources, repo, outbound, clock, alerts, said.wanted, on_change=said.changed
    )
    return book, sources, publisher


def _asker(ground: Ground, book: Book, identity: Identity, outbound: Outbound) -> Asker:
    return Asker(
        book,
        identity.ref,
        outbound,
        ground.clock,
        ground.rng,
        ground.lag,
        ground.bus,
        ground.alerts,
        lambda: ground.settings().probe_interval,
        strangers=lambda: _strangers(book),
    )


def _target(
    ground: Ground, identity: Identity, age: PyrageAge, keys: Ephemerals, ledger: Ledger
) -> Target | None:
    if ground.pool is None or ground.gateway is None:
        return None
    return Target(
        identity,
        age,
        keys,
        ledger,
        ground.pool,
        ground.gateway,
        ground.clock,
        ground.rng,
        share=lambda: ground.settings().network_slots,
        draining=ground.draining,
    )


async def _keeper(ground: Ground, outbound: Outbound) -> Keeper | None:
    """The directory that is kept in this node's state, where there is one."""
    shelf = Shelf(ground.paths.state / KEEPER_FOLDER)
    if not await asyncio.to_thread(shelf.exists):
        return None
    keeper = Keeper(shelf, ground.clock, outbound, allow_private=lambda: ground.lab)
    try:
        await keeper.open()
    except FaultError as error:
        ground.alerts.raise_alert(
            "directory_not_kept",
            f"the directory kept here is not served: {error.fault.message}",
            error.fault.hint,
            severity="error",
        )
        return None
    return keeper


def _advertiser(identity: Identity) -> Callable[[str, int, int], Ephemeral]:
    return lambda recipient, issued_at, expiry: sign_ephemeral(
        identity.seed, identity.ref, recipient, issued_at, expiry
    )


def _strangers(book: Book) -> Sequence[Stranger]:
    """What is listed and not used, for people."""
    return [
        Stranger(entry.listed(), _STANDINGS[entry.standing], str(entry.why))
        for entry in book.entries()
        if entry.standing in _STANDINGS
    ]
