from __future__ import annotations

import pytest

from relaydesk.core.gateway.field_names import FieldNames


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("messages", "input"),
        ("messages[1]", "input[4]"),
        ("messages[1].content[2].text", "input[4].content[2].text"),
        ("messages[1].tool_calls[0].function.arguments", "input[5].arguments"),
        ("messages[12]", "input[12]"),
        ("messages_more", "messages_more"),
        ("top_p", "top_p"),
        ("", ""),
    ],
)
def test_the_longest_known_beginning_counts(ours: str, theirs: str) -> None:
    names = FieldNames({"messages": "input", "messages[1]": "input[4]"})
    names.add("messages[1].tool_calls[0].function", "input[5]")
    assert names(ours) == theirs
