"""``POST /v1/messages`` as work for an engine and an answer for its client."""

from __future__ import annotations

from relaydesk.core.gateway.anthropic.output import MessagesOutput
from relaydesk.core.gateway.anthropic.request import parse_count, parse_messages
from relaydesk.core.gateway.chat import ChatWork
from relaydesk.core.gateway.output import Identity
from relaydesk.core.gateway.work import Plan


def messages_plan(body: bytes) -> Plan:
    """The plan of a request. Raises `PeerError` as `parse_messages` does."""
    request = parse_messages(body)

    def output(identity: Identity) -> MessagesOutput:
        return MessagesOutput(identity, thoughts=request.thoughts)

    return Plan(ChatWork(request.chat), output)


def count_work(body: bytes) -> ChatWork:
    """The work whose prompt ``POST /v1/messages/count_tokens`` counts. Raises `PeerError`."""
    return ChatWork(parse_count(body))
