from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from relaydesk.core.relay.records.canonical import RecordError
from relaydesk.core.relay.records.details import DETAILS_LIMIT
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.relay.fetch_details import fetch_details, read_details
from relaydesk.engine.relay.outbound.outbound import Outbound, UnreachableError
from tests.support.directory_rig import no_tls
from tests.support.lab_relay import HANG, Canned, LabNode


@pytest.fixture
async def node() -> AsyncIterator[LabNode]:
    made = LabNode(7)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def outbound() -> AsyncIterator[Outbound]:
    made = Outbound(SystemClock(), allow_private=lambda: True, tls=no_tls)
    yield made
    await made.aclose()


async def test_as_the_node_gives_them(node: LabNode, outbound: Outbound) -> None:
    found = await fetch_details(outbound, node.base_url + "/", 5.0)
    assert (found.operator_id, found.signing_addr) == (7, node.signing)


async def test_what_is_none(node: LabNode, outbound: Outbound) -> None:
    with pytest.raises(ValueError, match="no http"):
        await fetch_details(outbound, "ftp://seven.example", 5.0)
    node.always_target = Canned(503)
    with pytest.raises(UnreachableError, match="503"):
        await fetch_details(outbound, node.base_url, 5.0)
    node.always_target = Canned(body=b"<html>")
    with pytest.raises(RecordError):
        await fetch_details(outbound, node.base_url, 5.0)
    node.always_target = replace(HANG)
    with pytest.raises(TimeoutError):
        await fetch_details(outbound, node.base_url, 0.05)


async def test_large_ones_are_read_as_small_ones_are() -> None:
    models = [{"id": f"m{number}", "source": "x" * 200} for number in range(400)]
    body = LabNode(7, models=models).details()
    assert 64 * 1024 < len(body) < DETAILS_LIMIT
    assert len((await read_details(body)).models) == 400
    with pytest.raises(RecordError):
        await read_details(b"[" * DETAILS_LIMIT)
