"""This node's own card."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.text import safe_text
from relaydesk.core.view.network import DirectoryView, NetworkView, RelayingView
from relaydesk.surfaces.console.panes.relays import own
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.network_scenes import hostile_sections, network, owner
from tests.surfaces.console.panes.scenes import texts
from tests.surfaces.console.stage import NOW_MS

NETWORK = network(NOW_MS)


def _said(seen: NetworkView, width: int = 76) -> list[str]:
    return texts(own.lines(seen, NOW_MS, width))


def test_who_it_is_and_what_it_relays() -> None:
    lines = _said(NETWORK)
    assert lines[0] == "● A directory lists this node: others find it."
    assert f"owner      {owner('attic')}" in lines
    assert "speaks     protocol 9.10; 9.11 is about: look for a newer relaydesk" in lines
    assert any(line.startswith("circuits   3 of 256  ▎") for line in lines)
    assert any(line.startswith("month      44.0 of 500 GB  ") for line in lines)
    assert "  Version 41, 19 nodes, looked at 2 min ago." in lines
    assert "  No newer one for 20 hours: ask who keeps it." in lines


def test_what_keeps_it_out_comes_first() -> None:
    wrong = msgspec.structs.replace(
        NETWORK, problem=safe_text("port 8384 is taken"), unpublished=safe_text("it is not up"), lab=True
    )
    assert _said(wrong)[:2] == ["✗ port 8384 is taken.", "▲ Not published: it is not up."]
    assert _said(wrong)[2].startswith("▲ Private addresses are allowed")


def test_one_that_knows_nobody_yet() -> None:
    bare = NetworkView(on=True, proto_version="9.10", relaying=RelayingView(month_bytes=5 << 20))
    lines = _said(bare)
    assert "node       no owner's certificate yet" in lines
    assert "address    none: RELAY_PUBLIC_URL" in lines
    assert "▲ None is pinned: set RELAY_DIRECTORIES." in lines
    assert "month      5.0 MiB, no limit" in lines
    unseen = msgspec.structs.replace(bare, directories=(DirectoryView("A", safe_text("x")),))
    assert "  Nothing of it was seen yet." in _said(unseen)


@pytest.mark.parametrize("width", [40, 56, 78])
def test_no_line_is_wider_than_the_card(width: int) -> None:
    for seen in (NETWORK, hostile_sections(NOW_MS)["network"]):
        assert all(line_width(line) <= width for line in own.lines(seen, NOW_MS, width))
