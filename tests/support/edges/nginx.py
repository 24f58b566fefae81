"""nginx, with the module whose `more_clear_headers` people use. It has no list of headers that pass."""

from __future__ import annotations

from typing import Final

from tests.support.edges.edge import Product, way

NGINX: Final = Product(
    name="nginx",
    program="nginx",
    package="nginx libnginx-mod-http-headers-more-filter",
    right="""\
load_module /usr/lib/nginx/modules/ngx_http_headers_more_filter_module.so;
daemon off; master_process off; pid %DIR%/pid; error_log %DIR%/error.log warn;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path %DIR%/body; proxy_temp_path %DIR%/proxy; fastcgi_temp_path %DIR%/fastcgi;
  uwsgi_temp_path %DIR%/uwsgi; scgi_temp_path %DIR%/scgi;
  server {
    listen %PORT%;
    server_name node.example;
    client_max_body_size 13m;
    location / {
      proxy_pass http://%NODE%;
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_buffering off;
      proxy_read_timeout 310s;
    }
    location = /sorry { internal; return 200 "<html>Sorry</html>"; }
  }
}
""",
    command=lambda program, folder, file, _: [program, "-p", str(folder), "-c", str(file)],
    places={
        "the `location` that has `proxy_pass` to the node": "proxy_pass ",
    },
    ways={
        "removed": way(
            "marker_removed",
            ("proxy_buffering off;", "proxy_buffering off;\n      proxy_hide_header X-Zs-Relay-Hop;"),
        ),
        "removed-too": way(
            "marker_removed",
            ("proxy_buffering off;", "proxy_buffering off;\n      more_clear_headers X-Zs-Relay-Hop Server;"),
        ),
        "pattern": way(
            "marker_removed headers_dropped",
            ("proxy_buffering off;", 'proxy_buffering off;\n      more_clear_headers "X-*";'),
        ),
        "cors": way(
            "preflight_refused origin_refused",
            ("proxy_buffering off;", 'proxy_buffering off;\n      more_clear_headers "access-*";'),
        ),
        "everywhere": way(
            "marker_everywhere",
            ("proxy_buffering off;", "proxy_buffering off;\n      add_header X-Zs-Relay-Hop 1 always;"),
        ),
        "exposed": way(
            "marker_not_exposed",
            (
                "proxy_buffering off;",
                (
                    "proxy_buffering off;\n      proxy_hide_header Access-Control-Expose-Headers;\n"
                    "      add_header Access-Control-Expose-Headers Retry-After always;"
                ),
            ),
        ),
        # Over HTTP/1.0, which is nginx's own choice, nothing tells it where a piece ends.
        "buffered": way(
            "stream_buffered",
            ("      proxy_http_version 1.1;\n", ""),
            (
                "proxy_buffering off;",
                "proxy_buffering on;\n      proxy_ignore_headers X-Accel-Buffering;",
            ),
        ),
        "compressed": way(
            "compressed",
            (
                "proxy_buffering off;",
                (
                    "proxy_buffering off;\n      gzip on;\n      gzip_proxied any;\n      gzip_types *;\n"
                    "      gzip_min_length 1;"
                ),
            ),
        ),
        "impatient": way("silence_cut", ("proxy_read_timeout 310s;", "proxy_read_timeout 3s;")),
        "pages": way(
            "answer_replaced",
            (
                "proxy_buffering off;",
                (
                    "proxy_buffering off;\n      proxy_intercept_errors on;\n"
                    "      error_page 400 404 502 503 504 /sorry;"
                ),
            ),
        ),
        "small": way("body_limited", ("client_max_body_size 13m;", "client_max_body_size 1m;")),
    },
)
