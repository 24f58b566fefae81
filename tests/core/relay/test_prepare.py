"""The body as it is sealed: what goes, what is set, and that nothing else changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.relay.prepare import MAX_FIELDS, Prepared, prepare_body
from tests.support.mutate import JSON, mutated


@pytest.mark.parametrize(
    ("body", "sealed"),
    [
        (b'{"model":"m","store":false}', None),
        (b' {"store" : true,\n "model":"m", "x":1.50 }', None),
        (b'{"model":"m"}', b'{"model":"m","store":false}'),
        (b'{"store":null,"model":"m"}', b'{"store":false,"model":"m"}'),
        (b'{"model":"net/a/b","store":0}', b'{"model":"a/b","store":0}'),
        (b'{"model":"net/net/a","store":0}', b'{"model":"net/a","store":0}'),
        (b'{"provider":{"only":["7"]},"model":"m","store":0}', b'{"model":"m","store":0}'),
        (b'{"prompt_cache_key":null,"model":"m","store":0}', b'{"model":"m","store":0}'),
        (b'{"model":"m","tools":[ ],"tool_choice":"auto","store":0}', b'{"model":"m","store":0}'),
        (b'{"model":"m","tools":null,"store":0}', b'{"model":"m","store":0}'),
        (
            b'{"model":"m","tools":[],"tool_choice":"required","store":0}',
            b'{"model":"m","tool_choice":"required","store":0}',
        ),
        (b'{"model":"m","tools":[1],"tool_choice":"auto","store":0}', None),
        (b'{"model":"m","tools":{},"store":0}', None),
        (b'{"model":"m","a":{"provider":1,"store":null,"tools":[]},"store":0}', None),
        # Numbers, escapes and white space of what stays are its sender's.
        (
            b'{"a": 1e400 , "model" : "m", "b":"\\u0041\\u00e9", "c":[1.0, 2 ]}',
            b'{"a":1e400,"model":"m","b":"\\u0041\\u00e9","c":[1.0, 2 ],"store":false}',
        ),
        # Of one name said twice the last counts, as it would at the other end.
        (b'{"model":"x","model":"net/m","store":1,"store":0}', b'{"model":"m","store":0}'),
    ],
)
def test_what_is_sealed(body: bytes, sealed: bytes | None) -> None:
    prepared = prepare_body(body)
    assert prepared.body == (body if sealed is None else sealed)
    assert json.loads(prepared.body)["model"] == prepared.model


def test_the_hints_are_kept_for_this_node() -> None:
    assert prepare_body(b'{"model":"m","provider":{"only": ["7"]}}').provider == b'{"only": ["7"]}'
    assert prepare_body(b'{"model":"m"}').provider == b""
    assert prepare_body(b'{"model":"m","provider":null}').provider == b""


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"", "invalid_json", None),
        (b"{", "invalid_json", None),
        (b'{"model":"m"} x', "invalid_json", None),
        (b'{"a":' * 100_000, "invalid_json", None),
        # The gateway takes no lone surrogate anywhere: nor does this.
        (b'{"model":"m","a":"\\ud800"}', "invalid_json", None),
        (b"[]", "invalid_request", None),
        (b"{}", "invalid_request", "model"),
        (b'{"model":null}', "invalid_request", "model"),
        (b'{"model":7}', "invalid_request", "model"),
        (b'{"model":""}', "invalid_request", "model"),
        (b'{"model":"net/"}', "invalid_request", "model"),
    ],
)
def test_what_cannot_be_sealed(body: bytes, code: str, param: str | None) -> None:
    with pytest.raises(PeerError) as caught:
        prepare_body(body)
    assert (caught.value.fault.code, caught.value.fault.param) == (code, param)


def test_more_fields_than_anybody_sends() -> None:
    with pytest.raises(PeerError):
        prepare_body(json.dumps({"model": "m", **{f"f{n}": n for n in range(MAX_FIELDS)}}).encode())


def test_no_prompt_in_a_repr() -> None:
    assert "secret" not in repr(prepare_body(b'{"model":"m","messages":"secret","provider":"secret"}'))


REQUEST = {
    "model": "net/m",
    "messages": [{"role": "user", "content": "é \u2028"}],
    "provider": {"only": ["7"]},
    "tools": [],
    "prompt_cache_key": "k",
    "temperature": 0.5,
}


def expected(body: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in body.items() if name not in ("provider", "prompt_cache_key")}
    if "tools" in kept and kept["tools"] in (None, []):
        del kept["tools"]
        if kept.get("tool_choice") in ("none", "auto"):
            del kept["tool_choice"]
    if kept.get("store") is None:
        kept["store"] = False
    kept["model"] = kept["model"].removeprefix("net/")
    return kept


def try_it(data: bytes) -> Prepared | None:
    try:
        return prepare_body(data)
    except PeerError:
        return None


@given(mutated(REQUEST), st.booleans())
def test_nothing_else_changes(body: dict[str, Any], ascii_only: bool) -> None:
    prepared = try_it(json.dumps(body, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"))
    if isinstance(body.get("model"), str) and body["model"] not in ("", "net/"):
        assert prepared is not None
        assert json.loads(prepared.body) == expected(body)
        for name, value in expected(body).items():
            if name not in ("model", "store"):
                assert (
                    json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
                    in prepared.body
                )
        assert try_it(prepared.body) == Prepared(prepared.body, expected(expected(body))["model"], b"")
    else:
        assert prepared is None


@pytest.mark.long
@settings(max_examples=10_000)
@given(JSON, st.binary(max_size=8), st.integers(0, 250))
def test_ten_thousand_bodies(value: Any, noise: bytes, at: int) -> None:
    data = json.dumps({**REQUEST, "tools": value, "store": value}).encode()
    for body in (data, data[:at] + noise + data[at:], data[:at] + noise + data[at + len(noise) :]):
        try_it(body)
