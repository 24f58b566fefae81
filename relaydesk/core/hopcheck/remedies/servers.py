"""Caddy, HAProxy, Apache and Varnish: reverse proxies that people run themselves."""

from __future__ import annotations

from typing import Final

from relaydesk.core.hopcheck.remedies.remedy import EXPOSED, Remedy

_CADDY: Final = "the site block, around or in the `reverse_proxy` to the node"
_HAPROXY: Final = "the `backend` of the node"
_APACHE: Final = "the `VirtualHost` of the node"
_VARNISH: Final = "the VCL, before other code of the same subroutine"


def _caddy(where: str, add: str = "", remove: str = "", text: str = "") -> Remedy:
    return Remedy(text, "caddyfile", where, remove, add, tested=True)


_PROXY: Final = "the `reverse_proxy` block of the node"

_CADDY_BODY: Final = "request_body {\n\tmax_size 13MiB\n}"
CADDY: Final = {
    "marker_removed": _caddy(
        _PROXY,
        "",
        "header_down -X-\nheader -X-\nheader_down -*",
        "Remove other headers by their full names.",
    ),
    "headers_dropped": _caddy(_PROXY, "", "header_down -X-\nheader -X-\nheader_down -*"),
    "marker_everywhere": _caddy(_CADDY, "", "header X-Zs-Relay-Hop\nheader_down X-Zs-Relay-Hop"),
    "marker_not_exposed": _caddy(
        _PROXY,
        f'header_down Access-Control-Expose-Headers "{EXPOSED}"',
        "header_down Access-Control-Expose-Headers\nheader_down -Access-Control-Expose-Headers\n"
        "header Access-Control-Expose-Headers\nheader -Access-Control-Expose-Headers",
    ),
    "preflight_refused": _caddy(_CADDY, "", "header_down -Access-Control-\nheader -Access-Control-"),
    "origin_refused": _caddy(
        _CADDY,
        "",
        "header Access-Control-Allow-Origin\nheader_down -Access-Control-\nheader -Access-Control-\n"
        "header_down Access-Control-Allow-Origin",
    ),
    "answer_replaced": _caddy(_PROXY, "", "handle_response\nhandle_errors"),
    "stream_buffered": _caddy(
        _PROXY, "flush_interval -1", "flush_interval\nbuffer_responses\nresponse_buffers\nencode"
    ),
    "compressed": _caddy(_CADDY, "", "encode"),
    "body_limited": Remedy("", "caddyfile", _CADDY, "request_body\nmax_size", _CADDY_BODY),
    "body_failed": _caddy(
        _CADDY,
        _CADDY_BODY,
        "request_body\nmax_size",
        "A body beyond max_size that it was passing on ends in 502 (`request body too large` in its log).",
    ),
    "silence_cut": _caddy(
        "the `transport http` block of the node",
        "response_header_timeout 310s\nread_timeout 310s",
        "response_header_timeout\nread_timeout\nwrite_timeout",
    ),
}


def _haproxy(add: str = "", remove: str = "", text: str = "") -> Remedy:
    return Remedy(text, "haproxy", _HAPROXY, remove, add, tested=True)


_DELETED: Final = (
    "http-response del-header X-\nhttp-response del-header Retry-After\nhttp-response del-header ^\n"
    "http-response del-header (\nhttp-response del-header ."
)
_CORS_DELETED: Final = f"http-response del-header Access-Control-\n{_DELETED}"

HAPROXY: Final = {
    "marker_removed": _haproxy("", _DELETED),
    "headers_dropped": _haproxy("", _DELETED),
    "preflight_refused": _haproxy("", f"http-request return\nhttp-request deny\n{_CORS_DELETED}"),
    "marker_everywhere": _haproxy("", "http-response set-header X-Zs-Relay-Hop"),
    "marker_not_exposed": _haproxy(
        f'http-response set-header Access-Control-Expose-Headers "{EXPOSED}"',
        "http-response set-header Access-Control-Expose-Headers\n"
        "http-response del-header Access-Control-Expose-Headers\n"
        "http-response add-header Access-Control-Expose-Headers",
    ),
    "origin_refused": _haproxy(
        "",
        "http-response add-header Access-Control-Allow-Origin\n"
        "http-response set-header Access-Control-Allow-Origin\n"
        f"{_CORS_DELETED}",
    ),
    "answer_replaced": _haproxy("", "http-response return\nhttp-response deny"),
    "stream_buffered": _haproxy("", "http-response wait-for-body"),
    "compressed": _haproxy("", "compression\nfilter compression"),
    "body_limited": _haproxy("", "http-request deny\nhttp-request return"),
    "silence_cut": _haproxy("timeout server 310s", "timeout server"),
}


def _apache(add: str = "", remove: str = "", text: str = "") -> Remedy:
    return Remedy(text, "apache", _APACHE, remove, add, tested=True)


APACHE: Final = {
    "marker_removed": _apache(
        "",
        "Header unset X-Zs-\nHeader always unset X-Zs-\nHeader onsuccess unset X-Zs-",
    ),
    "headers_dropped": _apache(
        "", "Header unset X-Zs-\nHeader always unset X-Zs-\nHeader onsuccess unset X-Zs-"
    ),
    "marker_everywhere": _apache("", "Header set X-Zs-Relay-Hop\nHeader always set X-Zs-Relay-Hop"),
    "marker_not_exposed": _apache(
        f'Header set Access-Control-Expose-Headers "{EXPOSED}"',
        "Header set Access-Control-Expose-Headers\nHeader always set Access-Control-Expose-Headers\n"
        "Header unset Access-Control-Expose-Headers",
    ),
    "origin_refused": _apache(
        "",
        "Header set Access-Control-Allow-Origin\nHeader always set Access-Control-Allow-Origin\n"
        "Header add Access-Control-Allow-Origin\nHeader unset Access-Control-",
    ),
    "answer_replaced": _apache("ProxyErrorOverride Off", "ProxyErrorOverride"),
    "stream_buffered": _apache(
        "",
        "SetOutputFilter\nAddOutputFilter",
        "By itself it passes each piece on; filters hold them, above all programs (ExtFilterDefine).",
    ),
    "compressed": _apache("SetEnv no-gzip 1", "SetOutputFilter DEFLATE\nAddOutputFilterByType DEFLATE"),
    "body_limited": _apache(
        "LimitRequestBody 13631488",
        "LimitRequestBody\nSecRequestBodyLimit\nRewriteRule ^ - [R=413\n"
        'RewriteCond %{HTTP:Content-Length}\nRewriteCond expr "%{HTTP:Content-Length}',
    ),
    "silence_cut": _apache("ProxyTimeout 310", "ProxyTimeout"),
}


def _varnish(add: str = "", remove: str = "", text: str = "") -> Remedy:
    return Remedy(text, "vcl", _VARNISH, remove, add, tested=True)


VARNISH: Final = {
    "marker_removed": _varnish("", "unset beresp.http.X-Zs-\nunset resp.http.X-Zs-"),
    "headers_dropped": _varnish("", "unset beresp.http.X-Zs-\nunset resp.http.X-Zs-"),
    "marker_everywhere": _varnish("", "set resp.http.X-Zs-Relay-Hop\nset beresp.http.X-Zs-Relay-Hop"),
    "marker_not_exposed": _varnish(
        f'sub vcl_deliver {{\n  set resp.http.Access-Control-Expose-Headers = "{EXPOSED}";\n}}',
        "set resp.http.Access-Control-Expose-Headers\nunset resp.http.Access-Control-Expose-Headers",
    ),
    "origin_refused": _varnish(
        "", "set resp.http.Access-Control-Allow-Origin\nunset resp.http.Access-Control-"
    ),
    "answer_replaced": _varnish(
        "",
        "return (synth(resp.status\nreturn (synth(beresp.status\nreturn (error(beresp.status\n"
        "if (resp.status\nif (beresp.status",
    ),
    "body_limited": _varnish(
        "", "return (synth(413\nif (std.integer(req.http.Content-Length\nif (req.http.Content-Length"
    ),
    "stream_buffered": _varnish(
        "sub vcl_backend_response {\n  set beresp.do_stream = true;\n}", "set beresp.do_stream = false"
    ),
    "compressed": _varnish(
        "sub vcl_backend_response {\n  set beresp.do_gzip = false;\n}", "set beresp.do_gzip = true"
    ),
    "silence_cut": _varnish(
        "sub vcl_backend_fetch {\n  set bereq.first_byte_timeout = 310s;\n"
        "  set bereq.between_bytes_timeout = 310s;\n}",
        ".first_byte_timeout\n.between_bytes_timeout",
    ),
}
