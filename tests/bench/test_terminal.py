"""What the bench reads out of a console's output."""

from __future__ import annotations

from relaydesk.surfaces.console.themes import DARK
from tests.bench.rows.console_use import cursor_line
from tests.bench.terminal import plain

CURSOR = (
    "\x1b[7;38;2;" + ";".join(str(part) for part in bytes.fromhex(DARK.cursor[1:])) + ";48;2;255;255;255m"
)


def test_escapes_are_overlooked() -> None:
    assert plain("\x1b[?25l\x1b[3;1Hno \x1b[1mal\x1b[0merts\x1b]0;title\x07") == "no alerts"


def test_the_cursor_is_where_its_colour_was_drawn_last() -> None:
    before = f"\x1b[7;1Hone\x1b[8;1H{CURSOR}two\x1b[9;1Hthree"
    assert cursor_line(before) == 8
    assert cursor_line(f"{before}\x1b[8;1Htwo\x1b[12;1H {CURSOR}six\x1b[0m") == 12
    assert cursor_line("\x1b[8;1Htwo") == cursor_line("") == cursor_line(f"{CURSOR}two") == 0
