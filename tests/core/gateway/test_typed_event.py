from __future__ import annotations

from relaydesk.core.gateway.sse import SseParser
from relaydesk.core.gateway.typed_event import typed_event


def test_an_event_has_its_type_and_one_line_of_data() -> None:
    frame = typed_event(b"message_stop", b'{\n"a":1}')
    assert frame == b'event: message_stop\ndata: { "a":1}\n\n'
    assert SseParser().feed(frame) == [("message_stop", b'{ "a":1}')]
