"""What is asked about a layer."""

from __future__ import annotations

import pytest

from relaydesk.core.commands import CheckHop
from relaydesk.core.errors import LocalError
from relaydesk.surfaces.console.panes.hopcheck.form import fields, planned
from relaydesk.surfaces.console.panes.hopcheck.plan import PUBLIC, Entry, Plan
from tests.surfaces.console.panes.hopcheck.scenes import IDLE

NGINX = Entry("nginx", "http://127.0.0.1:8080", "via", "given here", mine=True)
OUTER = Entry(PUBLIC, "https://node.example.org", "public", "advertised")


def test_a_form_holds_what_was_typed_before_what_holds_now() -> None:
    assert [each.value for each in fields(None, ())] == ["", ""]
    assert [each.value for each in fields(NGINX, ())] == ["nginx", "http://127.0.0.1:8080"]
    assert [each.value for each in fields(NGINX, ("ng", "http://x"))] == ["ng", "http://x"]
    assert [each.value for each in fields(OUTER, ())] == ["https://node.example.org"]
    assert [each.value for each in fields(OUTER, ("",))] == [""]


def test_what_is_typed_becomes_the_plan() -> None:
    plan = planned(Plan(), ("nginx", "http://127.0.0.1:8080/"), "", IDLE)
    assert plan.command() == CheckHop(via=("nginx=http://127.0.0.1:8080",))
    assert planned(plan, ("front", "http://127.0.0.1:81"), "nginx", IDLE).via == (
        ("front", "http://127.0.0.1:81"),
    )
    other = planned(plan, ("https://other.example",), PUBLIC, IDLE)
    assert other.url == "https://other.example"
    # What the node advertises need not be given.
    assert planned(other, ("https://node.example.org",), PUBLIC, IDLE).url == ""
    assert planned(other, ("",), PUBLIC, IDLE).url == ""
    with pytest.raises(LocalError):
        planned(plan, ("nginx", "http://127.0.0.1:81"), "", IDLE)
