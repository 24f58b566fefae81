from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import LocalError
from relaydesk.core.hopcheck.model import Layer
from relaydesk.engine.hopcheck.layers import chain, checked_url, named_layer, own_layers

LOOPBACK = Layer("loopback", "http://127.0.0.1:8384", "loopback")


def test_layers_come_from_the_inside_outwards() -> None:
    found = chain(
        [LOOPBACK], ["nginx=http://127.0.0.1:80/x/", "cdn=https://edge.example"], "https://n.example/"
    )
    assert [(each.name, each.url, each.kind) for each in found] == [
        ("loopback", "http://127.0.0.1:8384", "loopback"),
        ("nginx", "http://127.0.0.1:80/x", "via"),
        ("cdn", "https://edge.example", "via"),
        ("public", "https://n.example", "public"),
    ]


def test_a_node_that_is_its_own_edge_is_asked_once() -> None:
    assert [each.name for each in chain([LOOPBACK], [], LOOPBACK.url)] == ["public"]


@pytest.mark.parametrize(
    "text", ["", "nginx", "=http://x", "a b=http://x", "public=http://x", "lan=http://x", "a=ftp://x", "a=x"]
)
def test_what_names_no_layer(text: str) -> None:
    with pytest.raises(LocalError) as caught:
        named_layer(text)
    assert caught.value.fault.param == "via"


def test_names_are_told_apart_and_few() -> None:
    with pytest.raises(LocalError, match="one name"):
        chain([], ["a=http://x", "a=http://y"], "http://z")
    with pytest.raises(LocalError, match="at most"):
        chain([], [f"a{at}=http://x" for at in range(7)], "http://z")


@pytest.mark.parametrize(
    "text", ["", "x", "http://u:p@x", "http://x/?q", "http://x#f", "file:///etc", "http://x/../y"]
)
def test_what_is_no_url(text: str) -> None:
    with pytest.raises(LocalError) as caught:
        checked_url(text)
    assert caught.value.fault.code == "invalid_request"


@given(st.text(max_size=60))
def test_any_text_is_a_layer_or_refused(text: str) -> None:
    with suppress(LocalError):
        named_layer(text)


def test_the_nodes_own_doors() -> None:
    house = [
        ip_address("203.0.113.5"),
        ip_address("192.168.1.9"),
        ip_address("127.0.0.1"),
        ip_address("fe80::1"),
    ]
    assert own_layers((), house) == ()
    assert own_layers(("http://127.0.0.1:9",), house) == (
        Layer("loopback", "http://127.0.0.1:9", "loopback"),
    )
    assert own_layers(("https://10.0.0.5:9",), house) == (Layer("lan", "https://10.0.0.5:9", "lan"),)
    assert own_layers(("https://localhost:9", "https://desk:9"), house) == (
        Layer("loopback", "https://127.0.0.1:9", "loopback"),
        Layer("lan", "https://192.168.1.9:9", "lan"),
    )
    assert len(own_layers(("https://localhost:9",), [ip_address("203.0.113.5")])) == 1
