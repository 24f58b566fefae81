"""The alert ``voucher_refused``: a target would not have a voucher, and nobody waited for its answer."""

from __future__ import annotations

from typing import Final

from relaydesk.core.ledger.refusal import voucher_refusal
from relaydesk.core.ports import Clock
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.alerts import AlertBoard

STANDS_MS: Final = 86_400_000
_CODE: Final = "voucher_refused"


class RefusedAlarm:
    """One alert for each voucher, known by the beginning of its id."""

    def __init__(self, alerts: AlertBoard, clock: Clock) -> None:
        self._alerts = alerts
        self._clock = clock
        self._since_ms: dict[str, int] = {}

    def refused(self, ref: NodeRef, voucher: str, reason: str) -> None:
        """Raise it; ``reason`` is the target's word."""
        self._since_ms[voucher] = self._clock.wall_ms()
        self._alerts.raise_alert(
            _CODE,
            f"node {ref} refused the voucher {voucher[:8]}: {voucher_refusal(reason)}",
            "ask who sold it for another; `relaydesk ledger balance` lists it",
            subject=voucher[:8],
        )

    def over(self, voucher: str) -> None:
        """Clear it where it stands."""
        if self._since_ms.pop(voucher, None) is not None:
            self._alerts.clear(_CODE, subject=voucher[:8])

    def forget_old(self) -> None:
        """Clear what has stood for a day."""
        before = self._clock.wall_ms() - STANDS_MS
        for voucher in [voucher for voucher, at_ms in self._since_ms.items() if at_ms <= before]:
            self.over(voucher)
