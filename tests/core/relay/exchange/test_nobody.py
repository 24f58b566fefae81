from __future__ import annotations

import pytest

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.scrub import scrub
from relaydesk.core.relay.exchange.nobody import Kind, Known, Passed, unselected, unserved
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.candidate import Candidate
from relaydesk.core.relay.target.constraints import Constraints
from relaydesk.core.relay.target.selection import Block, Selection, SizingMiss

REF = NodeRef(7, 1)
ASKED = Constraints("m", input_tokens=90, input_tokens_v2=80)


@pytest.mark.parametrize(
    ("block", "code"),
    [
        ("provider_pin_blocked", "no_pinned_operator"),
        ("version_blocked", "no_compatible_operator"),
        ("tee_blocked", "no_tee_capacity"),
        ("staging_blocked", "no_production_operator"),
        ("signer_underfunded_blocked", "no_funded_operator"),
        ("price_blocked", "price_ceiling_exceeded"),
        ("tool_unsupported", "no_tool_capacity"),
        ("affinity_blocked", "pin_conflicts_with_continuation"),
        ("image_endpoint_unsupported", "unsupported"),
    ],
)
def test_each_block_has_its_code(block: Block, code: str) -> None:
    fault = unselected(Selection((), served_by=3, blocked=block), ASKED, Known(3))
    assert fault.code == code


def test_nobody_serves_it() -> None:
    none = Selection(())
    assert unselected(none, ASKED, Known(0)).message == "no node of the network has answered yet"
    assert unselected(none, ASKED, Known(3)).code == "no_operator"
    down = unselected(none, ASKED, Known(3, down=1))
    assert (down.code, down.retry_after) == ("operators_unreachable", 60)


def test_a_models_name_is_not_taken_for_a_path() -> None:
    fault = unselected(Selection(()), Constraints("/m", 90, 80), Known(3))
    assert scrub(fault.message) == "no node of the network serves net//m now"


def test_too_large_by_the_callers_word_or_ours() -> None:
    misses = (SizingMiss(REF, 100, 0, 50), SizingMiss(NodeRef(8, 1), 90, 0, 50))
    none = Selection((), served_by=2, misses=misses)
    required = unselected(none, ASKED, Known(2))
    assert required.code == "max_output_required"
    assert "at most 20" in required.hint
    stated = Constraints("m", 90, 80, max_output_tokens=50)
    assert unselected(none, stated, Known(2)).code == "context_length_exceeded"
    longer = Constraints("m", 100, 100)
    assert unselected(none, longer, Known(2)).code == "context_length_exceeded"


def test_a_selection_with_targets_is_no_reason() -> None:
    with pytest.raises(ValueError, match="there are targets"):
        unselected(Selection((Candidate(REF, "9.10", ("m",)),)), ASKED, Known(1))


def passed(kind: Kind, code: str, retry_after: int | None = None) -> Passed:
    return Passed(REF, kind, Fault(code, code, retry_after=retry_after))


UNREACHABLE = passed("unreachable", "operators_unreachable", 60)
NO_RELAY = passed("no_relay", "no_relay_available")
NO_KEY = passed("no_key", "no_ephemeral_capacity")
PRICE = passed("refused", "ticket_price_rejected")
OTHER = passed("refused", "no_operator")
NO_CREDIT = passed("no_credit", "credit_missing")


@pytest.mark.parametrize(
    ("became", "code", "retry_after"),
    [
        ([UNREACHABLE, UNREACHABLE], "operators_unreachable", 60),
        ([NO_RELAY], "no_relay_available", None),
        ([NO_RELAY, UNREACHABLE], "operators_unreachable", 60),
        (
            [UNREACHABLE, passed("busy", "operators_busy", 9), passed("busy", "operators_busy", 4)],
            "operators_busy",
            4,
        ),
        ([passed("busy", "operators_busy")], "operators_busy", 2),
        ([PRICE, passed("busy", "operators_busy", 4)], "operators_busy", 4),
        ([passed("unavailable", "operators_busy", 9), NO_CREDIT], "operators_busy", 9),
        ([UNREACHABLE, NO_KEY, NO_CREDIT], "credit_missing", None),
        ([UNREACHABLE, PRICE, OTHER], "ticket_price_rejected", None),
        ([NO_KEY, OTHER], "no_operator", None),
        ([UNREACHABLE, NO_KEY], "no_ephemeral_capacity", None),
    ],
)
def test_why_none_took_it(became: list[Passed], code: str, retry_after: int | None) -> None:
    fault = unserved(became)
    assert (fault.code, fault.retry_after) == (code, retry_after)
