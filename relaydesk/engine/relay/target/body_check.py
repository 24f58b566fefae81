"""What of a paid request is looked at before any of it is believed (wire §4.6)."""

from __future__ import annotations

from typing import Final, NamedTuple, cast

import msgspec

from relaydesk.core.errors import PeerError
from relaydesk.core.relay.bound.measure import BoundVersion, input_bound
from relaydesk.core.relay.bound.reserve_count import reserve_input_count
from relaydesk.core.relay.catalogue import WireError
from relaydesk.engine.relay.target.tickets import Held

# How much more than was reserved a body may measure: in percent.
_TOLERANCE: Final = 110
_NULL: Final = b"null"


class _Body(msgspec.Struct):
    model: msgspec.Raw = msgspec.Raw(_NULL)
    stream: msgspec.Raw = msgspec.Raw(_NULL)


_DECODER: Final = msgspec.json.Decoder(_Body)
_TEXT: Final = msgspec.json.Decoder(str)


class BodyCheck(NamedTuple):
    """Whether an answer is to be streamed, and why the request is refused, if it is."""

    stream: bool
    refusal: WireError | None


def check_body(body: bytes, held: Held, *, event_stream: bool) -> BodyCheck:
    """Hold a body as it came against its ticket. Raises nothing; belongs into a thread for a large one.

    ``event_stream`` is what ``Accept`` says: it counts where the body cannot be read.
    """
    try:
        found = _DECODER.decode(body)
        model = _TEXT.decode(found.model)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return BodyCheck(event_stream, WireError("model_mismatch", "the body names no model"))
    stream = bytes(found.stream) == b"true"
    if model != held.ticket.model:
        return BodyCheck(stream, WireError("model_mismatch", "the ticket is for another model"))
    return BodyCheck(stream, _over_budget(body, held))


def _over_budget(body: bytes, held: Held) -> WireError | None:
    ticket = held.ticket
    try:
        bound = input_bound(body, cast("BoundVersion", held.bound_version))
    except PeerError as error:
        return WireError("input_budget_exceeded", error.fault.message)
    # Measured as the caller measures: capped by what the window leaves beside the output.
    measured = reserve_input_count(bound, max_output=ticket.max_output_count, context_window=held.window)
    if measured * 100 > ticket.input_count * _TOLERANCE:
        return WireError(
            "input_budget_exceeded",
            f"the body measures {measured} tokens of input, {ticket.input_count} were reserved",
        )
    return None
