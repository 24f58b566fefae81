"""nginx: https://nginx.org/en/docs/http/ngx_http_proxy_module.html

``add_header`` in a block hides those of the blocks around it, so what is added here is complete.
"""

from __future__ import annotations

from typing import Final

from relaydesk.core.hopcheck.remedies.remedy import EXPOSED, Remedy

_WHERE: Final = "the `location` that has `proxy_pass` to the node"


def _remedy(add: str = "", remove: str = "", text: str = "", *, tested: bool = True) -> Remedy:
    return Remedy(text, "nginx", _WHERE, remove, add, tested)


# Set from what the node sent, so that the edge's own answers stay unmarked.
_MARKER: Final = "add_header X-Zs-Relay-Hop $upstream_http_x_zs_relay_hop always;"

NGINX: Final = {
    "marker_removed": _remedy(_MARKER, "proxy_hide_header X-Zs-\nmore_clear_headers"),
    "headers_dropped": _remedy(
        f"{_MARKER}\n"
        "add_header X-Zs-Response-Key $upstream_http_x_zs_response_key always;\n"
        "add_header X-Zs-Receipt $upstream_http_x_zs_receipt always;\n"
        "add_header X-Zs-Settle-Group $upstream_http_x_zs_settle_group always;\n"
        "add_header Retry-After $upstream_http_retry_after always;",
        "proxy_hide_header\nmore_clear_headers",
        tested=False,
    ),
    "marker_everywhere": _remedy("", "add_header X-Zs-Relay-Hop\nmore_set_headers", tested=False),
    "marker_not_exposed": _remedy(
        "proxy_hide_header Access-Control-Expose-Headers;\n"
        f'add_header Access-Control-Expose-Headers "{EXPOSED}" always;',
        "add_header Access-Control-Expose-Headers\nproxy_hide_header Access-Control-Expose-Headers",
    ),
    "origin_refused": _remedy(
        "",
        "add_header Access-Control-Allow-Origin\nproxy_hide_header Access-Control-Allow-Origin",
        "The node sets Access-Control-Allow-Origin itself; a second one makes browsers refuse both.",
        tested=False,
    ),
    "preflight_refused": _remedy(
        "", "", "Take out the `if ($request_method = OPTIONS)` that answers preflights.", tested=False
    ),
    "answer_replaced": _remedy("proxy_intercept_errors off;", "proxy_intercept_errors"),
    "stream_buffered": _remedy(
        "proxy_buffering off;\ngzip off;", "proxy_buffering\nproxy_ignore_headers\ngzip on"
    ),
    "compressed": _remedy("gzip off;", "gzip on"),
    "body_limited": _remedy("client_max_body_size 13m;", "client_max_body_size"),
    "silence_cut": _remedy("proxy_read_timeout 310s;", "proxy_read_timeout"),
    "request_headers_lost": _remedy(
        "proxy_pass_request_headers on;",
        "proxy_pass_request_headers\nproxy_set_header X-Zs-\nmore_clear_input_headers",
        tested=False,
    ),
    "edge_answers": _remedy("proxy_pass http://127.0.0.1:8384;", "return \nauth_basic", tested=False),
    "wrong_route": _remedy("proxy_pass http://127.0.0.1:8384;", "proxy_pass ", tested=False),
    "details_hidden": Remedy(
        "", "nginx", "the `server`", "", "location /v1/ { proxy_pass http://127.0.0.1:8384; }"
    ),
}
