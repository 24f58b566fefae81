"""What stands around every pane, as widgets: strip, tabs, filter, footer. `chrome` says what is on them."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container, Vertical

from relaydesk.surfaces.console import chrome
from relaydesk.surfaces.console.chrome import Offer
from relaydesk.surfaces.console.data import Feed
from relaydesk.surfaces.console.filter_bar import FilterBar
from relaydesk.surfaces.console.piece_line import PieceLine
from relaydesk.surfaces.console.registry import PANES


class Frame(Vertical):
    """Strip, tabs, the panes' place, footer."""

    def __init__(self) -> None:
        super().__init__(id="frame")
        self.filter_bar = FilterBar()
        self.body = Container(id="panes")
        self._strip, self._tabs, self._footer = (PieceLine(id=name) for name in ("strip", "tabs", "footer"))

    def compose(self) -> ComposeResult:
        yield self._strip
        yield self._tabs
        yield self.body
        yield self.filter_bar
        yield self._footer

    def draw(
        self,
        feed: Feed,
        mode: str,
        pane_id: str,
        offers: Sequence[Offer],
        hint: tuple[str, str, str],
        now_ms: int,
        width: int,
    ) -> None:
        """Lines that are the same cost nothing. See `chrome` for what each argument is."""
        self._strip.show(chrome.strip(feed.shown, feed.link, mode, feed.paused, now_ms, width))
        self._tabs.show(chrome.tabs(PANES, pane_id, width - 2))
        self._footer.show(chrome.footer(offers, width, hint))
