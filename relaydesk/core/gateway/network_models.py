"""Models of the relay network in a client's lists, beside the registered ones."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Final

import msgspec

from relaydesk.core.gateway.away import NETWORK, PREFIX, Offer
from relaydesk.core.gateway.models import ModelEntry, Pricing, TopProvider
from relaydesk.core.gateway.ollama.facts import Facts, tagged
from relaydesk.core.relay.price.rate import MICRO, usd_per_token

_NOBODY: Final = "no node that offers it can be asked now"


def network_entry(offer: Offer) -> ModelEntry:
    """The entry of ``/v1/models``; it is warm while a node and a relay can be asked."""
    prompt, completion = (Decimal(rate) / MICRO for rate in (offer.input_rate, offer.output_rate))
    return ModelEntry(
        id=PREFIX + offer.id,
        created=0,
        context_length=offer.context_window,
        state="warm" if offer.warm else "unavailable",
        fits=offer.warm,
        fit_reason="" if offer.warm else _NOBODY,
        placement=NETWORK,
        max_model_len=offer.context_window or msgspec.UNSET,
        pricing=Pricing(usd_per_token(prompt), usd_per_token(completion)),
        input_rate_usd_per_1m=float(prompt),
        output_rate_usd_per_1m=float(completion),
        top_provider=TopProvider(offer.context_window, offer.max_output),
    )


def network_facts(offer: Offer) -> Facts:
    """The same for Ollama's lists. Whose file it is nobody knows: the digest is one over its name."""
    name = PREFIX + offer.id
    info: dict[str, object] = {"general.architecture": "unknown", "general.basename": name}
    if offer.context_window:
        info["unknown.context_length"] = offer.context_window
    return Facts(
        tag=tagged(name),
        size=0,
        digest=hashlib.sha256(name.encode()).hexdigest(),
        modified_ms=0,
        format="",
        family="",
        parameter_size="",
        quantization="unknown",
        context_length=offer.context_window,
        embedding_length=0,
        capabilities=("completion", "tools"),
        info=info,
    )
