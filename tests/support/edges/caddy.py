"""Caddy, by its Caddyfile. Debian's has no list of headers that pass: it fails over ``header_down -*``."""

from __future__ import annotations

from typing import Final

from tests.support.edges.edge import Product, way

_IN: Final = "flush_interval -1"

CADDY: Final = Product(
    name="Caddy",
    program="caddy",
    package="caddy",
    right="""\
{
	admin off
	auto_https off
}
http://127.0.0.1:%PORT% {
	reverse_proxy %NODE% {
		flush_interval -1
		transport http {
			response_header_timeout 310s
		}
	}
}
""",
    command=lambda program, _folder, file, _: [
        program,
        "run",
        "--config",
        str(file),
        "--adapter",
        "caddyfile",
    ],
    places={
        "the `reverse_proxy` block of the node": "reverse_proxy ",
        "the site block, around or in the `reverse_proxy` to the node": "http://",
        "the `transport http` block of the node": "transport http",
    },
    ways={
        "removed": way("marker_removed", (_IN, f"{_IN}\n\t\theader_down -X-Zs-Relay-Hop")),
        "pattern": way("marker_removed headers_dropped", (_IN, f"{_IN}\n\t\theader_down -X-*")),
        "everywhere": way("marker_everywhere", (_IN, f"{_IN}\n\t\theader_down X-Zs-Relay-Hop 1")),
        "cors": way(
            "preflight_refused origin_refused", (_IN, f"{_IN}\n\t\theader_down -Access-Control-Allow-*")
        ),
        "exposed": way(
            "marker_not_exposed", (_IN, f"{_IN}\n\t\theader_down Access-Control-Expose-Headers Retry-After")
        ),
        "buffered": way("stream_buffered", (_IN, "buffer_responses")),
        "compressed": way(
            "compressed",
            (
                "http://127.0.0.1:%PORT% {",
                "http://127.0.0.1:%PORT% {\n\tencode {\n\t\tgzip\n\t\tminimum_length 1\n\t}",
            ),
        ),
        "impatient": way("silence_cut", ("response_header_timeout 310s", "response_header_timeout 3s")),
        "pages": way(
            "answer_replaced",
            (
                _IN,
                (
                    f"{_IN}\n\t\t@bad status 4xx 5xx\n\t\thandle_response @bad {{\n"
                    '\t\t\trespond "Sorry" {http.reverse_proxy.status_code}\n\t\t}'
                ),
            ),
        ),
        "small": way(
            "body_failed",
            (
                "http://127.0.0.1:%PORT% {",
                "http://127.0.0.1:%PORT% {\n\trequest_body {\n\t\tmax_size 1MiB\n\t}",
            ),
        ),
    },
)
