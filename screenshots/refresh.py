"""Pictures of the console, drawn from a recording of the demo.

``python screenshots/refresh.py`` writes an SVG for each pane and size, and a PNG twin where ``rsvg-convert``
(Debian: librsvg2-bin) is installed: code hosts show no fonts of an SVG. ``--check`` writes nothing and fails
where an SVG is another than the console draws now, or a PNG is missing.

The demo's network has four nodes: what panes of a larger one show is
`tests/surfaces/console/panes/network_scenes.py`.

A new recording: ``relaydesk demo --once --record tests/recordings/demo.jsonl``.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.cells import cell_len

HERE: Final = Path(__file__).resolve().parent
RECORDING: Final = HERE.parent / "tests" / "recordings" / "demo.jsonl"
sys.path.insert(0, str(HERE.parent))

from relaydesk.core.commands import Command, FitModel, Outcome, ShowUsage, name_of  # noqa: E402 - the path comes first
from relaydesk.core.view.sections import Section  # noqa: E402
from relaydesk.node_api import NodeApi  # noqa: E402
from relaydesk.scripted import Frame, ScriptedNode, read_recording  # noqa: E402
from relaydesk.surfaces.console.app import ConsoleApp  # noqa: E402
from relaydesk.surfaces.console.panes.overview.history import STEP_MS  # noqa: E402
from relaydesk.surfaces.console.panes.overview.pane import OverviewPane  # noqa: E402
from relaydesk.surfaces.console.session import Session  # noqa: E402
from tests.surfaces.console.panes.network_scenes import sections  # noqa: E402

SIZES: Final = ((120, 36), (80, 24))
PNG_WIDTH: Final = {120: 1320, 80: 960}
# Rich's export: how wide a cell is, and a text of the screen, which begins at a cell.
CELL: Final = 12.2
_TEXT: Final = re.compile(r'(<text [^>]*?)x="([\d.]+)"([^>]*? textLength=[^>]*>)([^<]*)</text>')
# What would change a picture without any change of the console.
SURROUNDINGS: Final = ("NO_COLOR", "COLORTERM", "TEXTUAL", "TEXTUAL_THEME", "TEXTUAL_FILTERS")


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture: the keys that lead to it, and the share of the recording that has been played by then.

    ``network``: the recording's node is shown in a larger network, which was made for pictures.
    """

    name: str
    keys: tuple[str, ...]
    share: float
    network: bool = False


SHOTS: Final = (
    Shot("overview", (), 0.55),
    Shot("models", ("2", "down"), 0.55),
    Shot("requests", ("3", "o"), 1.0),
    Shot("keys", ("4", "down"), 1.0),
    Shot("audit", ("6", "down"), 1.0),
    Shot("relays", ("7", *["down"] * 11), 1.0, network=True),
    Shot("hops", ("8", "down", "down"), 1.0, network=True),
    Shot("ledger", ("9", "down", "down", "down", "down"), 1.0, network=True),
    Shot("earnings", ("9", "v", "v", "v", "down", "down"), 1.0, network=True),
)


class Recorded(ScriptedNode):
    """A recording, and what its node answered to the commands that are written down in it."""

    answers: dict[str, Any]

    async def call(self, command: Command) -> Outcome:
        subject = command.name if isinstance(command, FitModel | ShowUsage) else ""
        found = self.answers.get(f"{name_of(command)} {subject}".rstrip())
        return Outcome(ok=True, value=found) if found is not None else await super().call(command)


class Moment:
    """A `Clock` that stands at one moment of a recording."""

    def __init__(self, start_ms: int) -> None:
        self._start_ms = start_ms
        self.played_ms = 0

    def wall_ms(self) -> int:
        return self._start_ms + self.played_ms

    def mono(self) -> float:
        return self.played_ms / 1000


def main() -> int:
    """Draw, and write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a picture is old")
    check = parser.parse_args().check
    hold_still()
    pictures = asyncio.run(draw_all(RECORDING.read_bytes().splitlines()))
    return compare(pictures) if check else write(pictures)


def hold_still() -> None:
    """The same picture on every machine."""
    for name in SURROUNDINGS:
        os.environ.pop(name, None)
    os.environ["TZ"] = "UTC"
    time.tzset()


async def draw_all(lines: list[bytes]) -> dict[str, str]:
    """File names and their SVG."""
    frames = read_recording(lines)
    answers: dict[str, Any] = {}
    for line in lines:
        answers |= msgspec.json.decode(line).get("answers", {})
    return {
        f"{shot.name}-{size[0]}x{size[1]}.svg": await draw(shot, size, frames, answers)
        for shot in SHOTS
        for size in SIZES
    }


async def draw(shot: Shot, size: tuple[int, int], frames: tuple[Frame, ...], answers: dict[str, Any]) -> str:
    """One picture."""
    meta = frames[0].update.meta
    assert meta is not None
    clock = Moment(meta.as_of_ms)
    at_ms = round(end_ms(frames) * shot.share)

    shown = in_network(frames, meta.as_of_ms + at_ms) if shot.network else frames

    async def connect() -> NodeApi:
        node = Recorded(shown, clock)
        node.answers = answers
        clock.played_ms = at_ms
        return node

    app = ConsoleApp(Session(connect, clock))
    async with app.run_test(size=size) as pilot:
        async with asyncio.timeout(10):
            while app.feed.link.state != "live" or not isinstance(app.pane, OverviewPane):
                await pilot.pause(0.01)
        # The console has not watched until now; the recording says what it would have seen.
        fill(app.pane, frames, meta.as_of_ms, at_ms)
        await pilot.press(*shot.keys)
        app.pane.tick(clock.wall_ms())
        for _ in range(10):
            await pilot.pause(0.02)
        # The footer is drawn once a second; this draws it now.
        await pilot.press("p", "p")
        return app.export_screenshot(title="relaydesk")


def in_network(frames: tuple[Frame, ...], now_ms: int) -> tuple[Frame, ...]:
    """The recording with a network from its beginning on, in place of its own."""
    made: dict[str, Any] = {name: Section("ready", now_ms, value) for name, value in sections(now_ms).items()}
    first = msgspec.structs.replace(frames[0].update, **made)
    own = dict.fromkeys(made)
    later = [
        msgspec.structs.replace(each, update=msgspec.structs.replace(each.update, **own))
        for each in frames[1:]
    ]
    return (msgspec.structs.replace(frames[0], update=first), *later)


def end_ms(frames: tuple[Frame, ...]) -> int:
    """The last moment before the node was told to end."""
    metas = ((frame.at_ms, frame.update.meta) for frame in frames)
    ends = (
        at_ms for at_ms, meta in metas if meta is not None and meta.value and meta.value.phase == "draining"
    )
    return next(ends, frames[-1].at_ms + 1) - 1


def fill(pane: OverviewPane, frames: tuple[Frame, ...], start_ms: int, at_ms: int) -> None:
    """The rate of tokens step by step, up to this moment."""
    values = [(frame.at_ms, frame.update.health.value) for frame in frames if frame.update.health is not None]
    history = type(pane.history)()
    for step_ms in range(0, at_ms + STEP_MS, STEP_MS):
        known = [
            health for when_ms, health in values if when_ms <= min(step_ms, at_ms) and health is not None
        ]
        history.add(start_ms + min(step_ms, at_ms), known[-1].tokens_per_s if known else None)
    pane.history = history


def write(pictures: dict[str, str]) -> int:
    """Put the pictures beside this file."""
    rsvg = shutil.which("rsvg-convert")
    for name, svg in pictures.items():
        (HERE / name).write_text(svg, encoding="utf-8")
        if rsvg is not None:
            width = str(PNG_WIDTH[int(name.rsplit("-", 1)[1].split("x")[0])])
            target = str((HERE / name).with_suffix(".png"))
            subprocess.run([rsvg, "-w", width, "-o", target], input=in_cells(svg).encode(), check=True)
    sys.stdout.write(f"{len(pictures)} pictures{'' if rsvg else '; no PNG: rsvg-convert is not installed'}\n")
    return 0


def in_cells(svg: str) -> str:
    """The same picture with a place for each character: the renderer knows no ``textLength``, and its font
    is not as wide as the one the picture was made for."""

    def placed(found: re.Match[str]) -> str:
        x, text = float(found[2]), html.unescape(found[4])
        spans = []
        for char in text:
            if not char.isspace():
                spans.append(f'<tspan x="{x:.1f}">{html.escape(char)}</tspan>')
            x += CELL * cell_len(char)
        return f"{found[1]}{found[3]}{''.join(spans)}</text>"

    return _TEXT.sub(placed, svg)


def compare(pictures: dict[str, str]) -> int:
    """Say which pictures are old."""
    old = [
        name
        for name, svg in pictures.items()
        if not (HERE / name).exists()
        or (HERE / name).read_text(encoding="utf-8") != svg
        or not (HERE / name).with_suffix(".png").exists()
    ]
    if old:
        sys.stderr.write(f"old: {', '.join(old)}: run python screenshots/refresh.py\n")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
