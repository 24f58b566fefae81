"""What the network offers, as its nodes told it over HTTP."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relaydesk.core.errors import FaultError
from relaydesk.core.relay.ref import NodeRef
from tests.support.exchange_rig import ExchangeRig
from tests.support.wire.lies import put
from tests.support.wire.target import MinimalTarget


async def test_models_by_name_with_the_cheapest_price(tmp_path: Path) -> None:
    targets = [
        MinimalTarget(7, rates=(0.5, 2.0), window=4096),
        MinimalTarget(8, rates=(0.25, 1.0), window=8192),
        MinimalTarget(9, model="lab/other", rates=(0, 0)),
    ]
    async with ExchangeRig(tmp_path, targets) as rig:
        tiny, other = sorted(rig.exchange.market.models(), key=lambda each: -each.targets)
        assert msgspec.structs.astuple(tiny) == ("lab/tiny", 250_000, 1_000_000, 8192, 8192, 2, True, 4)
        assert msgspec.structs.astuple(other) == ("lab/other", 0, 0, 8192, 8192, 1, True, 4)
        assert rig.exchange.market.find("lab/tiny") == tiny
        assert rig.exchange.market.find("lab/none") is None


async def test_how_many_relays_may_carry_it(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path, relays=3) as rig:
        (found,) = rig.exchange.market.models()
        assert (found.relays, found.warm) == (3, True)


async def test_the_cheapest_is_asked_first(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path, [MinimalTarget(7), MinimalTarget(8, rates=(0.25, 1.0))]) as rig:
        await rig.stream()
        assert [paid.target for paid in rig.paid] == [NodeRef(8, 1)]


async def test_what_only_draws_and_what_is_under_test_is_not_offered(tmp_path: Path) -> None:
    def draws(details: dict[str, Any]) -> None:
        details["models"][0]["output_modalities"] = ["image"]

    async with ExchangeRig(tmp_path, [MinimalTarget(7), MinimalTarget(8, model="lab/staged")]) as rig:
        rig.targets[0].lies.details = draws
        await rig.probe()
        staged = rig.directory.listed[NodeRef(8, 1)]
        rig.directory.listed[NodeRef(8, 1)] = replace(staged, staging=True)
        rig.clock.ahead_s += 2
        assert rig.exchange.market.models() == ()
        assert await code(rig) == "no_operator"
        assert await code(rig, "lab/staged") == "no_production_operator"


async def code(rig: ExchangeRig, model: str = "lab/tiny", hints: bytes = b"", **fields: Any) -> str:
    """The code that a request ends in before anybody is asked."""
    before = len(rig.seen)
    with pytest.raises(FaultError) as caught:
        await rig.stream(rig.body(model=model, **fields), model=model, hints=hints)
    assert len(rig.seen) == before
    return caught.value.fault.code


async def test_each_reason_without_a_target_has_its_code(tmp_path: Path) -> None:
    async with ExchangeRig(
        tmp_path, [MinimalTarget(7), MinimalTarget(8, model="lab/old", proto_version="8.9")]
    ) as rig:
        assert await code(rig, "lab/none") == "no_operator"
        assert await code(rig, "lab/old") == "no_compatible_operator"
        assert await code(rig, hints=b'{"only":["99"]}') == "no_pinned_operator"
        assert await code(rig, hints=b'{"ignore":["7:1"]}') == "no_pinned_operator"
        assert await code(rig, hints=b'{"order":["99"],"allow_fallbacks":false}') == "no_pinned_operator"
        assert await code(rig, hints=b'{"max_price":{"output":1.99}}') == "price_ceiling_exceeded"
        assert await code(rig, max_tokens=8192) == "context_length_exceeded"
        assert await code(rig, max_tokens=None) == "max_output_required"
        tools = [{"type": "zs_web_search"}]
        assert await code(rig, hints=b'{"require_tools":true}', tools=tools) == "no_tool_capacity"


async def test_a_target_that_is_left_alone_is_no_candidate(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.asker.peers.down(NodeRef(7, 1))
        assert await code(rig) == "operators_unreachable"
        found = rig.exchange.market.find("lab/tiny")
        assert found is not None
        assert not found.warm
        assert found.relays == 0


async def test_prices_that_nobody_can_mean_are_none(tmp_path: Path) -> None:
    def odd(details: dict[str, Any]) -> None:
        details["models"][0].update(input_rate_usd_per_1m=5e-324, output_rate_usd_per_1m=2.0)

    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.details = odd
        await rig.probe()
        found = rig.exchange.market.find("lab/tiny")
        assert found is not None
        assert (found.input_rate, found.output_rate) == (0, 2_000_000)
        # What it reserves at is above nothing.
        with pytest.raises(FaultError) as caught:
            await rig.stream()
        assert caught.value.fault.code == "ticket_price_rejected"


async def test_offers_change_with_the_details(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        market = rig.exchange.market
        first = market.candidates()
        assert len(market.models()) == 1
        assert market.candidates()[0] is first[0]
        rig.targets[0].lies.details = put(models=[])
        await rig.probe()
        assert [list(each.models) for each in market.candidates()] == [[]]
        assert len(market.models()) == 1, "the list may be a second old"
        rig.clock.ahead_s += 1.5
        assert market.models() == ()
        assert market.advertised(NodeRef(7, 1), "lab/tiny") is None
