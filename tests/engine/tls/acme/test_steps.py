from __future__ import annotations

import threading

import pytest

from relaydesk.core.errors import EnvError
from relaydesk.engine.tls.acme.steps import MAX_LEFT, Steps


async def test_results_and_errors_come_back_from_another_thread() -> None:
    steps = Steps("acme.test")
    assert await steps.do(threading.get_ident, 5) != threading.get_ident()
    with pytest.raises(KeyError, match="gone"):
        await steps.do(lambda: {}["gone"], 5)


async def test_a_call_that_hangs_is_given_up_and_so_many_may() -> None:
    steps, gate = Steps("acme.test"), threading.Event()
    for _ in range(MAX_LEFT):
        with pytest.raises(EnvError, match=r"acme\.test did not answer within 0\.01 s"):
            await steps.do(gate.wait, 0.01)
    with pytest.raises(EnvError, match="still has not answered"):
        await steps.do(gate.wait, 0.01)
    gate.set()
    for thread in steps._left:
        thread.join(5)
    assert await steps.do(lambda: "again", 5) == "again"
