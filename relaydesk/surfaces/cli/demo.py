"""``relaydesk demo``: a small network of real processes on loopback, with a real small model."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

# The same machine in every recording, and too small for one of its models.
_RECORDED_MB: Final = 2048
QUESTION: Final = "In one sentence: what is a relay?"


def _in_range(_ctx: click.Context, _param: click.Parameter, value: int) -> int:
    if not 1 <= value <= 512:
        raise click.BadParameter(f"{value} is not a whole number from 1 to 512")
    return value


@click.command()
@click.option(
    "--once", is_flag=True, help="Need no terminal: print what happened, exit 0 only if all of it worked."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, on the last line.")
@click.option(
    "--tokens",
    type=int,
    metavar="N",
    default=48,
    callback=_in_range,
    help="Length of the answer in tokens, 1 to 512. [default: 48]",
)
@click.option(
    "--record",
    type=click.File("wb"),
    metavar="FILE",
    help="Write down what the node shows while it works, for pictures and bug reports.",
)
@click.pass_obj
def demo(config: Path | None, once: bool, as_json: bool, tokens: int, record: BinaryIO | None) -> int:
    """Start four temporary nodes, fetch a small model (98 MB, kept for next time), and chat with it.

    Once over TLS on the first node, once at another operator's node, sealed and through a relay. In a
    terminal it then opens the console on the first node, with clients that keep asking; leaving the console
    ends the demo. Everything runs on this machine, on loopback, in a directory that is removed afterwards.
    """
    from relaydesk.core.errors import FaultError
    from relaydesk.surfaces.cli.console import attach, has_terminal
    from relaydesk.surfaces.demo.client import DemoFailedError
    from relaydesk.surfaces.demo.demo import Demo

    with_console = not (once or as_json or record) and has_terminal()
    say, write = (_silent, _silent) if as_json and once else (_say, _write)
    memory_mb, level = (0 if record is None else _RECORDED_MB), ("info" if with_console else "warning")
    report: dict[str, Any] = {
        **{part: {"ok": False, "reason": "what comes before it failed"} for part in ("hub", "relay")},
        "mesh": {"ok": None, "reason": "not built in this version"},
    }
    step = "hub"
    _leave_in_peace()
    try:
        with Demo(say, write, memory_mb=memory_mb, log_level=level) as run:
            if record is not None:
                run.record(record, time.monotonic, tokens)
            report[step] = run.hub(QUESTION, tokens)
            step = "relay"
            report[step] = run.relay(tokens)
            if with_console and _worked(report):
                say("opening the console on the client's node; q leaves it and ends the demo")
                with run.guests():
                    code = attach(run.socket, config)
                    # The console had handlers of its own.
                    _leave_in_peace()
                if code:
                    return code
    except (DemoFailedError, FaultError, OSError, http.client.HTTPException) as error:
        reason = error.fault.sentence if isinstance(error, FaultError) else str(error) or type(error).__name__
        click.echo(f"relaydesk: {reason}", err=True)
        report[step] = {"ok": False, "reason": reason}
    if as_json:
        click.echo(json.dumps(report))
    elif _worked(report):
        for line in next_steps():
            click.echo(line)
    return 0 if _worked(report) else 1


def _worked(report: dict[str, Any]) -> bool:
    """Whether all that is built did."""
    return all(part["ok"] is not False for part in report.values())


def _leave_in_peace() -> None:
    """Signals that would end the program at once end it as Ctrl-C does: nothing stays behind."""

    def leave(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)


def next_steps() -> list[str]:
    """What to do after the demo; how to get the command on the path where it is not."""
    lines = ["", "That was the demo: nothing of it is left but the model, which is kept for next time."]
    first = f"`. {_shown(Path(sys.prefix) / 'bin' / 'activate')}`, then " if not _on_path() else ""
    lines.append(f"Next: {first}`relaydesk serve` starts a node of your own;")
    lines.append("in another terminal `relaydesk model pull smollm2` gives it this model without a download.")
    return lines


def _on_path() -> bool:
    found = shutil.which("relaydesk")
    return found is not None and Path(found).parent.resolve() == Path(sys.executable).parent.resolve()


def _shown(path: Path) -> str:
    """A path as short as it can be typed here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def _say(line: str) -> None:
    click.echo(line)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _silent(_text: str) -> None:
    pass
