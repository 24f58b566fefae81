"""What a completion continues: texts or token ids, one or several, never decoded to be passed on."""

from __future__ import annotations

import re
from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import decode, decoder, invalid, kind_of, present, require_string
from relaydesk.core.gateway.entries import entries

MAX_PROMPTS: Final = 128
# A longer list of token ids is left to the engine to check.
_DECODED: Final = 256 * 1024
_SPACE: Final = b" \t\r\n"
_OF_IDS: Final = b"0123456789,[]" + _SPACE
_FIRST: Final = re.compile(rb"\[\s*(.)", re.DOTALL)
_IDS: Final = decoder(list[int])


class Prompt(msgspec.Struct, frozen=True):
    """One prompt, standing at ``at`` in the request.

    ``body`` is JSON for the engine: a string or a list of token ids. ``largest`` is the largest id, None for
    a text and for a list too long to be looked through here.
    """

    body: bytes
    at: str = "prompt"
    largest: int | None = None

    @property
    def is_text(self) -> bool:
        """A text, not token ids."""
        return self.body[:1] == b'"'

    def __repr__(self) -> str:
        return f"Prompt(at={self.at!r}, bytes={len(self.body)})"


def parse_prompts(raw: Raw, at: str = "prompt", limit: int = MAX_PROMPTS) -> tuple[Prompt, ...]:
    """``prompt`` in its four forms: a text, texts, token ids, lists of token ids.

    Raises `PeerError` ``invalid_request``: for another form, for an empty list, for more than ``limit``.
    """
    data = present(raw)
    if not data:
        raise invalid(at, f"{at} is missing")
    if data[:1] == b'"':
        return (Prompt(data, at),)
    first = _FIRST.match(data)
    if first is None:
        raise invalid(at, f"{at} must be a string, or a list of strings or of token ids, not {kind_of(data)}")
    match first[1]:
        case b"]":
            raise invalid(at, f"{at} is an empty list: at least one entry is needed")
        case b'"':
            found = entries(data, at, limit)
            places = [f"{at}[{number}]" for number in range(len(found))]
            return tuple(
                Prompt(require_string(present(each) or b"null", place), place)
                for each, place in zip(found, places, strict=True)
            )
        case b"[":
            return _lists_of_ids(data, at, limit)
        case _:
            return (_ids(data, at),)


def _lists_of_ids(data: bytes, at: str, limit: int) -> tuple[Prompt, ...]:
    """Taken apart by its brackets: nothing is built for each of what may be millions of ids."""
    if data.translate(None, _OF_IDS):
        raise _no_ids(at)
    bare = data.translate(None, _SPACE)
    lists = bare[2:-2].split(b"],[", limit)
    if len(lists) > limit:
        raise invalid(at, f"{at} has too many entries, allowed is {limit}")
    # Anything else between two lists, or a list inside of one, leaves a bracket behind.
    if any(b"[" in ids or b"]" in ids for ids in lists):
        raise _no_ids(at)
    return tuple(_ids(b"[%b]" % ids, f"{at}[{number}]") for number, ids in enumerate(lists))


def _ids(data: bytes, at: str) -> Prompt:
    """One list of token ids; ``data`` is valid JSON."""
    if data.translate(None, b"0123456789," + _SPACE) != b"[]":
        raise _no_ids(at)
    if len(data) > _DECODED:
        return Prompt(data, at)
    ids = decode(_IDS, data, at)
    if not ids:
        raise invalid(at, f"{at} is an empty list: at least one token id is needed")
    return Prompt(data, at, max(ids))


def _no_ids(at: str) -> Exception:
    return invalid(at, f"{at} must hold token ids only, which are whole numbers from 0")
