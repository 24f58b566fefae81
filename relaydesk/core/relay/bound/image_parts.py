"""The image parts of a request, found wherever they stand in it.

Rule (wire §5.4): an object whose ``type`` is ``image_url`` or ``input_image``, in any case, is an image and
is not looked into further; its URL is ``image_url`` or ``image_url.url``. Both ends of a reserve must find
the same ones, so what is JSON here is what the network's other programs take for it: a lone surrogate or a
byte that is not UTF-8 is legal in a string, `NaN` is nothing, a number may be out of a float's range.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from relaydesk.core.errors import PeerError

# Values in one request that holds images. More is nothing a person sent, and would take memory and time.
MAX_VALUES: Final = 1 << 18
MAX_PARTS: Final = 4096
# Deeper than this a request has no images (bound version 2 then counts its bytes).
MAX_DEPTH: Final = 256

_TYPES: Final = frozenset({"image_url", "input_image"})
# The middle of both types, and a letter or an underscore of one written as an escape.
_LIKE_A_TYPE: Final = re.compile(rb"_[iIuU]")
_ESCAPED: Final = re.compile(rb"\\u00[4-7]")
_BOM: Final = b"\xef\xbb\xbf"
# Longer numbers are beyond a float's range.
_LONGEST_INTEGER: Final = 309


@dataclass(frozen=True, slots=True)
class ImageParts:
    """``parts`` are the image objects as decoded.

    ``deep`` says that something nests deeper than `MAX_DEPTH`, ``overflow`` that a number is beyond a
    float's range.
    """

    parts: tuple[dict[str, Any], ...]
    deep: bool = False
    overflow: bool = False


_NONE: Final = ImageParts(())


def find_image_parts(body: bytes) -> ImageParts | None:
    """The image parts of ``body``; None where it is no JSON.

    Safe in any thread. A body without a sign of an image is not decoded at all and has none. Raises
    `PeerError` ``invalid_request`` where one with images has more than `MAX_VALUES` values or `MAX_PARTS`
    images.
    """
    if not _may_hold_images(body):
        return _NONE
    if body.startswith(_BOM):
        return None
    if _holds_more_values(body, MAX_VALUES):
        raise _too_many(f"{MAX_VALUES} values")
    decoded = _decode(body)
    if decoded is None:
        return None
    value, overflow = decoded
    parts, deep = _walk(value)
    if len(parts) > MAX_PARTS:
        raise _too_many(f"{MAX_PARTS} images")
    return ImageParts(tuple(parts), deep, overflow)


def url_of(part: dict[str, Any]) -> str:
    """The URL of an image part, empty where it has none."""
    found = part.get("image_url")
    if isinstance(found, dict):
        found = found.get("url")
    return found if isinstance(found, str) else ""


def _may_hold_images(body: bytes) -> bool:
    # Two quick looks settle nearly every text; lowering it all and searching it twice takes several times as
    # long.
    if _ESCAPED.search(body):
        return True
    if not _LIKE_A_TYPE.search(body):
        return False
    lowered = body.lower()
    return b"image_url" in lowered or b"input_image" in lowered


def _holds_more_values(body: bytes, limit: int) -> bool:
    """Whether there are more than ``limit`` values, told without decoding: by brackets and commas."""
    if _signs(body) < limit:
        return False
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"")
    # Two quotes a string, a name and a text a member: beyond this there are too many without the rest.
    if plain.count(b'"') > 4 * limit:
        return True
    return sum(map(_signs, plain.split(b'"')[::2])) >= limit


def _signs(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


class _Numbers:
    """Reads numbers and remembers whether one was beyond a float's range."""

    __slots__ = ("overflow",)

    def __init__(self) -> None:
        self.overflow = False

    def real(self, text: str) -> float:
        value = float(text)
        self.overflow = self.overflow or math.isinf(value)
        return value

    def whole(self, text: str) -> float:
        return int(text) if len(text) < _LONGEST_INTEGER else self.real(text)


def _decode(body: bytes) -> tuple[Any, bool] | None:
    """The value and whether a number overflowed; None where it is no JSON."""
    numbers = _Numbers()
    try:
        return msgspec.json.Decoder(Any, float_hook=numbers.real).decode(body), numbers.overflow
    except RecursionError:
        return None
    except (msgspec.MsgspecError, ValueError):
        pass
    try:
        # The slow way takes what msgspec refuses and others do not.
        text = body.decode("utf-8", "replace")
        value = json.loads(
            text, parse_float=numbers.real, parse_int=numbers.whole, parse_constant=_no_constant
        )
    except (ValueError, RecursionError):
        return None
    return value, numbers.overflow


def _too_many(what: str) -> PeerError:
    return PeerError("invalid_request", f"a request with images must not hold more than {what}")


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _walk(value: Any) -> tuple[list[dict[str, Any]], bool]:
    """All image objects, and whether anything nests too deep. Level by level, without recursion."""
    parts: list[dict[str, Any]] = []
    level: list[Any] = [value]
    depth = 0
    deep = False
    while level:
        below: list[Any] = []
        for container in level:
            if isinstance(container, dict):
                kind = container.get("type")
                if isinstance(kind, str) and kind.lower() in _TYPES:
                    parts.append(container)
                    continue
                children = list(container.values())
            elif isinstance(container, list):
                children = container
            else:
                continue
            deep = deep or (depth >= MAX_DEPTH and bool(children))
            below += [child for child in children if isinstance(child, dict | list)]
        level = below
        depth += 1
    return parts, deep
