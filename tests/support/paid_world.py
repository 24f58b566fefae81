"""The real asking side, relay and target together, with credit."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from relaydesk.core.relay.records.details import decode_details
from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.engine.relay.asking.peers import Verified
from tests.support.exchange_rig import ExchangeRig, text_of
from tests.support.hop_rig import HopRig
from tests.support.lab_relay import address
from tests.support.scripted_engine import answer
from tests.support.target_rig import MODEL, TargetRig

RELAY = NodeRef(201, 1)
PRICED = (500_000, 2_000_000)
WORDS = "a heron in water"


class PaidWorld:
    def __init__(self, payer: ExchangeRig, target: TargetRig) -> None:
        self.payer, self.target = payer, target

    async def ask(self, text: str = "hello") -> str:
        body = self.payer.body(text, model=MODEL)
        return text_of(await self.payer.stream(body, model=MODEL))

    def announce(self, *, ledger: bool = True) -> None:
        """What the relay's details say of our path beside the wire's."""
        relay = self.payer.asker.peers.get(RELAY)
        assert relay is not None
        said = decode_details(json.dumps({"relaydesk_ledger": ledger}).encode())
        relay.verified = Verified(said, False, self.payer.clock.wall_ms())

    async def voucher(self, amount: int) -> None:
        await self.payer.purse.add_voucher(await self.target.ledger.issue(amount))

    async def sums(self) -> tuple[int, int, int, int]:
        """Issued, balance, held, earned: checked against each other."""
        await self.target.ledger.refresh()
        view = self.target.ledger.view()
        assert view.issued == view.balance + view.held + view.earned + view.fees
        return view.issued, view.balance, view.held, view.earned


@asynccontextmanager
async def paid_world(folder: Path, rates: tuple[int, int] = PRICED) -> AsyncIterator[PaidWorld]:
    for name in ("target", "payer"):
        (folder / name).mkdir()
    async with (
        TargetRig(folder / "target", rates=rates) as target,
        HopRig() as relay,
        ExchangeRig(folder / "payer", (), relays=0) as payer,
    ):
        target.hub.starter.reply = lambda _: answer("a", " heron", " in", " water")
        identity = target.identity
        relay.directory.listed.append(
            Listed(target.ref, identity.owner_addr, identity.signing_addr, target.url)
        )
        payer.enlist(target.ref, identity.owner_addr, identity.signing_addr, target.url)
        key = address(b"relay" + bytes(27))
        payer.enlist(RELAY, key, key, relay.url)
        await payer.probe(target.ref)
        yield PaidWorld(payer, target)
        await target.rest()
