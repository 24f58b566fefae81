"""``POST /v1/chat/completions`` as work for an engine and an answer for its client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.bound import chat_bound, chat_floor
from relaydesk.core.gateway.call_reader import CallReader
from relaydesk.core.gateway.chat_output import ChatOutput
from relaydesk.core.gateway.json_reader import JsonReader
from relaydesk.core.gateway.output import Identity
from relaydesk.core.gateway.piece import ChoiceStream
from relaydesk.core.gateway.prompt_count import COUNT_PATH
from relaydesk.core.gateway.rebuild import engine_body
from relaydesk.core.gateway.request import ChatRequest, fitted_chat, parse_chat
from relaydesk.core.gateway.stop import stopped
from relaydesk.core.gateway.usage import Tally, Usage, total_usage
from relaydesk.core.gateway.work import Capabilities, Counting, Plan, Reader

CHAT_PATH: Final = "/v1/chat/completions"


class ChatWork:
    """`Work` of a chat: every dialect that holds a conversation ends here."""

    path: Final = CHAT_PATH

    def __init__(self, request: ChatRequest) -> None:
        self.request = request
        self.model = request.model
        self.stream = request.stream
        self.choices = request.n
        self.limit = request.limit

    @property
    def prompt_bound(self) -> int:
        return chat_bound(self.request)

    @property
    def prompt_floor(self) -> int:
        return chat_floor(self.request)

    def limited(self, limit: int) -> ChatWork:
        least = limit if self.limit is None else min(limit, self.limit)
        return self._with(msgspec.structs.replace(self.request, limit=least))

    def counting(self, alias: str) -> Counting:
        body = self.body(0, alias=alias, slot=None, cache_prompt=False, extensions=True)
        return Counting(((COUNT_PATH, body),))

    def _with(self, request: ChatRequest) -> ChatWork:
        """The same work of another request."""
        return ChatWork(request)

    def fitted(self, capabilities: Capabilities) -> ChatWork:
        fitted = fitted_chat(self.request, capabilities)
        return self if fitted is self.request else self._with(fitted)

    def body(
        self, choice: int, *, alias: str, slot: int | None, cache_prompt: bool, extensions: bool
    ) -> bytes:
        return engine_body(
            self.request,
            alias=alias,
            slot=slot,
            cache_prompt=cache_prompt,
            choice=choice,
            extensions=extensions,
        )

    def reader(self, choice: int, call_prefix: str) -> Reader:
        request, reader = self.request, ChoiceStream(call_prefix)
        if request.forced:
            return CallReader(reader, request.forced, f"{call_prefix}_0")
        if request.response_format and not request.stop:
            return JsonReader(reader)
        return stopped(reader, request.stop)

    def usage(self, tallies: Sequence[Tally], *, cached: bool) -> Usage:
        return total_usage(tallies, cached=cached)

    def blamed(self, fault: Fault) -> Fault:
        return fault


def chat_plan(body: bytes) -> Plan:
    """The plan of a chat request. Raises `PeerError` as `parse_chat` does."""
    request = parse_chat(body)

    def output(identity: Identity) -> ChatOutput:
        return ChatOutput(identity, choices=request.n, include_usage=request.include_usage)

    return Plan(ChatWork(request), output)
