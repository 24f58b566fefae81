from __future__ import annotations

import pytest

from relaydesk.core.hopcheck.model import Exchange, Headers
from relaydesk.core.hopcheck.product import PRODUCTS, SIGNS, is_node, recognise

HAPROXY_400 = b"<html><body><h1>400 Bad request</h1>\nYour browser sent an invalid request.\n</body></html>\n"


def seen(headers: Headers = (), body: bytes = b"") -> Exchange:
    return Exchange("POST", "x", status=400, headers=headers, body=body)


@pytest.mark.parametrize(
    ("headers", "body", "product"),
    [
        ((("Server", "nginx/1.22.1"),), b"", "nginx"),
        ((("server", "openresty"),), b"", "nginx"),
        ((("Server", "relaydesk"), ("Server", "Caddy")), b"", "Caddy"),
        ((), HAPROXY_400, "HAProxy"),
        ((), b"<h1>503 Service Unavailable</h1>\nNo server is available to handle this request.", "HAProxy"),
        ((), b"<p>Your browser sent a request that this server could not understand.<br />", "Apache"),
        ((("Server", "Apache/2.4.62 (Debian)"),), b"", "Apache"),
        ((("X-Varnish", "32770"), ("Via", "1.1 vm (Varnish/7.1)")), b"", "Varnish"),
        ((("server", "envoy"), ("x-envoy-upstream-service-time", "3")), b"", "Envoy"),
        ((("CF-RAY", "8f-FRA"), ("Server", "cloudflare")), b"", "Cloudflare"),
        ((("Via", "1.1 abc.cloudfront.net (CloudFront)"),), b"", "CloudFront"),
        ((("Apigw-Requestid", "abc="),), b"", "API gateway"),
        ((("Via", "1.1 kong/3.9.0"),), b"", "Kong"),
        ((("Server", "Traefik"),), b"", "Traefik"),
        ((("Server", "relaydesk"),), b"", ""),
        ((("X-Served-By", "nginx"),), b"", ""),
        ((), b"nginx", ""),
    ],
)  # fmt: skip
def test_by_what_a_product_is_known(headers: Headers, body: bytes, product: str) -> None:
    assert recognise([seen(headers, body)]) == product


def test_a_cdn_before_a_proxy_is_the_cdn() -> None:
    assert recognise([seen((("Server", "nginx"), ("CF-RAY", "1")))]) == "Cloudflare"


def test_what_was_seen_further_in_says_nothing_of_this_layer() -> None:
    inner = seen((("Server", "nginx/1.22.1"),))
    assert recognise([inner], [inner]) == ""
    assert recognise([seen((("Server", "nginx/1.22.1"), ("X-Varnish", "5")))], [inner]) == "Varnish"
    page = seen((), b"<center>nginx</center>")
    assert recognise([page], [page]) == ""


def test_the_node_itself_is_known_by_its_own_page() -> None:
    assert is_node(seen((("Server", "relaydesk"),)))
    assert not is_node(seen((("Server", "nginx"),)))


def test_every_product_has_a_sign() -> None:
    assert {sign.product for sign in SIGNS} == set(PRODUCTS)
