"""The reverse proxies of the tested matrix, as people set them right and wrong."""

from __future__ import annotations

from typing import Final

from tests.support.edges.apache import APACHE
from tests.support.edges.caddy import CADDY
from tests.support.edges.haproxy import HAPROXY
from tests.support.edges.nginx import NGINX
from tests.support.edges.varnish import VARNISH

PRODUCTS: Final = {each.name.lower(): each for each in (NGINX, CADDY, HAPROXY, APACHE, VARNISH)}
