"""Guests at a real hub over a scripted engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest_asyncio

from relaydesk.surfaces.demo.client import Client
from relaydesk.surfaces.demo.guests import Guests
from tests.support.scripted_engine import Script, answer, piece
from tests.support.scripted_hub import KEY, ScriptedHub


@pytest_asyncio.fixture
async def hub(tmp_path: Path) -> AsyncIterator[ScriptedHub]:
    async with ScriptedHub(tmp_path) as hub:
        await hub.add()
        yield hub


@asynccontextmanager
async def visited(guests: Guests) -> AsyncIterator[None]:
    """Guests at a hub that runs in this loop, which must go on while they leave."""
    with ExitStack() as stack:
        stack.enter_context(guests)
        yield
        await asyncio.to_thread(stack.close)


async def test_guests_ask_again_and_again(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: answer("Yes.")
    async with visited(Guests((Client(hub.url, None, KEY), "tiny"), count=3, pause_s=0.01)):
        await hub.until(lambda: hub.journal.requests_total >= 12)
    assert {view.state for view in hub.journal.view().recent} <= {"done", "cancelled"}
    await hub.idle()


async def test_a_guest_asks_for_one_model_after_the_other(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: answer("Yes.")
    await hub.add("other")
    client = Client(hub.url, None, KEY)
    async with visited(Guests((client, "tiny"), (client, "other"), count=1, pause_s=0.01)):
        await hub.until(lambda: {view.model for view in hub.journal.view().recent} >= {"tiny", "other"})
    await hub.idle()


async def test_a_guest_goes_on_after_a_fault_and_leaves_within_an_answer(hub: ScriptedHub) -> None:
    words = [piece("word ") for _ in range(400)]
    hub.starter.reply = lambda _: Script([step for word in words for step in (word, 0.02)])
    guests = Guests((Client(hub.url, None, "wrong"), "tiny"), count=1, pause_s=0.01)
    async with visited(guests):
        # Refused so far; now the key is the right one, and the answer takes eight seconds.
        await asyncio.sleep(0.1)
        guests._asked = ((Client(hub.url, None, KEY), "tiny"),)
        await hub.until(lambda: hub.journal.in_flight == 1)
        left = time.monotonic()
    assert time.monotonic() - left < 4
    await hub.idle()
    assert hub.journal.view().recent[0].state == "cancelled"
