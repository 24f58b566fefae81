"""The input count that a reserve asks for, and the output that is assumed where a request states none."""

from __future__ import annotations

from typing import Final

# What is assumed of a node that says nothing of its own (wire §3.4); one figure for everybody, or nodes
# and callers would disagree about who fits.
MAX_OUTPUT_CEILING: Final = 32_768
# What one round of a tool adds where details say nothing (wire §5.1).
HEADROOM_A_ROUND: Final = 4000

_LEAST_OUTPUT: Final = 256
_WINDOW_PART: Final = 4


def reserve_input_count(
    bound: int, *, growth: int = 0, max_output: int, context_window: int = 0, floor: int = 0
) -> int:
    """Tokens to reserve for the input: ``bound`` and what tools may add to it, at least ``floor``.

    Capped last by what the window leaves beside ``max_output`` (a window of 0 is none declared), so that the
    two always fit in it (wire §5.4).
    """
    wanted = max(bound + growth, floor)
    return min(wanted, max(0, context_window - max_output)) if context_window else wanted


def tool_growth(*, grows: bool, rounds: int, headroom: int = HEADROOM_A_ROUND) -> int:
    """Tokens that tools may add while a request is served: none where none of them grows it."""
    return rounds * headroom if grows else 0


def derive_max_output(context_window: int, declared: int, ceiling: int = MAX_OUTPUT_CEILING) -> int:
    """Output tokens assumed where a request states none: what the node declares, else a quarter of its
    window within limits, else ``ceiling`` (wire §3.4). 0 stands for what is not declared."""
    if declared:
        return declared
    if not context_window:
        return ceiling
    return min(max(context_window // _WINDOW_PART, _LEAST_OUTPUT), ceiling)
