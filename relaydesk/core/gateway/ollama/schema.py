"""What the routes of Ollama's dialect take and give."""

from __future__ import annotations

from typing import Final

from relaydesk.core.gateway.chat_schema import OBJECT, STOP
from relaydesk.core.gateway.embeddings.request import MAX_DIMENSIONS
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
    shape,
)
from relaydesk.core.gateway.ollama.embed import Embed, Embeddings
from relaydesk.core.gateway.ollama.options import Options
from relaydesk.core.gateway.ollama.request import LEVELS, Common

ERROR: Final = shape({"error": TEXT})
VERSION: Final = shape({"version": TEXT})

_COMMON: Final = of_envelope(
    Common,
    {
        "format": either(literal("", "json"), OBJECT),
        "options": of_envelope(Options, {"stop": STOP}),
        "think": either({"type": "boolean"}, literal(*LEVELS)),
        "keep_alive": either({"type": "number"}, {"type": "string", "pattern": "^[0-9]{1,4}[smh]$"}),
        "top_logprobs": {"type": "integer", "minimum": 0, "maximum": 20},
    },
)


def _with(fields: dict[str, Schema]) -> Schema:
    properties = {**_COMMON["properties"], **{name: nullable(schema) for name, schema in fields.items()}}
    return {**_COMMON, "properties": properties}


_IMAGES: Final = listed(TEXT)
_CALL: Final = shape({"function": shape({"name": TEXT, "arguments": OBJECT})})
_MESSAGE: Final = shape(
    {"role": literal("system", "user", "assistant", "tool"), "content": TEXT},
    {"images": nullable(_IMAGES), "tool_calls": nullable(listed(_CALL)), "thinking": TEXT, "tool_name": TEXT},
)
CHAT_REQUEST: Final = _with({"messages": listed(_MESSAGE), "tools": listed(OBJECT)})
GENERATE_REQUEST: Final = _with(
    {"prompt": TEXT, "system": TEXT, "images": _IMAGES, "suffix": TEXT, "template": literal(""),
     "context": NULL, "raw": {"type": "boolean"}}
)  # fmt: skip

_TIMES: Final = dict.fromkeys(
    ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count",
     "eval_duration"),
    WHOLE,
)  # fmt: skip
_LINE: Final = {"model": TEXT, "created_at": TEXT, "done": {"type": "boolean"}}
_END: Final = {"done_reason": TEXT, **_TIMES}
CHAT_ANSWER: Final = shape({**_LINE, "message": shape({"role": literal("assistant"), "content": TEXT})}, _END)
GENERATE_ANSWER: Final = shape({**_LINE, "response": TEXT}, _END)

_OF_BOTH: Final = {name: _COMMON["properties"][name] for name in ("options", "keep_alive")}
EMBED_REQUEST: Final = of_envelope(
    Embed, {**_OF_BOTH, "input": either(TEXT, listed(TEXT))}, ranges={"dimensions": (1, MAX_DIMENSIONS)}
)
EMBEDDINGS_REQUEST: Final = of_envelope(Embeddings, {**_OF_BOTH, "prompt": TEXT})
_VECTOR: Final = listed({"type": "number"})
EMBED_ANSWER: Final = shape(
    {
        "model": TEXT,
        "embeddings": listed(_VECTOR),
        "total_duration": WHOLE,
        "load_duration": WHOLE,
        "prompt_eval_count": WHOLE,
    }
)
EMBEDDINGS_ANSWER: Final = shape({"embedding": _VECTOR})

_DETAILS: Final = shape(
    {
        "format": TEXT,
        "family": TEXT,
        "families": listed(TEXT),
        "parameter_size": TEXT,
        "quantization_level": TEXT,
    }
)
_NAMED: Final = {"name": TEXT, "model": TEXT, "digest": TEXT, "size": WHOLE, "details": _DETAILS}
TAGS: Final = shape({"models": listed(shape({**_NAMED, "modified_at": TEXT, "capabilities": listed(TEXT)}))})
PS: Final = shape(
    {"models": listed(shape({**_NAMED, "size_vram": WHOLE, "expires_at": TEXT, "context_length": WHOLE}))}
)
SHOW_REQUEST: Final = shape({}, {"model": nullable(TEXT), "name": nullable(TEXT)})
SHOW: Final = shape(
    {
        "details": _DETAILS,
        "model_info": OBJECT,
        "capabilities": listed(TEXT),
        "template": TEXT,
        "parameters": TEXT,
        "modelfile": TEXT,
        "license": TEXT,
        "modified_at": TEXT,
    }
)
