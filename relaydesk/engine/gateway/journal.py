"""What became of each request: the record behind ``request show``, the Requests pane and the log line.

Kept in memory only, a bounded number, and never with a word of a prompt or an answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from relaydesk.core.access.caller import Caller
from relaydesk.core.codec import fault_view
from relaydesk.core.errors import Fault
from relaydesk.core.events import RequestChanged
from relaydesk.core.gateway.incoming import Incoming
from relaydesk.core.gateway.output import Spent
from relaydesk.core.ports import Clock
from relaydesk.core.view.sections import RequestState, RequestsView, RequestView
from relaydesk.engine.access.repeats import Repeats
from relaydesk.engine.bus import Bus

_log: Final = logging.getLogger("relaydesk.requests")

KEPT: Final = 500
RATE_WINDOW_S: Final = 10.0


@dataclass(slots=True)
class Ticket:
    """One ticket of the relay network that was opened for a request: what it may cost until that is known."""

    target: str
    paid: int
    relay: str = ""


class RequestRecord:
    """One request on its way. Every step is marked once; a later mark of the same step is dropped."""

    def __init__(
        self, journal: Journal, request_id: str, model: str, key: str, route: str, stream: bool, choices: int
    ) -> None:
        self._journal = journal
        # Who asked and from where, for the audit.
        self.caller: Caller | None = None
        self.client = ""
        self.id = request_id
        self.event = RequestChanged(request_id)
        self.model = model
        self.key = key
        self.route = route
        self.stream = stream
        self.choices = choices
        self.state: RequestState = "queued"
        self.started_at_ms = journal.clock.wall_ms()
        self._started = journal.clock.mono()
        self._step_started = self._started
        self._first_token: float | None = None
        self._loaded = self._prompt = self._started
        self._load_began: float | None = None
        self._waited_ms = 0
        self.queue_ms: int | None = None
        self.load_ms: int | None = None
        self.first_token_ms: int | None = None
        self.total_ms: int | None = None
        self.prompt_tokens = 0
        self.prompt_done = 0
        self.cached_tokens = 0
        self.completion_tokens = 0
        self.finish_reasons: list[str] = []
        self.status = 0
        self.fault: Fault | None = None
        # ``network`` where it goes to the relay network, and its tickets there.
        self.placement = ""
        self._tickets: list[Ticket] = []

    def opened(self, target: str, most: int) -> Ticket:
        """A ticket of the relay network was opened for it, at ``most`` microunits."""
        ticket = Ticket(target, most)
        self._tickets.append(ticket)
        return ticket

    def loading(self) -> None:
        """Its model is being loaded from now on; until then it waited, for other models to make room."""
        if self.state != "queued" or self.load_ms is not None:
            return
        self._waited_ms = self._since_step()
        self._load_began = self._journal.clock.mono()
        self._move("loading")

    def loaded(self) -> None:
        """The model is there; what follows is waiting for a slot."""
        if self.load_ms is None:
            # Without a load of its own what has passed was waiting, and goes on.
            self.load_ms = self._since_step() if self.state == "loading" else 0
            self._loaded = self._step_started
            self._move("queued")

    def prefill(self) -> None:
        """A slot was given; the prompt is being read."""
        if self.queue_ms is None:
            self.queue_ms = self._waited_ms + self._since_step()
            self._prompt = self._step_started
            self._move("prefill")

    def progress(self, done: int, total: int) -> None:
        """``done`` of the prompt's ``total`` tokens were read."""
        self.prompt_done = done
        self.prompt_tokens = total
        self._journal.changed(self)

    def token(self, count: int = 1) -> None:
        """``count`` tokens were made."""
        now = self._journal.clock.mono()
        if self._first_token is None:
            self._first_token = now
            self.first_token_ms = round((now - self._started) * 1000)
            self._move("generating")
        self.completion_tokens += count
        self._journal.count_tokens(now, count)
        # Fronts show it live; an event only marks the section stale.
        self._journal.changed(self)

    def settle(self, *, prompt: int, cached: int, completion: int, finish_reasons: list[str]) -> None:
        """The engine's own count at the end, in place of what was counted on the way."""
        self._journal.tokens_total += completion - self.completion_tokens
        self.prompt_tokens = self.prompt_done = prompt
        self.cached_tokens = cached
        self.completion_tokens = completion
        self.finish_reasons = finish_reasons

    def spent(self) -> Spent:
        """Where the time went until now."""
        now = self._journal.clock.mono()
        first = now if self._first_token is None else self._first_token
        return Spent(
            total=_ns(now - self._started),
            load=0 if self._load_began is None else _ns(self._loaded - self._load_began),
            prompt=_ns(first - self._prompt),
            answer=_ns(now - first),
        )

    def charged(self, prompt: int, completion: int) -> None:
        """What a request that ended early was charged: that is what records of it say."""
        if self.total_ms is None:
            self._journal.tokens_total += completion - self.completion_tokens
            self.prompt_tokens, self.completion_tokens = prompt, completion

    def finish(self, status: int, fault: Fault | None = None) -> None:
        """The request is over; later calls change nothing."""
        if self.total_ms is not None:
            return
        self.total_ms = round((self._journal.clock.mono() - self._started) * 1000)
        self.status = status
        self.fault = fault
        if fault is None:
            self.state = "done"
        else:
            self.state = "cancelled" if fault.code == "client_closed" else "failed"
        self._journal.close(self)

    @property
    def tokens_per_s(self) -> float:
        """Tokens a second since the first one."""
        if self._first_token is None or self.completion_tokens < 2:
            return 0.0
        end = self._journal.clock.mono() if self.total_ms is None else self._started + self.total_ms / 1000
        return round((self.completion_tokens - 1) / max(end - self._first_token, 0.001), 1)

    def view(self) -> RequestView:
        """The record as fronts see it."""
        return RequestView(
            id=self.id,
            model=self.model,
            key=self.key,
            route=self.route,
            stream=self.stream,
            state=self.state,
            started_at_ms=self.started_at_ms,
            choices=self.choices,
            queue_ms=self.queue_ms,
            load_ms=self.load_ms,
            first_token_ms=self.first_token_ms,
            total_ms=self.total_ms,
            prompt_tokens=self.prompt_tokens,
            prompt_done=self.prompt_done,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
            tokens_per_s=self.tokens_per_s,
            finish_reasons=tuple(self.finish_reasons),
            status=self.status,
            fault=fault_view(self.fault) if self.fault is not None else None,
            placement=self.placement,
            relays=tuple(dict.fromkeys(each.relay for each in self._tickets if each.relay)),
            targets=tuple(dict.fromkeys(each.target for each in self._tickets)),
            paid=sum(each.paid for each in self._tickets),
        )

    def _since_step(self) -> int:
        now = self._journal.clock.mono()
        elapsed = round((now - self._step_started) * 1000)
        self._step_started = now
        return elapsed

    def _move(self, state: RequestState) -> None:
        if self.total_ms is None and self.state != state:
            self.state = state
            self._journal.changed(self)


class Journal:
    """Requests in flight and the newest ended ones, with the node's totals."""

    def __init__(
        self, clock: Clock, bus: Bus, ended: Callable[[RequestView, Caller, str], None] | None = None
    ) -> None:
        self.clock = clock
        self._bus = bus
        self._on_end = ended
        self._repeats = Repeats(clock)
        self._open: dict[str, RequestRecord] = {}
        self._ended: deque[RequestView] = deque(maxlen=KEPT)
        self._empty = asyncio.Event()
        self._empty.set()
        self._made: deque[tuple[float, int]] = deque()
        self._made_sum = 0
        self.requests_total = 0
        self.tokens_total = 0

    def open(
        self,
        request_id: str,
        *,
        model: str,
        key: str,
        route: str,
        stream: bool,
        choices: int,
        caller: Caller | None = None,
        client: str = "",
    ) -> RequestRecord:
        """Begin a record; ``caller`` and ``client`` (an address) are for the audit.

        An id that is in flight already gets a suffix, so that each stays its own.
        """
        unique, number = request_id, 2
        while unique in self._open:
            unique, number = f"{request_id}-{number}", number + 1
        record = RequestRecord(self, unique, model, key, route, stream, choices)
        record.caller, record.client = caller, client
        self._open[unique] = record
        self._empty.clear()
        self.requests_total += 1
        self.changed(record)
        return record

    def refused(self, incoming: Incoming, fault: Fault) -> None:
        """A request that never had a model: it is shown with those that have ended."""
        caller = incoming.caller
        record = RequestRecord(self, incoming.request_id, "", caller.name, incoming.route, False, 1)
        self.requests_total += 1
        record.finish(fault.rule.status, fault)

    def changed(self, record: RequestRecord) -> None:
        """Tell fronts that a record moved on."""
        self._bus.publish(record.event)

    def count_tokens(self, now: float, count: int) -> None:
        """Add to the rate shown as tokens a second."""
        self.tokens_total += count
        self._made_sum += count
        # One entry per tenth of a second bounds the window whatever the rate.
        if self._made and now - self._made[-1][0] < 0.1:
            at, made = self._made[-1]
            self._made[-1] = (at, made + count)
        else:
            self._made.append((now, count))

    def close(self, record: RequestRecord) -> None:
        """Move an ended record to history and write its log line."""
        self._open.pop(record.id, None)
        if not self._open:
            self._empty.set()
        view = record.view()
        if not self._repeats.again(view.key, view.fault.code if view.fault is not None else ""):
            self._ended.appendleft(view)
            _log.info("%s", _line(view))
        if self._on_end is not None and record.caller is not None:
            self._on_end(view, record.caller, record.client)
        self.changed(record)

    @property
    def in_flight(self) -> int:
        """Requests not ended yet."""
        return len(self._open)

    async def wait_empty(self) -> None:
        """Return once no request is in flight."""
        await self._empty.wait()

    def standing(self, model: str | None = None) -> tuple[int, int]:
        """Requests being answered, and those that wait for a model or a slot: of one model, or of all."""
        records = [each for each in self._open.values() if model is None or each.model == model]
        waiting = sum(1 for each in records if each.state in ("queued", "loading"))
        return len(records) - waiting, waiting

    def tokens_per_s(self) -> float:
        """Tokens a second over the last ten seconds."""
        now = self.clock.mono()
        while self._made and now - self._made[0][0] > RATE_WINDOW_S:
            self._made_sum -= self._made.popleft()[1]
        return round(self._made_sum / RATE_WINDOW_S, 1)

    def find(self, request_id: str) -> RequestView | None:
        """A request by id, in flight or ended; None where it is not kept (any more)."""
        record = self._open.get(request_id)
        if record is not None:
            return record.view()
        return next((view for view in self._ended if view.id == request_id), None)

    def view(self) -> RequestsView:
        """Both lists for the console."""
        return RequestsView(tuple(record.view() for record in self._open.values()), tuple(self._ended)[:100])


def _ns(seconds: float) -> int:
    return max(0, round(seconds * 1e9))


def _line(view: RequestView) -> str:
    """One line a request; what did not happen is left out."""
    times = {
        "error": view.fault.code if view.fault is not None else None,
        "queue_ms": view.queue_ms or None,
        "load_ms": view.load_ms or None,
        "first_token_ms": view.first_token_ms,
        "total_ms": view.total_ms,
        "tokens_per_s": view.tokens_per_s or None,
    }
    head = (
        f"{view.state} {view.status} model={view.model or '-'} key={view.key} "
        f"tokens={view.prompt_tokens}+{view.completion_tokens}"
    )
    known = [f"{name}={value}" for name, value in times.items() if value is not None]
    return " ".join([head, *known, view.id])
