"""One item and its events."""

from __future__ import annotations

import json

from relaydesk.core.gateway.responses.out_items import MESSAGE, REFUSAL, CallItem, TextItem


def test_a_text_is_kept_as_it_was_written() -> None:
    item = TextItem(MESSAGE, "t", 3)
    (delta,) = item.add(rb'"\u00e9\/"')
    assert rb'"delta":"\u00e9\/"' in delta.members
    item.take(b'"x"')
    assert rb'"text":"\u00e9\/x"' in item.json(b"completed")


def test_an_items_id_and_place_are_in_every_event() -> None:
    item = TextItem(REFUSAL, "t", 12)
    events = [*item.open(), *item.add(b'"No."'), *item.close(b"completed")]
    assert [event.type.decode() for event in events] == [
        "response.output_item.added",
        "response.content_part.added",
        "response.refusal.delta",
        "response.refusal.done",
        "response.content_part.done",
        "response.output_item.done",
    ]
    for event in events:
        members = json.loads(b"{" + event.members + b"}")
        assert members["output_index"] == 12
        assert "msg_t12" in (members.get("item_id"), members.get("item", {}).get("id"))


def test_a_call_without_arguments_says_so() -> None:
    call = CallItem("t", 0, 'c"1', "f")
    assert call.add(b'""') == []
    done = json.loads(call.json(b"completed"))
    assert (done["arguments"], done["call_id"]) == ("", 'c"1')
