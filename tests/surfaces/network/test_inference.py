"""Sealed requests on HTTP: a stream as it goes out, what is too much of them, and what is no route."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from relaydesk.surfaces.network import inference
from tests.support.scripted_engine import Script, answer, piece, usage
from tests.support.target_rig import TargetRig, chat, reserved
from tests.support.wire import codec

PRICED = (500_000, 2_000_000)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[TargetRig]:
    async with TargetRig(tmp_path) as rig:
        yield rig


async def test_a_stream_is_sealed_chunk_by_chunk(rig: TargetRig) -> None:
    rig.hub.starter.reply = lambda _: answer("Hello", " there", delay=0.03)
    async with rig.client() as client:
        found = await client.exchange(chat(stream=True, stream_options={"include_usage": True}))
    assert found.text == "Hello there" and found.done
    assert found.documents[-1]["usage"]["completion_tokens"] == 2
    assert found.receipt is not None and found.receipt["decode_ms"] >= 20
    assert all("/models/secret" not in json.dumps(one) for one in found.documents)
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("keep-alive")]
    await rig.rest()


async def test_silence_is_filled_while_the_prompt_is_read(rig: TargetRig) -> None:
    rig.heartbeat_s = 0.02
    rig.hub.starter.reply = lambda _: Script(answer("late").steps, before=[0.2])
    async with rig.client() as client:
        found = await client.exchange(chat(stream=True))
    assert found.comments >= 3 and found.text == "late"


async def test_who_takes_nothing_is_cut_off(rig: TargetRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "STALL_S", 0.3)
    rig.heartbeat_s = 0.05
    rig.hub.starter.reply = lambda _: Script(
        [piece("x" * 200_000)] * 200 + [piece(None, "stop"), usage(1, 1)]
    )
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat(stream=True))
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        reader, writer = await asyncio.open_connection("127.0.0.1", int(rig.url.rpartition(":")[2]))
        head = [f"POST {sent.path} HTTP/1.1", "Host: target", f"Content-Length: {len(sent.body)}"]
        head += [f"{name}: {value}" for name, value in sent.headers.items()]
        writer.write(("\r\n".join(head) + "\r\n\r\n").encode() + sent.body)
        await reader.readuntil(b"\r\n\r\n")
        await rig.hub.until(lambda: rig.target.tickets.spent == 1)
        await rig.hub.until(lambda: rig.target.tickets.spent == 0, 5.0)
        writer.close()
    await rig.rest()


async def test_a_large_request_is_opened_beside_the_loop(tmp_path: Path) -> None:
    async with TargetRig(tmp_path, ctx=65_536) as rig, rig.client() as client:
        found = await client.exchange(chat("words " * 15_000))
        assert found.text == "Hello there"
        details = await client.details()
        big = base64.b64encode(os.urandom(9_500_000)).decode()
        headers = {"Content-Type": "application/vnd.zs+json"}
        url = rig.url + "/v1/chat/completions"
        body = io.BytesIO(json.dumps({"ciphertext": big}).encode())
        async with rig.http.post(url, data=body, headers=headers) as reply:
            assert reply.status == 413
        assert details["models"][0]["context_window"] == 65_536


async def test_no_more_is_read_at_once_than_there_is_room_for(
    rig: TargetRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "HELD_BYTES", 3000)
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        assert len(sent.body) < 3000
        headers = {"Content-Type": "application/vnd.zs+json"}
        for _ in range(3):
            async with rig.http.post(rig.url + sent.path, data=b"x" * 3001, headers=headers) as reply:
                assert (reply.status, (await reply.json())["error"]["code"]) == (503, "provider_unavailable")
        # What was refused is not held any longer, and the ticket is as it was.
        assert (await client.receive(sent, ticket, "X")).text == "Hello there"


async def test_images_are_not_served(rig: TargetRig) -> None:
    for path in ("/v1/images/generations", "/v1/images/edits"):
        async with rig.http.post(rig.url + path, data=b"{}") as reply:
            assert reply.status == 404


async def test_a_stream_that_is_altered_does_not_open(rig: TargetRig) -> None:
    """The client sees any frame that was moved: the target binds each to its place."""
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat(stream=True))
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        reply = await client.resend(sent)
        frames = [block for block in reply.body.split(b"\n\n") if block.startswith(b"event: zs\n")]
        assert len(frames) >= 3
        for index, frame in enumerate(frames):
            sealed = codec.unb64(frame.split(b"data: ")[1].decode())
            for at in (index - 1, index + 1):
                with pytest.raises((codec.Malformed, OverflowError)):
                    codec.unseal(ticket.key, sealed, codec.frame_aad("X", ticket.ticket_id, at))
            with pytest.raises(codec.Malformed):
                codec.unseal(ticket.key, sealed, codec.frame_aad("Y", ticket.ticket_id, index))
            codec.unseal(ticket.key, sealed, codec.frame_aad("X", ticket.ticket_id, index))
