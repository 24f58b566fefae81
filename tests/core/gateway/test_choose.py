"""Which model a request means."""

from __future__ import annotations

import pytest

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.choose import MAX_NAMED, choose_model
from relaydesk.core.gateway.models import ModelName


def fault(requested: str | None, *names: str) -> tuple[str, str | None, str]:
    with pytest.raises(PeerError) as caught:
        choose_model(requested, [ModelName(name) for name in names])
    return caught.value.fault.code, caught.value.fault.param, caught.value.fault.sentence


@pytest.mark.parametrize("requested", [None, ""])
def test_the_sole_model_is_meant(requested: str | None) -> None:
    assert choose_model(requested, [ModelName("a")]) == "a"


def test_a_name_is_obeyed_even_beside_a_sole_model() -> None:
    assert choose_model("b:latest", [ModelName("a"), ModelName("b")]) == "b"
    assert fault("b", "a")[:2] == ("model_not_found", "model")


def test_several_models_are_named() -> None:
    code, param, sentence = fault(None, "a", "b/c:q4")
    assert (code, param) == ("invalid_request", "model")
    assert "a, b/c:q4" in sentence


def test_many_models_are_not_all_named() -> None:
    _, _, sentence = fault(None, *[f"m{n}" for n in range(MAX_NAMED + 5)])
    assert "and 5 more" in sentence and f"m{MAX_NAMED}," not in sentence


def test_no_model_at_all() -> None:
    code, param, sentence = fault(None)
    assert (code, param) == ("invalid_request", "model")
    assert "relaydesk model pull" in sentence
