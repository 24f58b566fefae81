"""``/api/tags``, ``/api/ps``, ``/api/show`` and ``/api/version``: what clients' pickers and pages read.

Texts are never null and lists never absent: a client in a strict language refuses the whole list for one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.ollama.facts import Facts
from relaydesk.core.gateway.ollama.instant import instant

# The version of Ollama whose dialect is spoken. Some clients want at least 0.6.4 before they list anything.
VERSION: Final = "0.13.5"


def version_body() -> bytes:
    """The body of ``/api/version``."""
    return encode({"version": VERSION})


def tags_body(models: Iterable[Facts]) -> bytes:
    """The body of ``/api/tags``."""
    return encode({"models": [_entry(facts) for facts in models]})


def ps_body(models: Iterable[Facts]) -> bytes:
    """The body of ``/api/ps``: those of ``models`` that are loaded."""
    return encode(
        {
            "models": [
                {
                    **_named(facts),
                    "size": facts.loaded.bytes,
                    "size_vram": facts.loaded.vram_bytes,
                    "expires_at": instant(facts.loaded.expires_at_ms),
                    "context_length": facts.context_length,
                }
                for facts in models
                if facts.loaded is not None
            ]
        }
    )


def show_body(facts: Facts) -> bytes:
    """The body of ``/api/show``."""
    parameters = f"num_ctx {facts.context_length}" if facts.context_length else ""
    lines = [f"FROM {facts.tag}"]
    if parameters:
        lines.append(f"PARAMETER {parameters}")
    if facts.template:
        lines.append(f'TEMPLATE """{facts.template}"""')
    return encode(
        {
            "license": facts.license,
            "modelfile": "\n".join(lines) + "\n",
            "parameters": parameters,
            "template": facts.template,
            "details": _details(facts),
            "model_info": facts.info,
            "capabilities": facts.capabilities,
            "modified_at": instant(facts.modified_ms),
        }
    )


def _entry(facts: Facts) -> dict[str, object]:
    return {
        **_named(facts),
        "modified_at": instant(facts.modified_ms),
        "size": facts.size,
        "capabilities": facts.capabilities,
    }


def _named(facts: Facts) -> dict[str, object]:
    details = {
        **_details(facts),
        "context_length": facts.context_length,
        "embedding_length": facts.embedding_length,
    }
    return {"name": facts.tag, "model": facts.tag, "digest": facts.digest, "details": details}


def _details(facts: Facts) -> dict[str, object]:
    return {
        "parent_model": "",
        "format": facts.format,
        "family": facts.family,
        "families": [facts.family] if facts.family else [],
        "parameter_size": facts.parameter_size,
        "quantization_level": facts.quantization,
    }
