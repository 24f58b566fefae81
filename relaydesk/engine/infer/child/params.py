"""An order made into the engine's parameters: every door closed that the node does not use."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

from relaydesk.engine.infer.spec import EngineOrder, EngineSpec

# The level at which the engine tells buffer sizes. Its log goes through the node's filter.
_VERBOSITY = 4
# No browser talks to a worker; this matches no page.
_NO_ORIGIN = "http://127.0.0.1:1"


def engine_params(engine: ModuleType, order: EngineOrder) -> Any:
    """Build ``CommonParams`` for ``order`` out of the module ``xllamacpp``."""
    spec = order.spec
    params = engine.CommonParams()
    _model(engine, params, spec)
    _compute(engine, params, spec)
    params.hostnames = [order.socket]
    params.port = 0
    params.api_keys = [order.key]
    params.n_threads_http = max(48, 2 * spec.slots + 16)  # each open connection holds one
    params.sse_ping_interval = 10
    params.ui = False
    params.ui_mcp_proxy = False
    params.server_tools = []
    params.endpoint_slots = False
    params.endpoint_props = False
    params.endpoint_metrics = spec.metrics
    params.cors_origins = _NO_ORIGIN
    params.cors_credentials = False
    params.models_autoload = False
    params.offline = True
    params.verbosity = _VERBOSITY
    return params


def _model(engine: ModuleType, params: Any, spec: EngineSpec) -> None:
    params.model.path = spec.model_path
    params.model_alias = {spec.alias}
    params.chat_template = spec.template
    if spec.projector:
        params.mmproj.path = spec.projector
    if spec.draft:
        params.speculative.draft.mparams.path = spec.draft
        params.speculative.types = [engine.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        params.speculative.draft.n_gpu_layers = spec.gpu_layers
    if spec.setup.embeds:
        params.embedding = True
    if spec.setup.pooling == "mean":
        params.pooling_type = engine.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN


def _compute(engine: ModuleType, params: Any, spec: EngineSpec) -> None:
    params.n_ctx = spec.ctx_total
    params.n_parallel = spec.slots
    # Small where it writes: the engine looks for its client only between two batches of a prompt,
    # and may have begun the next by then. Two of 256 took up to 2.9 s on one core with 135M parameters.
    params.n_batch = params.n_ubatch = spec.setup.batch
    threads = spec.threads or max(1, _cores() - 1)
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = threads
    params.cache_type_k = _kv(engine, spec.kv_k)
    params.cache_type_v = _kv(engine, spec.kv_v)
    params.cache_ram_mib = 0  # a second prompt cache would be shared between keys
    params.cache_idle_slots = False
    params.n_gpu_layers = spec.gpu_layers
    # The engine's own fitting is a dry load: worth its time only where layers have to be spread.
    params.fit_params = spec.gpu_layers < 0 and _has_gpu(engine)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _kv(engine: ModuleType, name: str) -> Any:
    return getattr(engine.ggml_type, f"GGML_TYPE_{name.upper()}")


def _has_gpu(engine: ModuleType) -> bool:
    kinds = engine.ggml_backend_dev_type
    gpus = (kinds.GGML_BACKEND_DEVICE_TYPE_GPU, kinds.GGML_BACKEND_DEVICE_TYPE_IGPU)
    return any(device["type"] in gpus for device in engine.get_device_info())
