"""JSON from a client, decoded into typed values with errors a person can act on.

Only msgspec reads it: `msgspec.Raw` keeps what is passed on as bytes, so that a long prompt is checked for
syntax but never built as Python objects.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from relaydesk.core.errors import PeerError

T = TypeVar("T")

# Deeper schemas than this are nothing a person wrote, and the engine walks them recursively.
MAX_DEPTH: Final = 64

NULL: Final = b"null"

_EXPECTED: Final = re.compile(r"Expected `(?P<want>[^`]+)`, got `(?P<got>[^`]+)`")
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>[^`]+)`")
_AT: Final = re.compile(r" - at `\$(?P<path>[^`]*)`")
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[{]}")
_NAMES: Final = {
    "float": "a number",
    "int": "a whole number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def present(raw: msgspec.Raw | bytes) -> bytes:
    """The bytes of a raw field, empty where it is absent or null: the two mean the same everywhere."""
    data = bytes(raw)
    return b"" if data == NULL else data


def decode(decoder: msgspec.json.Decoder[T], data: bytes | msgspec.Raw, at: str = "") -> T:
    """Decode ``data``, which stands at ``at`` in the request (empty: it is the body).

    Raises `PeerError` ``invalid_json`` where it is no JSON or nested too deep, ``invalid_request`` with
    ``param`` where a known field has the wrong type.
    """
    try:
        return decoder.decode(data)
    except RecursionError:
        too_deep(at)
    except msgspec.ValidationError as error:
        raise _wrong_type(str(error), at) from None
    except (msgspec.MsgspecError, ValueError) as error:
        reason = str(error).removeprefix("JSON is malformed: ").lower()
        raise PeerError("invalid_json", f"the request body is not valid JSON ({reason})") from None


def too_deep(at: str) -> NoReturn:
    """Refuse JSON that is nested beyond reason."""
    raise PeerError(
        "invalid_json", f"{at or 'the request body'} is nested too deep", param=at or None
    ) from None


def check_depth(data: bytes, at: str, limit: int = MAX_DEPTH) -> None:
    """Refuse ``data`` (valid JSON) where lists and objects nest deeper than ``limit``.

    Takes out the strings, turns each opening bracket into +1 and each closing one into -1, and sums up:
    linear and without a loop of its own.
    """
    if data.count(b"[") + data.count(b"{") <= limit:
        return
    outside = data.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2]
    steps = b"".join(outside).translate(_STEPS, _NO_BRACKETS)
    if max(accumulate(memoryview(steps).cast("b"))) > limit:
        too_deep(at)


def check_text(data: bytes) -> None:
    """Refuse a body that is not UTF-8: raw fields reach the engine as they are, and it fails on such."""
    if data.isascii():
        return
    try:
        str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise PeerError("invalid_json", f"the request body is not valid UTF-8 (byte {error.start})") from None


def invalid(param: str, sentence: str) -> PeerError:
    """A known field with a value that cannot be."""
    return PeerError("invalid_request", sentence, param=param)


def unsupported(param: str, sentence: str, hint: str = "") -> PeerError:
    """A legal field whose meaning cannot be delivered: refused, never ignored."""
    return PeerError("unsupported", sentence, hint, param=param)


def kind_of(data: bytes) -> str:
    """What sort of JSON value ``data`` is, in words."""
    first = data[:1]
    if first == b'"':
        return "a string"
    if first == b"[":
        return "a list"
    if first == b"{":
        return "an object"
    if first == b"n":
        return "null"
    return "true or false" if first in (b"t", b"f") else "a number"


def require_string(data: bytes, at: str) -> bytes:
    """``data`` where it is a JSON string. Raises `PeerError` ``invalid_request``."""
    if data[:1] != b'"':
        raise invalid(at, f"{at} must be a string, not {kind_of(data)}")
    return data


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """A reusable decoder for ``kind``."""
    return msgspec.json.Decoder(kind)


def encode(value: Any) -> bytes:
    """JSON of a value made of plain types, structs and raw parts."""
    return msgspec.json.encode(value)


def _wrong_type(text: str, at: str) -> PeerError:
    found = _AT.search(text)
    path = (found["path"] if found else "").replace("[...]", "")
    param = (at + path).removeprefix(".")
    missing = _MISSING.search(text)
    if missing:
        param = f"{param}.{missing['name']}".removeprefix(".")
        return invalid(param, f"{param} is missing")
    name = param or "the request body"
    expected = _EXPECTED.search(text)
    if expected:
        # "not null" is said only where null is not allowed anyway.
        wanted = " or ".join(_NAMES.get(w, w) for w in expected["want"].split(" | ") if w != "null")
        got = _NAMES.get(expected["got"], expected["got"])
        return PeerError("invalid_request", f"{name} must be {wanted}, not {got}", param=param or None)
    reason = _AT.sub("", text).lower()
    return PeerError("invalid_request", f"{name} cannot be used ({reason})", param=param or None)
