"""The one watch behind every pane: reads it, merges it, shows it no faster than people can read.

Updates are taken as they come, since a watcher that lags is closed; what is shown changes at the rate the
user chose, whole sections at a time, and only those that differ. A watch that ends is normal: say so, try
again with growing pauses, rebuild from the first update.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

from relaydesk.core.errors import FaultError
from relaydesk.core.ports import Clock
from relaydesk.core.text import SafeText, safe_text
from relaydesk.core.view.node_view import SECTIONS, NodeView, Update, loading_view
from relaydesk.core.view.sections import Section
from relaydesk.node_api import NodeApi, WatchClosedError

_log: Final = logging.getLogger(__name__)

RATES_HZ: Final = (0.5, 1.0, 2.0, 4.0)
DEFAULT_HZ: Final = 2.0
# A terminal nobody looks at.
UNFOCUSED_S: Final = 5.0
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 5.0
# Ours to catch up, nothing to say about: the rebuild is immediate.
_LAGGED_PAUSE_S: Final = 0.1

_NOTHING: Final = SafeText("")

Connect = Callable[[], Awaitable[NodeApi]]
OnView = Callable[[NodeView, frozenset[str]], None]


@dataclass(frozen=True, slots=True)
class Link:
    """How the console stands with its node. ``retry_s`` is the pause before the next try, 0 while trying.

    ``since_ms`` is wall-clock time. ``why`` says what ended the last watch; ``code`` is the fault's, where a
    fault did: ``conflict`` is a node of another version.
    """

    state: Literal["connecting", "live", "lost"] = "connecting"
    since_ms: int = 0
    why: SafeText = _NOTHING
    hint: SafeText = _NOTHING
    retry_s: float = 0.0
    code: str = ""


OnLink = Callable[[Link], None]


class Feed:
    """Keeps a `NodeView` fresh. Run it as a worker of the App: a pane's worker would die with the pane."""

    def __init__(self, connect: Connect, clock: Clock, on_view: OnView, on_link: OnLink) -> None:
        self.node: NodeApi | None = None
        self.link = Link(since_ms=clock.wall_ms())
        self.shown = loading_view(clock.wall_ms())
        self.paused = False
        self.focused = True
        self.rate_hz = DEFAULT_HZ
        self._connect = connect
        self._clock = clock
        self._on_view = on_view
        self._on_link = on_link
        self._latest = self.shown
        self._shown_at = clock.mono() - 60.0
        self._timer: asyncio.TimerHandle | None = None
        self._retry = asyncio.Event()

    async def run(self) -> None:
        """Watch until cancelled."""
        pause = FIRST_PAUSE_S
        try:
            while True:
                why, hint, code = await self._watch()
                if self.link.state == "live":
                    pause = FIRST_PAUSE_S
                if why == "lagged":
                    await asyncio.sleep(_LAGGED_PAUSE_S)
                    continue
                await self._wait(pause, why, hint, code)
                pause = min(pause * 2, LONGEST_PAUSE_S)
        finally:
            self._disarm()

    def pause(self, paused: bool) -> None:
        """Stand still, or catch up at once."""
        self.paused = paused
        self._rearm()

    def focus(self, focused: bool) -> None:
        """Whether somebody looks at the terminal."""
        self.focused = focused
        self._rearm()

    def set_rate(self, hz: float) -> None:
        """How often what is shown may change."""
        self.rate_hz = hz
        self._rearm()

    def hurry(self) -> None:
        """Show what has come in at once: somebody waits for the effect of a key."""
        self._shown_at = self._clock.mono() - UNFOCUSED_S
        self._rearm()

    def retry(self) -> None:
        """Do not wait out the pause before the next try."""
        self._retry.set()

    async def _watch(self) -> tuple[str, str, str]:
        """One watch, from its first update to its end; why it ended, what may help, and a fault's code."""
        try:
            if self.node is None:
                self.node = await self._connect()
            first = True
            async for update in self.node.watch():
                self._take(update, first)
                first = False
        except WatchClosedError as closed:
            told = {"lagged": "lagged", "stopped": "the node has stopped"}
            return told.get(closed.reason, "the node went away"), "start it again with `relaydesk serve`", ""
        except FaultError as error:
            return error.fault.message, error.fault.hint, error.fault.code
        except Exception as error:
            # A view that cannot be read must not take the console with it.
            _log.exception("the watch failed")
            return f"the watch failed ({type(error).__name__})", "see the log", ""
        return "the node went away", "start it again with `relaydesk serve`", ""

    async def _wait(self, pause: float, why: str, hint: str, code: str) -> None:
        since = self.link.since_ms if self.link.state == "lost" else self._clock.wall_ms()
        self._set_link(Link("lost", since, safe_text(why), safe_text(hint), pause, code))
        self._retry.clear()
        try:
            async with asyncio.timeout(pause):
                await self._retry.wait()
        except TimeoutError:
            pass
        self._set_link(replace(self.link, retry_s=0.0))

    def _take(self, update: Update, first: bool) -> None:
        self._latest = self._latest.replaced(update)
        if first:
            self._set_link(Link("live", self._clock.wall_ms()))
            self.hurry()
        self._rearm()

    def _set_link(self, link: Link) -> None:
        if link != self.link:
            self.link = link
            self._on_link(link)

    def _due_in(self) -> float:
        interval = 1 / self.rate_hz if self.focused else UNFOCUSED_S
        return max(0.0, self._shown_at + interval - self._clock.mono())

    def _rearm(self) -> None:
        self._disarm()
        if self.paused or self._latest is self.shown:
            return
        delay = self._due_in()
        if delay == 0:
            self._show()
        else:
            self._timer = asyncio.get_running_loop().call_later(delay, self._show)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _show(self) -> None:
        self._timer = None
        before, self.shown = self.shown, self._latest
        self._shown_at = self._clock.mono()
        changed = differing(before, self.shown)
        if changed:
            self._on_view(self.shown, changed)


def differing(before: NodeView, after: NodeView) -> frozenset[str]:
    """The sections whose content differs; a newer date on the same content is no difference."""
    return frozenset(name for name in SECTIONS if not _same(getattr(before, name), getattr(after, name)))


def _same(one: Section[object], other: Section[object]) -> bool:
    if one is other:
        return True
    return one.state == other.state and one.fault == other.fault and one.value == other.value
