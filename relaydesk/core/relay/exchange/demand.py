"""What one request needs: its body as it will be sealed, its size, and how it wants its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from msgspec import Raw, Struct

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import decode, decoder, invalid, present
from relaydesk.core.relay.bound.measure import Bounds, input_bounds
from relaydesk.core.relay.bound.tool_growth import builtin_tools, grows_while_served
from relaydesk.core.relay.prepare import prepare_body
from relaydesk.core.relay.sealed.terminal import Api

# What of the hub's paths the network has (wire §1.1), and which dialect its chunks are of.
PATHS: Final[dict[str, Api]] = {"/v1/chat/completions": "chat", "/v1/responses": "responses"}
# No window is larger, and a ticket's numbers stay within what a ledger holds.
MOST_OUTPUT: Final = 2**31


class _Fields(Struct):
    stream: Raw = Raw()
    max_tokens: Raw = Raw()
    max_completion_tokens: Raw = Raw()
    max_output_tokens: Raw = Raw()


_FIELDS: Final = decoder(_Fields)
_FLAG: Final = decoder(bool)
_WHOLE: Final = decoder(int)
# Of two the first one counts, as it does with OpenAI.
_LIMITS: Final[dict[Api, tuple[str, ...]]] = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "responses": ("max_output_tokens",),
}


@dataclass(frozen=True, slots=True)
class Demand:
    """One request. ``body`` goes sealed as it is; ``model`` is the network's name.

    ``max_output`` None: the caller stated none. ``grows``: its tools add to its input while it is served.
    ``hints`` is the JSON of the body's routing hints, empty without any.
    """

    path: str
    api: Api
    model: str
    stream: bool
    max_output: int | None
    bounds: Bounds
    grows: bool
    tools: tuple[str, ...]
    body: bytes = field(repr=False)
    hints: bytes = field(default=b"", repr=False)


def demand_of(path: str, body: bytes) -> Demand:
    """Read a plaintext request. Safe in any thread; a large body belongs in one.

    Raises `PeerError`: ``unsupported`` for a path that the network does not have, ``invalid_json``,
    ``invalid_request``.
    """
    api = PATHS.get(path)
    if api is None:
        raise PeerError(
            "unsupported",
            f"the relay network has no {path}",
            f"it has {' and '.join(PATHS)}: use a model of this hub for the rest",
        )
    prepared = prepare_body(body)
    fields = decode(_FIELDS, prepared.body)
    stream = present(fields.stream)
    return Demand(
        path=path,
        api=api,
        model=prepared.model,
        stream=bool(stream) and decode(_FLAG, stream, "stream"),
        max_output=_limit(fields, api),
        bounds=input_bounds(prepared.body),
        grows=grows_while_served(prepared.body),
        tools=builtin_tools(prepared.body),
        body=prepared.body,
        hints=prepared.provider,
    )


def _limit(fields: _Fields, api: Api) -> int | None:
    for name in _LIMITS[api]:
        data = present(getattr(fields, name))
        if data:
            limit: int = decode(_WHOLE, data, name)
            if not 1 <= limit <= MOST_OUTPUT:
                raise invalid(name, f"{name} must be between 1 and {MOST_OUTPUT}")
            return limit
    return None
