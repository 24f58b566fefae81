"""What a front can know of a node, one frozen section for each subject.

No secret has a place in here: keys appear by name and fingerprint. Text that a model file, an engine or a
client supplied is `SafeText`. Times ``*_ms`` at the end of ``at``/``since``/``started`` are wall-clock
milliseconds; durations are milliseconds; memory is in MiB, needs rounded up and free memory down.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

import msgspec

from relaydesk.core.text import SafeText

T = TypeVar("T")

Phase = Literal["starting", "ready", "draining", "stopped"]
ModelState = Literal["cold", "loading", "warm", "unavailable"]
RequestState = Literal["queued", "loading", "prefill", "generating", "done", "failed", "cancelled"]


class FaultView(msgspec.Struct, frozen=True):
    """A `Fault` as fronts get it."""

    code: str
    message: SafeText
    hint: SafeText = SafeText("")
    param: str | None = None
    retry_after: int | None = None


class MetaView(msgspec.Struct, frozen=True):
    """Which node this is and where it listens."""

    node: str
    version: str
    pid: int
    started_at_ms: int
    phase: Phase
    listening: tuple[str, ...] = ()
    fingerprint: str = ""
    ca_path: str = ""
    state_dir: str = ""
    operator: str = ""
    certificate: str = ""


class MemoryView(msgspec.Struct, frozen=True):
    """The memory models may use on this machine. ``source``: ``gpu``, ``ram`` or ``setting``."""

    source: str
    total_mib: int
    free_mib: int
    devices: tuple[SafeText, ...] = ()


class ModelView(msgspec.Struct, frozen=True):
    """One registered model. ``context_length`` is what one request can use, in tokens.

    ``owned``: relaydesk fetched its file, and removing the model deletes it. ``offer``: the relay network may
    use it, at these rates in microUSDC per 1,000,000 tokens; ``unoffered`` says why it cannot now.
    """

    name: str
    state: ModelState
    fits: bool
    fit_reason: SafeText
    placement: str
    context_length: int
    aliases: tuple[str, ...] = ()
    kind: str = "xllamacpp"
    progress: float | None = None
    slots: int = 0
    in_flight: int = 0
    queued: int = 0
    need_mib: int = 0
    measured: bool = False
    size_bytes: int = 0
    quantization: SafeText = SafeText("")
    architecture: SafeText = SafeText("")
    source: SafeText = SafeText("")
    host_only: bool = False
    offer: bool = False
    input_rate: int = 0
    output_rate: int = 0
    unoffered: SafeText = SafeText("")
    preload: bool = False
    keep_alive_s: int = 0
    last_used_at_ms: int = 0
    added_at_ms: int = 0
    fault: FaultView | None = None
    owned: bool = False


class ModelsView(msgspec.Struct, frozen=True):
    """All registered models and the memory they compete for."""

    memory: MemoryView
    models: tuple[ModelView, ...] = ()


class WorkerView(msgspec.Struct, frozen=True):
    """One engine that is loaded or loading. ``url`` is its private door, not a client's."""

    model: str
    kind: str
    state: str
    url: str
    pid: int = 0
    memory_mb: int = 0
    slots: int = 0
    busy: int = 0
    started_at_ms: int = 0
    restarts: int = 0


class RequestView(msgspec.Struct, frozen=True, gc=False):
    """One request's life. A duration is None until that step is over.

    ``placement`` is ``network`` where it goes to the relay network, else empty; ``relays`` carried it sealed
    and ``targets`` read it, as ``operator:node``; ``paid`` is what that cost, in microunits.
    """

    id: str
    model: str
    key: str
    route: str
    stream: bool
    state: RequestState
    started_at_ms: int
    choices: int = 1
    queue_ms: int | None = None
    load_ms: int | None = None
    first_token_ms: int | None = None
    total_ms: int | None = None
    prompt_tokens: int = 0
    prompt_done: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    tokens_per_s: float = 0.0
    finish_reasons: tuple[str, ...] = ()
    status: int = 0
    fault: FaultView | None = None
    placement: str = ""
    relays: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    paid: int = 0


class RequestsView(msgspec.Struct, frozen=True):
    """Requests in flight, oldest first, and recent ones, newest first."""

    in_flight: tuple[RequestView, ...] = ()
    recent: tuple[RequestView, ...] = ()


class KeyView(msgspec.Struct, frozen=True):
    """A key by name; ``fingerprint`` is the start of its SHA-256.

    A limit of 0 is none; ``models`` empty means all; ``expires_at_ms`` 0 means never. Tokens are of today
    (UTC), ``reserved`` those set aside for running requests; ``minute_used`` requests of the last 60 seconds.
    ``network``: it may use the relay network, and pay ``credit_per_day`` microunits there, 0 for nothing;
    ``credit_spent`` and ``credit_held`` are of today.
    """

    name: str
    fingerprint: str
    source: str
    created_at_ms: int = 0
    tokens_per_day: int = 0
    max_concurrency: int = 0
    requests_per_minute: int = 0
    models: tuple[str, ...] = ()
    expires_at_ms: int = 0
    in_path: bool = False
    used: int = 0
    reserved: int = 0
    running: int = 0
    minute_used: int = 0
    network: bool = False
    credit_per_day: int = 0
    credit_spent: int = 0
    credit_held: int = 0


class KeysView(msgspec.Struct, frozen=True):
    """The keys that open this hub."""

    keys: tuple[KeyView, ...] = ()


class HealthView(msgspec.Struct, frozen=True):
    """How the process itself is doing, over the last ten seconds."""

    in_flight: int = 0
    queued: int = 0
    tokens_per_s: float = 0.0
    loop_lag_p50_ms: float = 0.0
    loop_lag_p99_ms: float = 0.0
    loop_lag_max_ms: float = 0.0
    rss_mb: int = 0
    requests_total: int = 0
    tokens_total: int = 0


class LogLine(msgspec.Struct, frozen=True):
    """One line of the node's own log."""

    at_ms: int
    level: str
    source: str
    text: SafeText


class LogView(msgspec.Struct, frozen=True):
    """The newest lines, oldest first."""

    lines: tuple[LogLine, ...] = ()


class Alert(msgspec.Struct, frozen=True):
    """Something an operator should act on, until it is cleared. ``subject`` tells two of a kind apart."""

    code: str
    severity: Literal["info", "warning", "error"]
    message: SafeText
    hint: SafeText
    since_ms: int
    subject: str = ""


class AlertsView(msgspec.Struct, frozen=True):
    """Standing alerts, oldest first."""

    alerts: tuple[Alert, ...] = ()


class JobView(msgspec.Struct, frozen=True):
    """A long command under way or just ended: a pull or a load asked for by an operator.

    ``done`` and ``total`` are bytes or per mille; total 0 means unknown.
    """

    id: str
    kind: str
    subject: str
    state: Literal["running", "done", "failed", "cancelled"]
    started_at_ms: int
    done: int = 0
    total: int = 0
    rate_per_s: int = 0
    note: SafeText = SafeText("")
    fault: FaultView | None = None


class JobsView(msgspec.Struct, frozen=True):
    """Long commands, newest first."""

    jobs: tuple[JobView, ...] = ()


class Section(msgspec.Struct, Generic[T], frozen=True):
    """One subject with its state: ``loading`` until first known, ``failed`` with the last good value."""

    state: Literal["loading", "ready", "failed"]
    as_of_ms: int
    value: T | None = None
    fault: FaultView | None = None
