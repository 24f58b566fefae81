"""What a node that runs says of itself, against what it should be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from relaydesk.config.model import Settings
from relaydesk.core.errors import Fault
from relaydesk.core.view.network import NetworkView
from relaydesk.core.view.presence import presence
from relaydesk.core.view.sections import MetaView, ModelView
from relaydesk.engine.doctor.finding import Finding, Level


@dataclass(frozen=True, slots=True)
class RunningNode:
    """A node as it answered over its control socket; ``fault`` says why it did not.

    ``settings`` are those it runs with, which need not be those of this shell.
    """

    socket: Path | None = None
    meta: MetaView | None = None
    settings: Settings | None = None
    models: tuple[ModelView, ...] = ()
    network: NetworkView | None = None
    fault: Fault | None = None


def check_answer(node: RunningNode) -> Finding:
    """Whether the node answers."""
    if node.fault is not None:
        level: Level = "warn" if node.fault.code == "refused" else "fail"
        return Finding("node", level, node.fault.message, node.fault.hint)
    if node.meta is None:
        return Finding("node", "warn", "a node runs and is still starting", "look again in a moment")
    urls = ", ".join(node.meta.listening) or "nowhere yet"
    return Finding("node", "ok", f"process {node.meta.pid} answers and listens on {urls}")


def check_models(node: RunningNode) -> Finding:
    """The models that cannot be used, and why; the first one's next step."""
    models = node.models
    if not models:
        text = "none is registered yet"
        return Finding("models", "ok", text, "`relaydesk model pull smollm2` gets a small one")
    bad = [model for model in models if model.state == "unavailable"]
    warm = sum(model.state == "warm" for model in models)
    count = f"{len(models)} registered, {warm} loaded"
    if not bad:
        return Finding("models", "ok", count)
    first = bad[0]
    why = first.fault.message if first.fault is not None else first.fit_reason
    hint = first.fault.hint if first.fault is not None else ""
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    text = f"{count}; {first.name} cannot be used{more}: {why}"
    if not hint and first.kind != "url":
        hint = f"`relaydesk model fit {first.name}` says what would help"
    return Finding("models", "warn", text, hint)


def check_network(network: NetworkView) -> Finding:
    """Whether the relay network is open, and whether others can know this node."""
    found = presence(network)
    levels: dict[str, Level] = {"closed": "fail", "unread": "warn"}
    level = levels.get(found.state, "ok")
    if found.state == "unlisted" and network.public_url:
        level = "warn"
    return Finding("relay network", level, found.message, found.hint)
