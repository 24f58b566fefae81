"""Which model a request gets when it names one, and when it names none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.models import ModelName, require_model

MAX_NAMED: Final = 10


def choose_model(requested: str | None, known: Sequence[ModelName]) -> str:
    """The registered name of the model for a request.

    Without a name the sole model is meant. Raises `PeerError`: ``invalid_request`` where there is not
    exactly one, ``model_not_found`` for a name that no model has.
    """
    if requested:
        return require_model(requested, known)
    if len(known) == 1:
        return known[0].name
    if not known:
        raise PeerError(
            "invalid_request",
            "no model was named and none is registered",
            "register one with `relaydesk model pull smollm2`",
            param="model",
        )
    names = ", ".join(model.name for model in known[:MAX_NAMED])
    more = f" and {len(known) - MAX_NAMED} more" if len(known) > MAX_NAMED else ""
    raise PeerError(
        "invalid_request",
        f"no model was named and {len(known)} are registered",
        f"set model to one of {names}{more}",
        param="model",
    )
