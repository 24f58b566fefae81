"""A node's own details: what another node makes of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from relaydesk.core.relay.address import decode_address
from relaydesk.core.relay.records.details import OfferedModel, decode_details
from relaydesk.core.relay.records.ephemeral import ROTATE_S, Holds, check_ephemeral, sign_ephemeral
from relaydesk.core.relay.version import at_least
from relaydesk.engine.clock import SystemRng
from relaydesk.engine.relay.age import PyrageAge
from relaydesk.engine.relay.details import OwnDetails
from relaydesk.engine.relay.ephemerals import Ephemerals
from relaydesk.engine.relay.identity import Identity
from relaydesk.store.secrets import FileSecrets
from tests.support.clock import FakeClock


class Rig:
    """A node's details with everything real beneath."""

    def __init__(self, tmp_path: Path) -> None:
        self.clock = FakeClock()
        secrets = FileSecrets(tmp_path)
        secrets.prepare()
        self.identity = Identity.open(secrets, tmp_path / "network", self.clock, SystemRng())
        self.offers: tuple[OfferedModel, ...] = ()
        self.keys = Ephemerals(
            PyrageAge(),
            lambda recipient, issued_at, expiry: sign_ephemeral(
                self.identity.seed, self.identity.ref, recipient, issued_at, expiry
            ),
            self.clock,
        )
        self.own = OwnDetails(self.identity, self.keys, lambda: self.offers, ledger=True)


async def test_another_node_finds_the_details_in_order(tmp_path: Path) -> None:
    rig = await asyncio.to_thread(Rig, tmp_path)
    found = decode_details(rig.own.body())
    assert (found.operator_id, found.node_id) == rig.identity.ref
    assert found.owner_addr == rig.identity.owner_addr
    assert found.signing_addr == rig.identity.signing_addr
    assert at_least(found.proto_version, 9, 2)
    assert found.models == ()
    assert found.relaydesk_ledger is True
    assert found.ephemeral is not None
    public = decode_address(found.signing_addr)
    now = rig.clock.wall_ms() // 1000
    assert check_ephemeral(found.ephemeral, rig.identity.ref, public, now) is Holds.FRESH


async def test_the_bytes_change_with_the_key_and_with_what_is_served(tmp_path: Path) -> None:
    rig = await asyncio.to_thread(Rig, tmp_path)
    first = rig.own.body()
    assert rig.own.body() is first
    rig.offers = (OfferedModel(id="smollm2", input_rate_usd_per_1m=0.07, output_rate_usd_per_1m=0.0),)
    second = rig.own.body()
    assert decode_details(second).models == rig.offers
    rig.clock.advance(ROTATE_S)
    assert decode_details(rig.own.body()).ephemeral != decode_details(second).ephemeral
