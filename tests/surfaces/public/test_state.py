from __future__ import annotations

import asyncio

from tests.support.scripted_engine import Script, answer, piece
from tests.support.scripted_hub import ScriptedHub


async def test_a_changed_heartbeat_counts_for_the_next_stream(hub: ScriptedHub) -> None:
    await hub.warm()
    hub.starter.reply = lambda _: Script([piece("x"), 0.3, *answer("y").steps])
    quiet = (await hub.chat(stream=True))[2]
    assert ": keep-alive" not in quiet
    hub.heartbeat_s = 0.05
    beating = (await hub.chat(stream=True))[2]
    assert 2 <= beating.count(": keep-alive\n\n") <= 6
    await asyncio.sleep(0)
