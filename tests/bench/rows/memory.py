"""Resident memory of a node without a model, and of a TLS connection that is idle."""

from __future__ import annotations

import time
from typing import Final

from tests.bench.figure import Budget, Figure, value
from tests.bench.rig import CHAT, BenchHub, Context, rss

MIB: Final = 1_048_576
IDLE: Final = 500


def node(context: Context) -> list[Figure]:
    """A node without a model: after its start, and after 1,000 requests."""
    fresh, used = [], []
    for _ in range(max(3, context.pairs // 2)):
        with BenchHub(tls=True) as hub:
            time.sleep(0.5)
            fresh.append(rss(hub.pid) / MIB)
            asked = [hub.target()]
            context.load("ask", targets=asked, method="GET", path="/v1/models", count=500)
            # Refused, because there is no model: every check of a request runs, none of an engine.
            context.load("ask", targets=asked, path=CHAT, body=_CHAT, count=500, any_status=True)
            used.append(rss(hub.pid) / MIB)
    budget = Budget(90.0)
    return [
        value("memory", "a node without a model, TLS on, after its start", "MiB", fresh, budget=budget),
        value("memory", "… after 1,000 requests", "MiB", used, budget=budget),
    ]


def idle(context: Context) -> list[Figure]:
    """An idle TLS peer: what 500 connections that asked once and stay open hold of the node."""
    each = []
    for _ in range(max(3, context.pairs // 2)):
        with BenchHub(tls=True) as hub:
            target = hub.target()
            context.load("hold", target=target, path="/healthz", count=20)
            time.sleep(0.3)
            before = rss(hub.pid)
            context.load("hold", target=target, path="/healthz", count=IDLE)
            time.sleep(0.5)
            each.append((rss(hub.pid) - before) / IDLE / 1024)
            if context.load("release")["open"] != IDLE + 20:
                raise RuntimeError("the hub closed idle connections meanwhile")
    return [value("idle-tls", "an idle TLS connection", "KiB", each, budget=Budget(48.0), digits=1)]


_CHAT: Final = '{"messages":[{"role":"user","content":"Say hello."}],"max_tokens":8}'
