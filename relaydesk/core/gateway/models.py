"""``/v1/models``: what a client's picker shows, and which model a name in a request means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal
from urllib.parse import unquote

import msgspec

from relaydesk.core.access.caller import unknown_model
from relaydesk.core.gateway.decode import encode

State = Literal["cold", "loading", "warm", "unavailable"]

_LATEST = ":latest"


class Pricing(msgspec.Struct, frozen=True):
    """USD for a token of a prompt and of an answer, as decimal strings."""

    prompt: str
    completion: str


class TopProvider(msgspec.Struct, frozen=True, omit_defaults=True):
    """The most that any node declares, left out where none does."""

    context_length: int = 0
    max_completion_tokens: int = 0


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One model, field for field and in the order of the seed; ``created`` is in seconds since 1970.

    ``placement`` is where it runs, or would go; empty where nowhere. ``fit_reason`` says why not.
    ``max_model_len`` is the context length under the name some clients look for (vLLM's), left out where
    the context is not known.

    Models of the relay network have prices beside these (wire §5.2): ``pricing`` in USD per token, as decimal
    strings, and the same per million as numbers. They are the cheapest node's, and advice: a ticket binds.
    """

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["relay"] = "relay"
    context_length: int
    state: State
    fits: bool
    fit_reason: str = ""
    placement: str = ""
    max_model_len: int | msgspec.UnsetType = msgspec.UNSET
    pricing: Pricing | msgspec.UnsetType = msgspec.UNSET
    input_rate_usd_per_1m: float | msgspec.UnsetType = msgspec.UNSET
    output_rate_usd_per_1m: float | msgspec.UnsetType = msgspec.UNSET
    top_provider: TopProvider | msgspec.UnsetType = msgspec.UNSET


class ModelName(msgspec.Struct, frozen=True):
    """A registered model's name and the other names it answers to."""

    name: str
    aliases: tuple[str, ...] = ()


def list_body(entries: Iterable[ModelEntry]) -> bytes:
    """The list; ``data`` is a list even where it is empty, because clients walk it unseen."""
    return encode({"object": "list", "data": list(entries)})


def entry_body(entry: ModelEntry) -> bytes:
    """One model, the same object as in the list."""
    return encode(entry)


def id_from_path(path: str) -> str:
    """The model id in the rest of a URL path: slashes and colons plain or escaped, slashes at the end off."""
    return unquote(path).strip("/")


def find_model(requested: str, known: Sequence[ModelName]) -> str | None:
    """The registered name that ``requested`` means, None where none does.

    An exact name goes before an alias, either before the same with ``:latest`` added or taken off: the
    default tag of clients that came from Ollama.
    """
    other = requested.removesuffix(_LATEST) if requested.endswith(_LATEST) else requested + _LATEST
    for wanted in (requested, other):
        for model in known:
            if model.name == wanted:
                return model.name
        for model in known:
            if wanted in model.aliases:
                return model.name
    return None


def require_model(requested: str, known: Sequence[ModelName]) -> str:
    """`find_model`, or `PeerError` ``model_not_found``."""
    found = find_model(requested, known)
    if found is None:
        raise unknown_model(requested)
    return found
