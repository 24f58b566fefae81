from __future__ import annotations

import pytest

from relaydesk.core.commands import ProbeRelays
from relaydesk.core.errors import LocalError
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.relay.commands import RelayCommands, parse_ref
from tests.support.lab_network import LabNetwork


async def test_a_probe_of_one_node_or_all() -> None:
    async with LabNetwork(3) as lab:
        dispatcher = Dispatcher()
        RelayCommands(lab.asker).register(dispatcher)
        outcome = await dispatcher.call(ProbeRelays())
        assert outcome.ok
        assert {each["target"] for each in outcome.value["probes"]} == {"1:1", "2:1", "3:1"}
        (first, *_) = (await dispatcher.call(ProbeRelays(ref="2:1"))).value["probes"]
        assert {"target", "relay", "status", "code", "marker", "attribution", "charged", "why"} <= set(first)
        assert (first["target"], first["status"], first["marker"], first["charged"]) == (
            "2:1",
            200,
            True,
            "nobody",
        )


@pytest.mark.parametrize(("ref", "code"), [("9:9", "not_found"), ("nonsense", "invalid_request")])
async def test_a_node_that_cannot_be_probed(ref: str, code: str) -> None:
    async with LabNetwork(2) as lab:
        dispatcher = Dispatcher()
        RelayCommands(lab.asker).register(dispatcher)
        outcome = await dispatcher.call(ProbeRelays(ref=ref))
        assert outcome.fault is not None
        assert (outcome.fault.code, outcome.fault.param) == (code, "ref")
        assert lab.hops == ()


@pytest.mark.parametrize(
    "text", ["", "1", "1:", ":1", "-1:1", "1:1:1", "+1:1", "1:١", "18446744073709551616:1", " 1:1"]
)
def test_references_that_are_none(text: str) -> None:
    with pytest.raises(LocalError) as caught:
        parse_ref(text)
    assert caught.value.fault.code == "invalid_request"


def test_references() -> None:
    assert parse_ref("18446744073709551615:0") == (2**64 - 1, 0)
