"""What is to be checked: what is taken, what is refused and how, and the command that it comes to."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.commands import CheckHop
from relaydesk.core.errors import LocalError
from relaydesk.core.view.hopcheck import HopCheckView
from relaydesk.surfaces.console.panes.hopcheck.plan import MOST_LAYERS, PUBLIC, Plan, read_url
from tests.surfaces.console.panes.hopcheck.scenes import IDLE

NGINX = "http://127.0.0.1:8080"


def test_layers_stand_from_the_inside_outwards() -> None:
    plan = Plan().with_layer("nginx", NGINX, IDLE).with_layer("edge", "https://edge.example.org/", IDLE)
    assert [(each.name, each.kind, each.mine) for each in plan.entries(IDLE)] == [
        ("loopback", "loopback", False),
        ("lan", "lan", False),
        ("nginx", "via", True),
        ("edge", "via", True),
        (PUBLIC, "public", False),
    ]
    assert plan.command() == CheckHop(via=(f"nginx={NGINX}", "edge=https://edge.example.org"))
    assert plan.cli(IDLE).split() == [
        *("relaydesk", "check-hop", "https://node.example.org"),
        *("--via", f"nginx={NGINX}", "--via", "edge=https://edge.example.org"),
    ]


def test_another_public_url_and_back() -> None:
    plan = Plan(long=True).with_public("https://other.example/zs/")
    assert plan.target(IDLE) == "https://other.example/zs"
    assert plan.command() == CheckHop(url="https://other.example/zs", long=True)
    assert plan.entries(IDLE)[-1].origin == "given here"
    assert plan.cli(IDLE).endswith("--long")
    assert plan.without(PUBLIC).target(IDLE) == "https://node.example.org"
    assert plan.with_public("") == Plan(long=True)


def test_a_node_that_advertises_nothing_has_no_target() -> None:
    assert Plan().target(HopCheckView()) == ""
    assert Plan().entries(HopCheckView()) == ()
    assert "URL" in Plan().cli(HopCheckView())


def test_a_layer_is_put_in_place_of_itself_and_taken_out() -> None:
    plan = Plan().with_layer("nginx", NGINX, IDLE).with_layer("edge", "https://edge.example.org", IDLE)
    moved = plan.with_layer("front", "http://[::1]:81", IDLE, "nginx")
    assert [name for name, _ in moved.via] == ["front", "edge"]
    assert plan.with_layer("nginx", "http://[::1]:81", IDLE, "nginx").via[0] == ("nginx", "http://[::1]:81")
    assert moved.without("front").via == (("edge", "https://edge.example.org"),)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("node.example.org", "has no http:// or https:// in front"),
        ("ftp://node.example.org", "is no URL that can be checked"),
        ("http://", "is no URL that can be checked"),
        ("https://me:secret@node.example.org", "is no URL that can be checked"),
        ("https://node.example.org/?a", "is no URL that can be checked"),
        ("https://node.example.org:99999", "is no URL that can be checked"),
        ("https://node.example.org/#a", "is no URL that can be checked"),
    ],
)
def test_a_url_is_refused_in_one_sentence(url: str, said: str) -> None:
    with pytest.raises(LocalError) as refused:
        Plan().with_public(url)
    assert said in refused.value.fault.sentence
    assert "\n" not in refused.value.fault.sentence


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "is no name for a layer"),
        ("two words", "is no name for a layer"),
        ("a=b", "is no name for a layer"),
        ("loopback", "there is a layer 'loopback' already"),
        ("public", "there is a layer 'public' already"),
        ("nginx", "there is a layer 'nginx' already"),
    ],
)
def test_a_name_is_refused_in_one_sentence(name: str, said: str) -> None:
    plan = Plan().with_layer("nginx", NGINX, IDLE)
    with pytest.raises(LocalError) as refused:
        plan.with_layer(name, NGINX, IDLE)
    assert said in refused.value.fault.sentence


def test_there_are_no_more_layers_than_a_node_takes() -> None:
    plan = Plan()
    for at in range(MOST_LAYERS):
        plan = plan.with_layer(f"layer-{at}", NGINX, IDLE)
    with pytest.raises(LocalError, match="the most there can be"):
        plan.with_layer("one-more", NGINX, IDLE)


@given(st.text(max_size=60))
def test_whatever_is_typed_is_a_url_or_one_sentence(text: str) -> None:
    try:
        url = read_url(text)
    except LocalError as error:
        refused = error.fault
    else:
        assert url.startswith(("http://", "https://"))
        assert read_url(url) == url
        # The line that is shown can be pasted into a shell.
        assert url in shlex.split(Plan(url=url).cli(IDLE))
        return
    assert refused.code == "invalid_request"
    assert len(refused.sentence) < 240
