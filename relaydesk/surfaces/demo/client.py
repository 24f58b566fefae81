"""The demo's client: a program that knows an address, a key and a CA, and nothing else of the node.

Blocking on purpose, with the standard library alone: what it does, any program can.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from relaydesk.core.text import safe_piece, safe_text

ANSWER_S: Final = 300.0


class DemoFailedError(Exception):
    """A step of the demo did not work; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Chat:
    """An answer that came whole: its text, what it cost, and the request's id."""

    text: str
    usage: dict[str, int]
    request_id: str


@dataclass(frozen=True, slots=True)
class Client:
    """Asks a hub. ``context`` trusts its CA; an ``http:`` address needs none.

    ``relay`` is what ``X-Zs-Relay`` says, empty for no such header.
    """

    url: str
    context: ssl.SSLContext | None
    key: str = field(repr=False)
    relay: str = ""

    def chat(self, model: str, question: str, tokens: int, write: Callable[[str], None]) -> Chat:
        """One streamed chat; ``write`` gets each piece as it comes, safe to show.

        Raises `DemoFailedError`, `OSError` or `http.client.HTTPException`.
        """
        request = {
            "model": model,
            "messages": [{"role": "user", "content": question}],
            "max_tokens": tokens,
            "temperature": 0.2,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        connection = self._connect()
        try:
            headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
            if self.relay:
                headers["X-Zs-Relay"] = self.relay
            connection.request("POST", "/v1/chat/completions", json.dumps(request).encode(), headers)
            response = connection.getresponse()
            if response.status != 200:
                raise DemoFailedError(f"the chat was answered with {response.status}: {_said(response)}")
            return _read(response, write)
        finally:
            connection.close()

    def models(self) -> tuple[str, ...]:
        """The names of the models that the key may ask. Raises like `chat`."""
        connection = self._connect()
        try:
            connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {self.key}"})
            response = connection.getresponse()
            if response.status != 200:
                raise DemoFailedError(f"the models were answered with {response.status}: {_said(response)}")
            return tuple(str(each["id"]) for each in json.loads(response.read())["data"])
        finally:
            connection.close()

    def wrong_key(self) -> int:
        """The status that a wrong key is answered with."""
        connection = self._connect()
        try:
            connection.request("GET", "/v1/models", headers={"Authorization": "Bearer wrong"})
            return connection.getresponse().status
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.hostname, parts.port, timeout=ANSWER_S)
        return http.client.HTTPSConnection(parts.hostname, parts.port, context=self.context, timeout=ANSWER_S)


def sentence(fault: Any) -> str:
    """A fault as the command line says it."""
    if not isinstance(fault, dict) or not fault.get("message"):
        return "the node did not say why"
    message, hint = safe_text(str(fault["message"]), 400), safe_text(str(fault.get("hint") or ""), 400)
    return f"{message.rstrip('.')}: {hint}" if hint else message


def _read(response: http.client.HTTPResponse, write: Callable[[str], None]) -> Chat:
    answer, usage = "", None
    for chunk in _events(response):
        if "error" in chunk:
            raise DemoFailedError(f"the chat failed: {chunk['error'].get('message')}")
        usage = chunk.get("usage") or usage
        for choice in chunk["choices"]:
            piece = choice["delta"].get("content") or ""
            answer += piece
            write(safe_piece(piece))
    if usage is None:
        raise DemoFailedError("the answer ended without its usage")
    return Chat(answer, usage, response.headers["x-request-id"])


def _said(response: http.client.HTTPResponse) -> str:
    """What an answer that is no stream says was wrong."""
    try:
        return sentence(json.loads(response.read()).get("error"))
    except (ValueError, AttributeError):
        return "the answer is no error of ours"


def _events(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """The JSON of each ``data:`` line until ``[DONE]``."""
    for raw in response:
        line = raw.strip()
        if line == b"data: [DONE]":
            return
        if line.startswith(b"data: "):
            yield msgspec.json.decode(line[6:], type=dict[str, Any])
