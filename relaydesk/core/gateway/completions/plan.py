"""``POST /v1/completions`` as work for an engine and an answer for its client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.bound import completion_bound, text_floor
from relaydesk.core.gateway.completions.output import CompletionOutput
from relaydesk.core.gateway.completions.reader import TextStream, about_prompt
from relaydesk.core.gateway.completions.rebuild import completion_body
from relaydesk.core.gateway.completions.request import CompletionRequest, check_completion, parse_completion
from relaydesk.core.gateway.output import Identity
from relaydesk.core.gateway.prompt_count import TOKENIZE_PATH, tokenize_body
from relaydesk.core.gateway.stop import stopped
from relaydesk.core.gateway.usage import Tally, Usage, summed_usage
from relaydesk.core.gateway.work import Capabilities, Counting, Plan, Reader

COMPLETION_PATH: Final = "/v1/completions"


class CompletionWork:
    """`Work` of a bare prompt: every dialect that has one ends here."""

    path: Final = COMPLETION_PATH

    def __init__(self, request: CompletionRequest, infill: tuple[int, int, int] | None = None) -> None:
        self.request = request
        self.model = request.model
        self.stream = request.stream
        self.choices = request.choices
        self.limit = request.limit
        self._infill = infill

    @property
    def prompt_bound(self) -> int:
        return completion_bound(self.request)

    @property
    def prompt_floor(self) -> int:
        # Token ids are not told by their digits.
        return max((text_floor(prompt.body) for prompt in self.request.prompts if prompt.is_text), default=0)

    def limited(self, limit: int) -> CompletionWork:
        least = limit if self.limit is None else min(limit, self.limit)
        return CompletionWork(msgspec.structs.replace(self.request, limit=least), self._infill)

    def counting(self, alias: str) -> Counting:
        texts = [prompt.body for prompt in self.request.prompts if prompt.is_text]
        ids = sum(prompt.body.count(b",") + 1 for prompt in self.request.prompts if not prompt.is_text)
        if self.request.suffix:
            # Each prompt stands before the same suffix, with the model's own tokens between them.
            texts += [self.request.suffix] * len(self.request.prompts)
            ids += len(self._infill or ()) * len(self.request.prompts)
        return Counting(tuple((TOKENIZE_PATH, tokenize_body(text)) for text in texts), ids)

    def fitted(self, capabilities: Capabilities) -> CompletionWork:
        check_completion(self.request, capabilities)
        return CompletionWork(self.request, capabilities.infill_tokens)

    def body(
        self, choice: int, *, alias: str, slot: int | None, cache_prompt: bool, extensions: bool
    ) -> bytes:
        return completion_body(
            self.request,
            choice,
            alias=alias,
            slot=slot,
            cache_prompt=cache_prompt,
            extensions=extensions,
            infill=self._infill,
        )

    def reader(self, choice: int, call_prefix: str) -> Reader:
        return stopped(TextStream(call_prefix), self.request.stop)

    def usage(self, tallies: Sequence[Tally], *, cached: bool) -> Usage:
        """Each prompt once, every choice's tokens."""
        return summed_usage(tallies, self.request.n, cached=cached)

    def blamed(self, fault: Fault) -> Fault:
        return about_prompt(fault)


def completion_plan(body: bytes) -> Plan:
    """The plan of a completion. Raises `PeerError` as `parse_completion` does."""
    request = parse_completion(body)

    def output(identity: Identity) -> CompletionOutput:
        return CompletionOutput(identity, request)

    return Plan(CompletionWork(request), output)
