"""One table of editable fields: it covers `ModelSpec`, and what it reads the specification takes."""

from __future__ import annotations

import contextlib

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import LocalError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.surfaces.cli.model.fields import FIELDS, chosen, parse_pair

_OURS = {"name", "kind", "owned", "source", "size_bytes", "sha256", "added_ms"}
# A secret: it may not come as an option's value.
_SECRET = {"url_key_secret"}


def test_every_editable_field_can_be_set() -> None:
    assert {field.key for field in FIELDS} == set(ModelSpec.__struct_fields__) - _OURS - _SECRET


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([field.option for field in FIELDS]),
    st.one_of(
        st.text(max_size=30), st.integers().map(str), st.sampled_from(["yes", "15m", "q8_0", "-1", "a,b"])
    ),
)
def test_what_a_pair_gives_the_specification_takes(option: str, text: str) -> None:
    with contextlib.suppress(LocalError):
        key, value = parse_pair(f"{option}={text}")
        spec = msgspec.convert({"name": "x", key: value}, ModelSpec)
        assert getattr(spec, key) == value


def test_only_what_was_given_is_a_change() -> None:
    nothing = {field.key: () if field.many else None for field in FIELDS}
    assert chosen(nothing) == {}
    assert chosen({**nothing, "spill": False, "ctx": 0, "aliases": (("a", "b"), ("a",))}) == {
        "spill": False,
        "ctx": 0,
        "aliases": ("a", "b"),
    }
