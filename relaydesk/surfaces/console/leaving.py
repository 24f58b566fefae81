"""What is asked before the console is left, or its node stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from relaydesk.core.view.amounts import plural
from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.console.ask import Confirm, Question

if TYPE_CHECKING:
    from relaydesk.surfaces.console.app import ConsoleApp

_STOPS: Final = (
    "The node runs inside this console. New requests are refused from now on; "
    "those under way get the drain time to end."
)


def ends_node(app: ConsoleApp) -> bool:
    """Whether leaving stops a node."""
    return app.session.stop is not None and app.feed.link.state != "lost"


def leave(app: ConsoleApp, *, at_once: bool = False) -> None:
    """Leave the console. One that has a node inside asks, since that ends with it; not where it has asked."""
    stop = app.session.stop
    if stop is None or not ends_node(app):
        app.exit()
        return

    def answered(yes: bool | None) -> None:
        if yes:
            app.stopping = True
            stop()

    if at_once:
        answered(True)
        return
    view = app.feed.shown
    app.push_screen(Confirm(hurry_question(view) if app.stopping else stop_question(view)), answered)


def stop_question(view: NodeView) -> Question:
    """Leaving an embedded console ends its node: what is under way there."""
    meta = view.meta.value
    lost = under_way(view)
    pid = str(meta.pid) if meta is not None else "PID"
    return Question(
        "Leave, and stop the node?",
        (_STOPS,) if lost else (_STOPS, "Nothing is under way."),
        "drain and stop",
        f"kill -TERM {pid}",
        lost,
    )


def hurry_question(view: NodeView) -> Question:
    """Asked where the node drains already."""
    return Question("Stop at once?", ("The node is draining.",), "stop now", loses=under_way(view))


def under_way(view: NodeView) -> str:
    """Requests, jobs and loaded models in words; empty where there is none."""
    requests = view.requests.value
    jobs = view.jobs.value
    workers = view.workers.value
    running = sum(1 for job in jobs.jobs if job.state == "running") if jobs is not None else 0
    counts = (
        (len(requests.in_flight) if requests is not None else 0, "request in flight"),
        (running, "running job"),
        (len(workers.workers) if workers is not None else 0, "loaded model"),
    )
    return ", ".join(plural(count, noun) for count, noun in counts if count)
