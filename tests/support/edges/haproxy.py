"""HAProxy."""

from __future__ import annotations

from typing import Final

from tests.support.edges.edge import Product, Way, way


def _rule(finds: str, *rules: str) -> Way:
    return way(finds, ("    # rules", "\n".join(f"    {each}" for each in rules)))


_GZIP: Final = ("compression algo gzip", "compression type application/json text/event-stream")

HAPROXY: Final = Product(
    name="HAProxy",
    program="haproxy",
    package="haproxy",
    right="""\
global
    maxconn 256
defaults
    mode http
    timeout connect 5s
    timeout client 310s
frontend world
    bind 127.0.0.1:%PORT%
    default_backend node
backend node
    timeout server 310s
    # rules
    server node %NODE%
""",
    command=lambda program, _folder, file, _: [program, "-db", "-f", str(file)],
    places={"the `backend` of the node": "backend "},
    ways={
        "removed": _rule("marker_removed", "http-response del-header X-Zs-Relay-Hop"),
        "pattern": _rule("marker_removed headers_dropped", "http-response del-header x- -m beg"),
        "listed": _rule(
            "marker_removed headers_dropped preflight_refused origin_refused",
            "http-response del-header ^(?!content-|date$) -m reg",
        ),
        "everywhere": _rule("marker_everywhere", "http-response set-header X-Zs-Relay-Hop 1"),
        "exposed": _rule(
            "marker_not_exposed", "http-response set-header Access-Control-Expose-Headers Retry-After"
        ),
        "buffered": _rule("stream_buffered", "http-response wait-for-body time 20s"),
        # By the node's no-transform it compresses nothing, until a layer further in took that away.
        "compressed": _rule("", *_GZIP),
        "transformable": _rule("", "http-response del-header Cache-Control"),
        "impatient": way("silence_cut", ("timeout server 310s", "timeout server 3s")),
        "pages": _rule(
            "answer_replaced",
            *(
                f"http-response return status {status} content-type text/html string Sorry "
                f"if {{ status {status} }}"
                for status in (400, 404, 502)
            ),
        ),
        "small": _rule("body_limited", "http-request deny deny_status 413 if { req.body_size gt 1048576 }"),
    },
)
