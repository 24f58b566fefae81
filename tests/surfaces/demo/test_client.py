"""The demo's client against a real hub over a scripted engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from relaydesk.core.errors import PeerError
from relaydesk.surfaces.demo.client import Client, DemoFailedError, sentence
from tests.support.scripted_engine import Script, answer, piece
from tests.support.scripted_hub import KEY, ScriptedHub


@pytest_asyncio.fixture
async def hub(tmp_path: Path) -> AsyncIterator[ScriptedHub]:
    async with ScriptedHub(tmp_path) as hub:
        await hub.add()
        yield hub


async def test_a_chat_comes_in_pieces_and_as_a_whole(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: answer("A re\x1b[2J", "lay.", prompt=9)
    pieces: list[str] = []
    chat = await asyncio.to_thread(Client(hub.url, None, KEY).chat, "tiny", "Hi", 8, pieces.append)
    assert "".join(pieces) == "A re[2Jlay."
    assert chat.text == "A re\x1b[2Jlay."
    assert (chat.usage["prompt_tokens"], chat.usage["completion_tokens"]) == (9, 2)
    assert hub.journal.find(chat.request_id) is not None


async def test_what_goes_wrong_is_a_sentence(hub: ScriptedHub) -> None:
    client = Client(hub.url, None, KEY)
    with pytest.raises(DemoFailedError, match=r"answered with 404: .*nothing"):
        await asyncio.to_thread(client.chat, "nothing", "Hi", 8, print)
    hub.starter.reply = lambda _: Script((piece("A"), PeerError("engine_failed", "the engine is gone")))
    with pytest.raises(DemoFailedError, match="the chat failed: the engine is gone"):
        await asyncio.to_thread(client.chat, "tiny", "Hi", 8, lambda _: None)


async def test_the_models_that_a_key_may_ask(hub: ScriptedHub) -> None:
    assert await asyncio.to_thread(Client(hub.url, None, KEY).models) == ("tiny",)
    with pytest.raises(DemoFailedError, match="answered with 401"):
        await asyncio.to_thread(Client(hub.url, None, "wrong").models)


async def test_where_a_model_may_be_is_said(hub: ScriptedHub) -> None:
    client = Client(hub.url, None, KEY, relay="required")
    with pytest.raises(DemoFailedError, match=r"answered with 4"):
        await asyncio.to_thread(client.chat, "tiny", "Hi", 8, print)


async def test_a_wrong_key_is_refused(hub: ScriptedHub) -> None:
    assert await asyncio.to_thread(Client(hub.url, None, KEY).wrong_key) == 401
    assert KEY not in repr(Client(hub.url, None, KEY))


def test_a_fault_as_a_sentence() -> None:
    assert sentence({"message": "it is full.", "hint": "make room"}) == "it is full: make room"
    assert sentence({"message": "it is full"}) == "it is full"
    assert sentence(None) == sentence({"hint": "x"}) == "the node did not say why"
