from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.hopcheck.decide import RANKED, decide, failing
from relaydesk.core.hopcheck.model import Exchange, Observation, Place
from tests.support.edge_scenes import (
    FAULTS,
    NODE,
    PUBLIC,
    Seen,
    answer,
    clean,
    closed,
    layers,
    mapped,
    stripped,
    unexposed,
)


def seen_through(names: tuple[str, ...], faults: dict[str, list[str]]) -> dict[str, Seen]:
    """What is seen at each layer, where a layer adds its faults to what comes from further in."""
    observed: dict[str, Seen] = {}
    all_layers = layers(*names)
    done: list[str] = []
    for layer in all_layers:
        done += faults.get(layer.name, [])
        seen = clean(layer)
        for each in done:
            seen = FAULTS[each][0](seen)
        observed[layer.name] = seen
    return observed


def at(inner: Seen, outer: Seen, via: Seen | None = None) -> dict[str, Seen]:
    return {"loopback": inner, "public": outer, **({"nginx": via} if via is not None else {})}


def test_a_correct_edge_has_no_finding() -> None:
    report = decide(layers("nginx"), seen_through(("nginx",), {}))
    assert report.ok
    assert report.findings == ()
    assert report.inside == frozenset()


# A layer adds one fault here, and the same or another one may be added again further out.
PLAN = st.dictionaries(
    st.sampled_from(["a", "b", "c", "public"]), st.sampled_from(sorted(FAULTS)).map(lambda each: [each])
)


@given(PLAN)
def test_the_first_layer_from_inside_is_guilty_and_no_other(plan: dict[str, list[str]]) -> None:
    names = ("a", "b", "c")
    report = decide(layers(*names), seen_through(names, plan))
    guilty: dict[str, str] = {}
    for layer in (*names, "public"):
        for fault in plan.get(layer, []):
            for code in FAULTS[fault][1]:
                guilty.setdefault(code, layer)
    found = {finding.code: finding.layer for finding in report.findings if finding.code in guilty}
    # One that is gone hides the other: a marker and a page in its place, a limit and a failure at the body.
    hidden = {"marker_removed", "answer_replaced", "body_limited", "body_failed"}
    assert {code: found.get(code) for code in guilty if code not in hidden} == {
        code: layer for code, layer in guilty.items() if code not in hidden
    }
    assert set(found.values()) <= set(plan)
    assert {finding.layer for finding in report.findings} <= set(plan)
    assert report.ok == (not plan)


@given(st.sampled_from(sorted(FAULTS)), st.sampled_from(["a", "b", "public"]))
def test_each_fault_alone_is_found_at_its_layer(fault: str, layer: str) -> None:
    report = decide(layers("a", "b"), seen_through(("a", "b"), {layer: [fault]}))
    assert {finding.code for finding in report.findings} == FAULTS[fault][1]
    assert {finding.layer for finding in report.findings} == {layer}
    for finding in report.findings:
        assert (finding.severity, finding.title.format()) == (RANKED[finding.code][0], finding.title)
        assert finding.effect
        assert finding.remedy
        assert finding.evidence


def test_the_same_fault_twice_is_the_inner_ones_until_that_is_mended() -> None:
    both = seen_through(("inner", "outer"), {"inner": ["stripped"], "outer": ["stripped"]})
    assert [f.layer for f in decide(layers("inner", "outer"), both).findings] == ["inner"]
    mended = seen_through(("inner", "outer"), {"outer": ["stripped"]})
    assert [f.layer for f in decide(layers("inner", "outer"), mended).findings] == ["outer"]


@pytest.mark.parametrize("fault", ["limited", "failing"])
def test_a_limit_further_in_is_not_whoever_fails_because_of_it(fault: str) -> None:
    inner, outer = clean(layers("inner")[1]), clean(layers("inner")[2])
    seen = {
        "loopback": clean(layers()[0]),
        "inner": FAULTS["limited"][0](inner),
        "public": FAULTS[fault][0](outer),
    }
    (finding,) = decide(layers("inner"), seen).findings
    assert (finding.code, finding.layer) == ("body_limited", "inner")


def test_a_name_that_leads_inside_blames_nobody() -> None:
    seen = stripped(clean(PUBLIC))
    seen["name"] = replace(seen["name"], places=(Place("192.168.1.5", own=True, public=False),))
    report = decide((NODE, PUBLIC), at(clean(NODE), seen))
    (finding,) = report.findings
    assert (finding.code, finding.severity, finding.layer) == ("seen_from_inside", "info", "")
    assert report.inside == {"public"}
    assert "192.168.1.5" in finding.evidence[0]


def test_an_address_that_was_given_is_meant_so() -> None:
    public = replace(PUBLIC, url="http://127.0.0.1:18502")
    seen = stripped(clean(public))
    seen["name"] = replace(seen["name"], places=(Place("127.0.0.1", own=True, public=False),))
    assert [f.code for f in decide((NODE, public), at(clean(NODE), seen)).findings] == ["marker_removed"]


def test_private_addresses_are_the_world_in_a_lab_alone() -> None:
    seen = stripped(clean(PUBLIC))
    seen["name"] = replace(seen["name"], places=(Place("10.1.2.3", own=False, public=False),))
    observed = at(clean(NODE), seen)
    assert [f.code for f in decide((NODE, PUBLIC), observed, lab=True).findings] == ["marker_removed"]
    assert [f.code for f in decide((NODE, PUBLIC), observed).findings] == ["seen_from_inside"]


def test_what_a_peer_sees_counts_even_where_we_only_see_the_inside() -> None:
    seen = clean(PUBLIC)
    seen["name"] = replace(seen["name"], places=(Place("127.0.0.1", own=True, public=False),))
    lost = Exchange("POST", PUBLIC.url, status=400, headers=(("Server", "nginx"),))
    seen["outside"] = Observation("outside", "public", (("outside", lost),))
    (finding,) = decide((NODE, PUBLIC), at(clean(NODE), seen)).findings
    assert (finding.code, finding.layer, finding.product) == ("marker_removed", "public", "nginx")
    marked = replace(lost, headers=(("x-zs-relay-hop", "1"),))
    seen["outside"] = Observation("outside", "public", (("outside", marked),))
    assert decide((NODE, PUBLIC), at(clean(NODE), seen)).ok


def test_a_router_that_does_not_lead_back_blames_nobody() -> None:
    places = (Place("203.0.113.7", own=False, public=True),)
    gone = {**closed({}), "name": Observation("name", "public", places=places)}
    inside = decide((NODE, PUBLIC), at(clean(NODE), gone), from_node=True)
    assert [(f.code, f.layer) for f in inside.findings] == [("not_seen_from_inside", "")]
    outside = decide((PUBLIC,), {"public": gone})
    assert [(f.code, f.layer) for f in outside.findings] == [("unreachable", "public")]


def test_a_layer_that_cannot_be_reached_from_here_is_passed_over_where_the_way_is_open() -> None:
    observed = at(clean(NODE), clean(PUBLIC), closed({}))
    assert decide(layers("nginx"), observed).ok
    observed["public"] = stripped(clean(PUBLIC))
    assert [(f.code, f.layer) for f in decide(layers("nginx"), observed).findings] == [
        ("marker_removed", "public")
    ]


def test_where_nothing_gets_through_the_first_one_is_guilty() -> None:
    page = Exchange("POST", "x", status=502, body=b"<html><center>nginx</center></html>")
    outer = {"reach": Observation("reach", "public", (("refusal", page),))}
    report = decide(layers("nginx"), at(clean(NODE), outer, closed({})))
    assert [(f.code, f.layer) for f in report.findings] == [("unreachable", "nginx")]


def test_another_node_is_named() -> None:
    other = b'{"operator_id":8,"node_id":0,"proto_version":"9.10"}'
    seen = mapped(clean(PUBLIC), lambda each: replace(each, body=other), "version")
    (finding,) = decide((NODE, PUBLIC), at(clean(NODE), seen)).findings
    assert (finding.code, finding.layer) == ("another_node", "public")
    assert "7:0" in finding.evidence[0]
    assert "8:0" in finding.evidence[0]


def test_findings_come_in_the_order_of_what_they_cost() -> None:
    seen = unexposed(clean(PUBLIC))
    seen["silence-20"] = replace(seen["silence-20"], exchanges=(("silence", answer(504, b"")),))
    codes = [f.code for f in decide((PUBLIC,), {"public": stripped(seen)}).findings]
    assert codes == ["marker_removed", "marker_not_exposed", "silence_cut"]


def test_one_layer_alone_says_that_it_may_be_one_behind() -> None:
    (finding,) = decide((PUBLIC,), {"public": stripped(clean(PUBLIC))}).findings
    assert "behind this" in finding.evidence[-1]


def test_what_fails_at_a_layer_is_said_by_probe() -> None:
    wrong = failing(PUBLIC, stripped(clean(PUBLIC)))
    assert set(wrong) == {"refusal", "error", "success", "http2"}
    assert failing(PUBLIC, clean(PUBLIC)) == {}
