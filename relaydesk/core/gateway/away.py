"""Whether a request goes to the relay network, and what a client says about how (design §6, wire §1.1, §3.4).

A name says it: ``net/<id>`` is the network's model ``<id>``. A name that is registered on the hub never goes
there, whatever its state. The headers are for this hub alone: nothing of them is passed on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, Protocol

from msgspec import Raw, Struct

from relaydesk.core.access.caller import Caller, unknown_model
from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import decode, decoder, invalid, present
from relaydesk.core.gateway.models import ModelName, find_model
from relaydesk.core.ids import parse_model_name
from relaydesk.core.relay.prepare import PREFIX as PREFIX
from relaydesk.core.relay.target.hints import parse_hints

RelayUse = Literal["auto", "off", "required"]

RELAY_HEADER: Final = "X-Zs-Relay"
TEE_HEADER: Final = "X-Zs-Require-TEE"
# Where such a model runs, as fronts and the audit say it.
NETWORK: Final = "network"

# One that began with our own prefix would be told apart from another by whoever takes the prefix off.
_ID: Final = re.compile(r"(?!net/)[!-~]{1,128}")
_USES: Final[dict[str, RelayUse]] = {"auto": "auto", "off": "off", "required": "required"}


class Offer(Protocol):
    """A model that somebody on the network offers.

    Rates are those of the cheapest, in microunits per 1,000,000 tokens; ``context_window`` and ``max_output``
    are 0 where nobody declares them. ``warm``: it can be asked now.
    """

    @property
    def id(self) -> str: ...
    @property
    def input_rate(self) -> int: ...
    @property
    def output_rate(self) -> int: ...
    @property
    def context_window(self) -> int: ...
    @property
    def max_output(self) -> int: ...
    @property
    def warm(self) -> bool: ...


def network_id(requested: str | None, use: RelayUse, known: Sequence[ModelName]) -> str | None:
    """The network's id of the model that is asked for, None where the request stays on this hub.

    ``known`` are all registered models, also those that the key may not use. Raises `PeerError`
    ``invalid_request`` where the header and the name contradict each other.
    """
    named = bool(requested) and requested is not None and requested.startswith(PREFIX)
    if named and requested is not None and find_model(requested, known) is not None:
        named = False
    if use == "off" and named:
        raise invalid(RELAY_HEADER, f"{RELAY_HEADER} is off, and the model is one of the relay network")
    if use == "required" and not named:
        raise PeerError(
            "invalid_request",
            f"{RELAY_HEADER} is required, and the model is none of the relay network",
            f"name one that begins with {PREFIX}, or leave the header out",
            param=RELAY_HEADER,
        )
    if not named or requested is None:
        return None
    found = requested.removeprefix(PREFIX)
    if not found:
        raise invalid("model", f"model has no name after {PREFIX}")
    if not is_network_id(found):
        raise unknown_model(requested)
    return found


def is_network_id(text: str) -> bool:
    """Whether a node's model can be asked for here: up to 128 printable ASCII characters without a blank.

    None that begins with ``net/`` again.
    """
    return _ID.fullmatch(text) is not None


def check_may(caller: Caller, model: str) -> None:
    """Refuse a key that may not use the network, or not the network's ``model``. Raises `PeerError`."""
    if not caller.may_network:
        way = (
            "set RELAY_DEFAULT_KEY_NETWORK=on"
            if caller.spec is None
            else f"run `relaydesk key set {caller.name} --network --credit-per-day AMOUNT` on the hub"
        )
        raise PeerError(
            "refused", "this key may not use models of the relay network", f"its operator has to {way}"
        )
    if not caller.allows(PREFIX + model):
        raise unknown_model(PREFIX + model)


def relay_use(values: Sequence[str]) -> RelayUse:
    """What the header's values say; without one it is the name that decides.

    Raises `PeerError` ``invalid_request`` for anything but its three words, and for two of them.
    """
    said = {value.strip().lower() for value in values} - {""}
    if not said:
        return "auto"
    use = _USES.get(said.pop())
    if use is None or said:
        raise PeerError(
            "invalid_request",
            f"{RELAY_HEADER} must be auto, off or required",
            "leave it out to go by the model's name",
            param=RELAY_HEADER,
        )
    return use


def check_tee(values: Sequence[str]) -> None:
    """Refuse a request that wants a trusted environment: no node is asked for its proof of one."""
    if any(value.strip() for value in values):
        raise PeerError(
            "no_tee_capacity",
            "no model that can be asked through this hub runs in a trusted environment",
            f"leave {TEE_HEADER} out",
        )


class _Body(Struct):
    provider: Raw = Raw()


_BODY: Final = decoder(_Body)


def routing_hints(body: bytes) -> bytes:
    """The JSON of a body's ``provider`` object, empty without one. It is for models of the network only.

    Raises `PeerError` ``invalid_request`` that names what of it cannot be understood, and for a ``relay``
    that forbids what the model's name asks for.
    """
    provider = present(decode(_BODY, body).provider)
    hints = parse_hints(provider)
    if hints.unread:
        where = hints.unread[0]
        raise PeerError(
            "invalid_request",
            f"{where} cannot be understood",
            'nodes are named "7" (all of an operator) or "7:2"' if "[" in where else "see network-models.md",
            param=where,
        )
    if hints.relay == "off":
        raise invalid("provider.relay", "provider.relay is off, and the model is one of the relay network")
    return provider


def parse_allowed_model(text: str) -> str:
    """A name in a key's list of models: a registered one's, or ``net/<id>``. Raises `LocalError`."""
    if text.startswith(PREFIX) and is_network_id(text.removeprefix(PREFIX)):
        return text
    return parse_model_name(text)


def offered(model: str, offers: Sequence[Offer]) -> Offer | None:
    """The offer that a network's id means, also with ``:latest`` added or taken off."""
    names = [ModelName(each.id) for each in offers]
    found = find_model(model, names)
    return next((each for each in offers if each.id == found), None)
