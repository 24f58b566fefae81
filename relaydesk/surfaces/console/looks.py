"""How the console looks and how often it changes: what its user chose, now or the last time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from relaydesk.surfaces.console import themes
from relaydesk.surfaces.console.data import RATES_HZ
from relaydesk.surfaces.console.prefs import Prefs

if TYPE_CHECKING:
    from relaydesk.surfaces.console.app import ConsoleApp


class Looks:
    """Theme and rate of a console. ``keep`` is told every choice; without it nothing is kept."""

    def __init__(self, app: ConsoleApp, prefs: Prefs, keep: Callable[[Prefs], str] | None) -> None:
        self._app = app
        self._prefs = Prefs(prefs.theme, prefs.rate_hz)
        self._keep = keep
        app.theme = themes.TERMINAL if app.no_color else themes.NAMES[prefs.theme]
        app.feed.set_rate(prefs.rate_hz)

    def next_theme(self) -> None:
        """The theme after this one."""
        if self._app.no_color:
            self._app.say("NO_COLOR is set: every theme looks the same")
            return
        names = list(themes.NAMES)
        name = names[(names.index(self._prefs.theme) + 1) % len(names)]
        self._app.theme = themes.NAMES[name]
        self._choose(Prefs(name, self._prefs.rate_hz))

    def next_rate(self, step: int) -> None:
        """The rate of `RATES_HZ` so many places on, or the last one there is."""
        at = max(0, min(RATES_HZ.index(self._prefs.rate_hz) + step, len(RATES_HZ) - 1))
        self._app.feed.set_rate(RATES_HZ[at])
        self._app.say(f"Changes are shown up to {RATES_HZ[at]:g} times a second", timeout=2)
        self._choose(Prefs(self._prefs.theme, RATES_HZ[at]))

    def _choose(self, prefs: Prefs) -> None:
        if prefs == self._prefs or self._keep is None:
            self._prefs = prefs
            return
        self._prefs = prefs
        problem = self._keep(prefs)
        if problem:
            # Once is enough: what hinders it hinders it every time.
            self._keep = None
            self._app.say(problem, "warning", 10)
