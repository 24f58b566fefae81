from __future__ import annotations

import asyncio
from dataclasses import replace

from tests.support.scripted_engine import answer
from tests.support.scripted_hub import ScriptedHub


async def test_limits_count_from_the_moment_they_change(hub: ScriptedHub) -> None:
    await hub.add(slots=1)
    await hub.warm()
    hub.limits = replace(hub.limits, queue=1)
    hub.starter.reply = lambda _: answer("slow", delay=0.1)
    asked = [asyncio.create_task(hub.chat()) for _ in range(3)]
    assert sorted([(await each)[0] for each in asked]) == [200, 200, 429]
    hub.limits = replace(hub.limits, queue=2)
    asked = [asyncio.create_task(hub.chat()) for _ in range(3)]
    assert [(await each)[0] for each in asked] == [200, 200, 200]
    assert hub.pool.keep_alive_s("tiny") == 300
    hub.limits = replace(hub.limits, keep_alive_s=-1)
    assert hub.pool.keep_alive_s("tiny") == -1
    await hub.registry.change("tiny", {"keep_alive_s": 7})
    assert hub.pool.keep_alive_s("tiny") == 7
    assert hub.pool.keep_alive_s("nobody") == 0
