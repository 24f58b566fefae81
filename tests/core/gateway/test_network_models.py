"""Models of the relay network in lists."""

from __future__ import annotations

import json

import msgspec

from relaydesk.core.gateway.models import entry_body, list_body
from relaydesk.core.gateway.network_models import network_entry, network_facts
from relaydesk.core.gateway.ollama.listing import show_body, tags_body
from tests.support.scripted_network import TINY


def test_an_entry_has_the_seeds_fields_and_its_price() -> None:
    assert json.loads(entry_body(network_entry(TINY))) == {
        "id": "net/lab/tiny",
        "object": "model",
        "created": 0,
        "owned_by": "relay",
        "context_length": 4096,
        "state": "warm",
        "fits": True,
        "fit_reason": "",
        "placement": "network",
        "max_model_len": 4096,
        # 0.1 and 0.4 USD for a million.
        "pricing": {"prompt": "0.0000001", "completion": "0.0000004"},
        "input_rate_usd_per_1m": 0.1,
        "output_rate_usd_per_1m": 0.4,
        "top_provider": {"context_length": 4096, "max_completion_tokens": 512},
    }


def test_who_cannot_be_asked_is_there_and_not_warm() -> None:
    down = msgspec.structs.replace(
        TINY, warm=False, input_rate=0, output_rate=0, context_window=0, max_output=0
    )
    entry = json.loads(list_body([network_entry(down)]))["data"][0]
    assert (entry["state"], entry["fits"], entry["placement"]) == ("unavailable", False, "network")
    assert "no node" in entry["fit_reason"]
    assert entry["pricing"] == {"prompt": "0", "completion": "0"}
    assert "max_model_len" not in entry and entry["top_provider"] == {}


def test_ollamas_lists_have_no_null_in_them() -> None:
    listed = json.loads(tags_body([network_facts(TINY)]))["models"][0]
    assert listed["name"] == listed["model"] == "net/lab/tiny:latest"
    assert len(listed["digest"]) == 64 and listed["size"] == 0
    assert listed["details"]["context_length"] == 4096
    assert b"null" not in tags_body([network_facts(TINY)])
    shown = json.loads(show_body(network_facts(TINY)))
    assert shown["model_info"]["general.basename"] == "net/lab/tiny"
    assert shown["capabilities"] == ["completion", "tools"]
