"""What is asked before the console is left, or its node stopped."""

from __future__ import annotations

from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.console.ask import Question
from relaydesk.surfaces.console.units import plural


def stop_question(view: NodeView) -> Question:
    """Leaving an embedded console ends its node: what is under way there."""
    meta = view.meta.value
    pid = str(meta.pid) if meta is not None else "PID"
    return Question(
        "Leave, and stop the node?",
        (
            "The node runs inside this console. New requests are refused from now on;"
            " those under way get the drain time to end.",
        ),
        "drain and stop",
        f"kill -TERM {pid}",
        under_way(view),
    )


def hurry_question(view: NodeView) -> Question:
    """Asked where the node drains already."""
    return Question("Stop at once?", ("The node is draining.",), "stop now", loses=under_way(view))


def under_way(view: NodeView) -> str:
    """Requests, jobs and loaded models, as a list of words."""
    requests = view.requests.value
    jobs = view.jobs.value
    workers = view.workers.value
    running = sum(1 for job in jobs.jobs if job.state == "running") if jobs is not None else 0
    parts = [
        f"{plural(len(requests.in_flight), 'request')} in flight"
        if requests is not None
        else "requests unknown",
        *([plural(running, "job")] if running else []),
        *(
            [f"{plural(len(workers.workers), 'loaded model')}"]
            if workers is not None and workers.workers
            else []
        ),
    ]
    return ", ".join(parts)
