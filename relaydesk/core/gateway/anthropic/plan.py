"""``POST /v1/messages`` as work for an engine and an answer for its client."""

from __future__ import annotations

import msgspec

from relaydesk.core.gateway.anthropic.ending import Ending, EndingReader
from relaydesk.core.gateway.anthropic.output import MessagesOutput
from relaydesk.core.gateway.anthropic.request import parse_count, parse_messages
from relaydesk.core.gateway.chat import ChatWork
from relaydesk.core.gateway.output import Identity
from relaydesk.core.gateway.piece import ChoiceStream
from relaydesk.core.gateway.request import ChatRequest
from relaydesk.core.gateway.work import Plan, Reader


class MessagesWork(ChatWork):
    """`Work` of a message: a chat whose stop sequences are found here. It has one choice."""

    def __init__(self, request: ChatRequest, ending: Ending) -> None:
        super().__init__(request)
        self._ending = ending

    def body(
        self, choice: int, *, alias: str, slot: int | None, cache_prompt: bool, extensions: bool
    ) -> bytes:
        self._ending.told = not extensions
        request = msgspec.structs.replace(self.request, stop=()) if extensions else self.request
        return ChatWork(request).body(
            choice, alias=alias, slot=slot, cache_prompt=cache_prompt, extensions=extensions
        )

    def reader(self, choice: int, call_prefix: str) -> Reader:
        if stops := self.request.stop:
            return EndingReader(ChoiceStream(call_prefix), stops, self._ending)
        return super().reader(choice, call_prefix)

    def _with(self, request: ChatRequest) -> MessagesWork:
        return MessagesWork(request, self._ending)


def messages_plan(body: bytes) -> Plan:
    """The plan of a request. Raises `PeerError` as `parse_messages` does."""
    request = parse_messages(body)
    ending = Ending()

    def output(identity: Identity) -> MessagesOutput:
        return MessagesOutput(identity, ending, thoughts=request.thoughts)

    return Plan(MessagesWork(request.chat, ending), output)


def count_work(body: bytes) -> ChatWork:
    """The work whose prompt ``POST /v1/messages/count_tokens`` counts. Raises `PeerError`."""
    return ChatWork(parse_count(body))
