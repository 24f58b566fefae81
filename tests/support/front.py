"""nginx in front of nodes, set right and wrong while it runs. Skips where there is no nginx."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

from tests.support.pebble import free_ports

NGINX: Final = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")

_CONFIG: Final = """
daemon off; master_process off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log warn;
events {{ worker_connections 256; }}
http {{
  log_format short "$server_port $request_method $uri $status";
  access_log {dir}/access.log short;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  proxy_http_version 1.1; proxy_set_header Connection "";
  {servers}
}}
"""
# A way of going wrong is in force while a file of its name is there: nothing is reloaded, so that the next
# request meets it whatever connection it comes by.
_SERVER: Final = """
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://{upstream}; }}
    location = {place} {{
      {switches}
      proxy_pass http://{upstream};
    }}
    {ways}
  }}
"""
_SWITCH: Final = "if (-f {dir}/{port}.{name}) {{ rewrite ^ /-{name}{place} last; }}"
_WAY: Final = "location /-{name}/ {{ internal; {directives} }}"

CODED: Final = '{"error":{"message":"slow down","type":"rate_limited","code":"rate_limited"}}'

# What people's fronts do. UP is the node, DEAD a port where nobody listens, SILENT one where nobody answers.
WAYS: Final[Mapping[str, str]] = {
    "strip": "proxy_hide_header X-Zs-Relay-Hop; proxy_pass http://UP/;",
    "page-429": "return 429;",
    "page-502": "return 502;",
    "page-503": "return 503;",
    "page-504": "return 504;",
    "empty-429": 'return 429 "";',
    "empty-502": 'return 502 "";',
    "empty-503": 'return 503 "";',
    "empty-504": 'return 504 "";',
    "coded-429": f"default_type application/json; return 429 '{CODED}';",
    "marked-502": "add_header X-Zs-Relay-Hop 1 always; return 502;",
    "drop": "return 444;",
    "dead": "proxy_pass http://DEAD/;",
    "slow": "proxy_read_timeout 1s; proxy_pass http://SILENT/;",
    "pages": "proxy_intercept_errors on; error_page 429 502 503 504 /sorry; proxy_pass http://UP/;",
    "exposes-less": (
        "proxy_hide_header Access-Control-Expose-Headers; "
        "add_header Access-Control-Expose-Headers Retry-After always; proxy_pass http://UP/;"
    ),
}


@dataclass(frozen=True)
class Behind:
    """A node behind nginx: ``place`` is the path at which nginx may go wrong."""

    upstream: str
    place: str
    port: int


class Front:
    """One nginx in front of some nodes, each at a port of its own. A context manager.

    Tell it who is `behind` before it starts; `wrong` and `right` take effect with the next request.
    """

    def __init__(self) -> None:
        if NGINX is None:
            pytest.skip("nginx is not installed (Debian: apt-get install nginx)")
        self.dir = Path(tempfile.mkdtemp(prefix="rd-front-"))
        self._behind: list[Behind] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._silent = socket.create_server(("127.0.0.1", 0), backlog=64)

    def behind(self, upstream: str, place: str = "/v1/zs/relay") -> str:
        """Stand in front of the node at ``HOST:PORT``; the URL where it is found from then on."""
        (port,) = free_ports(1)
        self._behind.append(Behind(upstream, place, port))
        return f"http://127.0.0.1:{port}"

    def wrong(self, url: str, way: str) -> None:
        """Go wrong in one of the `WAYS` for the node at ``url``."""
        assert way in WAYS
        self.right(url)
        (self.dir / f"{_port(url)}.{way}").touch()

    def right(self, url: str) -> None:
        """Pass everything on."""
        for file in self.dir.glob(f"{_port(url)}.*"):
            file.unlink()

    def requests(self, url: str) -> list[str]:
        """What came for a node: method, path as it was served, and status."""
        lines = (self.dir / "access.log").read_text().splitlines()
        return [line.partition(" ")[2] for line in lines if line.startswith(f"{_port(url)} ")]

    def __enter__(self) -> Self:
        assert NGINX is not None
        config = self.dir / "nginx.conf"
        (dead,) = free_ports(1)
        silent = self._silent.getsockname()[1]
        servers = "".join(self._server(each, dead, silent) for each in self._behind)
        config.write_text(_CONFIG.format(dir=self.dir, servers=servers))
        with (self.dir / "output").open("wb") as output:
            self._process = subprocess.Popen(
                [NGINX, "-p", str(self.dir), "-c", str(config)], stdout=output, stderr=output
            )
        deadline = time.monotonic() + 20
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (self.dir / "output").read_text()
                self.__exit__(None, None, None)
                raise AssertionError(f"nginx did not start:\n{said}")
            time.sleep(0.02)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
        self._silent.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def _server(self, each: Behind, dead: int, silent: int) -> str:
        def text(directives: str) -> str:
            found = directives.replace("UP", each.upstream).replace("DEAD", f"127.0.0.1:{dead}")
            return found.replace("SILENT", f"127.0.0.1:{silent}")

        switches = (_SWITCH.format(dir=self.dir, port=each.port, name=n, place=each.place) for n in WAYS)
        ways = [_WAY.format(name=name, directives=text(way)) for name, way in WAYS.items()]
        ways.append('location = /sorry { internal; return 200 "<html>Sorry</html>"; }')
        return _SERVER.format(
            port=each.port,
            upstream=each.upstream,
            place=each.place,
            switches="\n      ".join(switches),
            ways="\n    ".join(ways),
        )

    def _listens(self) -> bool:
        try:
            for each in self._behind:
                socket.create_connection(("127.0.0.1", each.port), 5).close()
        except OSError:
            return False
        return True


def _port(url: str) -> str:
    return url.rpartition(":")[2]
