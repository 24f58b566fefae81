"""A registered model: where its weights are and how it is to be run."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

KvType = Literal["f16", "bf16", "f32", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"]
EngineKind = Literal["xllamacpp", "url"]
# A billion USD per 1,000,000 tokens: what details can say exactly (core/relay/records/details.py).
MOST_RATE: Final = 10**15


class ModelSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One registered model, as stored and as every front edits it.

    ``ctx`` is what one request can use, in tokens (the engine gets ``ctx * slots``); 0 means the model's
    own training context capped at 4096. ``slots`` is how many requests run at once. ``keep_alive_s`` is
    how long it stays loaded after its last request (0: unload at once, -1: for ever, None: as
    ``RELAY_KEEP_ALIVE`` says). ``gpu_layers`` -1
    means as many as fit. ``owned`` says relaydesk wrote the file and may delete it. ``source`` is what it
    was pulled or added from, for people. ``offer``: strangers of the relay network may use it while it is
    loaded; ``input_rate`` and ``output_rate`` are what they pay, in microUSDC per 1,000,000 tokens.
    """

    name: str
    kind: EngineKind = "xllamacpp"
    path: str = ""
    url: str = ""
    url_model: str = ""
    url_key_secret: str = ""
    aliases: tuple[str, ...] = ()
    ctx: int = 0
    slots: int = 4
    kv_k: KvType = "f16"
    kv_v: KvType = "f16"
    template: str = ""
    projector: str = ""
    draft: str = ""
    gpu_layers: int = -1
    keep_alive_s: int | None = None
    preload: bool = False
    spill: bool = True
    host_only: bool = False
    offer: bool = False
    input_rate: int = 0
    output_rate: int = 0
    owned: bool = False
    source: str = ""
    size_bytes: int = 0
    sha256: str = ""
    added_ms: int = 0
