"""An HTTPS server that answers an ACME client as it is told, and one that spoils a real server's answers."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.pebble import Pebble, server_identity


@dataclass
class Answer:
    """What one request gets. A callable body writes to the connection itself."""

    status: int = 200
    body: bytes | Callable[[Any], None] = b""
    headers: dict[str, str] = field(default_factory=dict)


def as_json(value: Any, status: int = 200, **headers: str) -> Answer:
    """A JSON answer; underscores in header names are dashes."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer(status, json.dumps(value).encode(), {"Content-Type": "application/json", **named})


def problem(kind: str, status: int, detail: str = "", **headers: str) -> Answer:
    """A refusal as ACME has it."""
    found = as_json({"type": f"urn:ietf:params:acme:error:{kind}", "detail": detail}, status, **headers)
    found.headers["Content-Type"] = "application/problem+json"
    return found


class AcmeServer:
    """HTTPS on 127.0.0.1 with a CA of its own. ``reply`` maps paths to answers; a directory and nonces are
    there from the start.
    """

    def __init__(self, directory: Path) -> None:
        self.ca, self._pair = server_identity(directory)
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _any(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                server.handle(self, self.rfile.read(size))

            do_GET = do_POST = do_HEAD = _any

            def log_message(self, *_args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._pair)
        # The handshake in the connection's own thread: a client that gives up must not stop the others.
        self._http.socket = context.wrap_socket(
            self._http.socket, server_side=True, do_handshake_on_connect=False
        )
        self.port = self._http.server_address[1]
        self.reset()

    def reset(self) -> None:
        """Answer as at the start; what was asked is forgotten."""
        names = ("newNonce", "newAccount", "newOrder")
        self.asked: list[str] = []
        self.reply: dict[str, Answer | Callable[[BaseHTTPRequestHandler, bytes], Answer]] = {
            "/dir": as_json({name: self.url(name) for name in names})
        }

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.port}/{path.removeprefix('/')}"

    def handle(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        self.asked.append(f"{request.command} {request.path}")
        found = self.reply.get(request.path, Answer(204 if request.path == "/newNonce" else 404))
        answer = found(request, body) if callable(found) else found
        request.send_response(answer.status)
        request.send_header("Replay-Nonce", "bm9uY2U")
        for name, value in answer.headers.items():
            request.send_header(name, value)
        if callable(answer.body):
            request.end_headers()
            answer.body(request)
            request.close_connection = True
            return
        request.send_header("Content-Length", str(len(answer.body)))
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(answer.body)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)


class Spoiler(AcmeServer):
    """Passes everything on to pebble; ``spoil`` may change the answer to a path that begins with its key."""

    def __init__(self, directory: Path, pebble: Pebble) -> None:
        super().__init__(directory)
        self._pebble = pebble
        self._context = ssl.create_default_context(cafile=str(pebble.ca))
        self.spoil: Mapping[str, Callable[[Answer], Answer]] = {}

    def handle(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        host, port = self._pebble.directory_url.split("/")[2].split(":")
        link = http.client.HTTPSConnection(host, int(port), context=self._context, timeout=20)
        # Its own name, so that pebble writes our address into what it says.
        headers = {name: value for name, value in request.headers.items() if name.lower() != "connection"}
        link.request(request.command, request.path, body or None, headers)
        found = link.getresponse()
        kept = ("Location", "Link", "Replay-Nonce", "Content-Type", "Retry-After", "Date")
        named = {name: value for name in kept if (value := found.getheader(name))}
        answer = Answer(found.status, found.read(), named)
        link.close()
        self.asked.append(f"{request.command} {request.path}")
        for path, change in self.spoil.items():
            if request.path.startswith(path) and request.command != "HEAD":
                answer = change(answer)
        assert isinstance(answer.body, bytes)
        request.send_response_only(answer.status)
        for name, value in answer.headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(answer.body)))
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(answer.body)
