"""``relaydesk demo``: a whole node as a real process on loopback, with a real small model, asked for real."""

from __future__ import annotations

import json
import shutil
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
    """Start a temporary node, fetch a small model (98 MB, kept for next time), and chat with it over TLS.

    In a terminal it then opens the console on that node, with clients that keep asking; leaving the console
    ends the demo. Everything runs on this machine, on loopback, in a directory that is removed afterwards.
    """
    from relaydesk.surfaces.cli.console import attach, has_terminal
    from relaydesk.surfaces.demo import Demo
    from relaydesk.surfaces.demo_client import DemoFailedError

    with_console = not (once or as_json or record) and has_terminal()
    say, write = (_silent, _silent) if as_json and once else (_say, _write)
    memory_mb, level = (0 if record is None else _RECORDED_MB), ("info" if with_console else "warning")
    try:
        with Demo(say, write, memory_mb=memory_mb, log_level=level) as run:
            if record is not None:
                run.record(record, time.monotonic, tokens)
            report = run.hub(QUESTION, tokens)
            if with_console and report["ok"]:
                say("opening the console on this node; q leaves it and ends the demo")
                with run.guests():
                    code = attach(run.socket, config)
                if code:
                    return code
    except DemoFailedError as error:
        click.echo(f"relaydesk: {error}", err=True)
        if as_json:
            _print({"ok": False, "reason": str(error)})
        return 1
    if as_json:
        _print(report)
    elif report["ok"]:
        for line in next_steps():
            click.echo(line)
    return 0 if report["ok"] else 1


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


def _print(hub: dict[str, Any]) -> None:
    absent = {"ok": None, "reason": "not built in this version"}
    click.echo(json.dumps({"hub": hub, "relay": absent, "mesh": absent}))


def _say(line: str) -> None:
    click.echo(line)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _silent(_text: str) -> None:
    pass
