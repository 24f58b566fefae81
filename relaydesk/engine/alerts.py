"""Standing alerts: raised once, kept until cleared, known by code and subject."""

from __future__ import annotations

from typing import Final, Literal

from relaydesk.core.events import AlertsChanged
from relaydesk.core.ports import Clock
from relaydesk.core.text import safe_text
from relaydesk.core.view.sections import Alert, AlertsView
from relaydesk.engine.bus import Bus

LIMIT: Final = 100


class AlertBoard:
    """What an operator should act on."""

    def __init__(self, clock: Clock, bus: Bus) -> None:
        self._clock = clock
        self._bus = bus
        self._alerts: dict[tuple[str, str], Alert] = {}

    def raise_alert(
        self,
        code: str,
        message: str,
        hint: str,
        *,
        severity: Literal["info", "warning", "error"] = "warning",
        subject: str = "",
    ) -> None:
        """Raise an alert, or renew the text of one that stands; its age is kept."""
        key = (code, subject)
        standing = self._alerts.get(key)
        since = standing.since_ms if standing is not None else self._clock.wall_ms()
        alert = Alert(code, severity, safe_text(message, 512), safe_text(hint, 512), since, subject)
        if alert == standing:
            return
        if standing is None and len(self._alerts) >= LIMIT:
            del self._alerts[next(iter(self._alerts))]
        self._alerts[key] = alert
        self._bus.publish(AlertsChanged())

    def clear(self, code: str, *, subject: str = "") -> None:
        """Clear an alert if it stands."""
        if self._alerts.pop((code, subject), None) is not None:
            self._bus.publish(AlertsChanged())

    def view(self) -> AlertsView:
        """All standing alerts, oldest first."""
        return AlertsView(tuple(self._alerts.values()))
