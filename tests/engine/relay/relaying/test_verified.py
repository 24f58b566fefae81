from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from relaydesk.core.relay.address import encode_address
from relaydesk.core.relay.records.ephemeral import LIFE_S, sign_ephemeral
from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.relay.outbound.outbound import Outbound, UnreachableError
from relaydesk.engine.relay.relaying import verified as module
from relaydesk.engine.relay.relaying.verified import BACK_OFF_S, GOOD_S, VerifiedTargets
from relaydesk.engine.tasks import cancel_and_wait, spawn
from tests.support.clock import FakeClock
from tests.support.hop_rig import AGE_KEY, Target


class Rig:
    def __init__(self, target: Target) -> None:
        self.target = target
        self.clock = FakeClock(SystemClock().wall_ms())
        self.outbound = Outbound(self.clock, allow_private=lambda: True, tls=lambda: None)  # type: ignore[arg-type,return-value]
        self.verified = VerifiedTargets(self.outbound, self.clock)

    async def check(self, listed: Listed | None = None) -> str:
        """Empty where the target may be forwarded to, else why not."""
        try:
            await self.verified.check(listed or self.target.listed)
        except UnreachableError as error:
            return error.reason
        return ""


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with Target() as target:
        made = Rig(target)
        yield made
        await made.verified.aclose()
        await made.outbound.aclose()


async def test_good_for_five_minutes_and_asked_anew_before(rig: Rig) -> None:
    assert [await rig.check() for _ in range(3)] == [""] * 3
    assert rig.target.asked_details == 1
    rig.clock.advance(GOOD_S - 30)
    assert await rig.check() == ""
    async with asyncio.timeout(5):
        while rig.target.asked_details < 2:
            await asyncio.sleep(0.005)
    await asyncio.sleep(0.05)
    rig.target.details = None
    # The early one counts from when it was made.
    rig.clock.advance(GOOD_S - 90)
    assert await rig.check() == ""
    rig.clock.advance(91)
    assert "503" in await rig.check()


async def test_one_fetch_for_all_who_wait_and_whoever_leaves(rig: Rig) -> None:
    first = spawn(rig.check(), name="first")
    await asyncio.sleep(0)
    others = [spawn(rig.check(), name="other") for _ in range(20)]
    await asyncio.sleep(0)
    await cancel_and_wait(first)
    assert await asyncio.gather(*others) == [""] * 20
    assert rig.target.asked_details == 1


async def test_a_failure_is_not_repeated_at_once(rig: Rig) -> None:
    rig.target.details = None
    reasons = {await rig.check() for _ in range(5)}
    assert reasons == {"it answered 503 for its details"}
    assert rig.target.asked_details == 1
    rig.target.details = {}
    rig.clock.advance(BACK_OFF_S - 1)
    assert await rig.check() != ""
    rig.clock.advance(1)
    assert await rig.check() == ""


OTHER = encode_address(bytes([9]) * 32)
NOW = SystemClock().wall_ms() // 1000


def advert(rig: Rig, ref: NodeRef, issued: int, life: int = LIFE_S) -> dict[str, Any]:
    made = sign_ephemeral(rig.target.seed, ref, AGE_KEY, issued, issued + life)
    return {
        "ephemeral_age_pubkey": made.age_pubkey,
        "ephemeral_issued_at": made.issued_at,
        "ephemeral_expiry": made.expiry,
        "ephemeral_sig": made.sig,
    }


@pytest.mark.parametrize(
    ("details", "why"),
    [
        ({"operator_id": 5}, "another operator"),
        ({"node_id": 99}, "another number"),
        ({"operator_id": None}, "another operator"),
        ({"operator_id": "5"}, "another operator"),
        ({"owner_addr": OTHER}, "another owner"),
        ({"signing_addr": OTHER}, "another signing key"),
        ({"signing_addr": ""}, "another signing key"),
        ({"ephemeral_sig": None}, "no key"),
        ({"ephemeral_sig": "AAAA"}, "not signed"),
        ({"ephemeral_age_pubkey": "age1" + "p" * 58}, "not signed"),
        ({"operator_id": 2**64}, "does not fit"),
    ],
)
async def test_details_that_are_not_the_nodes_own(rig: Rig, details: dict[str, Any], why: str) -> None:
    rig.target.details = details
    assert why in await rig.check()


async def test_adverts_that_do_not_hold(rig: Rig) -> None:
    ref = rig.target.ref
    sibling = NodeRef(ref.operator, ref.node + 1)
    for fields, why in (
        (advert(rig, ref, NOW - LIFE_S - 120), "expired"),
        (advert(rig, ref, NOW + 300), "from the future"),
        (advert(rig, ref, NOW, 86_400), "longer than any"),
        (advert(rig, sibling, NOW), "not signed"),
    ):
        rig.target.details = fields
        rig.clock.advance(BACK_OFF_S)
        assert why in await rig.check()


async def test_a_record_that_aims_at_a_stranger(rig: Rig) -> None:
    """Another operator lists this URL as its own: what answers there does not bear it out."""
    aimed = replace(
        rig.target.listed, ref=NodeRef(77, 1), owner=OTHER, signing=encode_address(bytes([8]) * 32)
    )
    assert await rig.check(aimed) == "its details name another operator and owner than the directory"
    assert await rig.check() == ""


async def test_a_node_that_is_listed_otherwise_is_verified_anew(rig: Rig) -> None:
    assert await rig.check() == ""
    moved = replace(rig.target.listed, base_url="http://127.0.0.1:9")
    assert await rig.check(moved) == "it takes no connection"
    assert await rig.check() == ""
    assert rig.target.asked_details == 2


async def test_details_that_do_not_come_or_do_not_end(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FETCH_S", 0.05)

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 X\r\n\r\n")
        while not writer.is_closing():
            writer.write(b" ")
            await asyncio.sleep(0.01)

    async def huge(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 X\r\n\r\n" + b" " * (2 << 20))
        writer.close()

    for serve, why in ((trickle, "did not come"), (huge, "longer than")):
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        assert why in await rig.check(replace(rig.target.listed, base_url=f"http://127.0.0.1:{port}"))
        server.close()
        monkeypatch.setattr(module, "FETCH_S", 5)


async def test_there_are_only_so_many(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 5)
    for number in range(20):
        await rig.check(replace(rig.target.listed, ref=NodeRef(number, 1)))
    assert len(rig.verified._targets) == 5
