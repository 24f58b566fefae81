"""How long commands take: ``relaydesk status``, and ``relaydesk serve`` until it listens."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Final

from tests.bench.figure import Budget, Figure, pairs, value
from tests.bench.rig import BenchHub, Context, cpu_s, temporary

IDLE_S: Final = 2.0  # times are counted in hundredths of a second


def status(context: Context) -> list[Figure]:
    """``relaydesk status`` on a running node, against an interpreter that does nothing."""
    nothing, asked, as_json = [], [], []
    with BenchHub() as hub:
        environment = hub.environment
        for _ in range(max(7, context.pairs)):
            nothing.append(_took([sys.executable, "-c", "pass"], environment))
            asked.append(_took([sys.executable, "-m", "relaydesk", "status"], environment))
            as_json.append(_took([sys.executable, "-m", "relaydesk", "status", "--json"], environment))
    budget = Budget(200.0)
    return [
        value("status", "relaydesk status", "ms", asked, budget=budget, digits=0),
        value("status", "relaydesk status --json", "ms", as_json, budget=budget, digits=0),
        pairs("status", "… --json", "ms", "added", nothing, as_json, against="python -c pass", digits=0),
    ]


def serve(context: Context) -> list[Figure]:
    """``relaydesk serve`` with TLS until it says where it listens: the first start makes a CA and a key."""
    first, again = [], []
    for _ in range(context.pairs):
        with temporary() as directory:
            hub = BenchHub(directory, tls=True)
            first.append(_listening(hub))
            again.append(_listening(hub))
    return [
        value("serve", "serve with TLS until it listens, first start", "ms", first, digits=0),
        value("serve", "… with the state of an earlier start", "ms", again, digits=0),
    ]


def idle(context: Context) -> list[Figure]:
    """Processor time of a node with one loaded model that nobody asks, in thousandths of a core."""
    model = context.need_model()
    shares = []
    with BenchHub(tls=True) as hub:
        hub.serve(model)
        time.sleep(1)
        for _ in range(context.pairs):
            before, started = cpu_s(hub.pid), time.perf_counter()
            time.sleep(IDLE_S)
            shares.append((cpu_s(hub.pid) - before) / (time.perf_counter() - started) * 1000)
    return [value("idle-cpu", "an idle node's processor time", "‰ of a core", shares, digits=1)]


def _listening(hub: BenchHub) -> float:
    command = [sys.executable, "-m", "relaydesk", "serve"]
    started = time.perf_counter()
    with subprocess.Popen(
        command, env=hub.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith("listening on "):
                    return (time.perf_counter() - started) * 1000
        finally:
            process.terminate()
    raise RuntimeError(f"serve ended with code {process.returncode} before it listened")


def _took(command: list[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    took = (time.perf_counter() - started) * 1000
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.decode()[-500:]}")
    return took
