"""Nodes of the network as people read them: an operator's id has up to 20 digits, and they tell little."""

from __future__ import annotations

from typing import Final

# Digits kept of each end: among a few thousand operators hardly two have both alike.
_END: Final = 4
# Up to here an id is shown whole.
_WHOLE: Final = 2 * _END + 1


def short_ref(ref: str) -> str:
    """``operator:node`` in few cells, the operator's middle left out: ``2749…7841:1``."""
    operator, colon, node = ref.partition(":")
    return f"{shortened(operator)}{colon}{node}"


def shortened(text: str) -> str:
    """A long id or address by its two ends."""
    return text if len(text) <= _WHOLE else f"{text[:_END]}…{text[-_END:]}"
