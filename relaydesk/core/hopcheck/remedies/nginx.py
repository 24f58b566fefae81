"""nginx: https://nginx.org/en/docs/http/ngx_http_proxy_module.html

``add_header`` in a block hides those of the blocks around it, so what is added here is complete.
"""

from __future__ import annotations

from typing import Final

from relaydesk.core.hopcheck.remedies.remedy import EXPOSED, Remedy

_WHERE: Final = "the `location` that has `proxy_pass` to the node"


def _remedy(add: str = "", remove: str = "", text: str = "", *, tested: bool = True) -> Remedy:
    return Remedy(text, "nginx", _WHERE, remove, add, tested)


# What other headers such a line takes away as well is the operator's to say again.
_HIDDEN: Final = "proxy_hide_header X-Zs-\nproxy_hide_header Retry-After\nmore_clear_headers"
_OTHERS: Final = "Where such a line clears other headers too, write it anew for those alone."

NGINX: Final = {
    "marker_removed": _remedy("", _HIDDEN, _OTHERS),
    "headers_dropped": _remedy("", _HIDDEN, _OTHERS),
    "marker_everywhere": _remedy("", "add_header X-Zs-Relay-Hop\nmore_set_headers"),
    "marker_not_exposed": _remedy(
        "proxy_hide_header Access-Control-Expose-Headers;\n"
        f'add_header Access-Control-Expose-Headers "{EXPOSED}" always;',
        "add_header Access-Control-Expose-Headers\nproxy_hide_header Access-Control-Expose-Headers",
    ),
    "origin_refused": _remedy(
        "",
        "add_header Access-Control-Allow-Origin\nproxy_hide_header Access-Control-Allow-Origin\n"
        "more_clear_headers",
        "The node sets Access-Control-Allow-Origin itself; a second one makes browsers refuse both.",
    ),
    "preflight_refused": _remedy(
        "",
        "if ($request_method\nproxy_hide_header Access-Control-\nmore_clear_headers",
    ),
    "answer_replaced": _remedy("proxy_intercept_errors off;", "proxy_intercept_errors"),
    "stream_buffered": _remedy(
        "proxy_buffering off;\ngzip off;", "proxy_buffering\nproxy_ignore_headers\ngzip on"
    ),
    "compressed": _remedy("gzip off;", "gzip on"),
    "body_limited": _remedy("client_max_body_size 13m;", "client_max_body_size"),
    "body_failed": _remedy(
        text="nginx writes a body beyond client_body_buffer_size below its client_body_temp_path, which its "
        "workers' user must be able to write: error_log names the file and why. client_max_body_size is "
        "another matter; beyond it nginx answers 413.",
        tested=False,
    ),
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
