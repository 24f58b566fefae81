"""Who may use a model, and why not."""

from __future__ import annotations

import pytest

from relaydesk.core.pool.model import EngineKind
from relaydesk.core.pool.offer import most_strangers, unoffered, until_offered


@pytest.mark.parametrize(
    ("slots", "share", "most"), [(4, None, 2), (5, None, 2), (4, 1, 1), (4, 9, 3), (2, None, 1), (1, None, 0)]
)
def test_half_of_the_slots_or_the_share_and_never_the_last_one(
    slots: int, share: int | None, most: int
) -> None:
    assert most_strangers(slots, share) == most


@pytest.mark.parametrize(
    ("kind", "slots", "completion", "share", "words"),
    [
        ("xllamacpp", 2, True, None, ""),
        ("xllamacpp", None, True, None, "not loaded"),
        ("xllamacpp", 1, True, None, "one slot"),
        ("xllamacpp", 4, False, None, "no text"),
        ("xllamacpp", 4, True, 0, "RELAY_NETWORK_SLOTS=0"),
        ("url", 4, True, None, "another server"),
    ],
)
def test_why_not(
    kind: EngineKind, slots: int | None, completion: bool, share: int | None, words: str
) -> None:
    said = unoffered(kind, slots, completion=completion, share=share)
    assert words in said
    assert bool(said) == bool(words)
    # Where nothing stands in its way somebody can really be let in.
    assert bool(said) or most_strangers(slots or 0, share) >= 1


def test_the_next_step_of_a_model_that_is_not_offered() -> None:
    cold = unoffered("xllamacpp", None, completion=True, share=None)
    both = until_offered("m", cold, preload=False, keep_alive_s=900)
    assert "model load m" in both and both.endswith("--preload --keep-alive forever` keeps it so")
    assert until_offered("m", cold, preload=True, keep_alive_s=900).endswith(
        "m --keep-alive forever` keeps it so"
    )
    assert until_offered("m", cold, preload=True, keep_alive_s=-1).endswith("`relaydesk model load m`")
    far = unoffered("url", None, completion=True, share=None)
    assert until_offered("m", far, preload=False, keep_alive_s=0) == f"m is not offered: {far}"
