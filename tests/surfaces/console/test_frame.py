from __future__ import annotations

from textual.app import App, ComposeResult

from relaydesk.surfaces.console.data import Feed
from relaydesk.surfaces.console.frame import Frame
from relaydesk.surfaces.console.piece_line import PieceLine
from tests.support.clock import FakeClock


class _Framed(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.frame = Frame()
        self.drawn = 0

    def compose(self) -> ComposeResult:
        yield self.frame


async def _never() -> None:
    raise AssertionError


async def test_lines_that_are_the_same_are_not_drawn_again() -> None:
    app, clock = _Framed(), FakeClock()
    feed = Feed(_never, clock, lambda _view, _changed: None, lambda _link: None)  # type: ignore[arg-type]
    async with app.run_test(size=(80, 24)) as pilot:
        lines = list(app.query(PieceLine))
        for mode, differ in (("EMBEDDED", 3), ("EMBEDDED", 0), ("READ-ONLY", 1)):
            before = [line.pieces for line in lines]
            app.frame.draw(feed, mode, "keys", (), ("", "", ""), clock.wall_ms(), 80)
            await pilot.pause()
            after = [line.pieces for line in lines]
            assert sum(old is not new for old, new in zip(before, after, strict=True)) == differ
        assert [line.size.height for line in lines] == [1, 1, 1]
