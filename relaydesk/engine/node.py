"""The composition root: one node out of settings, a state directory and a clock.

Order of `open` is order of need: the lock first, since everything below it is ours alone from then on; what
fails leaves nothing half-open. `close` goes the other way.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from relaydesk import __version__
from relaydesk.config.load import Loaded
from relaydesk.config.paths import Paths
from relaydesk.core.access.key import DEFAULT_KEY
from relaydesk.core.access.limits import KeyLimits
from relaydesk.core.errors import Fault, LocalError
from relaydesk.core.events import KeysChanged, PhaseChanged
from relaydesk.core.gateway.models import find_model
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.text import SafeText
from relaydesk.core.tls.names import parse_name
from relaydesk.core.view.sections import MetaView, Phase
from relaydesk.engine.access.audit import HOST
from relaydesk.engine.access.keys import Authenticator
from relaydesk.engine.access.service import AccessService
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.bus import Bus
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.gateway.journal import Journal
from relaydesk.engine.gateway.service import Gateway
from relaydesk.engine.health import Health
from relaydesk.engine.hopcheck.service import HopChecks
from relaydesk.engine.infer.rundir import private_directory, reap_strays
from relaydesk.engine.jobs import JobBoard
from relaydesk.engine.local import LocalNode
from relaydesk.engine.logbook import LogBook
from relaydesk.engine.looplag import LoopLag
from relaydesk.engine.node_commands import NodeCommands
from relaydesk.engine.pool.limits import Limits
from relaydesk.engine.pool.model_commands import ModelCommands
from relaydesk.engine.pool.pool import Pool
from relaydesk.engine.pool.registry import Registry
from relaydesk.engine.pool.starter import EngineStarter
from relaydesk.engine.pool.views import models_view, workers_view
from relaydesk.engine.pool.watchdog import Watchdog
from relaydesk.engine.projector import Projector
from relaydesk.engine.pull.service import PullService
from relaydesk.engine.relay.parts import Ground
from relaydesk.engine.relay.service import NetworkService
from relaydesk.engine.supervisor import Service, Supervisor
from relaydesk.engine.tasks import cancel_and_wait, spawn
from relaydesk.engine.tls.acme.plan import acme_plan
from relaydesk.engine.tls.service import TlsService, Topic
from relaydesk.engine.watch import WatchHub
from relaydesk.store.db import Database
from relaydesk.store.files import private_dir
from relaydesk.store.lock import StateLock
from relaydesk.store.measured import MeasuredRepo
from relaydesk.store.meta import KEY_SHOWN, NODE_ID, MetaRepo
from relaydesk.store.models import ModelsRepo
from relaydesk.store.secret_store import SecretStore

_log: Final = logging.getLogger(__name__)

# After the drain time, for error frames to reach their clients.
_LAST_WORDS_S: Final = 2.0

_STOPPING: Final = Fault("shutting_down", "the hub is stopping", "send the request again soon", retry_after=5)


class Node:
    """One running relaydesk, without its listeners. Make it inside the loop.

    ``metrics`` opens the engines' own counters: for tests only.
    """

    def __init__(
        self,
        loaded: Loaded,
        paths: Paths,
        book: LogBook,
        clock: Clock,
        rng: Rng,
        environ: Mapping[str, str],
        *,
        metrics: bool = False,
    ) -> None:
        self.loaded = loaded
        self.paths = paths
        self.clock = clock
        self.rng = rng
        self.phase: Phase = "starting"
        self.listening: tuple[str, ...] = ()
        self.node_id = ""
        self.stop_requested = asyncio.Event()
        self.bus = Bus()
        self.alerts = AlertBoard(clock, self.bus)
        self.supervisor = Supervisor(clock, self.alerts)
        self.lag = LoopLag(clock)
        self.dispatcher = Dispatcher()
        self.tls: TlsService | None = None
        self._book = book
        self._environ = environ
        self._started_at_ms = clock.wall_ms()
        self._lock = StateLock(paths.state)
        self._database = Database(paths.database)
        self.access = AccessService(
            paths,
            self._database,
            clock,
            rng,
            self.bus,
            self.alerts,
            audit_days=lambda: self.loaded.settings.audit_days,
            placement_of=self._placement_of,
            model_named=lambda name: find_model(name, self.registry.names()),
        )
        self.journal = Journal(clock, self.bus, self.access.audit.ended)
        self._secrets = SecretStore(paths.state, loaded.settings.secrets, rng)
        self._jobs = JobBoard(clock, rng, self.bus)
        self._pulls = PullService(paths.models, clock, environ=environ)
        self.registry = Registry(ModelsRepo(self._database), MeasuredRepo(self._database), clock, self.bus)
        self.pool = self._make_pool(metrics=metrics)
        self.network = NetworkService(self._ground())
        self.hopcheck = HopChecks(self.network, self._jobs)
        self.gateway = self._make_gateway()
        self.health = Health(self.journal, self.lag, self.pool, self.bus)
        self.projector = Projector(clock, self._sections())
        self.watch_hub = WatchHub(self.bus, self.projector)
        self.api = LocalNode(self.projector, self.watch_hub, self.dispatcher)

    def _make_gateway(self) -> Gateway:
        access = self.access
        return Gateway(
            self.pool,
            self.journal,
            access.quotas,
            access.audit,
            self.clock,
            self.rng,
            self.accepting,
            lambda: self.network.parts.exchange if self.network.parts is not None else None,
        )

    def _make_pool(self, *, metrics: bool) -> Pool:
        settings = self.loaded.settings
        starter = EngineStarter(
            self.paths.workers, settings.threads, self.rng, self.clock, self._secrets.get, metrics=metrics
        )
        return Pool(self.registry, starter, settings.host_memory_mb, self._limits, self.clock, self.bus)

    def _ground(self) -> Ground:
        """What the relay network stands on."""
        return Ground(
            self.paths,
            self._database,
            self.clock,
            self.rng,
            self.lag,
            self.bus,
            self.alerts,
            settings=lambda: self.loaded.settings,
            draining=lambda: self.phase != "ready",
            pool=self.pool,
            gateway=lambda: self.gateway,
        )

    def _sections(self) -> dict[str, Callable[[], Any]]:
        """What fronts see, by section."""
        return {
            "meta": self.meta,
            "models": lambda: models_view(self.pool, self.journal, self.loaded.settings.network_slots),
            "workers": lambda: workers_view(self.pool),
            "requests": self.journal.view,
            "keys": lambda: self.authenticator.view(),
            "health": self.health.view,
            "log": self._book.view,
            "alerts": self.alerts.view,
            "jobs": self._jobs.view,
            "network": self.network.view,
            "relays": self.network.relays_view,
            "hops": self.network.hops_view,
            "ledger": self.network.ledger_view,
            "hopcheck": self.hopcheck.view,
        }

    @property
    def authenticator(self) -> Authenticator:
        """Who checks keys, once the node is open."""
        return self.access.authenticator

    def accepting(self) -> bool:
        """Whether new requests are taken."""
        return self.phase == "ready"

    async def take(self) -> None:
        """Take the state directory. Raises `EnvError` ``state_locked`` where another node has it."""
        await asyncio.to_thread(self._lock.acquire)

    async def open(self) -> None:
        """Make everything ready but the listeners; `take` comes first.

        Raises `FaultError`, with everything closed again.
        """
        try:
            await self._open()
        except BaseException:
            await self.close()
            raise

    async def _open(self) -> None:
        settings = self.loaded.settings
        self._book.attach(self.bus)
        # The projector listens itself: the watch hub does only while it runs.
        self.bus.listen(self.projector.take)
        await self._database.open()
        meta = MetaRepo(self._database)
        self.node_id = await meta.put_first(NODE_ID, self.rng.token_bytes(8).hex())
        self._meta = meta
        await asyncio.to_thread(self._secrets.prepare)
        await self.access.open(settings.api_key, self._secrets)
        self._let_default_key()
        door = await self.network.look_at_settings()
        if settings.tls_on or door.tls:
            self.tls = self._make_tls()
            await asyncio.to_thread(self.tls.prepare)
        await self.network.open(
            self._secrets, self.tls.server_context if self.tls is not None and door.tls else None
        )
        await self._clear_up()
        await self.registry.open()
        ModelCommands(
            self.pool,
            self._pulls,
            self._jobs,
            self._secrets,
            self.paths.models,
            self.clock,
            self._environ,
        ).register(self.dispatcher)
        self.access.register(self.dispatcher)
        self.network.register(self.dispatcher)
        self.hopcheck.register(self.dispatcher)
        NodeCommands(self, self._jobs, self._environ).register(self.dispatcher)
        for warning in self.loaded.warnings:
            _log.warning("%s", warning)
        for service in self._services():
            self.supervisor.add(service)

    def _services(self) -> tuple[Service, ...]:
        tls = () if self.tls is None else (_Certificates(self.tls),)
        own = (self.watch_hub, self.lag, self.health, self.access.quotas, Watchdog(self.pool))
        return (*own, *self.network.services(), self.hopcheck, *tls)

    async def _clear_up(self) -> None:
        """Make the directories, and end what a dead node left. Raises `EnvError`."""
        settings = self.loaded.settings
        if settings.socket is None and self.paths.socket.parent != self.paths.state:
            await asyncio.to_thread(private_dir, self.paths.socket.parent, follow=False)
        await asyncio.to_thread(private_dir, self.paths.workers.parent, follow=False)
        await asyncio.to_thread(private_directory, self.paths.workers)
        strays = await asyncio.to_thread(reap_strays, self.paths.workers)
        if strays:
            _log.warning("ended %d engine processes that a dead node had left", strays)
        await self._pulls.sweep()

    async def claim_first_key(self) -> str:
        """The default key where nobody was ever shown it, else empty; from now on it counts as shown.

        A start that made the key and failed later must not be the one that showed it.
        """
        if self.authenticator.given or await self._meta.get(KEY_SHOWN) is not None:
            return ""
        await self._meta.put(KEY_SHOWN, "yes")
        return self.authenticator.secret()

    def ready(self, listening: tuple[str, ...]) -> None:
        """The listeners are open: take requests, and load what is to be loaded ahead."""
        self.listening = listening
        self._enter("ready")
        for entry in self.registry.entries():
            if entry.spec.preload and (denied := self.pool.runner(entry.spec.name).want(force=False)):
                _log.warning("%s is not loaded ahead: %s", entry.spec.name, denied.sentence)

    def relisten(self) -> None:
        """What meta shows has changed."""
        self.bus.publish(PhaseChanged())

    async def drain(self, hurry: asyncio.Event) -> None:
        """Take no new work and let running answers end, for the drain time or until ``hurry``."""
        if self.phase in ("draining", "stopped"):
            return
        self._enter("draining")
        if running := self.journal.in_flight:
            _log.warning(
                "stopping: %s may go on for %g s; a second signal ends what is left at once",
                _requests(running),
                self.loaded.settings.drain_timeout,
            )
        empty = spawn(self._all_over(), name="drain")
        hurried = spawn(_until(hurry), name="second signal")
        await asyncio.wait(
            [empty, hurried],
            timeout=self.loaded.settings.drain_timeout,
            return_when=asyncio.FIRST_COMPLETED,
        )
        await cancel_and_wait(hurried)
        if self.journal.in_flight:
            _log.warning("ending %s with an error", _requests(self.journal.in_flight))
            self.pool.refuse_all(_STOPPING)
            self.gateway.refuse_away(_STOPPING)
            await self.pool.close()
            await asyncio.wait([empty], timeout=_LAST_WORDS_S)
        await cancel_and_wait(empty)

    async def _all_over(self) -> None:
        """Return once nobody is being answered, and whoever was given a ticket has had time to come."""
        await self.network.tickets_over()
        await self.journal.wait_empty()

    async def close(self) -> None:
        """End engines and jobs, close the store, let go of the state directory."""
        self._enter("stopped")
        await self._jobs.close()
        await self._pulls.close()
        await self.pool.close()
        await self.network.close()
        await self.access.close()
        await self._database.close()
        self._lock.release()

    def apply(self, loaded: Loaded) -> None:
        """Go on with changed settings."""
        self.loaded = loaded
        self.pool.memory.pretend_mib = loaded.settings.host_memory_mb
        self.pool.retime()
        self._let_default_key()
        self.bus.publish(KeysChanged())
        logging.getLogger().setLevel(loaded.settings.log_level.upper())

    def _let_default_key(self) -> None:
        """What the settings let the default key do on the relay network."""
        settings = self.loaded.settings
        self.authenticator.default_network = settings.default_key_network == "on"
        limits = KeyLimits(credit_per_day=settings.default_key_credit_per_day)
        self.access.quotas.limit(DEFAULT_KEY, limits)

    def meta(self) -> MetaView:
        """Which node this is."""
        tls = self.tls
        return MetaView(
            node=self.node_id,
            version=__version__,
            pid=os.getpid(),
            started_at_ms=self._started_at_ms,
            phase=self.phase,
            listening=self.listening,
            fingerprint=tls.fingerprint if tls is not None else "",
            certificate=tls.certificate if tls is not None else "",
            ca_path=str(tls.ca_path) if tls is not None and tls.ca_path is not None else "",
            state_dir=str(self.paths.state),
            operator=self.network.operator,
        )

    def _enter(self, phase: Phase) -> None:
        if self.phase != phase:
            self.phase = phase
            self.bus.publish(PhaseChanged())

    def _limits(self) -> Limits:
        settings = self.loaded.settings
        keep = settings.keep_alive
        return Limits(settings.load_timeout, -1 if keep < 0 else round(keep), settings.queue)

    def _make_tls(self) -> TlsService:
        settings = self.loaded.settings
        names = [parse_name(each) for each in settings.tls_names]
        tls = TlsService(
            self.paths.state, None, names, settings.tls_cert, settings.tls_key, self.clock, self._tls_alert
        )
        if plan := acme_plan(settings):
            tls.add_acme(plan, self.rng, self._environ)
        return tls

    def _placement_of(self, model: str) -> str:
        """Where a registered model runs, as the audit says it."""
        try:
            return "server" if self.registry.entry(model).spec.kind == "url" else HOST
        except LocalError:
            return ""  # removed meanwhile

    def _tls_alert(self, topic: Topic, sentence: SafeText) -> None:
        if topic == "unknown-name":
            _log.warning("%s", sentence)
        elif sentence:
            self.alerts.raise_alert(f"tls_{topic.replace('-', '_')}", sentence, "", subject="hub")
        else:
            self.alerts.clear(f"tls_{topic.replace('-', '_')}", subject="hub")
        if topic == "acme":
            self.relisten()


class _Certificates:
    """The certificate's upkeep as a service."""

    name = "certificates"

    def __init__(self, tls: TlsService) -> None:
        self._tls = tls

    async def run(self) -> None:
        await self._tls.run()


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"


async def _until(event: asyncio.Event) -> None:
    await event.wait()
