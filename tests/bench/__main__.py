"""``python -m tests.bench [ROW …] [--json] [--pairs N] [--model FILE]``: figures beside their budgets.

Nothing is asserted and nothing fails for being slow: a figure depends on the machine, which is printed.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.bench.figure import Figure
from tests.bench.rig import CTX, MODEL_FILE, SLOTS, Context, find_model, machine, quiet
from tests.bench.rows import (
    access,
    console,
    console_use,
    engine_client,
    exchange,
    hop,
    latency,
    memory,
    micro,
    startup,
    throughput,
)

Row = Callable[[Context], list[Figure]]

ROWS: Final[dict[str, Row]] = {
    "streams": throughput.real,
    "latency": latency.sixteen,
    "memory": memory.node,
    "idle-tls": memory.idle,
    "status": startup.status,
    "serve": startup.serve,
    "micro": micro.micro,
    "access": access.access,
    "latency-1": latency.one,
    "latency-late": latency.late,
    "latency-scripted": latency.scripted,
    "paced": throughput.paced,
    "engine-client": engine_client.engine_client,
    "idle-cpu": startup.idle,
    "hop": hop.rate,
    "hop-chunk": hop.chunk,
    "hop-memory": hop.memory,
    "hop-first": hop.first,
    "exchange": exchange.whole,
    "exchange-frame": exchange.frame,
    "console": console.latency,
    "console-stalls": console_use.stalls,
    "console-keys": console_use.keys,
    "console-paint": console_use.paint,
    "console-idle": console_use.idle,
}
# Without a choice: rows with budgets. Of the others the console's have some too, and take five minutes; the
# rest explain them.
BUDGETED: Final = ("streams", "latency", "memory", "idle-tls", "status", "serve", "micro", "access")
# Between rows: a machine that is busier than this is waited for, but not for ever.
_BUSY_PERCENT: Final = 15.0


def main(arguments: list[str]) -> int:
    """Run the rows asked for; exit code 1 where one could not run, 2 for wrong usage."""
    options = _parser().parse_args(arguments)
    # Ended from outside, everything that was started is still taken down.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    started = time.monotonic()
    context = Context(options.pairs, find_model(options.model), _note)
    before = machine()
    _note(_about(before, options.pairs, context.model))
    figures: list[Figure] = []
    failed: dict[str, str] = {}
    with context.stack:
        for name in ROWS if "all" in options.rows else options.rows or BUDGETED:
            if time.monotonic() - started > options.limit:
                failed[name] = f"not begun: {options.limit} s were over"
                continue
            busy = quiet(_BUSY_PERCENT, options.wait)
            _note(f"\n{name} (the machine is {busy:.0f} % busy without it)")
            try:
                found = ROWS[name](context)
            except Exception as error:  # one row that cannot run must not cost the others' figures
                failed[name] = f"{type(error).__name__}: {error}"
                _note(f"  {failed[name]}")
                continue
            figures += found
            for line in (line for figure in found for line in figure.lines()):
                _note(f"  {line}")
    after = machine()
    _note(f"\n{time.monotonic() - started:.0f} s; load average at the end {after['load_average']}")
    for name, why in failed.items():
        _note(f"no figure for {name}: {why}")
    if options.json:
        print(json.dumps(_document(options.pairs, before, after, figures, failed)))
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "rows",
        nargs="*",
        metavar="ROW",
        choices=[*ROWS, "all", []],
        help=f"out of {', '.join(ROWS)}, all; without one {', '.join(BUDGETED)}",
    )
    parser.add_argument("--json", action="store_true", help="one object on the last line of standard output")
    parser.add_argument("--pairs", type=_count, default=5, help="pairs or rounds of each row (default 5)")
    parser.add_argument("--model", default="", help=f"a GGUF file; without it {MODEL_FILE} of the tests")
    parser.add_argument("--limit", type=_count, default=180, help="seconds after which no row is begun")
    parser.add_argument("--wait", type=float, default=2.0, help="seconds to wait for a quiet machine a row")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _about(found: dict[str, Any], pairs: int, model: Path | None) -> str:
    return (
        f"{found['cores']} cores of {found['cpu'] or 'an unnamed processor'}, Python {found['python']}, "
        f"{found['busy_percent']:.0f} % busy, load average {found['load_average']}\n"
        f"model {model.name if model else 'none'}: {SLOTS} slots of {CTX} tokens, 1 engine thread; "
        f"{pairs} pairs, in turns; least – median – greatest"
    )


def _document(
    pairs: int,
    before: dict[str, Any],
    after: dict[str, Any],
    figures: list[Figure],
    failed: dict[str, str],
) -> dict[str, Any]:
    rows = [{**msgspec.to_builtins(figure), "met": figure.met} for figure in figures]
    return {
        "pairs": pairs,
        "slots": SLOTS,
        "ctx": CTX,
        "engine_threads": 1,
        "before": before,
        "after": after,
        "figures": rows,
        "failed": failed,
    }


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
