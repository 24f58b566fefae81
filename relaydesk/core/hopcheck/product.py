"""What stands at a layer, by what it says of itself: headers, and the pages of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from relaydesk.core.hopcheck.model import Exchange

NGINX: Final = "nginx"
CADDY: Final = "Caddy"
HAPROXY: Final = "HAProxy"
APACHE: Final = "Apache"
TRAEFIK: Final = "Traefik"
ENVOY: Final = "Envoy"
VARNISH: Final = "Varnish"
CLOUDFLARE: Final = "Cloudflare"
CLOUDFRONT: Final = "CloudFront"
GATEWAY: Final = "API gateway"
KONG: Final = "Kong"
NODE: Final = "relaydesk"
# The aspect of the exchange in which a request was sent that nobody can parse.
PAGE: Final = "page"
PRODUCTS: Final = (
    CLOUDFLARE, CLOUDFRONT, GATEWAY, KONG, VARNISH, CADDY, HAPROXY, APACHE, TRAEFIK, ENVOY, NGINX,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sign:
    """A header (``name``, and what its value must match) or a page's words by which a product is known."""

    product: str
    name: str = ""
    value: str = ""
    page: bytes = b""


# What is more particular comes first: a CDN's signs stand beside those of a proxy further in.
SIGNS: Final = (
    Sign(CLOUDFLARE, "CF-RAY"),
    Sign(CLOUDFLARE, "Server", r"^cloudflare"),
    Sign(CLOUDFRONT, "X-Amz-Cf-Id"),
    Sign(CLOUDFRONT, "Via", r"cloudfront"),
    Sign(GATEWAY, "X-Amz-Apigw-Id"),
    Sign(GATEWAY, "Apigw-Requestid"),
    Sign(GATEWAY, "Ocp-Apim-Trace-Location"),
    Sign(GATEWAY, "X-Apigee-Message-Id"),
    Sign(GATEWAY, "Server", r"^(awselb|tyk|apisix|krakend)"),
    Sign(KONG, "X-Kong-Request-Id"),
    Sign(KONG, "X-Kong-Proxy-Latency"),
    Sign(KONG, "X-Kong-Response-Latency"),
    Sign(KONG, "Server", r"^kong"),
    Sign(KONG, "Via", r"\bkong/"),
    Sign(VARNISH, "X-Varnish"),
    Sign(VARNISH, "Via", r"varnish"),
    Sign(VARNISH, page=b"Varnish cache server"),
    Sign(CADDY, "Server", r"^caddy"),
    Sign(CADDY, "Via", r"\bcaddy\b"),
    Sign(TRAEFIK, "Server", r"^traefik"),
    Sign(TRAEFIK, "X-Traefik-Request-Id"),
    Sign(ENVOY, "Server", r"^(envoy|istio-envoy)"),
    Sign(ENVOY, "X-Envoy-Upstream-Service-Time"),
    Sign(APACHE, "Server", r"^apache"),
    Sign(APACHE, page=b"Your browser sent a request that this server could not understand"),
    Sign(NGINX, "Server", r"^(nginx|openresty|tengine|angie)"),
    Sign(NGINX, page=b"<center>nginx"),
    Sign(HAPROXY, page=b"<html><body><h1>400 Bad request</h1>\nYour browser sent an invalid request"),
    Sign(HAPROXY, page=b"</h1>\nNo server is available to handle this request."),
    Sign(HAPROXY, page=b"</h1>\nThe server didn't respond in time."),
)


def recognise(exchanges: Iterable[Exchange], further_in: Iterable[Exchange] = ()) -> str:
    """The product that answered, empty where nothing tells.

    ``further_in`` are the same exchanges one layer inwards: what is seen there already says nothing of this
    layer. A product that stands before another of its kind is then known by its own pages alone.
    """
    known = {(name.lower(), value) for each in further_in for name, value in each.headers}
    pages = {each.body for each in further_in}
    found = list(exchanges)
    for sign in SIGNS:
        if any(_shows(sign, each, known, pages) for each in found):
            return sign.product
    return ""


def is_node(page: Exchange) -> bool:
    """Whether relaydesk itself answered what nobody can parse: then nothing stands before it."""
    return page.value("Server") == NODE


def _shows(sign: Sign, exchange: Exchange, known: set[tuple[str, str]], pages: set[bytes]) -> bool:
    if sign.page:
        return sign.page in exchange.body and exchange.body not in pages
    return any(
        name.lower() == sign.name.lower()
        and (name.lower(), value) not in known
        and re.search(sign.value, value, re.IGNORECASE)
        for name, value in exchange.headers
    )
