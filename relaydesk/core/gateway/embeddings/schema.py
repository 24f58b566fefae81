"""What ``POST /v1/embeddings`` takes and gives."""

from __future__ import annotations

from typing import Final

from relaydesk.core.gateway.embeddings.request import MAX_DIMENSIONS, Envelope
from relaydesk.core.gateway.json_schema import TEXT, WHOLE, either, listed, literal, of_envelope, shape

_IDS: Final = listed({"type": "integer", "minimum": 0}, least=1)
REQUEST: Final = of_envelope(
    Envelope,
    {
        "input": either(TEXT, listed(TEXT, least=1), _IDS, listed(_IDS, least=1)),
        "encoding_format": {"enum": ["float", "base64", None]},
    },
    required=("input",),
    ranges={"dimensions": (1, MAX_DIMENSIONS)},
)
ANSWER: Final = shape(
    {
        "object": literal("list"),
        "model": TEXT,
        "data": listed(
            shape(
                {
                    "object": literal("embedding"),
                    "index": WHOLE,
                    "embedding": either(listed({"type": "number"}), TEXT),
                }
            )
        ),
        "usage": shape({"prompt_tokens": WHOLE, "total_tokens": WHOLE}),
    }
)
