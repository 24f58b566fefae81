"""The document behind ``status --json`` and ``GET /status``: fields may be added, none taken away."""

from __future__ import annotations

from typing import Any

from relaydesk.core.codec import to_builtins
from relaydesk.core.view.network import NetworkView, RelayView
from relaydesk.core.view.node_view import SECTIONS, NodeView
from relaydesk.core.view.presence import presence
from relaydesk.core.view.sections import HealthView, MetaView, WorkerView


def status_document(view: NodeView, now_ms: int) -> dict[str, Any]:
    """What an operator's script reads (design §4). ``now_ms`` is wall-clock time, for the uptime.

    ``incomplete`` names the sections that are not known yet or failed: an empty list there claims nothing.
    """
    models = view.models.value
    workers = view.workers.value
    alerts = view.alerts.value
    jobs = view.jobs.value
    relays = view.relays.value
    return {
        **_identity(view.meta.value, now_ms),
        "models": to_builtins(models.models) if models is not None else [],
        "memory": to_builtins(models.memory) if models is not None else None,
        "workers": [_worker(worker) for worker in workers.workers] if workers is not None else [],
        "members": [],
        "network": _network(view.network.value),
        "relays": [_relay(relay) for relay in relays.relays] if relays is not None else [],
        "jobs": [to_builtins(job) for job in jobs.jobs if job.state == "running"] if jobs is not None else [],
        "alerts": to_builtins(alerts.alerts) if alerts is not None else [],
        "health": to_builtins(view.health.value or HealthView()),
        "incomplete": [name for name in SECTIONS if getattr(view, name).state != "ready"],
    }


def _identity(meta: MetaView | None, now_ms: int) -> dict[str, Any]:
    if meta is None:
        meta = MetaView(node="", version="", pid=0, started_at_ms=now_ms, phase="starting")
    return {
        "operator": meta.operator,
        "node": meta.node,
        "version": meta.version,
        "pid": meta.pid,
        "phase": meta.phase,
        "listening": list(meta.listening),
        "fingerprint": meta.fingerprint,
        "ca_path": meta.ca_path,
        "certificate": meta.certificate,
        # The wall clock may have been set back since the start.
        "uptime_s": max(0, now_ms - meta.started_at_ms) // 1000,
    }


def _network(network: NetworkView | None) -> dict[str, Any] | None:
    """The node's own place in the relay network; None where it is not known yet."""
    if network is None:
        return None
    return {
        "on": network.on,
        "listening": list(network.listening),
        "public_url": network.public_url,
        "state": presence(network).state,
        "problem": network.problem,
        "unpublished": network.unpublished,
        "lab": network.lab,
    }


def _worker(worker: WorkerView) -> dict[str, Any]:
    return {
        "model": worker.model,
        "pid": worker.pid,
        "url": worker.url,
        "memory_mb": worker.memory_mb,
        "kind": worker.kind,
        "state": worker.state,
        "slots": worker.slots,
        "busy": worker.busy,
        "restarts": worker.restarts,
    }


def _relay(relay: RelayView) -> dict[str, Any]:
    """A node of the network in short; the section ``relays`` has its history and the evidence."""
    return {
        "ref": relay.ref,
        "name": relay.name,
        "standing": relay.standing,
        "tier": relay.tier,
        "url": relay.base_url,
        "proto_version": relay.proto_version,
        "rtt_ms": relay.rtt_ms,
        "share": relay.share,
        "faults": relay.faults,
        "fault_limit": relay.fault_limit,
        "demoted_until_ms": relay.demoted_until_ms,
        "explanation": relay.explanation,
        "eligible_relays": relay.eligible_relays,
    }
