"""What ``POST /v1/completions`` takes and gives."""

from __future__ import annotations

from typing import Final

from relaydesk.core.gateway.chat_schema import LOGIT_BIAS, OBJECT, STOP
from relaydesk.core.gateway.completions.fields import NUMBERS, REFUSED, Envelope
from relaydesk.core.gateway.json_schema import (
    NULL,
    TEXT,
    WHOLE,
    either,
    listed,
    literal,
    nullable,
    of_envelope,
    of_type,
    shape,
)
from relaydesk.core.gateway.usage import Usage

_TOKENS: Final = listed({"type": "integer", "minimum": 0}, least=1)
REQUEST: Final = of_envelope(
    Envelope,
    {
        "prompt": either(TEXT, listed(TEXT, least=1), _TOKENS, listed(_TOKENS, least=1)),
        "suffix": TEXT,
        "stop": STOP,
        "logit_bias": LOGIT_BIAS,
        **dict.fromkeys(REFUSED, NULL),
    },
    required=("prompt",),
    ranges=NUMBERS,
)
ANSWER: Final = shape(
    {
        "id": TEXT,
        "object": literal("text_completion"),
        "created": WHOLE,
        "model": TEXT,
        "choices": listed(
            shape(
                {"index": WHOLE, "text": TEXT, "finish_reason": nullable(TEXT), "logprobs": nullable(OBJECT)}
            )
        ),
        "usage": of_type(Usage),
    }
)
