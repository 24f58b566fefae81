"""Target selection: every step, what explains an empty result, and what holds for any set of nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.candidate import Candidate, Capacity
from relaydesk.core.relay.target.constraints import IMAGE_EDITS, IMAGE_GENERATIONS, Constraints
from relaydesk.core.relay.target.hints import Hints
from relaydesk.core.relay.target.reference import Reference
from relaydesk.core.relay.target.selection import Selection, select_targets

ASKED = Constraints("m", input_tokens=100, max_output_tokens=100)


def node(operator: int, number: int = 0, *, version: str = "9.10", rate: int = 0, **fields: Any) -> Candidate:
    declared = Capacity(input_rate=rate, output_rate=rate, **fields.pop("capacity", {}))
    return Candidate(
        NodeRef(operator, number), version, fields.pop("models", ("m",)), {"m": declared}, **fields
    )


def refs(chosen: Selection) -> list[tuple[int, int]]:
    assert len(chosen.groups) == len(chosen.nodes) and list(chosen.groups) == sorted(chosen.groups)
    return [tuple(each.ref) for each in chosen.nodes]


BAD = {
    "provider_pin_blocked": node(1),
    "image_endpoint_unsupported": node(2, capacity={"serves_image_edit": True}),
    "version_blocked": node(2, version="8.9"),
    "tee_blocked": node(2),
    "staging_blocked": node(2, staging=True, tee_attested=True),
    "signer_underfunded_blocked": node(2, spendable=1, tee_attested=True),
    "price_blocked": node(2, rate=11, tee_attested=True),
    "tool_unsupported": node(2, rate=10, tee_attested=True),
}
DEMANDING = replace(
    ASKED,
    require_tee=True,
    requested_tools=("zs_a",),
    hints=Hints(ignore=(Reference(1),), max_input_rate=10, require_tools=True),
)


@pytest.mark.parametrize("reason", BAD)
def test_one_reason_explains_why_there_is_none(reason: str) -> None:
    image = reason == "image_endpoint_unsupported"
    asked = replace(DEMANDING, endpoint=IMAGE_GENERATIONS) if image else DEMANDING
    chosen = select_targets([BAD[reason]], asked)
    assert (chosen.nodes, chosen.blocked, chosen.reason) == ((), reason, reason)
    assert chosen.served_by == 1


def test_the_last_step_that_a_node_reached_is_the_reason() -> None:
    nodes = [each for name, each in BAD.items() if name != "image_endpoint_unsupported"]
    reasons = [name for name in BAD if name != "image_endpoint_unsupported"]
    while nodes:
        assert select_targets(nodes, DEMANDING).reason == reasons[-1]
        nodes.pop()
        reasons.pop()
    good = node(5, rate=10, tee_attested=True, builtin_tools=("zs_a",))
    assert refs(select_targets([*BAD.values(), good], DEMANDING)) == [(5, 0)]


def test_nobody_serves_it_or_nobody_has_room() -> None:
    assert select_targets([], ASKED).reason == "not_served"
    assert select_targets([node(1, models=("n",))], ASKED).reason == "not_served"
    pinned = replace(ASKED, hints=Hints(only=(Reference(1),)))
    assert select_targets([node(1, models=("n",))], pinned).reason == "not_served"
    chosen = select_targets([node(1, capacity={"context_window": 150, "max_output_tokens": 500})], ASKED)
    assert chosen.reason == "too_large" and chosen.blocked is None
    assert chosen.misses[0] == (chosen.misses[0].__class__)(NodeRef(1, 0), 150, 500, 100)


def test_a_miss_is_told_where_others_fit_too() -> None:
    chosen = select_targets([node(1, capacity={"context_window": 150}), node(2)], ASKED)
    assert refs(chosen) == [(2, 0)] and [miss.ref for miss in chosen.misses] == [NodeRef(1, 0)]


def test_the_cheapest_first_then_by_reference() -> None:
    nodes = [node(4, 2), node(4, 1), node(3, rate=9), node(2, rate=8), node(9, rate=8)]
    assert refs(select_targets(nodes, ASKED)) == [(2, 0), (9, 0), (3, 0), (4, 1), (4, 2)]


def test_ceilings_are_for_tokens_only() -> None:
    serving = node(1, capacity={"serves_image_edit": True, "image_edit_rate": 5})
    asked = replace(ASKED, endpoint=IMAGE_EDITS, hints=Hints(max_input_rate=1, max_output_rate=1))
    assert refs(select_targets([serving], asked)) == [(1, 0)]


def test_staging_nodes_serve_those_who_ask_for_them() -> None:
    nodes = [node(1, staging=True), node(2)]
    assert refs(select_targets(nodes, ASKED)) == [(2, 0)]
    assert refs(select_targets(nodes, replace(ASKED, allow_staging=True))) == [(1, 0), (2, 0)]


def test_what_is_offered_goes_before_the_price() -> None:
    tools = node(1, rate=90, builtin_tools=("zs_a",))
    images = node(2, rate=80, capacity={"offers_image_gen_tool": True})
    asked = replace(ASKED, requested_tools=("zs_a",), image_tool_budget=1)
    chosen = select_targets([node(3, rate=1), node(4, rate=2), tools, images], asked)
    assert refs(chosen) == [(2, 0), (1, 0), (3, 0), (4, 0)]
    assert chosen.groups == (1, 2, 3, 3)


def test_the_callers_order() -> None:
    nodes = [node(1, rate=1), node(2, rate=2), node(3, 1, rate=9), node(3, 2, rate=8)]
    order = (Reference(3), Reference(3, 1), Reference(2, 0), Reference(77))
    soft = replace(ASKED, hints=Hints(order=order))
    assert refs(select_targets(nodes, soft)) == [(3, 2), (3, 1), (2, 0), (1, 0)]
    hard = replace(ASKED, hints=Hints(order=order, allow_fallbacks=False))
    assert refs(select_targets(nodes, hard)) == [(3, 2), (3, 1), (2, 0)]
    nobody = replace(ASKED, hints=Hints(order=(Reference(77),), allow_fallbacks=False))
    assert select_targets(nodes, nobody).reason == "provider_pin_blocked"


FAR = [node(1), node(2), node(3, 1), node(3, 2)]
HARD = Hints(order=(Reference(1),), allow_fallbacks=False)


@pytest.mark.parametrize(
    ("preferred", "hints", "prefer", "strict"),
    [
        (None, Hints(), [(1, 0), (2, 0), (3, 1), (3, 2)], [(1, 0), (2, 0), (3, 1), (3, 2)]),
        (node(3, 2, models=()), Hints(), [(1, 0), (2, 0), (3, 1), (3, 2)], [(1, 0), (2, 0), (3, 1), (3, 2)]),
        (node(3, 2), Hints(), [(3, 2), (1, 0), (2, 0), (3, 1)], [(3, 2)]),
        (node(9), Hints(), [(9, 0), (1, 0), (2, 0), (3, 1), (3, 2)], [(9, 0)]),
        (node(3, 2), Hints(order=(Reference(2),)), [(3, 2), (2, 0), (1, 0), (3, 1)], [(3, 2)]),
        (node(3, 2), Hints(ignore=(Reference(3, 2),)), [(1, 0), (2, 0), (3, 1)], "affinity_blocked"),
        (node(3, 2), HARD, [(1, 0)], "affinity_blocked"),
        (node(9, spendable=0), Hints(), [(1, 0), (2, 0), (3, 1), (3, 2)], "signer_underfunded_blocked"),
        (
            node(9, spendable=0, capacity={"context_window": 9}),
            Hints(),
            [(1, 0), (2, 0), (3, 1), (3, 2)],
            "affinity_blocked",
        ),
    ],
)
def test_affinity(preferred: Candidate | None, hints: Hints, prefer: object, strict: object) -> None:
    for policy, expected in (("prefer", prefer), ("strict", strict)):
        chosen = select_targets(FAR, replace(ASKED, affinity=policy, hints=hints), preferred)  # type: ignore[arg-type]
        assert (chosen.reason if isinstance(expected, str) else refs(chosen)) == expected
    none = select_targets(FAR, replace(ASKED, hints=hints), preferred)
    assert none == select_targets(FAR, replace(ASKED, hints=hints))


NODES = st.lists(
    st.builds(
        node,
        st.integers(1, 4),
        st.integers(0, 2),
        version=st.sampled_from(["9.10", "9.1", "8.0", "", "x"]),
        rate=st.integers(0, 3),
        staging=st.booleans(),
        tee_attested=st.booleans(),
        spendable=st.none() | st.sampled_from([0, 5_000_000]),
        models=st.sampled_from([("m",), (), ("n",)]),
        builtin_tools=st.sampled_from([(), ("zs_a",)]),
        capacity=st.fixed_dictionaries({"context_window": st.sampled_from([0, 150, 500])}),
    ),
    max_size=8,
    unique_by=lambda each: each.ref,
)
REFERENCES = st.lists(st.builds(Reference, st.integers(1, 4), st.none() | st.integers(0, 2)), max_size=2)
HINTS = st.builds(
    Hints,
    only=REFERENCES.map(tuple),
    ignore=REFERENCES.map(tuple),
    order=REFERENCES.map(tuple),
    allow_fallbacks=st.booleans(),
    max_input_rate=st.none() | st.integers(0, 3),
    require_tools=st.booleans(),
)


@given(NODES, HINTS, st.sampled_from(["none", "prefer", "strict"]), st.booleans(), st.randoms())
def test_for_any_nodes(nodes: list[Candidate], hints: Hints, affinity: Any, tee: bool, shuffle: Any) -> None:
    asked = replace(ASKED, hints=hints, affinity=affinity, require_tee=tee, requested_tools=("zs_a",))
    preferred = nodes[0] if nodes else None
    chosen = select_targets(nodes, asked, preferred)
    found = refs(chosen)
    assert len(set(found)) == len(found) and (chosen.reason is None) == bool(found)
    for each in chosen.nodes:
        assert each.serves("m") and hints.admits(each.ref) and not hints.pins_out(each.ref)
        assert not each.underfunded and asked.fit(each)
        usual = each.proto_version.startswith("9.") and each.tee_attested >= tee and not each.staging
        # What an earlier turn went to is not asked these again.
        assert usual or (each is preferred and affinity != "none")
    # The order in which they are known decides nothing.
    mixed = list(nodes)
    shuffle.shuffle(mixed)
    assert refs(select_targets(mixed, asked, preferred)) == found
