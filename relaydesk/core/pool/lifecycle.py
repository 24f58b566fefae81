"""The life of one model's engine, as a pure state machine.

`step` takes a life, an event and the time and gives the next life and the effects that whoever runs the
engine must carry out, one after the other: no engine starts before the one before it has stopped. Time is
monotonic seconds, handed in; timers are not effects: `wake_at` says when to send `Tick` next.

Rules it holds:

- One engine at a time, and one load however many requests wait for it.
- Each start has a number (``run``). What an engine of an earlier run reports is ignored.
- Requests are granted only while warm; an engine with requests is stopped only by force or by dying, and its
  streams are then ended with an error.
- Idle time counts from the end of the last request. ``keep_alive_s``: 0 unloads at once, -1 never.
- A load that fails fails all who wait, with the engine's own error, which is kept. A new attempt must wait
  for the back-off; until then requests are refused with that error. Only a refusal for lack of memory has no
  back-off: it costs nothing to ask again.
- An engine that dies while warm is restarted after the back-off, again and again, until it would have been
  unloaded for idleness anyway and nobody waits. Requests wait for a restart that is near, and are refused
  while it is far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from relaydesk.core.errors import Fault

State = Literal["cold", "loading", "warm", "unavailable", "unloading"]
PublicState = Literal["cold", "loading", "warm", "unavailable"]

BACKOFF_FIRST_S: Final = 1.0
BACKOFF_MAX_S: Final = 60.0
STABLE_S: Final = 60.0  # an engine that was warm for so long starts its back-off anew
RESTART_WAIT_S: Final = 5.0  # requests wait for a restart that is at most so far away


@dataclass(frozen=True, slots=True)
class Life:
    """One model's engine. `COLD` is the beginning.

    ``waiting`` counts requests that wait for the engine, ``in_flight`` those it answers. ``since`` is when
    the state began, ``last_used`` the end of the last request, or when it became warm without one.
    ``failures`` counts failures in a row, ``retry_at`` is when the next start may be tried, ``restarting``
    that it will be without anybody asking. ``error`` is the last failure, kept until the next success.
    ``used``: this run has answered a request.
    """

    state: State = "cold"
    run: int = 0
    since: float = 0.0
    progress: float = 0.0
    waiting: int = 0
    in_flight: int = 0
    last_used: float = 0.0
    used: bool = False
    failures: int = 0
    retry_at: float = 0.0
    restarting: bool = False
    error: Fault | None = None


COLD: Final = Life()


# --- Events


@dataclass(frozen=True, slots=True)
class LoadRequested:
    """Somebody wants the model. ``waits``: a request, which will be granted or refused exactly once, and ends
    with `RequestDone` or `WaiterLeft`; else only the load is wanted. ``force`` passes over the back-off.
    """

    waits: bool = True
    force: bool = False


@dataclass(frozen=True, slots=True)
class WaiterLeft:
    """A request that waited has gone away before it was granted or refused."""


@dataclass(frozen=True, slots=True)
class RequestDone:
    """A granted request of this run has ended, however."""

    run: int


@dataclass(frozen=True, slots=True)
class Progress:
    """The engine has loaded this part, 0 to 1."""

    run: int
    fraction: float


@dataclass(frozen=True, slots=True)
class Ready:
    """The engine answers."""

    run: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The load did not succeed: refused for memory, timed out, or the engine ended with this error."""

    run: int
    fault: Fault


@dataclass(frozen=True, slots=True)
class Died:
    """The engine's process has ended, unasked."""

    run: int
    fault: Fault


@dataclass(frozen=True, slots=True)
class Stopped:
    """The engine that was to be stopped is gone and its memory free."""

    run: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: idle time or back-off may be over. Harmless when neither is."""


@dataclass(frozen=True, slots=True)
class Unload:
    """The operator wants it unloaded; ``force`` even if it is answering or waited for."""

    force: bool = False


@dataclass(frozen=True, slots=True)
class Evict:
    """Another model needs the room."""


Event = (
    LoadRequested
    | WaiterLeft
    | RequestDone
    | Progress
    | Ready
    | Failed
    | Died
    | Stopped
    | Tick
    | Unload
    | Evict
)


# --- Effects


@dataclass(frozen=True, slots=True)
class StartEngine:
    """Start an engine and report under this run."""

    run: int


@dataclass(frozen=True, slots=True)
class StopEngine:
    """Stop this run's engine, whatever is left of it, and report `Stopped`."""

    run: int


@dataclass(frozen=True, slots=True)
class Grant:
    """Let ``count`` waiting requests go to the engine of this run."""

    run: int
    count: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Fail ``count`` requests, all that wait, with this fault."""

    count: int
    fault: Fault


@dataclass(frozen=True, slots=True)
class EndStreams:
    """End the answers of this run with an error frame; their `RequestDone` no longer counts."""

    run: int
    fault: Fault


@dataclass(frozen=True, slots=True)
class Deny:
    """The event was refused: nothing has changed."""

    fault: Fault


Effect = StartEngine | StopEngine | Grant | Refuse | EndStreams | Deny
Step = tuple[Life, tuple[Effect, ...]]


def backoff_s(failures: int) -> float:
    """Seconds to wait after so many failures in a row: 1, 2, 4 … 60."""
    if failures < 1:
        return 0.0
    return min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2.0 ** min(failures - 1, 16))


def idle_at(life: Life, keep_alive_s: int) -> float | None:
    """When a warm engine without requests is to be unloaded, or None."""
    if life.state != "warm" or life.in_flight or keep_alive_s < 0:
        return None
    if keep_alive_s == 0 and not life.used:
        return None  # loaded ahead of its first request: that one ends it
    return life.last_used + keep_alive_s


def wake_at(life: Life, keep_alive_s: int) -> float | None:
    """When the next `Tick` is due, or None."""
    if life.state == "unavailable":
        return life.retry_at
    return idle_at(life, keep_alive_s)


def public_state(life: Life, fits: bool = True) -> PublicState:
    """The state as clients are told it: what cannot be loaded is unavailable unless it is loaded."""
    if life.state == "unavailable":
        near = life.restarting and backoff_s(life.failures) <= RESTART_WAIT_S
        return "loading" if near else "unavailable"
    if life.state in ("cold", "unloading"):
        return "cold" if fits else "unavailable"
    return "loading" if life.state == "loading" else "warm"


def step(life: Life, event: Event, now: float, keep_alive_s: int) -> Step:
    """The next life and what to do."""
    match event:
        case LoadRequested():
            return _load_requested(life, event, now)
        case WaiterLeft():
            return replace(life, waiting=max(0, life.waiting - 1)), ()
        case Tick():
            return _tick(life, now, keep_alive_s)
        case Unload(force):
            return _unload(life, force, now)
        case Evict():
            return _evict(life, now)
        case _ if event.run != life.run:
            return life, ()
        case RequestDone():
            return _request_done(life, now, keep_alive_s)
        case Progress(fraction=fraction):
            return _progress(life, fraction), ()
        case Ready():
            return _ready(life, now)
        case Failed(fault=fault):
            return _failed(life, fault, now)
        case Died(fault=fault):
            return _died(life, fault, now)
        case Stopped():
            return _stopped(life, now)


def _load_requested(life: Life, event: LoadRequested, now: float) -> Step:
    more = 1 if event.waits else 0
    waiting = replace(life, waiting=life.waiting + more)
    match life.state:
        case "warm":
            if not more:
                return life, ()
            return replace(life, in_flight=life.in_flight + 1, used=True), (Grant(life.run, 1),)
        case "cold":
            return _start(waiting, now)
        case "loading" | "unloading":
            return waiting, ()
        case "unavailable":
            if event.force or now >= life.retry_at:
                return _start(waiting, now)
            if more and life.restarting and life.retry_at - now <= RESTART_WAIT_S:
                return waiting, ()
            fault = _refusal(life, now)
            return life, (Refuse(more, fault) if more else Deny(fault),)


def _refusal(life: Life, now: float) -> Fault:
    wait = max(1, -int(-(life.retry_at - now) // 1))
    error = life.error or Fault("model_load_failed", "the model's engine failed")
    return replace(error, retry_after=wait)


def _start(life: Life, now: float) -> Step:
    run = life.run + 1
    started = replace(life, state="loading", run=run, since=now, progress=0.0, used=False, in_flight=0)
    return started, (StartEngine(run),)


def _progress(life: Life, fraction: float) -> Life:
    if life.state != "loading" or not fraction > life.progress:
        return life
    return replace(life, progress=min(1.0, fraction))


def _ready(life: Life, now: float) -> Step:
    if life.state != "loading":
        return life, ()
    count = life.waiting
    warm = replace(
        life,
        state="warm",
        since=now,
        progress=1.0,
        waiting=0,
        in_flight=count,
        last_used=now,
        used=count > 0,
        restarting=False,
        error=None,
    )
    return warm, (Grant(life.run, count),) if count else ()


def _request_done(life: Life, now: float, keep_alive_s: int) -> Step:
    if life.state != "warm" or life.in_flight == 0:
        return life, ()
    done = replace(life, in_flight=life.in_flight - 1, last_used=now)
    return _tick(done, now, keep_alive_s)


def _failed(life: Life, fault: Fault, now: float) -> Step:
    if life.state != "loading":
        return life, ()
    failures = life.failures + 1
    told = fault
    if fault.code != "model_unavailable" and fault.retry_after is None:
        # Asked again before the next start may be tried, it would only be refused again.
        told = replace(fault, retry_after=max(1, -int(-backoff_s(failures) // 1)))
    effects: tuple[Effect, ...] = (StopEngine(life.run),)
    if life.waiting:
        effects += (Refuse(life.waiting, told),)
    if fault.code == "model_unavailable":
        # No room: nothing was started and nothing is wrong with it.
        cold = replace(life, state="cold", since=now, waiting=0, progress=0.0, restarting=False, error=fault)
        return cold, effects[1:]
    down = replace(
        life,
        state="unavailable",
        since=now,
        progress=0.0,
        waiting=0,
        failures=failures,
        retry_at=now + backoff_s(failures),
        error=fault,
    )
    return down, effects


def _died(life: Life, fault: Fault, now: float) -> Step:
    if life.state == "loading":
        return _failed(life, fault, now)
    if life.state == "unloading":
        return _stopped(life, now)
    if life.state != "warm":
        return life, ()
    failures = 1 if now - life.since >= STABLE_S else life.failures + 1
    down = replace(
        life,
        state="unavailable",
        since=now,
        progress=0.0,
        in_flight=0,
        failures=failures,
        retry_at=now + backoff_s(failures),
        restarting=True,
        last_used=now if life.in_flight else life.last_used,
        error=fault,
    )
    return down, (EndStreams(life.run, fault),) if life.in_flight else ()


def _tick(life: Life, now: float, keep_alive_s: int) -> Step:
    if life.state == "unavailable" and now >= life.retry_at:
        forgotten = keep_alive_s >= 0 and now >= life.last_used + keep_alive_s
        if life.restarting and (life.waiting or not forgotten):
            return _start(life, now)
        return replace(life, state="cold", since=now, restarting=False), ()
    due = idle_at(life, keep_alive_s)
    return _stop(life, now) if due is not None and now >= due else (life, ())


def _stop(life: Life, now: float) -> Step:
    stable = life.state == "warm" and now - life.since >= STABLE_S
    stopping = replace(
        life,
        state="unloading",
        since=now,
        progress=0.0,
        in_flight=0,
        failures=0 if stable else life.failures,
        restarting=False,
    )
    return stopping, (StopEngine(life.run),)


def _stopped(life: Life, now: float) -> Step:
    if life.state != "unloading":
        return life, ()
    if life.waiting:
        return _start(life, now)
    return replace(life, state="cold", since=now), ()


_IN_USE: Final = Fault("conflict", "the model is answering requests", "wait for them, or unload it by force")
_UNLOADED: Final = Fault("model_unloaded", "the model was unloaded by the operator", "ask again to load it")


def _unload(life: Life, force: bool, now: float) -> Step:
    if (life.in_flight or life.waiting) and not force:
        return life, (Deny(_IN_USE),)
    effects: tuple[Effect, ...] = ()
    if life.waiting:
        effects += (Refuse(life.waiting, _UNLOADED),)
    if life.in_flight:
        effects += (EndStreams(life.run, _UNLOADED),)
    quiet = replace(life, waiting=0)
    if life.state in ("warm", "loading"):
        stopping, stop = _stop(quiet, now)
        return stopping, effects + stop
    if life.state == "unavailable":
        quiet = replace(quiet, state="cold", since=now, restarting=False, failures=0, retry_at=0.0)
    return quiet, effects


def _evict(life: Life, now: float) -> Step:
    if life.state == "warm" and not life.in_flight:
        return _stop(life, now)
    return life, (Deny(_IN_USE if life.state == "warm" else Fault("conflict", "the model is not loaded")),)
