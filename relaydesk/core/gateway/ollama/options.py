"""``options``: Ollama's names for what shapes an answer, as the fields of a chat request.

Options of the machine (``num_ctx``, ``num_gpu`` …) are the operator's here: their types are checked and they
have no effect, since none of them changes an answer that fits. What Ollama does not know is ignored, as
there. What would change the answer and cannot be done is refused by name.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import invalid, present, unsupported

Number = int | float


class Options(msgspec.Struct):
    """Every option with a meaning. Whole numbers may come as ``4.0``: some languages write no others."""

    temperature: float | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repeat_penalty: float | None = None
    num_predict: Number | None = None
    top_k: Number | None = None
    seed: Number | None = None
    repeat_last_n: Number | None = None
    stop: Raw = Raw()
    # Samplers that Ollama once had; their neutral values are still sent by clients.
    mirostat: Number | None = None
    tfs_z: float | None = None
    # The operator's.
    num_ctx: Number | None = None
    num_keep: Number | None = None
    num_batch: Number | None = None
    num_gpu: Number | None = None
    main_gpu: Number | None = None
    num_thread: Number | None = None
    use_mmap: bool | None = None


_FLOATS: Final = (
    "temperature",
    "top_p",
    "min_p",
    "typical_p",
    "presence_penalty",
    "frequency_penalty",
    "repeat_penalty",
)
_WHOLE: Final = (
    "num_predict",
    "top_k",
    "seed",
    "repeat_last_n",
    "num_ctx",
    "num_keep",
    "num_batch",
    "num_gpu",
    "main_gpu",
    "num_thread",
)
# What errors about the chat request's fields are said of.
NAMES: Final[dict[str, str]] = {
    **{name: f"options.{name}" for name in (*_FLOATS, "top_k", "seed", "repeat_last_n", "stop")},
    "max_tokens": "options.num_predict",
}


def chat_fields(options: Options) -> dict[str, object]:
    """The chat request's fields for these options. Raises `PeerError` naming ``options.x``."""
    if options.mirostat:
        raise unsupported(
            "options.mirostat", "options.mirostat is not supported", "leave it out or set it to 0"
        )
    if options.tfs_z is not None and options.tfs_z != 1:
        raise unsupported("options.tfs_z", "options.tfs_z is not supported", "leave it out")
    given = {name: value for name in _WHOLE if (value := _whole(options, name)) is not None}
    fields: dict[str, object] = {
        name: value for name in _FLOATS if (value := getattr(options, name)) is not None
    }
    fields |= {name: given[name] for name in ("top_k", "repeat_last_n") if name in given}
    if given.get("seed", -1) != -1:
        # -1 asks for a different answer every time, which is what no seed does.
        fields["seed"] = given["seed"]
    if given.get("num_predict", 0) > 0:
        # Anything below means no limit but the context.
        fields["max_tokens"] = given["num_predict"]
    if stop := present(options.stop):
        fields["stop"] = Raw(stop)
    return fields


def _whole(options: Options, name: str) -> int | None:
    value: Number | None = getattr(options, name)
    if value is None or isinstance(value, int):
        return value
    if not value.is_integer():
        raise invalid(f"options.{name}", f"options.{name} must be a whole number, not {value:g}")
    return int(value)
