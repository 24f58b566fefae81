"""GGUF's own grammar, read from bytes nobody vouches for.

Every count, length and offset is checked against the size of the file before anything of that size is walked
or kept; arrays are stepped over instead of being read; the work as a whole has a limit. What the keys mean is
`gguf`'s business. Everything wrong with a file is `LocalError` ``bad_model_file``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from relaydesk.core.errors import LocalError
from relaydesk.core.pool.ggml import REMOVED_TYPES, TENSOR_TYPES
from relaydesk.core.text import safe_text

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)

# Limits far above any real file (the largest vocabularies have 262,144 tokens and as many merges, the largest
# models some thousand tensors), and low enough that reading takes well under a second and a few MiB.
MAX_KEYS: Final = 16_384
MAX_KEY_BYTES: Final = 1 << 20  # of all names of keys together
MAX_STRINGS: Final = 4_000_000  # in all arrays together
MAX_TENSORS: Final = 65_536
MAX_LAYERS: Final = 1_024
_MAX_NAME: Final = 127  # bytes of one tensor's name; the engines take 63
_MAX_DIMS: Final = 4
_MAX_TEXT: Final = 1 << 20  # bytes of one text that is kept
_KEPT_TEXT: Final = 4 << 20  # bytes of all texts that are kept

_SCALARS: Final[dict[int, struct.Struct]] = {
    0: struct.Struct("<B"),
    1: struct.Struct("<b"),
    2: struct.Struct("<H"),
    3: struct.Struct("<h"),
    4: struct.Struct("<I"),
    5: struct.Struct("<i"),
    6: struct.Struct("<f"),
    7: struct.Struct("<?"),
    10: struct.Struct("<Q"),
    11: struct.Struct("<q"),
    12: struct.Struct("<d"),
}
_STRING: Final = 8
_ARRAY: Final = 9
_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")
_LAYER_TYPES: Final = frozenset(_SCALARS) - {6, 12}  # a value per layer is an integer or a bool

# What other files begin with that people take for models: said by name, it saves a search.
_OTHERS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"version https://git-lfs", "a Git LFS pointer, not the file it points to"),
    (b"lmgg", "an old GGML file from before GGUF"),
    (b"tjgg", "an old GGJT file from before GGUF"),
    (b"fmgg", "an old GGMF file from before GGUF"),
    (b"algg", "an old GGML adapter from before GGUF"),
    (b"PK\x03\x04", "a ZIP archive (perhaps a PyTorch checkpoint)"),
    (b"<!DOCTYPE", "a web page"),
    (b"<!doctype", "a web page"),
    (b"<html", "a web page"),
)
FETCH_AGAIN: Final = "fetch it again"
DISTRUST: Final = "the file is damaged or made to do harm; fetch it from a source you trust"

_WANTED: Final = frozenset(
    {
        "general.architecture",
        "general.type",
        "general.name",
        "general.basename",
        "general.size_label",
        "general.license",
        "tokenizer.ggml.model",
    }
)

TOKENS: Final = "tokenizer.ggml.tokens"

Value = int | float | bool | bytes | tuple[int, ...]


class Cursor:
    """A position in the file that cannot leave it."""

    def __init__(self, view: memoryview, size: int, what: str) -> None:
        self.view = view
        self.end = min(len(view), size)
        self.size = size
        self.what = what
        self.pos = 0

    def bad(self, sentence: str, hint: str = DISTRUST) -> LocalError:
        """The error for this file; ``sentence`` continues after its name."""
        return LocalError("bad_model_file", f"{self.what} {sentence}", hint)

    def need(self, count: int, where: str) -> None:
        """Raise unless ``count`` more bytes can be read here."""
        if count <= self.end - self.pos:
            return
        if count > self.size:
            raise self.bad(f"claims {count:,} bytes in {where}, more than the {self.size:,} it has")
        if self.end < self.size:
            raise self.bad(
                f"has a header longer than the {self.end:,} bytes that were read of it", "read more of it"
            )
        raise self.bad(f"is cut off: its {self.size:,} bytes end inside the header, in {where}", FETCH_AGAIN)

    def number(self, kind: struct.Struct, where: str) -> int:
        self.need(kind.size, where)
        (value,) = kind.unpack_from(self.view, self.pos)
        self.pos += kind.size
        return int(value)

    def take(self, count: int, where: str) -> bytes:
        self.need(count, where)
        start, self.pos = self.pos, self.pos + count
        return self.view[start : self.pos].tobytes()

    def skip(self, count: int, where: str) -> None:
        self.need(count, where)
        self.pos += count

    def count(self, least: int, limit: int, things: str) -> int:
        """A 64-bit count of things of at least ``least`` bytes each, within the file and our limit."""
        claimed = self.number(_U64, things)
        if claimed > limit or claimed * least > self.size:
            raise self.bad(f"claims {claimed:,} {things}, more than a file of {self.size:,} bytes can hold")
        return claimed


class Metadata:
    """The key-value part: scalars and short lists kept, texts kept where they are wanted.

    ``tokens`` counts the vocabulary; ``known_tokens`` has the ids of the wanted ones that are in it.
    """

    def __init__(self, cursor: Cursor, keys: int, wanted_tokens: frozenset[bytes] = frozenset()) -> None:
        self.values: dict[str, Value] = {}
        self.tokens = 0
        self.known_tokens: dict[bytes, int] = {}
        self._wanted_tokens = wanted_tokens
        self._cursor = cursor
        self._strings_left = MAX_STRINGS
        self._text_left = _KEPT_TEXT
        self._key_bytes_left = MAX_KEY_BYTES
        self._list_left = 64 * MAX_LAYERS
        for index in range(keys):
            self._read_one(f"key {index + 1} of {keys}")

    def _read_one(self, where: str) -> None:
        cursor = self._cursor
        length = cursor.number(_U64, where)
        cursor.need(length, f"the name of {where}")
        if length > self._key_bytes_left:
            raise cursor.bad(f"has names of metadata keys of more than {MAX_KEY_BYTES:,} bytes")
        self._key_bytes_left -= length
        key = cursor.take(length, where).decode("utf-8", "replace")
        shown = repr(safe_text(key, 64))
        if key in self.values:
            raise cursor.bad(f"names the metadata key {shown} twice")
        kind = cursor.number(_U32, shown)
        if kind == _STRING:
            self.values[key] = self._text(key, shown)
        elif kind == _ARRAY:
            self._array(key, shown)
        elif kind in _SCALARS:
            form = _SCALARS[kind]
            cursor.need(form.size, shown)
            (self.values[key],) = form.unpack_from(cursor.view, cursor.pos)
            cursor.pos += form.size
        else:
            raise cursor.bad(f"has an unknown value type {kind} in {shown}")

    def _text(self, key: str, shown: str) -> bytes:
        cursor = self._cursor
        length = cursor.number(_U64, shown)
        cursor.need(length, shown)
        if not is_wanted_text(key):
            cursor.pos += length
            return b""
        kept = min(length, _MAX_TEXT, self._text_left)
        self._text_left -= kept
        text = cursor.take(kept, shown)
        cursor.skip(length - kept, shown)
        return text

    def _array(self, key: str, shown: str) -> None:
        cursor = self._cursor
        kind = cursor.number(_U32, shown)
        claimed = cursor.number(_U64, shown)
        form = _SCALARS.get(kind)
        least = _U64.size if kind == _STRING else form.size if form else 1
        if claimed * least > cursor.size:
            raise cursor.bad(
                f"claims {claimed:,} elements in {shown}, more than a file of {cursor.size:,} bytes can hold"
            )
        self.values[key] = ()
        if key == TOKENS:
            self.tokens = claimed
        if kind == _STRING:
            self._skip_strings(claimed, shown, self._wanted_tokens if key == TOKENS else frozenset())
        elif form is None:
            raise cursor.bad(f"has an array of unknown value type {kind} in {shown}")
        elif kind in _LAYER_TYPES and claimed <= min(MAX_LAYERS, self._list_left):
            self._list_left -= claimed
            cursor.need(claimed * form.size, shown)
            span = cursor.take(claimed * form.size, shown)
            self.values[key] = tuple(int(item) for (item,) in form.iter_unpack(span))
        else:
            cursor.skip(claimed * form.size, shown)

    def _skip_strings(self, count: int, shown: str, wanted: frozenset[bytes]) -> None:
        cursor = self._cursor
        if count > self._strings_left:
            raise cursor.bad(f"has more than {MAX_STRINGS:,} texts in its arrays, at {shown}")
        self._strings_left -= count
        view, pos, last = cursor.view, cursor.pos, cursor.end - _U64.size
        unpack = _U64.unpack_from
        lengths = frozenset(map(len, wanted))
        for number in range(count):
            if pos > last:
                pos += 8
                break
            length = unpack(view, pos)[0]
            pos += 8 + length
            if length in lengths and (text := view[pos - length : pos].tobytes()) in wanted:
                self.known_tokens.setdefault(text, number)
        cursor.skip(pos - cursor.pos, shown)

    def text(self, key: str) -> str:
        value = self.values.get(key)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""

    def whole(self, key: str) -> int | None:
        """A number that is at least 0, or None where the file has none under this key."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, tuple) and value:
            value = max(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._cursor.bad(f"has no usable number in {safe_text(key, 64)!r}")
        return value

    def per_layer(self, key: str) -> int | tuple[int, ...]:
        """One number for all blocks, or one for each; 0 where the file has none."""
        value = self.values.get(key)
        if isinstance(value, tuple) and value:
            if min(value) < 0:
                raise self._cursor.bad(f"has a negative number in {safe_text(key, 64)!r}")
            return value
        return self.whole(key) or 0


def is_wanted_text(key: str) -> bool:
    return key in _WANTED or key.startswith("tokenizer.chat_template")


def read_preamble(cursor: Cursor) -> int:
    if cursor.size == 0:
        raise cursor.bad("is empty", FETCH_AGAIN)
    start = cursor.view[: min(32, cursor.end)].tobytes()
    if start[:4] != _MAGIC:
        for magic, name in _OTHERS:
            if start.startswith(magic):
                raise cursor.bad(f"is not a GGUF file: it is {name}", "get the model as GGUF")
        if _MAGIC.startswith(start):
            raise cursor.bad(f"is cut off after {cursor.size} bytes", FETCH_AGAIN)
        raise cursor.bad(f"is not a GGUF file: it begins with {_begins(start[:4])}", "get the model as GGUF")
    cursor.pos = 4
    version = cursor.number(_U32, "the version")
    if version in _VERSIONS:
        return version
    if version == 1:
        raise cursor.bad("is GGUF version 1, which no engine here loads", "convert the model again")
    if version & 0xFFFF == 0:
        raise cursor.bad("is a big-endian GGUF file", "get or convert a little-endian one")
    raise cursor.bad(
        f"is GGUF version {version}, and this relaydesk knows versions 2 and 3", "update relaydesk"
    )


@dataclass(frozen=True, slots=True)
class TensorTable:
    count: int
    elements: int
    total: int
    token_embd: int
    output: int


def read_tensors(cursor: Cursor, count: int, metadata: Metadata) -> TensorTable:
    """Walk the tensor table and check that each tensor lies inside the file."""
    alignment = metadata.whole("general.alignment") or 32
    if alignment & (alignment - 1) or alignment > 1 << 20:
        raise cursor.bad(f"has an alignment of {alignment:,}, which is not a usable power of two")
    sizes: dict[bytes, int] = {}
    furthest = total = elements = 0
    for index in range(count):
        where = f"tensor {index + 1} of {count}"
        length = cursor.number(_U64, where)
        if length > _MAX_NAME:
            cursor.need(length, where)
            raise cursor.bad(f"has a name of {length:,} bytes at {where}")
        name = cursor.take(length, where)
        if name in sizes:
            raise cursor.bad(f"names the tensor {_shown(name)} twice")
        extent, stored = _tensor_size(cursor, name, where)
        sizes[name] = stored
        offset = cursor.number(_U64, where)
        if offset % alignment:
            raise cursor.bad(
                f"has the tensor {_shown(name)} at a place that is not a multiple of {alignment}"
            )
        furthest = max(furthest, offset + stored)
        total += stored
        elements += extent
    start = -(-cursor.pos // alignment) * alignment
    if count and start + furthest > cursor.size:
        whole = start + furthest
        # A real file that was cut misses part of what its tensors add up to; a forged one points anywhere.
        if whole > start + total + count * alignment:
            raise cursor.bad(f"has a tensor that ends at byte {whole:,}, outside the {cursor.size:,} it has")
        raise cursor.bad(
            f"is cut off: {whole - cursor.size:,} of its {whole:,} bytes are missing", FETCH_AGAIN
        )
    if count and start + total > cursor.size:
        raise cursor.bad("has tensors that lie on top of each other")
    embedding, output = sizes.get(b"token_embd.weight", 0), sizes.get(b"output.weight", 0)
    return TensorTable(count, elements, total, embedding, output)


def _tensor_size(cursor: Cursor, name: bytes, where: str) -> tuple[int, int]:
    """Dimensions and type of one tensor, as elements and bytes stored."""
    dims = cursor.number(_U32, where)
    if dims > _MAX_DIMS:
        raise cursor.bad(
            f"has {dims:,} dimensions in the tensor {_shown(name)}, and at most {_MAX_DIMS} are possible"
        )
    shape = [cursor.number(_U64, where) for _ in range(dims)]
    kind = cursor.number(_U32, where)
    form = TENSOR_TYPES.get(kind)
    if form is None:
        old = REMOVED_TYPES.get(kind)
        if old is not None:
            raise cursor.bad(
                f"stores the tensor {_shown(name)} as {old}, which engines no longer load",
                "get a newer conversion",
            )
        raise cursor.bad(f"stores the tensor {_shown(name)} as the unknown type {kind}", "update relaydesk")
    elements = 1
    for extent in shape:
        elements *= extent
        if elements > 1 << 62:
            raise cursor.bad(f"claims more elements in the tensor {_shown(name)} than any file can hold")
    if shape and shape[0] % form.block:
        raise cursor.bad(
            f"has rows of {shape[0]:,} elements in the tensor {_shown(name)}, "
            f"and {form.name} needs a multiple of {form.block}"
        )
    return elements, form.row_bytes(elements)


def _shown(name: bytes) -> str:
    return repr(safe_text(name.decode("utf-8", "replace"), 64))


def _begins(start: bytes) -> str:
    """The first bytes as people read them: as text where they are some, else as numbers."""
    text = start.decode("ascii", "replace").rstrip("\n")
    return f'"{text}"' if text.isprintable() and text.isascii() else f"the bytes {start.hex(' ')}"
