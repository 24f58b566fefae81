from __future__ import annotations

import base64
import json
import struct

from relaydesk.core.gateway.embeddings.output import item, whole
from relaydesk.core.gateway.embeddings.vector import packed

VECTOR = packed([0.1, -2.5])


def test_both_encodings_of_an_entry() -> None:
    floats = json.loads(item(3, VECTOR, "float"))
    assert {**floats, "embedding": None} == {"object": "embedding", "index": 3, "embedding": None}
    text = json.loads(item(3, VECTOR, "base64"))["embedding"]
    assert list(struct.unpack("<2f", base64.b64decode(text))) == floats["embedding"]


def test_the_whole() -> None:
    body = json.loads(whole([item(0, VECTOR, "float"), item(1, VECTOR, "float")], "a/b:c", 7))
    assert body["object"] == "list"
    assert [each["index"] for each in body["data"]] == [0, 1]
    assert body["model"] == "a/b:c"
    assert body["usage"] == {"prompt_tokens": 7, "total_tokens": 7}
