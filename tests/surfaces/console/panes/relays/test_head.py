"""This node in the network, in as many lines as there are."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.text import safe_text
from relaydesk.core.view.network import NetworkView, RelayingView, RelaysView
from relaydesk.surfaces.console.panes.relays import head
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.network_scenes import hostile_sections, network, relays
from tests.surfaces.console.panes.scenes import texts
from tests.surfaces.console.stage import NOW_MS

NETWORK, RELAYS = network(NOW_MS), relays(NOW_MS)


_OTHERS = (
    "16 relays  ● 12 reachable  ◐ 2 cold  ▲ 2 demoted  ▲ 2 with VIA 0 or 1  ○ 4 not used  next probe 15:10:44"
)


def _head(seen: NetworkView | None, width: int = 118, most: int = 6) -> list[str]:
    return texts(head.lines(seen, RELAYS, NOW_MS, width, most))


def test_everything_where_there_is_room() -> None:
    assert _head(NETWORK) == [
        f"● published  as {NETWORK.operator}:1  ▲ protocol 9.10, newest 9.11  attic.example",
        "circuits 3/256  forwarded 12.5 k  refused 17  failed 5  month 44 of 500 GB  keys for 31 min",
        _OTHERS,
        "directory ● commons.example  version 41  19 nodes  expires in 20 h",
        "▲ friends.json: no newer one for 20 hours: ask who keeps it  ▲ expires in 4 h",
    ]


def test_what_is_wrong_stays_longest() -> None:
    problem = msgspec.structs.replace(NETWORK, problem=safe_text("port 8384 is taken"))
    lines = _head(problem, 58, 2)
    assert lines[0].startswith("✗ not up  as ")
    assert lines[1] == "✗ port 8384 is taken."
    unpublished = msgspec.structs.replace(
        NETWORK, unpublished=safe_text("the world does not trust its certificate")
    )
    lines = _head(unpublished, 78, 3)
    assert lines[0].startswith("▲ not published")
    assert lines[1] == "▲ Not published: the world does not trust its certificate."


def test_without_a_directory_it_says_what_to_set() -> None:
    assert "▲ No directory is pinned: set RELAY_DIRECTORIES to know others." in _head(NetworkView(on=True))


def test_limits_that_are_near_are_marked() -> None:
    near = msgspec.structs.replace(
        NETWORK, relaying=RelayingView(250, 256, 1, 2, 3, 450 * 10**9, 500 * 10**9)
    )
    line = head.lines(near, RELAYS, NOW_MS, 118, 6)[1]
    tones = {span.text: span.tone for span in line}
    assert tones["250/256"] == "warn"
    assert tones["▲ 450 of 500 GB"] == "warn"
    assert (
        "month 42.0 GiB"
        in _head(msgspec.structs.replace(NETWORK, relaying=RelayingView(month_bytes=42 << 30)))[1]
    )


@pytest.mark.parametrize(
    ("ours", "newest", "behind"),
    [("9.10", "9.9", False), ("9.10", "9.11", True), ("9.10", "", False), ("9.10", "x.y", False),
     ("9.10", "9.99999999999999999999", False), ("9.10", "10.0", True), ("", "", False)],
)  # fmt: skip
def test_versions_are_compared_as_numbers(ours: str, newest: str, behind: bool) -> None:
    assert head.behind(NetworkView(proto_version=ours, newest_version=safe_text(newest))) is behind


def test_a_directory_that_is_over_says_so() -> None:
    late = NOW_MS + 7 * 86_400_000
    lines = texts(head.lines(NETWORK, RELAYS, late, 118, 6))
    assert "directory ● commons.example  version 41  19 nodes  ✗ expired" in lines


@pytest.mark.parametrize("width", [40, 58, 78, 118])
@pytest.mark.parametrize("most", [2, 4, 6])
def test_never_more_than_there_is_room_for(width: int, most: int) -> None:
    bad = hostile_sections(NOW_MS)
    for seen, listed in ((NETWORK, RELAYS), (bad["network"], bad["relays"]), (None, RelaysView())):
        lines = head.lines(seen, listed, NOW_MS, width, most)
        assert 0 < len(lines) <= most
        assert all(line_width(line) <= width for line in lines)
