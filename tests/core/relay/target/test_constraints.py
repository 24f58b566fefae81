"""What one request needs, and what it is weighed by."""

from __future__ import annotations

import pytest

from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.candidate import Candidate, Capacity
from relaydesk.core.relay.target.constraints import IMAGE_EDITS, IMAGE_GENERATIONS, Constraints
from relaydesk.core.relay.target.hints import Hints

ASKED = Constraints("m", input_tokens=1000, input_tokens_v2=300, max_output_tokens=50)


def node(version: str = "9.10", **declared: int) -> Candidate:
    return Candidate(NodeRef(3, 1), version, ("m",), {"m": Capacity(**declared)})  # type: ignore[arg-type]


@pytest.mark.parametrize(("version", "tokens"), [("9.1", 1000), ("9.2", 300), ("9.10", 300), ("x", 1000)])
def test_input_is_measured_as_the_node_will(version: str, tokens: int) -> None:
    assert ASKED.input_for(node(version)) == tokens
    assert Constraints("m", input_tokens=7).input_for(node(version)) == 7


def test_output_that_nobody_stated_is_derived() -> None:
    assert ASKED.output_for(node(max_output_tokens=9)) == 50
    unstated = Constraints("m")
    assert unstated.output_for(node(max_output_tokens=9)) == 9
    assert unstated.output_for(node(context_window=4000)) == 1000
    assert unstated.output_for(node()) == 32_768
    assert Constraints("m", max_output_tokens=0).output_for(node()) == 0


def test_the_price_of_a_request_weighs_both_rates() -> None:
    assert ASKED.price_order(node(input_rate=2, output_rate=5)) == (2 * 300 + 5 * 50, 3, 1)
    typical = Constraints("m", max_output_tokens=0)
    assert typical.price_order(node(input_rate=2, output_rate=5))[0] == 7000
    for undeclared in ({"input_rate": 2}, {"output_rate": 2}, {}):
        assert ASKED.price_order(node(**undeclared))[0] == float("inf")


def test_images_are_priced_by_the_image() -> None:
    each = node(image_rate=8, image_edit_rate=9, input_rate=1, output_rate=1)
    assert Constraints("m", endpoint=IMAGE_GENERATIONS).price_order(each)[0] == 8
    assert Constraints("m", endpoint=IMAGE_EDITS).price_order(each)[0] == 9
    assert Constraints("m", endpoint=IMAGE_EDITS).on_image_route and not ASKED.on_image_route


@pytest.mark.parametrize(
    ("rate", "ceiling", "within"),
    [(5, None, True), (0, None, True), (5, 5, True), (6, 5, False), (0, 5, False), (1, 0, False)],
)
def test_a_rate_must_be_known_to_be_within_a_ceiling(rate: int, ceiling: int | None, within: bool) -> None:
    for axis in ("input", "output"):
        hints = Hints(**{f"max_{axis}_rate": ceiling})  # type: ignore[arg-type]
        capacity = Capacity(**{f"{axis}_rate": rate})  # type: ignore[arg-type]
        assert Constraints("m", hints=hints).within_ceilings(capacity) is within


def test_tools() -> None:
    one, both = Capacity(offers_image_edit_tool=True), Capacity(True, offers_image_gen_tool=True)
    assert ASKED.offers_image_tools(Capacity())
    edits = Constraints("m", image_edit_tool_budget=1)
    assert edits.offers_image_tools(one) and not edits.offers_image_tools(both)
    made = Constraints("m", image_tool_budget=1)
    assert made.offers_image_tools(both) and not made.offers_image_tools(one)
    asked = Constraints("m", requested_tools=("zs_a", "zs_b"))
    for tools, offered in ((("zs_a", "zs_b", "zs_c"), True), (("zs_a",), False), ((), False)):
        assert asked.offers_tools(Candidate(NodeRef(1, 1), "9.10", ("m",), builtin_tools=tools)) is offered
