from __future__ import annotations

import pytest

from relaydesk.core.access.caller import DEFAULT_CALLER, Caller
from relaydesk.core.access.key import KeySpec
from relaydesk.core.errors import PeerError

SPEC = KeySpec(name="ann", id="a" * 16, created_ms=1, models=("m",))


def test_the_default_key_may_use_every_model() -> None:
    DEFAULT_CALLER.require("anything", "anything")


def test_a_model_that_is_not_allowed_is_one_that_does_not_exist() -> None:
    ann = Caller("ann", SPEC.id, SPEC)
    ann.require("m", "m:latest")
    with pytest.raises(PeerError) as caught:
        ann.require("n", "n:latest")
    fault = caught.value.fault
    assert (fault.code, fault.param) == ("model_not_found", "model")
    assert fault.message == "model 'n:latest' not found"
