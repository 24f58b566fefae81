from __future__ import annotations

import logging

import pytest

from relaydesk.surfaces.public.malformed import hide_versions, server_logger
from tests.support.raw_http import RawClient
from tests.support.scripted_hub import KEY, ScriptedHub

SECRET = b"xylophonic-marmalade"


@pytest.mark.parametrize(
    "data",
    [
        # A length that is too short makes the rest of a prompt look like a request.
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
        + SECRET
        + b" and more\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX Token: " + SECRET + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer\x00" + SECRET + b"\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        + SECRET
        + b"\r\n",
        b"GET /" + SECRET * 1000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + SECRET * 1000 + b"\r\n\r\n",
        SECRET + b" / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01" + SECRET,
    ],
    ids=["short", "name", "nul", "chunk", "path", "header", "method", "tls"],
)
async def test_what_is_no_http_is_answered_and_not_logged(
    hub: ScriptedHub, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with RawClient(hub.port, None) as client:
        client.send(data)
        reply = await client.reply()
        while reply.status == 401:
            reply = await client.reply()
    assert (reply.status, reply.code) == (400, "invalid_request")
    assert reply.headers["server"] == "relaydesk"
    assert reply.headers["x-request-id"].startswith("req_")
    assert SECRET not in reply.body
    assert SECRET.decode() not in caplog.text
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    async with hub.session.get(f"{hub.url}/healthz") as well:
        assert well.status == 200


async def test_failures_of_ours_stay_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    logger = server_logger()
    assert server_logger() is logger
    assert len(logger.filters) == 1
    try:
        raise KeyError("ours")
    except KeyError:
        logger.exception("Error handling request")
    assert "ours" in caplog.text
    hide_versions()


async def test_a_wrong_length_does_not_harm_the_request_before_it(hub: ScriptedHub) -> None:
    async with RawClient(hub.port, KEY) as client:
        client.head("GET", "/v1/models", {"Content-Length": "0"})
        client.send(SECRET + b"\r\n\r\n")
        assert (await client.reply()).status in (200, 400)
