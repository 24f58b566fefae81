from __future__ import annotations

import asyncio

from relaydesk.core.events import Event
from relaydesk.engine.ledger.service import LedgerService
from relaydesk.engine.tasks import cancel_and_wait, spawn
from tests.support.ledger_rig import ANN, VALUES, LedgerRig


async def test_tickets_end_by_themselves_and_fronts_are_told(rig: LedgerRig) -> None:
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 100)
    tx_id, _ = await rig.open(ledger, ANN)
    await ledger.receipt(tx_id, VALUES)
    told: list[Event] = []
    rig.bus.listen(told.append)
    service = LedgerService(ledger, rig.clock, rig.clock.sleep)
    assert service.name == "ledger"
    running = spawn(service.run(), name="ledger")

    async def reaches(state: str) -> None:
        while (ticket := await ledger.ticket(tx_id)) is None or ticket.state != state:
            rig.clock.advance(1)
            await asyncio.sleep(0)

    await reaches("open")
    await reaches("pending_settle")
    while not ledger.view().open_tickets or ledger.view().open_tickets[0].state != "pending_settle":
        rig.clock.advance(1)
        await asyncio.sleep(0)
    await reaches("lapsed")
    while ledger.view().open_tickets:
        rig.clock.advance(1)
        await asyncio.sleep(0)
    assert ledger.view().earned == 40
    assert len(told) >= 2
    await cancel_and_wait(running)
