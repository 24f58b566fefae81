"""``relaydesk demo``: a whole node as a real process on loopback, with a real small model, asked for real."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

import click

QUESTION: Final = "In one sentence: what is a relay?"


@click.command()
@click.option(
    "--once", is_flag=True, help="Need no terminal: print what happened, exit 0 only if all of it worked."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, on the last line.")
@click.option(
    "--tokens",
    type=click.IntRange(1, 512),
    metavar="N",
    default=48,
    help="Length of the answer in tokens, 1 to 512. [default: 48]",
)
def demo(once: bool, as_json: bool, tokens: int) -> int:
    """Start a temporary node, fetch a small model (98 MB, kept for next time), and chat with it over TLS.

    Everything runs on this machine, on loopback, in a directory that is removed afterwards.
    """
    from relaydesk.surfaces.demo import Demo, DemoFailedError

    quiet = as_json and once
    try:
        with Demo(say=_silent if quiet else _say, write=_silent if quiet else _write) as run:
            report = run.hub(QUESTION, tokens)
    except DemoFailedError as error:
        click.echo(f"relaydesk: {error}", err=True)
        if as_json:
            _print({"ok": False, "reason": str(error)})
        return 1
    if as_json:
        _print(report)
    return 0 if report["ok"] else 1


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
