"""Apache's httpd with mod_proxy. It has no list of headers that pass."""

from __future__ import annotations

from typing import Final

from tests.support.edges.edge import Product, Way, way

_MODULES: Final = (
    "mpm_event", "authz_core", "proxy", "proxy_http", "headers", "env", "filter", "deflate", "rewrite",
    "ext_filter",
)  # fmt: skip
_LOADED: Final = "\n".join(
    f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in _MODULES
)


def _lines(finds: str, *lines: str) -> Way:
    return way(finds, ("    # more", "\n".join(f"    {each}" for each in lines)))


APACHE: Final = Product(
    name="Apache",
    program="apache2",
    package="apache2",
    right=f"""\
{_LOADED}
ServerRoot %DIR%
PidFile %DIR%/pid
Mutex file:%DIR%
ErrorLog %DIR%/error.log
DocumentRoot %DIR%
ServerName node.example
User www-data
Group www-data
StartServers 1
Listen 127.0.0.1:%PORT%
<VirtualHost 127.0.0.1:%PORT%>
    LimitRequestBody 13631488
    ProxyTimeout 310
    # more
    ProxyPass / http://%NODE%/ flushpackets=on
</VirtualHost>
""",
    command=lambda program, _folder, file, _: [program, "-DFOREGROUND", "-f", str(file)],
    places={"the `VirtualHost` of the node": "<VirtualHost "},
    ways={
        "removed": _lines("marker_removed", "Header unset X-Zs-Relay-Hop"),
        # What came from the node is in another table than this one empties.
        "unset-always": _lines("", "Header always unset X-Zs-Relay-Hop"),
        "everywhere": _lines("marker_everywhere", "Header always set X-Zs-Relay-Hop 1"),
        "origin": _lines("origin_refused", "Header unset Access-Control-Allow-Origin"),
        "headers": _lines("headers_dropped", "Header unset X-Zs-Receipt", "Header unset X-Zs-Response-Key"),
        "exposed": _lines("marker_not_exposed", 'Header set Access-Control-Expose-Headers "Retry-After"'),
        # By itself it passes every piece on, as what works line by line does. A program as a filter waits.
        "buffered": way(
            "stream_buffered",
            ("Listen ", 'ExtFilterDefine scan mode=output cmd="/bin/cat"\nListen '),
            ("    # more", "    SetOutputFilter scan"),
        ),
        "compressed": _lines(
            "compressed", "AddOutputFilterByType DEFLATE application/json text/event-stream"
        ),
        "impatient": way("silence_cut", ("ProxyTimeout 310", "ProxyTimeout 3")),
        "pages": _lines(
            "answer_replaced",
            "ProxyErrorOverride On",
            "ErrorDocument 400 Sorry",
            "ErrorDocument 404 Sorry",
            "ErrorDocument 502 Sorry",
        ),
        # It holds for what httpd reads itself, not for what it passes on.
        "small-own": way("", ("LimitRequestBody 13631488", "LimitRequestBody 1048576")),
        "small": _lines(
            "body_limited",
            "RewriteEngine On",
            'RewriteCond expr "%{HTTP:Content-Length} -gt 1048576"',
            "RewriteRule ^ - [R=413,L]",
        ),
    },
)
