"""Lists of a client, taken apart entry by entry, so that an error can name the entry at fault."""

from __future__ import annotations

from typing import Final

from msgspec import Raw

from relaydesk.core.gateway.decode import decode, decoder, invalid, kind_of

# An entry has a handful of fields and parts, each with a comma between.
_COMMAS_AN_ENTRY: Final = 32

_ENTRIES: Final = decoder(list[Raw])


def entries(data: bytes, at: str, limit: int) -> list[Raw]:
    """The entries of the JSON list ``data``, undecoded; ``at`` is its name.

    Raises `PeerError` ``invalid_request`` where it is no list or has more than ``limit`` entries. A list of
    millions is refused before there is an object for each of them.
    """
    if data[:1] != b"[":
        raise invalid(at, f"{at} must be a list, not {kind_of(data)}")
    most = limit * _COMMAS_AN_ENTRY
    if data.count(b",") > most and _outside_strings(data).count(b",") > most:
        raise invalid(at, f"{at} has too many entries, allowed is {limit}")
    found = decode(_ENTRIES, data, at)
    if len(found) > limit:
        raise invalid(at, f"{at} has {len(found)} entries, allowed is {limit}")
    return found


def _outside_strings(data: bytes) -> bytes:
    return b"".join(data.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2])
