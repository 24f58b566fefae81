"""One HTTP/2 exchange with an edge, over TLS: the answer to a refused hop, as callers of HTTP/2 see it."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace
from typing import Final

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from relaydesk.core.hopcheck.model import Exchange
from relaydesk.engine.hopcheck.door import Door
from relaydesk.engine.hopcheck.http1 import NoAnswerError, Send, close, connect

_PIECE: Final = 64 * 1024


async def exchange2(door: Door, send: Send, context: ssl.SSLContext, limit_s: float) -> Exchange:
    """Send a request without a body and read the answer; ``context`` offers ``h2`` alone."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    shown = Exchange(
        send.method, door.url(send.path.removeprefix(door.prefix)), send.headers, protocol="HTTP/2"
    )
    try:
        async with asyncio.timeout(limit_s):
            shown = await _exchange(door, send, context, shown)
    except NoAnswerError as error:
        shown = replace(shown, kind=error.kind, problem=error.reason)
    except TimeoutError:
        shown = replace(shown, kind="timeout", problem=f"not over within {limit_s:g} s")
    except (OSError, h2.exceptions.H2Error):
        shown = replace(shown, kind="broken", problem="the HTTP/2 connection broke off")
    return replace(shown, took_ms=round((loop.time() - began) * 1000))


async def _exchange(door: Door, send: Send, context: ssl.SSLContext, shown: Exchange) -> Exchange:
    reader, writer = await connect(door, context)
    try:
        speech = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="latin-1"))
        speech.initiate_connection()
        head = [
            (":method", send.method),
            (":path", send.path),
            (":scheme", door.scheme),
            (":authority", door.authority),
            *((name.lower(), value) for name, value in send.headers),
        ]
        speech.send_headers(1, head, end_stream=True)
        writer.write(speech.data_to_send())
        while True:
            data = await reader.read(_PIECE)
            if not data:
                raise NoAnswerError("broken", "the connection ended before the answer did")
            for event in speech.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived):
                    fields = [(str(name), str(value)) for name, value in event.headers or ()]
                    status = next((value for name, value in fields if name == ":status"), "0")
                    headers = tuple(each for each in fields if not each[0].startswith(":"))
                    shown = replace(shown, status=int(status), headers=headers)
                elif isinstance(event, h2.events.DataReceived):
                    kept = (shown.body + (event.data or b""))[: send.kept]
                    shown = replace(shown, body=kept)
                    speech.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    return shown
                elif isinstance(event, h2.events.StreamReset | h2.events.ConnectionTerminated):
                    raise NoAnswerError("broken", "the edge ended the exchange")
            writer.write(speech.data_to_send())
    finally:
        await close(writer)
