"""``relaydesk serve``: a headless node."""

from __future__ import annotations

import logging
import os
import signal
from typing import TYPE_CHECKING

import click

from relaydesk.surfaces.cli.settings import load_settings, settings_flags

if TYPE_CHECKING:
    from relaydesk.engine.node import Node


@click.command()
@settings_flags
def serve(**flags: str | None) -> None:
    """Run a headless node until it is told to stop.

    Prints once: where it listens, the CA's fingerprint, and, on the run that made it, the API key.
    """
    loaded = load_settings(flags)
    # The heavy half of the program is loaded only where a node really runs.
    import uvloop

    from relaydesk.config.paths import resolve
    from relaydesk.engine.clock import SystemClock, SystemRng
    from relaydesk.engine.collector import Collector
    from relaydesk.engine.logbook import LogBook, install
    from relaydesk.surfaces.host import Host

    book = LogBook()
    install(book, level=getattr(logging, loaded.settings.log_level.upper()), stderr=True)
    paths = resolve(loaded.settings)
    # A test may open the engines' counters; it is no setting, so that nobody opens them by mistake.
    metrics = os.environ.get("RELAYDESK_TEST_METRICS") == "1"

    def announce(node: Node, first_key: str) -> None:
        for line in _announcement(node, first_key):
            click.echo(line)
        node.supervisor.add(Collector(node.clock, lambda: node.journal.in_flight == 0))

    async def main() -> None:
        host = Host(loaded, paths, book, SystemClock(), SystemRng(), dict(os.environ), metrics=metrics)
        host.install_signals()
        await host.run(announce)

    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    uvloop.run(main())


def _announcement(node: Node, first_key: str) -> list[str]:
    lines = [f"listening on {url}" for url in node.listening]
    meta = node.meta()
    if meta.fingerprint:
        lines.append(f"CA SHA-256 fingerprint {meta.fingerprint}")
        lines.append(f"CA file for clients {meta.ca_path}")
    if first_key:
        if os.environ.get("JOURNAL_STREAM"):
            # A journal is kept and shipped elsewhere: no place for a secret.
            lines.append("a new API key was made: `relaydesk token --api` shows it")
        else:
            lines.append(f"API key {first_key}")
    else:
        lines.append("the API key: `relaydesk token --api`")
    if not node.registry.names():
        lines.append("no model yet: `relaydesk model pull smollm2` gets a small one")
    return lines
