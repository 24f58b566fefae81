"""Requests with one thing wrong: a good body in which something was replaced, removed or added."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

_NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container with each of its keys."""
    keys: list[Any] = list(value) if isinstance(value, dict) else []
    if isinstance(value, list):
        keys = list(range(len(value)))
    found = [(value, key) for key in keys]
    for key in keys:
        found += _places(value[key])
    return found


@st.composite
def mutated(draw: st.DrawFn, body: dict[str, Any]) -> dict[str, Any]:
    """``body`` with up to three changes anywhere in it."""
    body = copy.deepcopy(body)
    for _ in range(draw(st.integers(0, 3))):
        places = _places(body)
        if not places:
            break
        container, key = draw(st.sampled_from(places))
        kind = draw(st.sampled_from(["replace", "remove", "double"]))
        if kind == "replace":
            container[key] = draw(JSON)
        elif kind == "remove":
            del container[key]
        elif isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
    return body
