"""The ``pricing`` object of an entry of ``/v1/models`` (wire §5.2)."""

from __future__ import annotations

from decimal import Decimal

from relaydesk.core.relay.price.rate import usd_per_token


def listed_pricing(
    input_usd: Decimal,
    output_usd: Decimal,
    cache_read_usd: Decimal | None = None,
    *,
    image_route: bool = False,
    other_costs: bool = False,
) -> dict[str, str] | None:
    """``prompt``, ``completion`` and, where cached input is cheaper, ``input_cache_read``: USD per token.

    Takes USD per 1,000,000 tokens. None where token prices would mislead: a model of an image route, or one
    whose tokens are free while tools or images cost (``other_costs``).
    """
    free = not input_usd and not output_usd
    if image_route or (free and other_costs):
        return None
    pricing = {"prompt": usd_per_token(input_usd), "completion": usd_per_token(output_usd)}
    if cache_read_usd is not None and cache_read_usd < input_usd:
        pricing["input_cache_read"] = usd_per_token(cache_read_usd)
    return pricing
