"""What Ollama's lists and pages tell of a model, out of its registration and its file's header."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from relaydesk.core.gateway.work import Capabilities
from relaydesk.core.pool.ggml import FILE_TYPES
from relaydesk.core.pool.gguf import GgufHeader
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.text import safe_text

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_TYPE_NUMBERS: Final = {label: number for number, label in FILE_TYPES.items()}
_UNKNOWN: Final = "unknown"
_NOTHING: Final = safe_text("")
_NO_FILE: Final = GgufHeader(0, _NOTHING, _NOTHING, _NOTHING, file_type="", file_bytes=0)


class Loaded(msgspec.Struct, frozen=True):
    """A model in memory: bytes it holds, those of them on GPUs, and when it leaves, in ms since 1970."""

    bytes: int
    vram_bytes: int
    expires_at_ms: int


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """One model. ``tag`` is its name with a tag; ``context_length`` what one request can use, in tokens.

    ``info`` is ``model_info`` of ``/api/show``; ``template`` the model's own, which is Jinja.
    """

    tag: str
    size: int
    digest: str
    modified_ms: int
    format: str
    family: str
    parameter_size: str
    quantization: str
    context_length: int
    embedding_length: int
    capabilities: tuple[str, ...]
    info: Mapping[str, object]
    template: str = ""
    license: str = ""
    loaded: Loaded | None = None


def facts_of(
    spec: ModelSpec,
    header: GgufHeader | None,
    capabilities: Capabilities,
    context_length: int,
    loaded: Loaded | None = None,
) -> Facts:
    """The facts of a registered model; ``header`` is None for a far server and for a file out of use."""
    file = header or _NO_FILE
    return Facts(
        tag=tagged(spec.name),
        size=spec.size_bytes or file.file_bytes,
        digest=_digest(spec, file),
        modified_ms=spec.added_ms,
        format="gguf" if spec.kind != "url" else "",
        family=str(file.architecture),
        parameter_size=_human(file.parameters) if file.parameters else str(file.size_label),
        quantization=file.file_type or _UNKNOWN,
        context_length=context_length,
        embedding_length=file.embedding_length,
        capabilities=_capabilities(file, capabilities),
        info=_info(spec, file, context_length),
        template="" if spec.template else file.template,
        license=str(file.license),
        loaded=loaded,
    )


def tagged(name: str) -> str:
    """A model's name with the tag that stands for none."""
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def _digest(spec: ModelSpec, file: GgufHeader) -> str:
    """The file's SHA-256 where it is known, else one over what tells a registration and its file apart.

    Reading tens of gigabytes for a list is not worth it. No path goes into it.
    """
    if _SHA256.fullmatch(spec.sha256):
        return spec.sha256
    told = [spec.name, spec.kind, spec.url_model, spec.added_ms, spec.size_bytes, str(file.name)]
    told += [file.file_type, file.file_bytes, file.tensor_count, file.tensor_bytes, file.template_sha256]
    return hashlib.sha256(repr(told).encode()).hexdigest()


def _capabilities(file: GgufHeader, capabilities: Capabilities) -> tuple[str, ...]:
    """In Ollama's words. A model that only embeds completes nothing."""
    if not capabilities.completion:
        return ("embedding",) if capabilities.embedding else ()
    known = file is not _NO_FILE
    can = {
        "completion": True,
        "tools": capabilities.tools,
        "insert": capabilities.infill and known,
        # Of a far server it is not known: a picker that promises it would have images sent there in vain.
        "vision": capabilities.images and known,
        "thinking": capabilities.thinking and known,
    }
    return tuple(name for name, able in can.items() if able)


def _info(spec: ModelSpec, file: GgufHeader, context_length: int) -> dict[str, object]:
    """The keys of a GGUF file that clients read; what the file does not say is left out.

    The context is what a request can use, because clients fill it; the base name is the registered one,
    because pickers show it.
    """
    arch = str(file.architecture) or _UNKNOWN
    info: dict[str, object] = {
        "general.architecture": arch,
        "general.basename": spec.name,
        "general.name": str(file.name),
        "general.size_label": str(file.size_label),
        "general.license": str(file.license),
        "general.parameter_count": file.parameters,
        "tokenizer.ggml.model": str(file.tokenizer),
        f"{arch}.context_length": context_length,
        f"{arch}.block_count": file.block_count,
        f"{arch}.embedding_length": file.embedding_length,
        f"{arch}.feed_forward_length": file.feed_forward_length,
        f"{arch}.attention.head_count": file.head_count,
        f"{arch}.attention.head_count_kv": file.head_count_kv,
        f"{arch}.expert_count": file.expert_count,
    }
    known = {key: value for key, value in info.items() if value}
    if (number := _TYPE_NUMBERS.get(file.file_type)) is not None:
        known["general.file_type"] = number
    return known


def _human(count: int) -> str:
    """A number of parameters as people write it: ``134.52M``, ``8.0B``."""
    if count >= 10**9:
        return f"{count / 1e9:.1f}B"
    if count >= 10**6:
        return f"{count / 1e6:.2f}M"
    return f"{count / 1e3:.0f}K" if count >= 1000 else str(count)
