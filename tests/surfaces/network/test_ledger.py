"""Sealed questions about an account, over real HTTP."""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.relay.hop import LEDGER_PATH
from tests.support.ledger_rig import ANN, text
from tests.support.target_rig import TargetRig
from tests.support.wire import codec

SEALED = "application/vnd.zs+json"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[TargetRig]:
    async with TargetRig(tmp_path) as rig:
        yield rig


def question(rig: TargetRig, want: str = "balance", **more: Any) -> dict[str, Any]:
    now = rig.clock.wall_ms() // 1000
    ids = struct.pack(">QQQ", rig.ref.operator, rig.ref.node, 0)
    signed = b"relaydesk-ledger-v1\0" + text(want) + text(ANN.address) + ids + struct.pack(">q", now)
    said = {"want": want, "payer": ANN.address, "operator": rig.ref.operator, "node": rig.ref.node}
    return said | {"issued_at": now, "sig": ANN.sig(signed)} | more


async def asked(rig: TargetRig, document: Any, media: str = SEALED) -> tuple[int, dict[str, Any]]:
    recipient = rig.keys.advert().age_pubkey
    sealed = codec.b64(codec.age_seal(recipient, json.dumps(document).encode()))
    url, body = rig.url + LEDGER_PATH, json.dumps({"ciphertext": sealed}).encode()
    async with rig.http.post(url, data=body, headers={"Content-Type": media}) as reply:
        assert reply.status != 200 or reply.content_type == SEALED
        return reply.status, json.loads(await reply.read())


async def test_the_answer_is_sealed_to_who_asked(rig: TargetRig) -> None:
    await rig.credit(700)
    secret, recipient = codec.new_reply_key()
    status, envelope = await asked(rig, question(rig, reply_to=recipient))
    assert status == 200 and set(envelope) == {"ciphertext"}
    found = codec.document(codec.age_open(secret, codec.unb64(envelope["ciphertext"])))
    assert found == {"relaydesk_ledger": {"balance": 700, "held": 0}}
    status, envelope = await asked(rig, question(rig, "statement", reply_to=recipient))
    rows = codec.document(codec.age_open(secret, codec.unb64(envelope["ciphertext"])))["statement"]["rows"]
    assert [row["balance"] for row in rows] == [700]


async def test_what_is_refused(rig: TargetRig) -> None:
    recipient = codec.new_reply_key()[1]
    good = question(rig, reply_to=recipient)
    for document, code in (
        (question(rig), "bad_request"),
        (question(rig, reply_to="age1x"), "bad_request"),
        (good | {"sig": ANN.sig(b"other")}, "bad_request"),
        (good | {"want": "statement"}, "bad_request"),
        ([], "bad_request"),
    ):
        status, found = await asked(rig, document)
        assert (status, found["error"]["code"]) == (400, code)
    assert (await asked(rig, good, "application/json"))[1]["error"]["code"] == "bad_envelope"
    async with rig.http.post(rig.url + LEDGER_PATH, data=b"{}", headers={"Content-Type": SEALED}) as reply:
        assert (reply.status, (await reply.json())["error"]["code"]) == (400, "bad_envelope")
