from __future__ import annotations

import json

import pytest

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.prompt_count import counted, tokenize_body


def test_a_count() -> None:
    assert counted(200, b'{"object":"response.input_tokens","input_tokens":42}') == 42


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (200, b"{}", "engine_failed"),
        (200, b'{"input_tokens":-1}', "engine_failed"),
        (200, b'{"input_tokens":"4"}', "engine_failed"),
        (200, b"[" * 100_000, "engine_failed"),
        (404, b"", "engine_failed"),
        (400, b'{"error":{"message":"no such role"}}', "engine_rejected"),
    ],
)
def test_what_is_no_count(status: int, body: bytes, code: str) -> None:
    with pytest.raises(PeerError) as caught:
        counted(status, body)
    assert caught.value.fault.code == code


def test_the_tokens_themselves_are_counted_without_building_them() -> None:
    assert counted(200, b'{"tokens":[1,22,333]}') == 3
    assert counted(200, b'{"tokens":[ ]}') == 0
    for body in (b'{"tokens":[[1],[2]]}', b'{"tokens":{}}', b'{"tokens":null}'):
        with pytest.raises(PeerError):
            counted(200, body)


def test_what_asks_for_them() -> None:
    assert json.loads(tokenize_body(b'"Hi \\u00e9"')) == {
        "content": "Hi é",
        "add_special": True,
        "parse_special": True,
    }
