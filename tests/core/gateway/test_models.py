"""The list of models, and names."""

from __future__ import annotations

import json

import pytest

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.models import (
    ModelEntry,
    ModelName,
    entry_body,
    find_model,
    id_from_path,
    list_body,
    require_model,
)

SEED = (
    '{"object":"list","data":[{"id":"qwen3-8b","object":"model","created":1735689600,"owned_by":"relay",'
    '"context_length":16384,"state":"warm","fits":true,"fit_reason":"","placement":"host"}]}'
)
ENTRY = ModelEntry(
    id="qwen3-8b",
    created=1735689600,
    context_length=16384,
    state="warm",
    fits=True,
    fit_reason="",
    placement="host",
)
KNOWN = (
    ModelName("hf.co/u/R-GGUF:Q4_K_M"),
    ModelName("smollm2", ("small", "tiny:latest")),
    ModelName("llama3.2:latest"),
    ModelName("small:latest"),
)


def test_the_list_is_the_seeds() -> None:
    assert list_body([ENTRY]).decode() == SEED
    assert json.loads(entry_body(ENTRY)) == json.loads(SEED)["data"][0]


def test_an_empty_list_is_a_list() -> None:
    assert list_body([]) == b'{"object":"list","data":[]}'


@pytest.mark.parametrize(
    ("requested", "found"),
    [
        ("hf.co/u/R-GGUF:Q4_K_M", "hf.co/u/R-GGUF:Q4_K_M"),
        ("smollm2", "smollm2"),
        ("smollm2:latest", "smollm2"),
        ("llama3.2", "llama3.2:latest"),
        ("tiny", "smollm2"),
        ("small", "smollm2"),  # an exact alias goes before a name with the default tag
        ("small:latest", "small:latest"),
        ("smollm2:latest:latest", None),
        ("SMOLLM2", None),
        ("", None),
        ("smol", None),
    ],
)
def test_names(requested: str, found: str | None) -> None:
    assert find_model(requested, KNOWN) == found


@pytest.mark.parametrize(
    "path",
    [
        "hf.co/u/R-GGUF:Q4_K_M",
        "hf.co%2Fu%2FR-GGUF%3AQ4_K_M",
        "hf.co/u/R-GGUF:Q4_K_M/",
        "hf.co%2fu/R-GGUF:Q4_K_M",
    ],
)
def test_an_id_in_a_path(path: str) -> None:
    assert id_from_path(path) == "hf.co/u/R-GGUF:Q4_K_M"


def test_an_unknown_name_is_shown_safely() -> None:
    with pytest.raises(PeerError) as caught:
        require_model("x\x1b[2J" + "y" * 1000, KNOWN)
    fault = caught.value.fault
    assert (fault.code, fault.param, fault.rule.status) == ("model_not_found", "model", 404)
    assert "\x1b" not in fault.message and len(fault.message) < 200
