"""The published vectors of target selection and of the output that is assumed where none was stated."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import pytest

from relaydesk.core.relay.bound.reserve_count import derive_max_output
from relaydesk.core.relay.price.rate import micro_ceiling, micro_rate
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.candidate import Candidate, Capacity
from relaydesk.core.relay.target.constraints import Constraints
from relaydesk.core.relay.target.hints import Hints
from relaydesk.core.relay.target.reference import Reference
from relaydesk.core.relay.target.selection import Block, select_targets

FOLDER = os.environ.get("RELAYDESK_VECTORS")
if not FOLDER:
    pytest.skip("RELAYDESK_VECTORS names no folder of vectors", allow_module_level=True)

VECTORS: dict[str, Any] = json.loads(
    (Path(FOLDER) / "selection_vectors.json").read_text(), parse_float=Decimal
)


def _named(case: Any) -> str:
    return str(case["name"])


def _capacity(said: dict[str, Any]) -> Capacity:
    return Capacity(
        context_window=said["context_window"],
        max_output_tokens=said["max_output_tokens"],
        input_rate=micro_rate(Decimal(said["input_usd_per_1m"])),
        output_rate=micro_rate(Decimal(said["output_usd_per_1m"])),
        serves_image_gen=said["serves_image_gen"],
        serves_image_edit=said["serves_image_edit"],
        offers_image_gen_tool=said["offers_image_gen_tool"],
        offers_image_edit_tool=said["offers_image_edit_tool"],
        image_rate=said["image_rate_micro_usdc"],
        image_edit_rate=said["image_edit_rate_micro_usdc"],
    )


def _candidate(said: dict[str, Any]) -> Candidate:
    return Candidate(
        ref=NodeRef(said["id"], said["node_id"]),
        proto_version=said["proto_version"],
        models=tuple(said["models"]),
        capacities={name: _capacity(each) for name, each in said["model_capacities"].items()},
        builtin_tools=tuple(said["builtin_tools"]),
        tee_attested=said["tee_attested"],
        staging=said.get("staging", False),
        spendable=said.get("signer_spendable_microalgos"),
    )


def _references(said: list[dict[str, Any]]) -> tuple[Reference, ...]:
    return tuple(
        Reference(each["operator_id"], None if each["match_all_nodes"] else each["node_id"]) for each in said
    )


def _ceiling(said: Any) -> int | None:
    return micro_ceiling(Decimal(said)) if said else None


def _constraints(said: dict[str, Any]) -> Constraints:
    stated = None if said.get("max_output_unspecified") else said["max_output_tokens"]
    return Constraints(
        model=said["model"],
        input_tokens=said["input_tokens"],
        input_tokens_v2=said.get("input_tokens_v2", 0),
        max_output_tokens=stated,
        max_output_ceiling=said.get("max_output_ceiling", 0),
        endpoint=said["endpoint"],
        require_tee=said["require_tee"],
        allow_staging=said.get("allow_staging", False),
        requested_tools=tuple(said["requested_tools"] or ()),
        image_tool_budget=said["image_tool_gen_budget"],
        image_edit_tool_budget=said["image_tool_edit_budget"],
        affinity=said["affinity_policy"],
        hints=Hints(
            only=_references(said.get("only", [])),
            ignore=_references(said.get("ignore", [])),
            order=_references(said.get("order", [])),
            allow_fallbacks=said["allow_fallbacks"],
            max_input_rate=_ceiling(said.get("max_input_usd_per_1m")),
            max_output_rate=_ceiling(said.get("max_output_usd_per_1m")),
            require_tools=said.get("require_tools", False),
        ),
    )


@pytest.mark.parametrize("case", VECTORS["target_cases"], ids=_named)
def test_the_nodes_to_ask(case: dict[str, Any]) -> None:
    preferred = _candidate(case["preferred"]) if "preferred" in case else None
    nodes = [_candidate(said) for said in case["operators"]]
    chosen = select_targets(nodes, _constraints(case["constraints"]), preferred)
    expected = case["expected"]
    refs = list(zip(expected["operator_ids"], expected["node_ids"], strict=True))
    assert [tuple(node.ref) for node in chosen.nodes] == refs
    diagnostics = expected["diagnostics"]
    assert chosen.served_by == diagnostics["registry_count"]
    assert {name: chosen.blocked == name for name in get_args(Block)} == {
        name: diagnostics[name] for name in get_args(Block)
    }
    misses = [
        {
            "operator_id": miss.ref.operator,
            "context_window": miss.context_window,
            "max_output_tokens": miss.max_output_tokens,
            "effective_max_output": miss.max_output,
        }
        for miss in chosen.misses
    ]
    assert misses == diagnostics.get("sizing_misses", [])
    assert (chosen.reason is None) == bool(refs)


@pytest.mark.parametrize("case", VECTORS["derive_cases"], ids=_named)
def test_the_output_that_is_assumed(case: dict[str, Any]) -> None:
    derived = derive_max_output(case["context_window"], case["declared_max"], case["base_ceiling"])
    assert derived == case["expected"]
