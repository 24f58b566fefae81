from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.view import hopcheck, network, node_view, sections
from relaydesk.core.view.node_view import NodeView

# A view is shown, recorded and sent in bug reports: it must have no place for any of these.
SECRET_WORDS = ("secret", "password", "token_value", "api_key", "private", "prompt_text", "body", "messages")


def _records() -> list[type[msgspec.Struct]]:
    found = [
        *vars(sections).values(),
        *vars(network).values(),
        *vars(hopcheck).values(),
        *vars(node_view).values(),
    ]
    return sorted(
        {kind for kind in found if isinstance(kind, type) and issubclass(kind, msgspec.Struct)},
        key=lambda kind: kind.__name__,
    )


@pytest.mark.parametrize("kind", _records(), ids=lambda kind: kind.__name__)
def test_records_are_frozen_and_hold_no_secret(kind: type[msgspec.Struct]) -> None:
    assert kind.__struct_config__.frozen
    assert kind.__doc__
    for name in kind.__struct_fields__:
        assert not any(word in name for word in SECRET_WORDS), name


def _kinds(found: object, seen: set[int]) -> list[object]:
    if id(found) in seen:
        return []
    seen.add(id(found))
    parts: list[object] = [found]
    for value in (
        getattr(found, "__dict__", {}).values()
        if not hasattr(found, "__struct_fields__")
        else (getattr(found, name) for name in found.__struct_fields__)
    ):
        for item in value if isinstance(value, tuple) else (value,):
            if type(item).__module__ == "msgspec.inspect":
                parts += _kinds(item, seen)
    return parts


def test_a_view_is_made_of_immutable_plain_kinds() -> None:
    found = {type(part).__name__ for part in _kinds(msgspec.inspect.type_info(NodeView), set())}
    assert "CustomType" in found  # SafeText: the walk reached the leaves
    assert not found & {"AnyType", "BytesType", "ByteArrayType", "DictType", "ListType", "SetType", "RawType"}
