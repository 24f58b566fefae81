"""What ``POST /v1/messages`` takes and gives."""

from __future__ import annotations

from typing import Final

from relaydesk.core.gateway.anthropic.fields import REFUSED, Envelope
from relaydesk.core.gateway.chat_schema import OBJECT
from relaydesk.core.gateway.json_schema import (
    NULL,
    TEXT,
    WHOLE,
    either,
    listed,
    literal,
    nullable,
    of_envelope,
    shape,
)

_BLOCK: Final = shape({"type": literal("text"), "text": TEXT})
_BLOCKS: Final = either(
    _BLOCK,
    shape({"type": literal("image"), "source": OBJECT}),
    shape({"type": literal("tool_use"), "id": TEXT, "name": TEXT, "input": OBJECT}),
    shape({"type": literal("tool_result"), "tool_use_id": TEXT}),
)
REQUEST: Final = of_envelope(
    Envelope,
    {
        "model": TEXT,
        "messages": listed(
            shape({"role": literal("user", "assistant"), "content": either(TEXT, listed(_BLOCKS))}), least=1
        ),
        "system": either(TEXT, listed(_BLOCK)),
        "max_tokens": {"type": "integer", "minimum": 1},
        "stop_sequences": listed(TEXT),
        "stream": {"type": "boolean"},
        "temperature": {"type": "number", "minimum": 0, "maximum": 1},
        "top_p": {"type": "number", "minimum": 0, "maximum": 1},
        "tools": listed(OBJECT),
        "tool_choice": shape({"type": literal("auto", "any", "tool", "none")}),
        "thinking": shape({"type": literal("enabled", "disabled", "adaptive")}),
        **dict.fromkeys(REFUSED, NULL),
    },
    required=("messages", "max_tokens"),
)
ANSWER: Final = shape(
    {
        "id": TEXT,
        "type": literal("message"),
        "role": literal("assistant"),
        "model": TEXT,
        "content": listed(shape({"type": TEXT})),
        "stop_reason": nullable(TEXT),
        "usage": shape({"input_tokens": WHOLE, "output_tokens": WHOLE}),
    }
)
COUNT_REQUEST: Final = {**REQUEST, "required": ["messages"]}
COUNT: Final = shape({"input_tokens": WHOLE})
ERROR: Final = shape({"type": literal("error"), "error": shape({"type": TEXT, "message": TEXT})})
