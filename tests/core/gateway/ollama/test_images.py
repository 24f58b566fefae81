"""Images in bare base64."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.ollama.images import image_part

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(40))


def url(text: str) -> str:
    part = json.loads(image_part(json.dumps(text).encode(), "images[0]"))
    assert part["type"] == "image_url"
    found: str = part["image_url"]["url"]
    return found


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "png"),
        (b"\xff\xd8\xff\xe0" + b"x" * 30, "jpeg"),
        (b"GIF89a" + b"x" * 30, "gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 " + b"x" * 9, "webp"),
        (b"BM" + b"x" * 30, "bmp"),
    ],
)
def test_the_kind_is_told_by_the_bytes(data: bytes, kind: str) -> None:
    assert url(base64.b64encode(data).decode()) == (
        f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    )


def test_line_feeds_escapes_prefixes_and_missing_padding_are_forgiven() -> None:
    plain = base64.b64encode(PNG).decode()
    right = f"data:image/png;base64,{plain}"
    assert url(base64.encodebytes(PNG).decode()) == right
    assert url(f"data:image/jpeg;base64,{plain}") == right
    assert url(plain.rstrip("=")) == right
    escaped = json.dumps(plain).replace("/", "\\/").encode()
    assert json.loads(image_part(escaped, "i"))["image_url"]["url"] == right


@pytest.mark.parametrize("raw", [b'""', b'"!"', b'"AAAAA"', b"null", b"", b"3", b"{}", b'"iVBO-_8="'])
def test_what_is_no_base64_is_named(raw: bytes) -> None:
    with pytest.raises(PeerError) as caught:
        image_part(raw, "messages[2].images[1]")
    assert (caught.value.fault.code, caught.value.fault.param) == ("invalid_request", "messages[2].images[1]")


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(PeerError) as caught:
        url(base64.b64encode(b"%PDF-1.4 and so on").decode())
    assert (caught.value.fault.code, caught.value.fault.param) == ("unsupported", "images[0]")


@given(st.one_of(st.binary(max_size=60).map(lambda b: base64.b64encode(PNG[:8] + b).decode()), st.text()))
def test_any_text_is_an_image_or_refused(text: str) -> None:
    try:
        found = url(text)
    except PeerError as error:
        param = error.fault.param
        assert param == "images[0]"
    else:
        base64.b64decode(found.partition(",")[2], validate=True)
