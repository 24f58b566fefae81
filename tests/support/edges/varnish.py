"""Varnish. Its language cannot walk over headers: there is no list of those that pass."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.support.edges.edge import Product, Way, way


def _deliver(finds: str, *lines: str) -> Way:
    return way(finds, ("  # delivered", "\n".join(f"  {each}" for each in lines)))


def _fetched(finds: str, *lines: str) -> Way:
    return way(finds, ("  # fetched", "\n".join(f"  {each}" for each in lines)))


def _command(program: str, folder: Path, file: Path, address: str) -> list[str]:
    own = ["-j", "none", "-n", str(folder / "work"), "-s", "malloc,16m", "-T", "none"]
    return [program, "-F", "-a", address, "-f", str(file), *own]


VARNISH: Final = Product(
    name="Varnish",
    program="varnishd",
    package="varnish",
    right="""\
vcl 4.1;
import std;
backend node {
  .host = "%NODE_HOST%";
  .port = "%NODE_PORT%";
  .first_byte_timeout = 310s;
  .between_bytes_timeout = 310s;
}
sub vcl_recv {
  # received
  return (pass);
}
sub vcl_backend_response {
  # fetched
}
sub vcl_deliver {
  # delivered
}
""",
    command=_command,
    places={"the VCL, before other code of the same subroutine": ""},
    ways={
        "removed": _deliver("marker_removed", "unset resp.http.X-Zs-Relay-Hop;"),
        "removed-too": _fetched("marker_removed", "unset beresp.http.x-zs-relay-hop;"),
        "everywhere": _deliver("marker_everywhere", 'set resp.http.X-Zs-Relay-Hop = "1";'),
        "origin": _deliver("origin_refused", "unset resp.http.Access-Control-Allow-Origin;"),
        "headers": _deliver("headers_dropped", "unset resp.http.X-Zs-Receipt;"),
        "exposed": _deliver(
            "marker_not_exposed", 'set resp.http.Access-Control-Expose-Headers = "Retry-After";'
        ),
        "buffered": _fetched("stream_buffered", "set beresp.do_stream = false;"),
        "compressed": _fetched("compressed stream_buffered", "set beresp.do_gzip = true;"),
        "impatient": way("silence_cut", (".first_byte_timeout = 310s;", ".first_byte_timeout = 3s;")),
        "pages": _deliver(
            "answer_replaced",
            "if (resp.status >= 400) {",
            "  return (synth(resp.status));",
            "}",
        ),
        "small": way(
            "body_limited",
            (
                "  # received",
                "  if (std.integer(req.http.Content-Length, 0) > 1048576) {\n    return (synth(413));\n  }",
            ),
        ),
    },
)
