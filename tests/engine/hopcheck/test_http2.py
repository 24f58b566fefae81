from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest

from relaydesk.core.hopcheck.model import Exchange, Layer
from relaydesk.engine.hopcheck.door import door_of, loose
from relaydesk.engine.hopcheck.http1 import Send
from relaydesk.engine.hopcheck.http2 import exchange2
from tests.support.lab_tls import make_lab_tls


class _Server:
    """HTTP/2 by the library's other half."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.asked: list[tuple[str, str]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        speech = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        )
        speech.initiate_connection()
        writer.write(speech.data_to_send())
        while data := await reader.read(65536):
            for event in speech.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self.asked = [(str(name), str(value)) for name, value in event.headers]
                    if self.how == "reset":
                        speech.reset_stream(event.stream_id)
                        continue
                    speech.send_headers(event.stream_id, [(":status", "400"), ("x-zs-relay-hop", "1")])
                    speech.send_data(event.stream_id, b"body", end_stream=True)
            writer.write(speech.data_to_send())
            if self.how == "close":
                break
        writer.close()


async def ask(folder: Path, how: str) -> tuple[_Server, Exchange]:
    context = make_lab_tls(folder).server()
    context.set_alpn_protocols(["h2"])
    made = _Server(how)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=context)
    layer = Layer("public", f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", "public")
    try:
        send = Send("POST", "/v1/zs/relay", (("X-Zs-Relay-Target", "check"),))
        return made, await exchange2(door_of(layer, layer), send, loose(["h2"]), 5.0)
    finally:
        server.close()


@pytest.mark.parametrize(("how", "status", "kind"), [("", 400, ""), ("reset", 0, "broken")])
async def test_the_refusal_over_http2(tmp_path: Path, how: str, status: int, kind: str) -> None:
    server, found = await ask(tmp_path, how)
    assert (found.status, found.kind, found.protocol) == (status, kind, "HTTP/2")
    if not how:
        assert found.headers == (("x-zs-relay-hop", "1"),)
        assert found.body == b"body"
    assert dict(server.asked)[":path"] == "/v1/zs/relay"
    assert dict(server.asked)["x-zs-relay-target"] == "check"


async def test_nobody_there() -> None:
    layer = Layer("public", "https://127.0.0.1:1", "public")
    context: ssl.SSLContext = loose(["h2"])
    found = await exchange2(door_of(layer, layer), Send("POST", "/"), context, 5.0)
    assert (found.status, found.kind) == (0, "refused")
