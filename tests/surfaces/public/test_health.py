from __future__ import annotations

from tests.support.scripted_hub import ScriptedHub


async def test_ready_only_while_requests_are_taken(hub: ScriptedHub) -> None:
    for accepting, status in ((True, 200), (False, 503), (True, 200)):
        hub.accepting = accepting
        async with hub.session.get(f"{hub.url}/readyz") as reply:
            assert reply.status == status
            assert ("Retry-After" in reply.headers) is not accepting
        async with hub.session.get(f"{hub.url}/healthz") as reply:
            assert (reply.status, await reply.json()) == (200, {"status": "ok"})
