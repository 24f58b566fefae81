from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.eligible import (
    EXCLUSIONS,
    Candidate,
    count_eligible,
    eligible,
    exclusion,
    first_tier,
)
from relaydesk.core.relay.ref import NodeRef


def node(
    operator: int, number: int = 0, *, owner: str = "", host: str = "", version: str = "9.10", up: bool = True
) -> Candidate:
    return Candidate(
        NodeRef(operator, number),
        owner or f"owner{operator}",
        f"https://{host or f'n{operator}.example'}",
        version,
        up,
    )


TARGET = node(1, host="203.0.113.5")


def test_why_a_node_may_not_relay() -> None:
    assert exclusion(TARGET, TARGET) == "same_operator"
    assert exclusion(TARGET, node(1, 9, owner="another")) == "same_operator"
    assert exclusion(TARGET, node(2, owner="owner1")) == "same_owner"
    assert exclusion(TARGET, node(2, version="8.10")) == "incompatible"
    assert exclusion(TARGET, node(2, version="")) == "incompatible"
    assert exclusion(TARGET, node(2, version="8.10"), our_major=8) is None
    assert exclusion(TARGET, node(2, host="203.0.200.9:8443")) == "same_subnet"
    assert exclusion(TARGET, node(2, host="203.1.0.9")) is None
    assert exclusion(node(1), node(2, host="n1.example")) is None
    # The first reason that holds is told, of several.
    assert exclusion(TARGET, node(1, 3, version="1.0", host="203.0.0.1")) == "same_operator"


def test_nothing_else_excludes() -> None:
    assert exclusion(TARGET, node(2, version="9.x", up=False)) is None
    assert exclusion(TARGET, node(2, version="9.0")) is None


nodes = st.builds(
    node,
    st.integers(1, 5),
    st.integers(0, 2),
    owner=st.sampled_from(["", "a", "b"]),
    host=st.sampled_from(["", "203.0.113.5", "203.0.9.9", "8.8.8.8", "10.0.0.1"]),
    version=st.sampled_from(["9.10", "9.0", "8.0", "", "9.x"]),
    up=st.booleans(),
)


@given(nodes, st.lists(nodes, max_size=12, unique_by=lambda one: one.ref))
def test_the_pool_is_ordered_and_each_other_node_has_a_reason(
    target: Candidate, pool: list[Candidate]
) -> None:
    kept, reasons = eligible(target, pool)
    assert [one.ref for one in kept] == sorted(one.ref for one in kept)
    assert {one.ref for one in kept} | set(reasons) == {one.ref for one in pool}
    assert not {one.ref for one in kept} & set(reasons)
    assert set(reasons.values()) <= set(EXCLUSIONS)
    for one in kept:
        assert one.ref.operator != target.ref.operator and one.owner != target.owner


@given(st.lists(nodes, max_size=8))
def test_reachable_ones_go_first_and_never_shut_out_all(pool: list[Candidate]) -> None:
    tier = first_tier(pool)
    if any(one.reachable for one in pool):
        assert tier == [one for one in pool if one.reachable]
    else:
        assert tier == pool


@given(st.lists(nodes, max_size=14, unique_by=lambda one: one.ref))
def test_counting_for_all_of_them_at_once_comes_to_the_same(pool: list[Candidate]) -> None:
    assert count_eligible(pool) == {one.ref: len(eligible(one, pool)[0]) for one in pool}
