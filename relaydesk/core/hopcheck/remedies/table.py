"""The remedy of a finding: the product's own where there is one, and the rule for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from relaydesk.core.hopcheck import product as names
from relaydesk.core.hopcheck.remedies.general import NODE_RULE, RULES
from relaydesk.core.hopcheck.remedies.hosted import CLOUDFLARE, CLOUDFRONT, ENVOY, GATEWAY, KONG, TRAEFIK
from relaydesk.core.hopcheck.remedies.nginx import NGINX
from relaydesk.core.hopcheck.remedies.remedy import OUTSIDE, Remedy
from relaydesk.core.hopcheck.remedies.servers import APACHE, CADDY, HAPROXY, VARNISH

TABLE: Final[Mapping[str, Mapping[str, Remedy]]] = {
    names.NGINX: NGINX,
    names.CADDY: CADDY,
    names.HAPROXY: HAPROXY,
    names.APACHE: APACHE,
    names.VARNISH: VARNISH,
    names.TRAEFIK: TRAEFIK,
    names.ENVOY: ENVOY,
    names.KONG: KONG,
    names.CLOUDFLARE: CLOUDFLARE,
    names.CLOUDFRONT: CLOUDFRONT,
    names.GATEWAY: GATEWAY,
}
# These are about names, addresses and certificates, whatever stands there.
_ANY: Final = frozenset(
    {
        "unresolved",
        "unreachable",
        "black_hole",
        "tls_failed",
        "tls_untrusted",
        "tls_ends_soon",
        "another_node",
        "seen_from_inside",
        "not_seen_from_inside",
    }
)


def remedy_of(code: str, product: str) -> str:
    """What to do about a finding, lines of text with fenced blocks of configuration."""
    rule = RULES[code]
    if product == names.NODE:
        return f"{rule}\n\n{NODE_RULE}"
    own = TABLE.get(product, {}).get(code)
    if own is not None:
        return f"{rule}\n\n{own.rendered(product)}"
    return rule if code in _ANY else f"{rule}\n\n({product or 'product not known'}: {OUTSIDE})"
