"""``POST /v1/responses`` as work for an engine and an answer for its client."""

from __future__ import annotations

from dataclasses import replace

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.chat import ChatWork
from relaydesk.core.gateway.output import Identity
from relaydesk.core.gateway.request import ChatRequest
from relaydesk.core.gateway.responses.output import ResponsesOutput
from relaydesk.core.gateway.responses.request import parse_responses
from relaydesk.core.gateway.work import Plan


class ResponsesWork(ChatWork):
    """`Work` of a response: a chat whose messages came from ``input``."""

    def _with(self, request: ChatRequest) -> ResponsesWork:
        return ResponsesWork(request)

    def blamed(self, fault: Fault) -> Fault:
        return replace(fault, param="input") if fault.param == "messages" else fault


def responses_plan(body: bytes) -> Plan:
    """The plan of a request. Raises `PeerError` as `parse_responses` does."""
    request = parse_responses(body)

    def output(identity: Identity) -> ResponsesOutput:
        return ResponsesOutput(identity, request.echo)

    return Plan(ResponsesWork(request.chat), output)
