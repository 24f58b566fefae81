"""What is offered at this moment, and how many strangers it has room for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from relaydesk.engine.relay.target.offers import Offers
from tests.support.scripted_hub import ScriptedHub


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[ScriptedHub]:
    async with ScriptedHub(tmp_path) as hub:
        yield hub


def offers(hub: ScriptedHub, share: int | None = None, *, draining: bool = False) -> Offers:
    return Offers(hub.pool, lambda: share, lambda: draining)


async def offered(hub: ScriptedHub, **fields: Any) -> None:
    await hub.add("tiny", **{"offer": True, "slots": 4, "input_rate": 70_000, "output_rate": 1, **fields})
    await hub.warm("tiny")


async def test_a_loaded_model_that_is_offered(hub: ScriptedHub) -> None:
    await offered(hub)
    (model,) = offers(hub).models()
    assert (model.id, model.input_rate_usd_per_1m, model.output_rate_usd_per_1m) == ("tiny", 0.07, 1e-06)
    assert (model.context_window, model.max_output_tokens, model.retention) == (512, 0, "no_upstream")
    assert model.input_modalities == ("text",)
    offer = offers(hub).find("tiny")
    assert offer is not None
    assert (offer.window, offer.input_rate, offer.output_rate) == (512, 70_000, 1)
    assert (offer.most, offer.idle, offer.lent) == (2, 2, 0)


async def test_neither_a_cold_one_nor_one_that_leaves(hub: ScriptedHub) -> None:
    await hub.add("tiny", offer=True)
    assert offers(hub).models() == () and offers(hub).find("tiny") is None
    await hub.warm("tiny")
    assert offers(hub).find("tiny") is not None
    hub.pool.runner("tiny").leaving = True
    assert offers(hub).find("tiny") is None


async def test_nothing_that_is_not_offered_and_nothing_by_another_name(hub: ScriptedHub) -> None:
    await offered(hub, offer=False, aliases=("t",))
    assert offers(hub).find("tiny") is None
    await hub.registry.change("tiny", {"offer": True})
    assert offers(hub).find("tiny") is not None
    assert offers(hub).find("t") is None and offers(hub).find("other") is None


async def test_going_down_nothing_is_listed(hub: ScriptedHub) -> None:
    await offered(hub)
    assert offers(hub, draining=True).models() == ()
    # What was promised is still found.
    assert offers(hub, draining=True).find("tiny") is not None


@pytest.mark.parametrize(
    ("slots", "share", "most"), [(2, None, 1), (3, None, 1), (5, None, 2), (5, 1, 1), (5, 9, 4), (5, 0, None)]
)
async def test_how_many_strangers(hub: ScriptedHub, slots: int, share: int | None, most: int | None) -> None:
    await offered(hub, slots=slots)
    offer = offers(hub, share).find("tiny")
    assert (None if offer is None else offer.most) == most


async def test_slots_in_use_are_not_idle(hub: ScriptedHub) -> None:
    await offered(hub)
    slots = hub.pool.slots("tiny")
    assert slots is not None
    async with slots.slot("ann"), slots.slot("ann"):
        found = offers(hub).find("tiny")
        assert found is not None and (found.idle, found.lent) == (1, 0)
        async with slots.stranger(2, 1.0):
            found = offers(hub).find("tiny")
            assert found is not None and (found.idle, found.lent) == (0, 1)
