"""What ``POST /v1/responses`` takes and gives."""

from __future__ import annotations

from typing import Final

from relaydesk.core.gateway.chat_schema import OBJECT, STOP
from relaydesk.core.gateway.json_schema import NULL, TEXT, WHOLE, either, listed, literal, of_envelope, shape
from relaydesk.core.gateway.responses.fields import INCLUDABLE, REFUSED, Envelope

REQUEST: Final = of_envelope(
    Envelope,
    {
        "model": TEXT,
        "input": either(TEXT, listed(OBJECT, least=1)),
        "instructions": TEXT,
        "stream": {"type": "boolean"},
        "max_output_tokens": {"type": "integer", "minimum": 1},
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "top_p": {"type": "number", "minimum": 0, "maximum": 1},
        "tools": listed(OBJECT),
        "reasoning": OBJECT,
        "include": listed(literal(*sorted(INCLUDABLE))),
        "metadata": {"type": "object", "additionalProperties": TEXT},
        "truncation": literal("auto", "disabled"),
        "stop": STOP,
        **dict.fromkeys(REFUSED, NULL),
    },
    required=("input",),
)
ANSWER: Final = shape(
    {
        "id": TEXT,
        "object": literal("response"),
        "created_at": WHOLE,
        "model": TEXT,
        "status": literal("completed", "incomplete"),
        "output": listed(shape({"id": TEXT, "type": TEXT})),
        "usage": shape({"input_tokens": WHOLE, "output_tokens": WHOLE, "total_tokens": WHOLE}),
    }
)
