"""The bound of a request's input in tokens: what a reserve commits to, measured alike by both ends.

Rule (wire §5.4): a token stands for two bytes at least by this count, an image for its tiles, and 32 are for
what surrounds them. Version 1 is frozen; version 2 differs in the images alone: it reads their sizes.

A body without images costs a search of its bytes. One with images is decoded: over `ON_LOOP_BYTES` that
belongs in a thread. Everything here is a pure function of its arguments and safe in any.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from relaydesk.core.relay.bound.image_parts import ImageParts, find_image_parts, url_of
from relaydesk.core.relay.bound.image_size import size_of_url

BoundVersion = Literal[1, 2]
# Bodies up to this size may be measured on the loop.
ON_LOOP_BYTES: Final = 256 * 1024
MAX_COUNT: Final = 2**63 - 1

_BYTES_A_TOKEN: Final = 2
_MARGIN: Final = 32
_LOW: Final = 85
_HIGH: Final = 85
_TILE: Final = 170
_TILE_PIXELS: Final = 512
_UNKNOWN_PIXELS: Final = 2048
_MAX_PIXELS: Final = 16384
# Version 1 knows no clamp; this one only keeps numbers finite.
_V1_MAX_PIXELS: Final = 2**31
_BOM: Final = b"\xef\xbb\xbf"


class Bounds(NamedTuple):
    """One request measured by both versions: tokens."""

    v1: int
    v2: int


def input_bound(body: bytes, version: BoundVersion) -> int:
    """At least the input tokens of ``body``, by a version of the bound.

    Raises `PeerError` ``invalid_request`` for one with images and too many values or images.
    """
    stripped = body.removeprefix(_BOM) if version == 2 else body
    return _bound(stripped, find_image_parts(stripped), version)


def input_bounds(body: bytes) -> Bounds:
    """Both bounds, with one look at the images. Raises as `input_bound`."""
    if body.startswith(_BOM):
        return Bounds(input_bound(body, 1), input_bound(body, 2))
    images = find_image_parts(body)
    return Bounds(_bound(body, images, 1), _bound(body, images, 2))


def image_tokens(part: dict[str, Any], version: BoundVersion) -> int:
    """Tokens of one image part: the tiles that cover it, or a flat price where detail is low."""
    nested = part.get("image_url")
    inner: dict[str, Any] = nested if isinstance(nested, dict) else {}
    detail = _text(inner, "detail") or _text(part, "detail")
    if detail.lower() == "low":
        return _LOW
    width, height = _size_v1(part, inner) if version == 1 else _size_v2(part, inner)
    return _HIGH + _TILE * _tiles(width) * _tiles(height)


def _bound(body: bytes, images: ImageParts | None, version: BoundVersion) -> int:
    # What cannot be walked is all text. Version 1 cannot walk past a number that no float holds.
    if images is None or (images.overflow if version == 1 else images.deep):
        images = ImageParts(())
    text = max(0, len(body) - sum(_bytes(url_of(part)) for part in images.parts))
    tokens = sum(image_tokens(part, version) for part in images.parts)
    return min(-(-text // _BYTES_A_TOKEN) + tokens + _MARGIN, MAX_COUNT)


def _size_v1(part: dict[str, Any], inner: dict[str, Any]) -> tuple[int, int]:
    """As declared: the nested number wins whatever it is, and 0 means unknown."""
    found = []
    for name in ("width", "height"):
        value: Any = next((v for v in (inner.get(name), part.get(name)) if _is_number(v)), 0)
        whole = int(max(-_V1_MAX_PIXELS, min(value, _V1_MAX_PIXELS)))
        found.append(whole or _UNKNOWN_PIXELS)
    return found[0], found[1]


def _size_v2(part: dict[str, Any], inner: dict[str, Any]) -> tuple[int, int]:
    """As declared where both are, else as the image's own header says, else a large one."""
    width = _pixels(inner.get("width")) or _pixels(part.get("width"))
    height = _pixels(inner.get("height")) or _pixels(part.get("height"))
    if not (width and height):
        told = size_of_url(url_of(part))
        if told is not None and told.width and told.height:
            width, height = told
    return min(width or _UNKNOWN_PIXELS, _MAX_PIXELS), min(height or _UNKNOWN_PIXELS, _MAX_PIXELS)


def _pixels(value: Any) -> int:
    """A declared size, 0 where it is none: no number, or below 1."""
    return int(min(value, _MAX_PIXELS)) if _is_number(value) and value >= 1 else 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _tiles(pixels: int) -> int:
    return max(1, -(-pixels // _TILE_PIXELS))


def _text(part: dict[str, Any], name: str) -> str:
    value = part.get(name)
    return value if isinstance(value, str) else ""


def _bytes(text: str) -> int:
    # A lone surrogate counts as the three bytes of what others put in its place.
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
