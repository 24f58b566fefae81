from __future__ import annotations

import pytest

from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.view.network import Standing
from relaydesk.engine.relay.asking.answered import NotReachedError
from tests.support.lab_network import LabNetwork


async def test_this_node_is_shown_and_never_asked() -> None:
    async with LabNetwork(3) as lab:
        lab.asker = lab.make_asker(NodeRef(3, 1))
        await lab.asker.probe_all()
        own: Standing = lab.relay(3).standing
        assert own == "self"
        assert lab.nodes[2].relayed == lab.nodes[2].served == []
        # Through itself nobody is asked either: of three nodes two are left, each the other's only relay.
        assert (lab.relay(1).eligible_relays, lab.relay(2).eligible_relays) == (1, 1)
        assert {(each.code, each.subject) for each in lab.alerts.view().alerts} == {
            ("few_relays", "1:1"),
            ("few_relays", "2:1"),
        }
        with pytest.raises(NotReachedError, match="3:1"):
            await lab.asker.send(lab.ask(3))


async def test_a_relay_that_answers_nothing_for_rounds_is_no_longer_drawn_from_the_first_tier() -> None:
    async with LabNetwork(3) as lab:
        await lab.asker.probe_all()
        assert lab.relay(2).tier == "reachable"
        lab.clock.ahead_s += 3 * 120.0 + 1
        assert lab.relay(2).tier == "cold"
        await lab.asker.probe_all()
        assert lab.relay(2).tier == "reachable"


async def test_sections_and_services() -> None:
    async with LabNetwork(3) as lab:
        assert [each.name for each in lab.asker.services()] == ["relay probes"]
        assert lab.asker.newest_version() == ""
        assert lab.asker.relays_view().probed_at_ms == 0
        await lab.asker.probe_all()
        assert lab.asker.newest_version() == "9.10"
        assert len(lab.asker.hops_view().hops) >= 3
