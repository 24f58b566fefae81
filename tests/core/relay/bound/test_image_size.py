"""Image sizes from headers written here by the formats' own layouts."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.relay.bound.image_size import SCANNED_BYTES, ImageSize, size_of, size_of_url


def png(width: int, height: int) -> bytes:
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))


def jpeg(width: int, height: int, *, frame: int = 0xC0, before: bytes = b"") -> bytes:
    segment = struct.pack(">BBHBHHB", 0xFF, frame, 11, 8, height, width, 1) + b"\x01\x11\x00"
    return b"\xff\xd8" + before + segment + b"\xff\xda\x00\x02"


def app(size: int, marker: int = 0xE1) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, size + 2) + b"\x00" * size


def webp(kind: bytes, payload: bytes) -> bytes:
    chunk = kind + struct.pack("<I", len(payload)) + payload
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk


def lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", b"\x30\x01\x00\x9d\x01\x2a" + struct.pack("<HH", width, height) + b"\x00" * 8)


def lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + b"\x00" * 8)


def extended(width: int, height: int) -> bytes:
    three = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return webp(b"VP8X", b"\x10\x00\x00\x00" + three)


def url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


WRITERS = [png, jpeg, lossy, lossless, extended]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(("width", "height"), [(1, 1), (640, 480), (1023, 4097), (16383, 16383)])
def test_every_format_says_its_size(write: object, width: int, height: int) -> None:
    assert callable(write)
    assert size_of_url(url(write(width, height))) == (width, height)


def test_a_jpeg_is_read_through_what_stands_before_its_frame() -> None:
    for before in (app(40_000), b"\xff" * 9, b"\xff\x01" + app(3), b"junk" + app(0), app(9, 0xC4)):
        assert size_of(jpeg(800, 600, before=before)) == (800, 600)
    for frame in (0xC1, 0xC2, 0xCF):
        assert size_of(jpeg(800, 600, frame=frame)) == (800, 600)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GIF89a" + struct.pack("<HH", 320, 240) + b"\x00" * 40,
        png(9, 9)[:23],
        png(9, 9).replace(b"IHDR", b"IDAT"),
        lossy(9, 9).replace(b"\x9d\x01\x2a", b"\x9d\x01\x2b"),
        lossless(9, 9)[:24],
        extended(9, 9)[:29],
        webp(b"ALPH", b"\x00" * 40),
        jpeg(9, 9)[:9],
        jpeg(9, 9, frame=0xC8),
        b"\xff\xd8" + app(3)[:3] + b"\x01" + jpeg(9, 9)[2:],
        b"\xff\xd8\xff\xd9" + jpeg(9, 9)[2:],
        b"\xff\xd8" + b"\xff" * 60_000 + jpeg(9, 9)[2:],
    ],
)
def test_what_says_no_size_has_none(data: bytes) -> None:
    assert size_of(data) is None


def test_a_frame_behind_the_scanned_bytes_is_not_found() -> None:
    early, late = app(SCANNED_BYTES - 100), app(SCANNED_BYTES - 100) + app(100)
    assert size_of_url(url(jpeg(8, 8, before=early))) == (8, 8)
    assert size_of_url(url(jpeg(8, 8, before=late))) is None


def test_spellings_of_a_data_url() -> None:
    data = png(700, 300)
    wrapped = base64.encodebytes(data).decode()
    assert size_of_url("data:image/png;charset=x;base64," + wrapped) == (700, 300)
    assert size_of_url("data:image/png;base64," + " " * 400_000 + wrapped) == (700, 300)
    assert size_of_url(url(data) + "====") == (700, 300)
    assert size_of_url(url(data)[:-1]) == (700, 300)
    for other in ("https://example.org/a.png", url(data).replace("data:", "DATA:"), url(data)[5:], "data:,x"):
        assert size_of_url(other) is None
    assert size_of_url("data:image/png;base64,*" + wrapped) is None
    assert size_of_url("data:image/png;base64,é" + wrapped) is None
    assert size_of_url("data:image/png;base64," + "=" * 90_000 + "A") is None


@given(st.binary(max_size=80), st.sampled_from(WRITERS), st.integers(0, 40), st.booleans())
def test_any_bytes_are_read(noise: bytes, write: object, at: int, cut: bool) -> None:
    assert callable(write)
    good = write(300, 200)
    found = size_of(good[:at] + noise + (b"" if cut else good[at:]))
    assert found is None or isinstance(found, ImageSize)
    size_of_url(url(noise + good))


@pytest.mark.long
@settings(max_examples=10_000)
@given(st.binary(max_size=200), st.sampled_from([b"", *(write(300, 200)[:30] for write in WRITERS)]))
def test_ten_thousand_headers(noise: bytes, head: bytes) -> None:
    size_of(head + noise)
    size_of_url("data:;base64," + noise.decode("latin-1"))
