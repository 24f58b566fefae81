"""Publishing this node: its own record, handed in to the pinned directories that take records."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from relaydesk.core.errors import FaultError
from relaydesk.core.ports import Clock
from relaydesk.core.relay.directory.certificate import DAY_S
from relaydesk.core.relay.directory.record import NodeRecord, Status, issue_record, read_record
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.relay.directory.source import Source
from relaydesk.core.relay.door import NO_DIRECTORY, NO_PUBLIC_URL
from relaydesk.core.text import SafeText, safe_text
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.relay.directory.fetch import require_no_hub
from relaydesk.engine.relay.directory.sources import Sources
from relaydesk.engine.relay.identity import Identity
from relaydesk.engine.relay.outbound.outbound import Outbound
from relaydesk.engine.relay.outbound.unreachable import UnreachableError
from relaydesk.engine.tasks import cancel_and_wait, spawn
from relaydesk.store.directory import DirectoryRepo

_log: Final = logging.getLogger(__name__)

TICK_S: Final = 30.0
FIRST_BACK_OFF_S: Final = 10.0
LONGEST_BACK_OFF_S: Final = 3600.0
# The keeper looks at the node within this before it answers.
_ANSWER_S: Final = 30.0
_ANSWER_BYTES: Final = 16 * 1024
_WARN_S: Final = 14 * DAY_S


class _Why(msgspec.Struct, frozen=True):
    message: str = ""


class _Answer(msgspec.Struct, frozen=True):
    """What a keeper answers."""

    error: _Why = _Why()


@dataclass(slots=True)
class _Place:
    digest: bytes = b""
    failures: int = 0
    due: float = 0.0
    problem: SafeText = SafeText("")  # noqa: RUF009 - immutable


class Publisher:
    """Run it as a service. ``wanted`` is the base URL to be known by, empty for none; tell `changed` of it.

    A record is kept before it is shown, so that no version is given twice. ``sleep`` is for tests.
    """

    name = "publisher"

    def __init__(
        self,
        identity: Identity,
        sources: Sources,
        repo: DirectoryRepo,
        outbound: Outbound,
        clock: Clock,
        alerts: AlertBoard,
        wanted: Callable[[], str],
        *,
        on_change: Callable[[], None],
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
    ) -> None:
        self._identity = identity
        self._sources = sources
        self._repo = repo
        self._outbound = outbound
        self._clock = clock
        self._alerts = alerts
        self._wanted = wanted
        self._on_change = on_change
        self._sleep = sleep
        self._wake = asyncio.Event()
        self._places = {each: _Place() for each in sources.sources if each.records_url is not None}

    def changed(self) -> None:
        """What is to be published may be another: look at once."""
        self._wake.set()

    def unpublished(self) -> SafeText:
        """Why no directory lists this node; empty where one does."""
        if not self._wanted():
            return safe_text(NO_PUBLIC_URL)
        if not self._sources.sources:
            return safe_text(NO_DIRECTORY)
        if any(self._lists_us(each.key) for each in self._sources.sources):
            return safe_text("")
        problems = [each.problem for each in self._sources.views() if each.problem]
        problems += [each.problem for each in self._places.values() if each.problem]
        return problems[0] if problems else safe_text("no pinned directory lists this node yet")

    async def run(self) -> None:
        """Publish what changed until cancelled."""
        while True:
            self._wake.clear()
            await self.publish()
            pause = spawn(self._sleep(TICK_S), name="publisher pause")
            woken = spawn(self._wake.wait(), name="publisher wake")
            try:
                await asyncio.wait([pause, woken], return_when=asyncio.FIRST_COMPLETED)
            finally:
                await cancel_and_wait(pause)
                await cancel_and_wait(woken)

    async def publish(self) -> None:
        """Hand in the record wherever it is due. Raises `EnvError` where it cannot be kept."""
        if await asyncio.to_thread(self._identity.renew):
            _log.info("the node's own certificate was renewed")
        if self._certificate_ends():
            return
        record = await self._record()
        if record is None:
            return
        for source, place in self._places.items():
            if self._due(source, place, record):
                await self._hand_in(source, place, record)

    async def _record(self) -> NodeRecord | None:
        """The record to publish: the last one where it still holds. None: nothing was or is to be."""
        wanted = self._wanted()
        now = self._clock.wall_ms() // 1000
        last = await self._last(now)
        certificate = self._identity.certificate
        if not wanted and (last is None or last.ref != certificate.ref):
            return None
        # Withdrawn where it is not wanted any more: at the place that it was.
        base_url = wanted or (last.base_url if last is not None else "")
        status: Status = "active" if wanted else "retired"
        if last is not None and (last.base_url, last.status, last.certificate.envelope) == (
            base_url,
            status,
            certificate.envelope,
        ):
            return last
        record = issue_record(
            certificate,
            self._identity.signing_addr,
            self._identity.sign,
            version=max(now, last.version + 1 if last is not None else 1),
            issued_at=now,
            base_url=base_url,
            status=status,
        )
        await self._repo.keep_own_record(record.encode())
        return record

    async def _last(self, now: int) -> NodeRecord | None:
        stored = await self._repo.own_record()
        try:
            return read_record(stored, now) if stored is not None else None
        except Refused:
            return None  # its certificate has ended, or the clock was ahead when it was made

    def _lists_us(self, key: str, digest: bytes | None = None) -> bool:
        document = self._sources.document(key)
        mine = (self._identity.ref, self._identity.owner_addr)
        return document is not None and any(
            (each.ref, each.owner) == mine
            and (each.status == "active" if digest is None else each.digest == digest)
            for each in document.records
        )

    def _due(self, source: Source, place: _Place, record: NodeRecord) -> bool:
        if place.digest != record.digest:
            place.digest, place.failures, place.due = record.digest, 0, 0.0
        if self._lists_us(source.key, record.digest):
            place.failures = 0
            self._said(source, place, "")
            return False
        if self._sources.unusable(source):
            # What is amiss there has an alert of its own, and nobody who could take a record.
            self._said(source, place, "")
            return False
        return self._clock.mono() >= place.due

    async def _hand_in(self, source: Source, place: _Place, record: NodeRecord) -> None:
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._post(source, record)
        except TimeoutError:
            problem = f"its keeper did not answer within {_ANSWER_S:g} s"
        except UnreachableError as error:
            problem = f"its keeper cannot be reached ({error.reason})"
        except ValueError:
            problem = "its URL cannot be asked for"
        except FaultError as error:
            problem = error.fault.sentence
        else:
            problem = ""
            self._sources.refresh_soon(source)
        place.failures = place.failures + 1 if problem else 0
        # Accepted and yet not listed is looked at again later: the document may come a little after.
        pause = FIRST_BACK_OFF_S * float(1 << min(place.failures - 1, 16)) if problem else 10 * TICK_S
        place.due = self._clock.mono() + min(pause, LONGEST_BACK_OFF_S)
        self._said(source, place, problem)

    async def _post(self, source: Source, record: NodeRecord) -> None:
        url = source.records_url
        assert url is not None
        headers = [("Content-Type", "application/json"), ("Accept", "application/json")]
        async with await self._outbound.send(
            url, "POST", headers, record.encode(), head_s=_ANSWER_S
        ) as reply:
            if reply.status == 200:
                return
            body = await reply.read(_ANSWER_BYTES)
        require_no_hub(reply.status, body)
        try:
            why = safe_text(msgspec.json.decode(body, type=_Answer).error.message, 300)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            why = safe_text("")
        raise Refused("not_seen", why or f"its keeper answered {reply.status}")

    def _said(self, source: Source, place: _Place, problem: str) -> None:
        place.problem = (
            safe_text(f"the directory at {source.place}: {problem}", 512) if problem else safe_text("")
        )
        subject = str(safe_text(str(source)))
        if problem:
            self._alerts.raise_alert(
                "record_refused",
                f"the directory at {source.place} does not list this node: {problem}",
                "it is tried again by itself",
                subject=subject,
            )
        else:
            self._alerts.clear("record_refused", subject=subject)
        self._on_change()

    def _certificate_ends(self) -> bool:
        """Whether the certificate is over; an alert stands from two weeks before."""
        left = self._identity.seconds_left()
        if left > _WARN_S or self._identity.self_certified:
            self._alerts.clear("certificate_ends")
            return left <= 0
        when = "is over" if left <= 0 else f"ends in {left // DAY_S} days"
        self._alerts.raise_alert(
            "certificate_ends",
            f"the owner's certificate for this node {when}",
            f"certify {self._identity.signing_addr} again, and import it",
            severity="error" if left <= 0 else "warning",
        )
        return left <= 0
