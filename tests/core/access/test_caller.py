from __future__ import annotations

from relaydesk.core.access.caller import DEFAULT_CALLER, Caller, unknown_model
from relaydesk.core.access.key import KeySpec

SPEC = KeySpec(name="ann", id="a" * 16, created_ms=1, models=("m",))


def test_which_models_a_key_may_use() -> None:
    assert DEFAULT_CALLER.allows("anything")
    ann = Caller("ann", SPEC.id, SPEC)
    assert ann.allows("m")
    assert not ann.allows("n")


def test_a_model_that_means_nothing_is_named_and_made_safe() -> None:
    fault = unknown_model("n:latest\x1b[1m").fault
    assert (fault.code, fault.param) == ("model_not_found", "model")
    assert "n:latest" in fault.message
    assert "\x1b" not in fault.message
