"""How long a client keeps a model, and how it lets it go."""

from __future__ import annotations

import asyncio

from tests.engine.pool.test_runner import virtual
from tests.support.runner_rig import Rig, settle


@virtual
async def test_a_client_says_how_long_it_stays_after_its_request() -> None:
    rig = Rig()
    rig.runner.release(await rig.request(), 7)
    assert rig.runner.keeps_s() == 7
    await asyncio.sleep(6)
    assert rig.state == "warm"
    await asyncio.sleep(2)
    assert rig.state == "cold"
    assert rig.runner.keeps_s() == 100
    rig.runner.release(await rig.request(), 0)
    assert rig.state == "unloading"
    await settle()
    rig.nothing_left()


@virtual
async def test_a_request_that_says_nothing_shortens_nothing() -> None:
    rig = Rig()
    rig.runner.release(await rig.request(), -1)
    rig.runner.release(await rig.request())
    await asyncio.sleep(10_000)
    assert rig.state == "warm"
    rig.runner.release(await rig.request(), 7)
    rig.runner.release(await rig.request())
    assert rig.runner.keeps_s() == 100


@virtual
async def test_what_counts_is_the_end_of_the_last_request() -> None:
    rig = Rig()
    first, second = await rig.request(), await rig.request()
    rig.runner.release(first, 0)
    assert rig.state == "warm"
    rig.runner.release(second)
    assert rig.state == "warm"
    await asyncio.sleep(101)
    assert rig.state == "cold"


@virtual
async def test_what_is_set_to_stay_for_ever_stays() -> None:
    rig = Rig()
    rig.keep_alive_s = -1
    rig.runner.release(await rig.request(), 0)
    await asyncio.sleep(10_000)
    assert rig.state == "warm"


@virtual
async def test_let_go_it_ends_once_it_is_idle_and_serves_until_then() -> None:
    rig = Rig()
    rig.runner.let_go()
    assert rig.state == "cold"
    await rig.warm()
    rig.runner.let_go()
    assert rig.state == "unloading"
    first = await rig.request()
    rig.runner.let_go()
    second = await rig.request()
    rig.runner.release(first)
    assert rig.state == "warm"
    rig.runner.release(second)
    assert rig.state == "unloading"
    await settle()
    rig.nothing_left()


@virtual
async def test_a_request_that_wants_it_kept_takes_the_letting_go_back() -> None:
    rig = Rig()
    first = await rig.request()
    rig.runner.let_go()
    second = await rig.request()
    rig.runner.release(second, 50)
    rig.runner.release(first)
    assert rig.state == "warm"
    await asyncio.sleep(101)
    assert rig.state == "cold"


@virtual
async def test_let_go_while_it_loads() -> None:
    rig = Rig(load_s=3.0)
    waits = rig.request()
    await settle()
    rig.runner.let_go()
    assert rig.state == "loading"
    rig.runner.release(await waits)
    await settle()
    rig.nothing_left()
    rig.runner.want(force=False)
    await settle()
    rig.runner.let_go()
    await settle()
    rig.nothing_left()


@virtual
async def test_how_long_it_is_still_there() -> None:
    rig = Rig()
    assert rig.runner.left_ms() is None
    lease = await rig.request()
    assert rig.runner.left_ms() == 100_000
    rig.runner.release(lease, 7)
    assert rig.runner.left_ms() == 7000
    await asyncio.sleep(2)
    assert rig.runner.left_ms() == 5000
    rig.runner.release(await rig.request(), -1)
    assert rig.runner.left_ms() is None
    again = await rig.request()
    assert rig.runner.left_ms() is None
    rig.runner.release(again)


@virtual
async def test_one_that_is_loaded_ahead_waits_for_its_first_request() -> None:
    rig = Rig()
    rig.keep_alive_s = 0
    await rig.warm()
    assert rig.runner.left_ms() is None
    await rig.request()
    assert rig.runner.left_ms() == 0
