"""A request's plaintext body as it is sealed (wire §3.4, §4.4).

What would tell the target something it has no use for is taken out: the routing hints, the key that joins a
caller's requests across nodes. An empty list of tools goes too, which strict servers refuse, and nothing is
to be stored unless the caller says so. Our ``net/`` goes off the model's name. Nothing else changes: every
other value stays as its bytes, in its place; a body without anything to change stays as it is altogether.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msgspec import Raw

from relaydesk.core.gateway.decode import decode, decoder, encode, invalid, present, require_string

# What a model of the network is called by our own users (design §6).
PREFIX: Final = "net/"
# Top-level fields of one request. More is nothing a client sends.
MAX_FIELDS: Final = 512

_OBJECT: Final = decoder(dict[str, Raw])
_LIST: Final = decoder(list[Raw])
_TEXT: Final = decoder(str)
_STRIPPED: Final = ("provider", "prompt_cache_key")
_FALSE: Final = Raw(b"false")
# Without tools these choices say what leaving them out says; another one is the target's to refuse.
_IDLE_CHOICES: Final = (b'"none"', b'"auto"')


@dataclass(frozen=True, slots=True)
class Prepared:
    """``body`` is to be sealed, ``model`` the network's name of the model, ``provider`` the JSON of the
    routing hints, empty without any."""

    body: bytes
    model: str
    provider: bytes

    def __repr__(self) -> str:
        return f"Prepared(model={self.model!r}, {len(self.body)} bytes)"


def prepare_body(body: bytes) -> Prepared:
    """Make the body of a request what may be sealed.

    Safe in any thread; a body over 256 KiB belongs in one. Raises `PeerError`: ``invalid_json``, or
    ``invalid_request`` where it is no object, has no model or too many fields.
    """
    fields = decode(_OBJECT, body)
    if len(fields) > MAX_FIELDS:
        raise invalid("", f"the request has {len(fields)} fields, allowed is {MAX_FIELDS}")
    named = present(fields.get("model", Raw()))
    if not named:
        raise invalid("model", "model is missing")
    model: str = decode(_TEXT, require_string(named, "model"), "model")
    provider = present(fields.get("provider", Raw()))
    changed = _strip(fields)
    if model.startswith(PREFIX):
        model = model.removeprefix(PREFIX)
        fields["model"] = Raw(encode(model))
        changed = True
    if not model:
        raise invalid("model", f"model has no name after {PREFIX}")
    return Prepared(encode(fields) if changed else body, model, provider)


def _strip(fields: dict[str, Raw]) -> bool:
    """Take out and set what the rule says, and whether that changed anything."""
    gone: list[str] = [name for name in _STRIPPED if name in fields]
    tools = fields.get("tools")
    if tools is not None and not _any_in(present(tools)):
        gone.append("tools")
        if bytes(fields.get("tool_choice", Raw())) in _IDLE_CHOICES:
            gone.append("tool_choice")
    for name in gone:
        del fields[name]
    # Null is not an answer: what serves may take it for its own default, which is to store.
    unsaid = not present(fields.get("store", Raw()))
    if unsaid:
        fields["store"] = _FALSE
    return bool(gone) or unsaid


def _any_in(tools: bytes) -> bool:
    """Whether ``tools`` holds anything. What is no list is the target's to refuse."""
    return bool(tools) and (tools[:1] != b"[" or bool(decode(_LIST, tools, "tools")))
