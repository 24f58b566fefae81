from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from relaydesk.core.events import Event, HopRecorded
from relaydesk.core.text import safe_text
from relaydesk.core.view.network import HopView
from relaydesk.engine.bus import Bus
from relaydesk.engine.relay.asking.hops import LIMIT, Hops


@dataclass
class Heard:
    events: list[Event] = field(default_factory=list)


def hop(number: int) -> HopView:
    return HopView(
        id=f"hop_{number}",
        at_ms=number,
        purpose="probe",
        relay="2:1",
        target="1:1",
        path="/v1/zs/details",
        status=200,
        code=safe_text(""),
        marker=True,
        retryable=False,
        attribution="none",
        charged="nobody",
        rule="final",
        why=safe_text("the answer stands as it is"),
        duration_ms=1,
    )


def test_the_newest_come_first_and_the_oldest_give_way() -> None:
    bus, heard = Bus(), Heard()
    bus.listen(heard.events.append)
    hops = Hops(bus)
    for number in range(LIMIT + 5):
        hops.add(hop(number))
    ids = [each.id for each in hops.view().hops]
    assert len(ids) == LIMIT == 200
    assert (ids[0], ids[-1]) == (f"hop_{LIMIT + 4}", "hop_5")
    assert heard.events == [HopRecorded()] * (LIMIT + 5)


def test_a_hop_is_told_anew_once_it_is_known_who_is_charged() -> None:
    hops = Hops(Bus())
    for number in range(3):
        hops.add(hop(number))
    hops.replace(replace(hop(1), charged="relay"))
    hops.replace(replace(hop(99), charged="relay"))
    assert [(each.id, each.charged) for each in hops.view().hops] == [
        ("hop_2", "nobody"),
        ("hop_1", "relay"),
        ("hop_0", "nobody"),
    ]
