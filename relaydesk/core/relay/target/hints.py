"""What a caller asks of routing: the top-level ``provider`` object of a plaintext body (wire §3.4).

It is read field by field, so that one bad field never discards the rest, and never leaves this node
(`core/relay/prepare`). What could not be read is named: whether that is refused is for whoever asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal, TypeVar, get_args

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import present
from relaydesk.core.relay.price.rate import micro_ceiling, parse_usd
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.reference import Reference, parse_reference

Sort = Literal["price", "throughput", "latency"]
RelayUse = Literal["auto", "off", "required"]
T = TypeVar("T")

# References in one list. A longer list is not read at all.
MAX_REFERENCES: Final = 1024
_FAILURES: Final = (msgspec.MsgspecError, ValueError, RecursionError)


@dataclass(frozen=True, slots=True)
class Hints:
    """A caller's preferences; the defaults are what an absent object means.

    The two ceilings are microUSDC per 1,000,000 tokens, None without one. ``unread`` names the fields, and
    the entries of lists, that were there and could not be understood.
    """

    only: tuple[Reference, ...] = ()
    ignore: tuple[Reference, ...] = ()
    order: tuple[Reference, ...] = ()
    allow_fallbacks: bool = True
    max_input_rate: int | None = None
    max_output_rate: int | None = None
    require_tools: bool = False
    sort: Sort | None = None
    relay: RelayUse | None = None
    unread: tuple[str, ...] = ()

    def admits(self, ref: NodeRef) -> bool:
        """Whether ``only`` and ``ignore`` leave a node in. Who is in both is out."""
        if any(reference.matches(ref) for reference in self.ignore):
            return False
        return not self.only or any(reference.matches(ref) for reference in self.only)

    def pins_out(self, ref: NodeRef) -> bool:
        """Whether an ``order`` without fallbacks leaves a node out."""
        if not self.order or self.allow_fallbacks:
            return False
        return not any(reference.matches(ref) for reference in self.order)


NO_HINTS: Final = Hints()


class _Provider(msgspec.Struct):
    only: Raw = Raw()
    ignore: Raw = Raw()
    order: Raw = Raw()
    allow_fallbacks: Raw = Raw()
    max_price: Raw = Raw()
    require_tools: Raw = Raw()
    sort: Raw = Raw()
    relay: Raw = Raw()


class _MaxPrice(msgspec.Struct):
    input: Raw = Raw()
    output: Raw = Raw()


_PROVIDER: Final = msgspec.json.Decoder(_Provider)
_MAX_PRICE: Final = msgspec.json.Decoder(_MaxPrice)
_LIST: Final = msgspec.json.Decoder(list[Raw])
_TEXT: Final = msgspec.json.Decoder(str)
_BOOL: Final = msgspec.json.Decoder(bool)
_DECIMAL: Final = msgspec.json.Decoder(Decimal)


def parse_hints(provider: bytes) -> Hints:
    """The hints in the JSON of ``provider``, empty where the body has none. Raises nothing."""
    if not provider or provider == b"null":
        return NO_HINTS
    unread: list[str] = []
    found = _read(_PROVIDER, provider, "provider", unread)
    if found is None:
        return Hints(unread=tuple(unread))
    price = _read(_MAX_PRICE, present(found.max_price), "provider.max_price", unread) or _MaxPrice()
    fallbacks = _read(_BOOL, present(found.allow_fallbacks), "provider.allow_fallbacks", unread)
    return Hints(
        only=_references(found.only, "provider.only", unread),
        ignore=_references(found.ignore, "provider.ignore", unread),
        order=_references(found.order, "provider.order", unread),
        allow_fallbacks=fallbacks is not False,
        max_input_rate=_ceiling(price.input, "provider.max_price.input", unread),
        max_output_rate=_ceiling(price.output, "provider.max_price.output", unread),
        require_tools=_read(_BOOL, present(found.require_tools), "provider.require_tools", unread) is True,
        sort=_word(found.sort, get_args(Sort), "provider.sort", unread),
        relay=_word(found.relay, get_args(RelayUse), "provider.relay", unread),
        unread=tuple(unread),
    )


def _read(decoder: msgspec.json.Decoder[T], data: bytes, at: str, unread: list[str]) -> T | None:
    """One value, None where it is absent or wrong; wrong ones are noted."""
    if not data:
        return None
    try:
        return decoder.decode(data)
    except _FAILURES:
        unread.append(at)
        return None


def _references(raw: Raw, at: str, unread: list[str]) -> tuple[Reference, ...]:
    entries = _read(_LIST, present(raw), at, unread) or []
    if len(entries) > MAX_REFERENCES:
        unread.append(at)
        return ()
    found: list[Reference] = []
    for number, entry in enumerate(entries):
        place = f"{at}[{number}]"
        text = _read(_TEXT, bytes(entry), place, unread)
        reference = None if text is None else parse_reference(text)
        if reference is not None:
            found.append(reference)
        elif text is not None:
            unread.append(place)
    return tuple(found)


def _ceiling(raw: Raw, at: str, unread: list[str]) -> int | None:
    """A ceiling in USD per 1,000,000 tokens, a JSON number. 0 and less is none."""
    data = present(raw)
    if data[:1] == b'"':
        unread.append(at)
        return None
    usd = _read(_DECIMAL, data, at, unread)
    if usd is None or usd <= 0:
        return None
    try:
        return micro_ceiling(parse_usd(usd))
    except ValueError:
        unread.append(at)
        return None


def _word(raw: Raw, known: Sequence[T], at: str, unread: list[str]) -> T | None:
    text = _read(_TEXT, present(raw), at, unread)
    if text is None:
        return None
    for word in known:
        if word == text.strip().lower():
            return word
    unread.append(at)
    return None
