"""Admission over real HTTP: each refusal in the order of the wire, and what becomes of its ticket."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.target_rig import MODEL, TargetRig, chat, refused, reserved
from tests.support.wire import codec
from tests.support.wire.exchange import Sent

PRICED = (500_000, 2_000_000)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[TargetRig]:
    async with TargetRig(tmp_path) as rig:
        yield rig


async def test_what_no_envelope_is(rig: TargetRig) -> None:
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        envelope = json.loads(sent.body)
        other = codec.new_reply_key()[1]
        frames = (b"zsrq", b"zsrx\x01" + bytes(4), b"zsrq\x02" + bytes(4), b"zsrq\x01\0\1\0\1{}", b"")
        bodies = [
            b"{}", b"nothing", raw, json.dumps({"ciphertext": "?"}).encode(),
            json.dumps(envelope | {"model": MODEL}).encode(), sent.body[:-30] + b'"}',
            json.dumps({"ciphertext": codec.b64(codec.age_seal(other, b"zsrq"))}).encode(),
            *(
                json.dumps({"ciphertext": codec.b64(codec.age_seal(details["ephemeral_age_pubkey"], frame))})
                .encode()
                for frame in frames
            ),
        ]  # fmt: skip
        for body in bodies:
            wrong = Sent(sent.step, sent.method, sent.path, sent.headers, body)
            assert await refused(client, wrong) == (400, "bad_envelope"), body
        # Sealed as it should be, but not called so.
        headers = sent.headers | {"Content-Type": "application/json"}
        unnamed = Sent(sent.step, sent.method, sent.path, headers, sent.body)
        assert await refused(client, unnamed) == (400, "bad_envelope")
        assert (await client.receive(sent, ticket, "X")).text == "Hello there"


async def test_refusals_before_the_ticket_is_spent_leave_it(rig: TargetRig) -> None:
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())

        def sealed(body: bytes = raw, **header: Any) -> Sent:
            return client.sealed_request(details, ticket, body, tx_id="X", header=header)

        unknown = codec.b64(os.urandom(16))
        for want, sent in (
            ("ticket_required", sealed(ticket_id=None)),
            ("ticket_required", sealed(ticket_id="")),
            ("ticket_invalid", sealed(ticket_id=unknown)),
            ("admission_tag_invalid", sealed(admission_tag=None)),
            ("admission_tag_invalid", sealed(admission_tag=codec.b64(bytes(32)))),
            ("admission_tag_invalid", sealed(algorand_tx_id="Y")),
            ("reply_to_mismatch", sealed(reply_to_public_key=codec.new_reply_key()[1])),
        ):
            assert await refused(client, sent) == (402, want)
        assert await refused(client, sealed(admission_tag=codec.b64(b"short"))) == (400, "bad_envelope")
        # A body that was changed on its way, under the tag of the one that was meant.
        client.alter = lambda what, data: data.replace(b"Hi", b"Ho") if what == "body" else data
        changed = sealed()
        client.alter = lambda _, data: data
        assert await refused(client, changed) == (402, "admission_tag_invalid")
        assert rig.target.tickets.waiting == 1
        sent = sealed()
        assert (await client.receive(sent, ticket, "X")).text == "Hello there"
        # The same envelope once more, and the ticket in another one.
        assert await refused(client, sent) == (402, "ticket_invalid")
        assert await refused(client, sealed()) == (402, "ticket_invalid")


async def test_the_order_is_the_wires(rig: TargetRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a request with several faults the first one in the wire's order is said."""
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())
        none: dict[str, Any] = {"ticket_id": None}
        unknown: dict[str, Any] = {"ticket_id": codec.b64(os.urandom(16))}
        untagged: dict[str, Any] = {"admission_tag": codec.b64(bytes(32))}
        elsewhere: dict[str, Any] = {"reply_to_public_key": codec.new_reply_key()[1]}

        async def said(header: dict[str, Any]) -> str:
            sent = client.sealed_request(details, ticket, raw, tx_id="X", header=header)
            return (await refused(client, sent))[1]

        assert await said(unknown | untagged | elsewhere) == "ticket_invalid"
        assert await said(untagged | elsewhere) == "admission_tag_invalid"
        rig.clock.shift_s = 121
        assert await said(elsewhere) == "reply_to_mismatch"
        rig.clock.shift_s = 0
        monkeypatch.setattr("relaydesk.engine.relay.target.desk.DRAIN_GRACE_S", 0.0)
        rig.draining = True
        assert await said(none | untagged) == "ticket_required"
        assert await said(unknown | untagged) == "node_draining"


async def test_an_expired_ticket_is_none(rig: TargetRig) -> None:
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        rig.clock.shift_s = 121
        assert await refused(client, sent) == (402, "ticket_invalid")
        rig.clock.shift_s = 0
        assert await refused(client, sent) == (402, "ticket_invalid")
    assert rig.target.tickets.promised() == 0


async def test_two_of_the_same_at_once_are_served_once(rig: TargetRig) -> None:
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        replies = await asyncio.gather(*(client.resend(sent) for _ in range(6)))
    assert sorted(reply.status for reply in replies) == [200, 402, 402, 402, 402, 402]
    assert len(rig.hub.starter.engine(MODEL).bodies) == 1
    await rig.rest()
