"""The details a node publishes: written in full, read leniently, bounded."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from relaydesk.core.relay.records.canonical import RecordError
from relaydesk.core.relay.records.details import (
    DETAILS_LIMIT,
    MODELS_LIMIT,
    BuiltinTool,
    Coordinates,
    Details,
    OfferedModel,
    Reasoning,
    decode_details,
    encode_details,
    with_ephemeral,
)
from relaydesk.core.relay.records.ephemeral import Ephemeral
from relaydesk.core.text import safe_text
from tests.support.mutants import survives
from tests.support.mutate import mutated

ADDRESS = "AAAQEAYEAUDAOCAJBIFQYDIOB4IBCEQTCQKRMFYYDENBWHA5DYP7MUPJQE"
KEY = "age1rc8wp62cfvmldwhm49mdp5lg3gu6qkrs2whhactp0w9nqjk6wp7sl74d8s"
ADVERT = Ephemeral(KEY, 1_699_998_500, 1_700_000_000, "c2ln")

MODEL = OfferedModel(
    id="smollm2:135m",
    input_rate_usd_per_1m=0.15,
    output_rate_usd_per_1m=0,
    cache_read_rate_usd_per_1m=0,
    context_window=8192,
    max_output_tokens=2048,
    input_modalities=(safe_text("text"),),
    output_modalities=(safe_text("text"),),
    reasoning=Reasoning(supported=True, allowed_efforts=(safe_text("low"),)),
    tool_use=True,
    coordinates=Coordinates(family=safe_text("smollm2"), quantization=safe_text("Q4_1")),
    source=safe_text("hf:org/model"),
    retention="no_upstream",
    tool_call_rates_micro_usdc={"zs_web_search": 5},
)
DETAILS = Details(
    operator_id=2**64 - 1,
    node_id=7,
    owner_addr=ADDRESS,
    signing_addr=ADDRESS,
    models=(MODEL,),
    oracle_source=safe_text("none"),
    oracle_healthy=False,
    min_charge_output_tokens=1000,
    builtin_tools=(BuiltinTool(type=safe_text("zs_web_search")),),
    version=safe_text("0.1.0"),
    proto_version="9.10",
    relaydesk_ledger=True,
)


def document(**changes: Any) -> bytes:
    said = json.loads(encode_details(with_ephemeral(DETAILS, ADVERT)))
    return json.dumps({**said, **changes}).encode()


def test_what_is_written() -> None:
    said = json.loads(encode_details(with_ephemeral(DETAILS, ADVERT)))
    assert said == {
        "operator_id": 2**64 - 1,
        "node_id": 7,
        "owner_addr": ADDRESS,
        "signing_addr": ADDRESS,
        "ephemeral_age_pubkey": KEY,
        "ephemeral_issued_at": 1_699_998_500,
        "ephemeral_expiry": 1_700_000_000,
        "ephemeral_sig": "c2ln",
        "models": [
            {
                "id": "smollm2:135m",
                "input_rate_usd_per_1m": 0.15,
                "output_rate_usd_per_1m": 0,
                "cache_read_rate_usd_per_1m": 0,
                "context_window": 8192,
                "max_output_tokens": 2048,
                "input_modalities": ["text"],
                "output_modalities": ["text"],
                "reasoning": {"supported": True, "allowed_efforts": ["low"]},
                "tool_use": True,
                "coordinates": {"family": "smollm2", "quantization": "Q4_1"},
                "source": "hf:org/model",
                "retention": "no_upstream",
                "tool_call_rates_micro_usdc": {"zs_web_search": 5},
            }
        ],
        "oracle_source": "none",
        "oracle_healthy": False,
        "min_charge_output_tokens": 1000,
        "builtin_tools": [{"type": "zs_web_search"}],
        "version": "0.1.0",
        "proto_version": "9.10",
        "relaydesk_ledger": True,
    }
    nothing = json.loads(encode_details(msgspec.structs.replace(DETAILS, models=())))
    assert nothing["models"] == [] and "ephemeral_sig" not in nothing


def test_what_is_written_is_read() -> None:
    found = decode_details(document())
    assert found == with_ephemeral(DETAILS, ADVERT)
    assert found.ephemeral == ADVERT
    assert decode_details(encode_details(DETAILS)).ephemeral is None


@pytest.mark.parametrize("name", ["age_pubkey", "issued_at", "expiry", "sig"])
@pytest.mark.parametrize("value", [None, [], True])
def test_a_key_is_there_whole_or_not(name: str, value: object) -> None:
    assert decode_details(document(**{f"ephemeral_{name}": value})).ephemeral is None


def test_one_wrong_field_costs_itself() -> None:
    model = {"id": "a", "input_rate_usd_per_1m": "x", "output_rate_usd_per_1m": 2, "retention": "on_paper",
             "context_window": -1, "reasoning": {"supported": 3, "default_effort": "high"}}  # fmt: skip
    found = decode_details(
        document(
            operator_id="7",
            node_id=True,
            owner_addr="x",
            models=[model, 3, {"id": 4}, None, []],
            oracle_healthy="yes",
            builtin_tools=[{"type": 3}, "x", {"type": "zs"}],
            tee={"kind": 1},
            max_tool_iterations=2**60,
            algo_usd_price=-1,
        ).replace(b"1152921504606846976", b"1e999")
    )
    assert (found.operator_id, found.node_id, found.owner_addr) == (None, None, "")
    assert found.models == (
        OfferedModel(
            id="a",
            input_rate_usd_per_1m=0,
            output_rate_usd_per_1m=2,
            reasoning=Reasoning(default_effort=safe_text("high")),
        ),
    )
    assert found.builtin_tools == (BuiltinTool(type=safe_text("zs")),)
    assert found.tee and found.proto_version == "9.10" and not found.oracle_healthy
    assert found.tool_headroom_per_iteration == 4000 and found.max_tool_iterations == 0


@pytest.mark.parametrize(
    ("said", "read"),
    [(True, True), (False, False), (None, False), (1, 1), ("1.0", "1.0"), ("\x1b[2J", False), ([], False)],
)
def test_our_ledger_is_announced_by_a_flag_or_a_version(said: object, read: object) -> None:
    found = decode_details(document(relaydesk_ledger=said)).relaydesk_ledger
    assert found == read and type(found) is type(read)


@pytest.mark.parametrize(("said", "read"), [("9.1 ", "9.1 "), (9.1, ""), ("9.1\x1b", ""), ("9" * 99, "")])
def test_a_version_is_kept_as_it_stands(said: object, read: str) -> None:
    assert decode_details(document(proto_version=said)).proto_version == read


def test_text_of_a_peer_is_safe_and_ids_are_not_cleaned() -> None:
    ids = ["ok", "ok", "a\x1b[2J", " a", "b\u202e", "", "c" * 257]
    models = [{"id": name, "tags": ["x\x1b[31m"], "context_window": at} for at, name in enumerate(ids)]
    found = decode_details(document(models=models, version="1\x1b[2J2", oracle_source="o\u202e"))
    assert [model.id for model in found.models] == ["ok"]
    assert found.models[0].tags == ("x[31m",) and found.models[0].context_window == 0
    assert (found.version, found.oracle_source) == ("1[2J2", "o")


def test_bounds() -> None:
    many = [{"id": f"m{n}"} for n in range(MODELS_LIMIT + 5)]
    assert len(decode_details(document(models=many)).models) == MODELS_LIMIT
    for body in (b" " * (DETAILS_LIMIT + 1), b"[]", b"", b"null", b"{", b'{"a":' * 9000):
        with pytest.raises(RecordError):
            decode_details(body)
    with pytest.raises(RecordError):
        decode_details(document(operator_id=2**64))


@settings(max_examples=150, deadline=None)
@given(mutated(json.loads(document())))
def test_any_json_object_is_read(value: dict[str, Any]) -> None:
    body = json.dumps(value).encode()
    if any(isinstance(value.get(name), int) and value[name] >= 2**64 for name in ("operator_id", "node_id")):
        with pytest.raises(RecordError, match="64 bits"):
            decode_details(body)
        return
    found = decode_details(body)
    assert decode_details(encode_details(found)) == found


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_mutated_bytes(count: int) -> None:
    survives(decode_details, RecordError, document(), count)
