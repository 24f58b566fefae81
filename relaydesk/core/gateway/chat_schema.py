"""What ``POST /v1/chat/completions`` takes and gives, and the parts that other routes share with it."""

from __future__ import annotations

from typing import Final

from relaydesk.core.gateway.fields import EFFORTS, RANGES, REFUSED, Envelope
from relaydesk.core.gateway.json_schema import (
    NULL,
    TEXT,
    WHOLE,
    Schema,
    either,
    listed,
    literal,
    nullable,
    of_envelope,
    of_type,
    shape,
)
from relaydesk.core.gateway.usage import Usage

OBJECT: Final[Schema] = {"type": "object"}
STOP: Final = either(TEXT, listed(TEXT))
LOGIT_BIAS: Final[Schema] = {
    "type": "object",
    "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100},
}
_CALL: Final = shape(
    {"id": TEXT, "type": literal("function"), "function": shape({"name": TEXT, "arguments": TEXT})}
)
_TOOL: Final = shape(
    {
        "type": literal("function"),
        "function": shape({"name": TEXT}, {"description": TEXT, "parameters": OBJECT}),
    }
)
_PART: Final = either(
    shape({"type": literal("text"), "text": TEXT}),
    shape({"type": literal("image_url"), "image_url": shape({"url": TEXT})}),
)
_MESSAGE: Final = shape(
    {"role": literal("system", "developer", "user", "assistant", "tool", "function")},
    {
        "content": nullable(either(TEXT, listed(_PART))),
        "tool_calls": nullable(listed(_CALL)),
        "tool_call_id": TEXT,
    },
)
CHAT_REQUEST: Final = of_envelope(
    Envelope,
    {
        "messages": listed(_MESSAGE, least=1),
        "system": either(TEXT, listed(_PART)),
        "stop": STOP,
        "logit_bias": LOGIT_BIAS,
        "response_format": shape({"type": literal("text", "json_object", "json_schema")}),
        "tools": listed(_TOOL),
        "tool_choice": either(literal("none", "auto", "required"), OBJECT),
        "chat_template_kwargs": OBJECT,
        "reasoning_effort": literal(*EFFORTS),
        "verbosity": literal("medium"),
        "user": TEXT,
        "modalities": listed(literal("text")),
        **dict.fromkeys(REFUSED, NULL),
    },
    required=("messages",),
    ranges=RANGES,
)

_ANSWER: Final = shape(
    {"role": literal("assistant"), "content": nullable(TEXT)},
    {"reasoning_content": TEXT, "refusal": nullable(TEXT), "tool_calls": listed(_CALL)},
)
_CHOICE: Final = shape(
    {"index": WHOLE, "message": _ANSWER, "finish_reason": nullable(TEXT)}, {"logprobs": nullable(OBJECT)}
)
CHAT_ANSWER: Final = shape(
    {
        "id": TEXT,
        "object": literal("chat.completion"),
        "created": WHOLE,
        "model": TEXT,
        "choices": listed(_CHOICE, least=1),
        "usage": of_type(Usage),
    }
)
ERROR: Final = shape(
    {"error": shape({"message": TEXT, "type": TEXT, "code": TEXT}, {"param": nullable(TEXT)})}
)
