from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from relaydesk.core.relay.directory.record import read_record
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.engine.relay.directory import outside
from relaydesk.engine.relay.directory.outside import look
from relaydesk.engine.relay.outbound.outbound import Outbound
from tests.support.clock import FakeClock
from tests.support.directory_rig import no_tls
from tests.support.directory_world import ANN, BOB, NOW
from tests.support.keeper_rig import answering, record_of
from tests.support.lab_relay import CLOSE, HANG, Canned, LabNode
from tests.support.lab_tls import make_lab_tls


@pytest.fixture
async def node() -> AsyncIterator[LabNode]:
    made = answering(LabNode(1), ANN)
    await made.start()
    yield made
    await made.stop()


async def seen(node: LabNode, **changes: object) -> str:
    """What became of looking: the refusal's kind, empty for none."""
    outbound = Outbound(FakeClock(NOW * 1000), allow_private=lambda: True, tls=no_tls)
    made = json.dumps(record_of(node, ANN, **changes)).encode()  # type: ignore[arg-type]
    try:
        await look(read_record(made, NOW), outbound, NOW)
    except Refused as error:
        return error.kind
    finally:
        await outbound.aclose()
    return ""


async def test_the_node_itself(node: LabNode) -> None:
    assert await seen(node) == ""


async def test_somebody_elses_address(node: LabNode) -> None:
    answering(node, BOB)
    assert await seen(node) == "identity"


@pytest.mark.parametrize(
    "fields",
    [
        {"owner_addr": BOB.address},
        {"signing_addr": BOB.address},
        {"node_id": 1},
        {"operator_id": str(ANN.operator)},
        {"ephemeral_sig": None},
        {"ephemeral_sig": "AAAA"},
    ],
)
async def test_details_that_do_not_fit(node: LabNode, fields: dict[str, object]) -> None:
    node.extra = fields
    assert await seen(node) == "identity"


async def test_an_advert_by_another_key_or_of_another_time(node: LabNode) -> None:
    node.key = BOB.private
    assert await seen(node) == "identity"
    answering(node, ANN)
    node.issued_ago_s, node.life_s = 5000, 1500
    assert await seen(node) == "identity"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (CLOSE, "not_seen"),
        (Canned(502, b"x"), "not_seen"),
        (Canned(302, headers=(("Location", "/"),)), "not_seen"),
        (Canned(200, b"x" * 1_100_000), "not_seen"),
        (Canned(200, b"<html>"), "identity"),
        (Canned(200, b"[" * 100_000), "identity"),
    ],
)
async def test_bad_answers(node: LabNode, answer: Canned, kind: str) -> None:
    node.always_target = answer
    assert await seen(node) == kind


async def test_nobody_there_and_nothing_said(node: LabNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "LOOK_S", 0.2)
    node.always_target = HANG
    assert await seen(node) == "not_seen"
    await node.stop()
    assert await seen(node) == "not_seen"


async def test_a_certificate_the_world_does_not_trust_says_so(tmp_path: Path, node: LabNode) -> None:
    lab = make_lab_tls(tmp_path)

    async def details(_request: web.Request) -> web.Response:
        return web.Response(body=node.details())

    app = web.Application()
    app.router.add_get("/v1/zs/details", details)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=lab.server()).start()
    port = runner.addresses[0][1]
    record = read_record(json.dumps(record_of(node, ANN, base_url=f"https://127.0.0.1:{port}")).encode(), NOW)

    async def looked(trust: ssl.SSLContext) -> None:
        outbound = Outbound(FakeClock(NOW * 1000), allow_private=lambda: True, tls=lambda: trust)
        try:
            await look(record, outbound, NOW)
        finally:
            await outbound.aclose()

    with pytest.raises(Refused) as caught:
        await looked(ssl.create_default_context())
    assert caught.value.kind == "not_seen"
    assert "certificate" in caught.value.sentence
    await looked(lab.client())
    await runner.cleanup()
