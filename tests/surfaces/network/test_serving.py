"""How often one address may use a target's routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.target_rig import TargetRig, chat, refused, reserved
from tests.support.wire.exchange import Refused


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[TargetRig]:
    async with TargetRig(tmp_path) as rig:
        yield rig


async def posted(rig: TargetRig, path: str) -> tuple[int, str, str | None]:
    async with rig.http.post(rig.url + path, data=b"x") as reply:
        return reply.status, (await reply.json())["error"]["code"], reply.headers.get("Retry-After")


async def test_each_route_is_refused_by_a_code_that_it_has(rig: TargetRig) -> None:
    rig.per_minute = 2
    for path, first, status, code in (
        ("/v1/zs/reserve", "bad_content_type", 429, "no_capacity"),
        ("/v1/zs/ledger", "bad_envelope", 503, "provider_unavailable"),
        ("/v1/chat/completions", "bad_envelope", 503, "provider_unavailable"),
    ):
        for _ in range(2):
            assert (await posted(rig, path))[1] == first
        assert await posted(rig, path) == (status, code, "30")
    # Both ways to ask are one, the details are free, and time helps.
    assert (await posted(rig, "/v1/responses"))[0] == 503
    async with rig.http.get(rig.url + "/v1/zs/details") as reply:
        assert reply.status == 200
    rig.clock.passed_s = 31
    assert (await posted(rig, "/v1/responses"))[1] == "bad_envelope"


async def test_who_got_a_ticket_may_use_it(rig: TargetRig) -> None:
    rig.per_minute = 1
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())
        with pytest.raises(Refused) as caught:
            await client.reserve(details, "tiny", 10, 10)
        assert (caught.value.status, caught.value.code) == (429, "no_capacity")
        assert rig.target.tickets.waiting == 1
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        assert (await client.resend(sent)).status == 200
        # Before it is read: another ticket's would stay.
        assert await refused(client, sent) == (503, "provider_unavailable")
    await rig.rest()
