"""Answers that are not streamed: what is not whole or not proved is not handed out."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from relaydesk.core.errors import FaultError
from tests.support.exchange_rig import ExchangeRig
from tests.support.wire.lies import put, without


def _flipped(body: bytes) -> bytes:
    said = json.loads(body)
    raw = bytearray(base64.b64decode(said["ciphertext"]))
    raw[0] ^= 1
    said["ciphertext"] = base64.b64encode(raw).decode()
    return json.dumps(said).encode()


@pytest.mark.parametrize(
    "body",
    [
        _flipped,
        lambda body: body[:-10],
        lambda _: b"",
        lambda _: b'{"choices":[]}',
        lambda _: b'{"nonce":"AA==","ciphertext":"AA=="}',
    ],
)
async def test_a_body_that_does_not_open_is_refused(tmp_path: Path, body: Callable[[bytes], bytes]) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.body = body
        with pytest.raises(FaultError) as caught:
            await rig.whole()
        assert caught.value.fault.code == "operator_inconsistent_response"
        (paid,) = rig.paid
        assert (paid.amount, paid.receipt_ok) == (paid.max_price, False)
        (ticket,) = await rig.tickets()
        assert ticket.state == "open"


@pytest.mark.parametrize("headers", [without("X-Zs-Receipt"), put(**{"X-Zs-Receipt": "AAAA"})])
async def test_without_a_receipt_an_answer_is_not_proved(
    tmp_path: Path, headers: Callable[[dict[str, str]], None]
) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.headers = headers
        with pytest.raises(FaultError) as caught:
            await rig.whole()
        assert caught.value.fault.code == "operator_inconsistent_response"
        assert "(missing)" in caught.value.fault.message


async def test_an_answer_that_breaks_off(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path, relays=1) as rig:
        relay = rig.relays[0]
        copy = relay._copy

        async def cut(request: object, got: object, path: str, headers: object) -> object:
            if path.endswith("completions"):
                relay.cut_after = 20
            return await copy(request, got, path, headers)  # type: ignore[arg-type]

        relay._copy = cut  # type: ignore[method-assign, assignment]
        with pytest.raises(FaultError) as caught:
            await rig.whole()
        assert caught.value.fault.code in ("upstream_unreachable", "operators_unreachable")
        assert len(rig.paid) == 1
