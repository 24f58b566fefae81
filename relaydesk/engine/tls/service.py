"""The hub's TLS as one service: its certificate, from start to shutdown."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from relaydesk.core.errors import FaultError, LocalError
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.text import SafeText, safe_text
from relaydesk.core.tls.names import (
    LeafNames,
    Name,
    home_constraints,
    leaf_names,
    outside_error,
    parse_name,
    permitted,
)
from relaydesk.engine.tls.acme.files import Kept
from relaydesk.engine.tls.acme.keeper import AcmeKeeper
from relaydesk.engine.tls.acme.plan import AcmePlan
from relaydesk.engine.tls.addresses import Machine, this_machine
from relaydesk.engine.tls.authority import Authority, open_authority, renew_authority, utc
from relaydesk.engine.tls.context import LiveContext, load_context
from relaydesk.engine.tls.leaf import Leaf, ensure_leaf
from relaydesk.engine.tls.own import OwnCertificate, OwnPair
from relaydesk.store.files import sweep_temp

Topic = Literal["certificate", "ca-expiry", "unknown-name", "acme"]
CHECK_S: Final = 30.0
_SENTENCE: Final = 500
_WARN_DAYS: Final = 14
_WARN_CA_DAYS: Final = 180


class TlsService:
    """Own certificate files where both are set, else the hub's own authority under ``<state dir>/tls/``.

    `add_acme` puts a certificate from an ACME server beside that authority's, for who asks for its names.

    ``on_alert`` gets a topic and a sentence; an empty sentence ends the alert of that topic. An
    ``unknown-name`` is a line for the log, once per name, and never ends. ``hostname`` None asks the
    system each time.
    """

    def __init__(
        self,
        state_dir: Path,
        hostname: str | None,
        extra_names: Sequence[Name],
        own_cert: Path | None,
        own_key: Path | None,
        clock: Clock,
        on_alert: Callable[[Topic, SafeText], None],
        *,
        machine: Callable[[], Machine] = this_machine,
        check_every: float = CHECK_S,
    ) -> None:
        if (own_cert is None) != (own_key is None):
            raise LocalError(
                "bad_setting",
                f"{'RELAY_TLS_KEY' if own_cert else 'RELAY_TLS_CERT'} is missing",
                "set RELAY_TLS_CERT and RELAY_TLS_KEY together, or neither",
            )
        self._directory = state_dir / "tls"
        self._hostname = hostname
        self._extra = tuple(extra_names)
        self._clock = clock
        self._on_alert = on_alert
        self._machine = machine
        self._check_every = check_every
        self._own = OwnPair(own_cert, own_key, clock) if own_cert and own_key else None
        self._authority: Authority | None = None
        self._leaf: Leaf | None = None
        self._live = LiveContext(self._unknown_name)
        self._own_ends = dt.datetime.max.replace(tzinfo=dt.UTC)
        self._alerts: dict[Topic, str] = {}
        self._acme: AcmeKeeper | None = None
        self.skipped: tuple[str, ...] = ()
        """Names and addresses of this machine that the authority may not vouch for."""

    @property
    def server_context(self) -> ssl.SSLContext:
        """For listeners; the same object for good, whatever certificate it serves."""
        return self._live.context

    @property
    def fingerprint(self) -> str:
        """Of the hub's own authority; empty where own certificate files are served."""
        return self._authority.fingerprint if self._authority else ""

    @property
    def ca_path(self) -> Path | None:
        return self._authority.path if self._authority else None

    @property
    def names(self) -> frozenset[Name]:
        """What the certificates in use are for."""
        return self._live.names

    @property
    def certificate(self) -> str:
        """What is served from an ACME server, for people; empty where nothing is asked of one."""
        return self._acme.shown if self._acme else ""

    def add_acme(self, plan: AcmePlan, rng: Rng, environ: Mapping[str, str]) -> None:
        """Also serve a certificate from an ACME server; before `prepare`."""
        assert self._own is None
        self._acme = AcmeKeeper(
            plan,
            self._directory.parent,
            self._clock,
            rng,
            environ,
            self._use_acme,
            lambda sentence: self._alert("acme", sentence),
            look_every=self._check_every,
        )

    def prepare(self) -> None:
        """Load or make the certificate. Blocks on files: before the loop or in a thread.

        Raises `EnvError` ``tls_failed``, and `LocalError` ``bad_setting`` for RELAY_TLS_NAMES outside the
        authority's constraints.
        """
        if self._own:
            self._use_own(self._own.load())
            return
        machine = self._machine()
        hostname = machine.hostname if self._hostname is None else self._hostname
        self._authority = open_authority(
            self._directory, home_constraints(hostname, self._extra), self._clock
        )
        sweep_temp(self._directory)
        self._use_leaf(*self._make_leaf(self._extra))
        if self._acme:
            self._acme.load()

    async def run(self) -> None:
        """Keep the certificate right until cancelled. What fails is an alert and tried again."""
        if self._own:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._own.watch(self._use_own, self._bad_own, self._check_every))
                group.create_task(self._check_age())
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep_leaf())
            if self._acme:
                group.create_task(self._acme.run())

    async def _keep_leaf(self) -> None:
        while True:
            await asyncio.sleep(self._check_every)
            try:
                self._use_leaf(*await asyncio.to_thread(self._make_leaf, self._extra))
            except FaultError as exc:
                self._alert(
                    "certificate", f"the hub's certificate could not be renewed: {exc.fault.sentence}"
                )

    async def rename(self, extra_names: Sequence[Name]) -> None:
        """RELAY_TLS_NAMES changed: serve them, or raise ``bad_setting`` and stay as it was."""
        if self._own is None:
            self._use_leaf(*await asyncio.to_thread(self._make_leaf, tuple(extra_names)))
        self._extra = tuple(extra_names)

    async def renew_ca(self, extra_names: Sequence[Name] | None = None) -> str:
        """A new authority that covers today's names; returns its fingerprint, which clients must be told.

        ``extra_names`` replace RELAY_TLS_NAMES, None keeps them. Needs no `prepare`, which a damaged
        authority would not survive.
        """
        if self._own:
            raise LocalError(
                "conflict",
                "the hub serves certificate files of its own and has no CA",
                "unset RELAY_TLS_CERT and RELAY_TLS_KEY first",
            )
        if extra_names is not None:
            self._extra = tuple(extra_names)
        self._authority = await asyncio.to_thread(self._renew)
        # The former authority signed it, however good it is otherwise.
        self._leaf = None
        self._use_leaf(*await asyncio.to_thread(self._make_leaf, self._extra))
        return self.fingerprint

    def hint(self, url: str) -> bytes:
        """What plain HTTP on the TLS port is told; ``url`` is how to reach the hub, for example its name."""
        if self._acme:
            url = f"https://{self._acme.plan.names[0].replace('*', 'NAME')}:{url.rpartition(':')[2]}"
        lines = [f"This port speaks HTTPS, not plain HTTP: use {url}"]
        if self._own is None and self._acme is None:
            lines.append(
                "Clients must trust the hub's own CA: copy <state dir>/tls/ca.pem from the hub "
                "(curl --cacert, SSL_CERT_FILE, NODE_EXTRA_CA_CERTS)."
            )
        return ("\n".join(lines) + "\n").encode()

    def _renew(self) -> Authority:
        hostname = self._machine().hostname if self._hostname is None else self._hostname
        return renew_authority(self._directory, home_constraints(hostname, self._extra), self._clock)

    def _make_leaf(self, extra: tuple[Name, ...]) -> tuple[Leaf, ssl.SSLContext | None, LeafNames]:
        """Blocking part of a check; the context is None where the leaf in use is still right."""
        assert self._authority is not None
        machine = self._machine()
        hostname = machine.hostname if self._hostname is None else self._hostname
        names = leaf_names(hostname, machine.addresses, extra, self._authority.constraints)
        if names.refused_extra:
            raise outside_error(names.refused_extra)
        if self._leaf and not self._leaf.stale(frozenset(names.names), utc(self._clock)):
            return self._leaf, None, names
        leaf = ensure_leaf(self._directory, self._authority, names.names, self._clock)
        return leaf, load_context(leaf.path), names

    def _use_leaf(self, leaf: Leaf, context: ssl.SSLContext | None, names: LeafNames) -> None:
        assert self._authority is not None
        self._leaf = leaf
        self.skipped = names.refused
        if context is not None:
            self._live.swap(context, leaf.names)
        self._alert("certificate", "")
        end = self._authority.certificate.not_valid_after_utc
        late = end - utc(self._clock) < dt.timedelta(days=_WARN_CA_DAYS)
        self._alert(
            "ca-expiry",
            f"the hub's CA ends on {end:%Y-%m-%d}: run `relaydesk tls renew-ca` and give it to clients"
            if late
            else "",
        )

    def _use_acme(self, kept: Kept) -> None:
        self._live.prefer(kept.context, kept.names)

    def _use_own(self, pair: OwnCertificate) -> None:
        self._live.swap(pair.context, pair.names)
        self._own_ends = pair.not_after
        self._alert("certificate", self._age_sentence())

    def _bad_own(self, sentence: str) -> None:
        kept = f"the certificate files changed and the former ones stay in use: {sentence}"
        self._alert("certificate", kept if sentence else self._age_sentence())

    async def _check_age(self) -> None:
        while True:
            await asyncio.sleep(self._check_every)
            if sentence := self._age_sentence():
                self._alert("certificate", sentence)

    def _age_sentence(self) -> str:
        assert self._own is not None
        left = self._own_ends - dt.datetime.fromtimestamp(self._clock.wall_ms() / 1000, dt.UTC)
        if left > dt.timedelta(days=_WARN_DAYS):
            return ""
        verb = "ended" if left <= dt.timedelta() else "ends"
        return f"the certificate {self._own.certificate} {verb} on {self._own_ends:%Y-%m-%d}: renew it"

    def _unknown_name(self, name: SafeText) -> None:
        self._on_alert("unknown-name", safe_text(self._unknown_sentence(name), _SENTENCE))

    def _unknown_sentence(self, name: SafeText) -> str:
        asked = f"a client asked for the name {name}, which the certificate does not cover"
        if self._own:
            return f"{asked}: put it into the certificate {self._own.certificate}"
        try:
            parsed = parse_name(name)
        except LocalError:
            return f"{asked}; it is not a host name"
        assert self._authority is not None
        line = "RELAY_TLS_NAMES=" + ",".join(str(n) for n in [*self._extra, parsed])
        if permitted(parsed, self._authority.constraints):
            return f"{asked}: if it is yours, set {line}"
        return (
            f"{asked}: if it is yours, set {line} and run `relaydesk tls renew-ca`, "
            "or serve a certificate of your own"
        )

    def _alert(self, topic: Topic, sentence: str) -> None:
        if self._alerts.get(topic, "") != sentence:
            self._alerts[topic] = sentence
            self._on_alert(topic, safe_text(sentence, _SENTENCE))
