"""Models and the relay network: ours that are offered, and those of others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import LocalError
from relaydesk.core.pool.model import MOST_RATE
from relaydesk.core.text import safe_text
from relaydesk.core.view.network import NetworkView
from relaydesk.core.view.sections import ModelsView
from relaydesk.surfaces.console.panes.models import offers, present
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.ledger_scenes import hostile_offers
from tests.surfaces.console.panes.network_scenes import network
from tests.surfaces.console.panes.scenes import busy, texts
from tests.surfaces.console.stage import NOW_MS

NETWORK = network(NOW_MS)
MODELS: ModelsView = busy()["models"]
OFFERED, NEVER, NOT_NOW, _ = MODELS.models


def _cells(at: int, *, apart: bool = True) -> dict[str, str]:
    row = present.rows(MODELS, NETWORK, apart=apart)[at]
    keys = (column.key for column in present.WITH_NETWORK)
    return dict(zip(keys, (cell.text for cell in row.cells), strict=True))


def test_ours_say_whether_they_are_offered_and_at_which_price() -> None:
    assert [(_cells(at)["price"], _cells(at)["offer"]) for at in range(3)] == [
        ("● 0.07/0.20", "● offered"),
        ("", "no"),
        ("▲ free", "▲ not now"),
    ]


def test_those_of_others_stand_below_under_a_head_of_their_own() -> None:
    assert (_cells(4)["name"], _cells(4)["state"]) == ("── of others", "5 models")
    first = _cells(5)
    assert {key: text for key, text in first.items() if text} == {
        "name": "net/gemma-3-27b-it",
        "state": "◆ network",
        "ctx": "131072",
        "price": "0.08/0.16",
        "offer": "4 targets",
    }
    assert _cells(9)["state"] == "◇ network"
    # In another order there is nothing to part.
    assert _cells(4, apart=False)["name"] == "net/gemma-3-27b-it"


def test_without_a_network_there_are_neither_columns_nor_rows_of_it() -> None:
    plain = ModelsView(
        MODELS.memory, tuple(msgspec.structs.replace(each, offer=False) for each in MODELS.models)
    )
    assert not present.networked(plain, NetworkView())
    assert all(len(row.cells) == len(present.COLUMNS) for row in present.rows(plain, NetworkView()))
    assert present.networked(plain, NETWORK)
    assert present.networked(MODELS, None)


def test_a_model_of_others_says_whether_and_how_it_can_be_asked() -> None:
    gemma, _, alone, free, lost = NETWORK.offers
    said = " ".join(" ".join(texts(offers.detail(gemma, 60))).split())
    assert "● It can be asked now, through any of 12 relays." in said
    assert "0.08 USD for 1M tokens read, 0.16 USD written the cheapest of several" in said
    assert "Clients ask for it as net/gemma-3-27b-it, with a key that may" in said
    assert "▲ It can be asked through one relay only" in " ".join(texts(offers.detail(alone, 90)))
    assert "price       free" in texts(offers.detail(free, 60))
    assert "▲ Nobody can be asked for it now" in " ".join(texts(offers.detail(lost, 90)))
    assert "context     not said" in texts(offers.detail(lost, 60))
    assert texts(offers.why(gemma, 120)) == [
        "● net/gemma-3-27b-it: it can be asked now, through any of 12 relays."
    ]


def test_the_head_counts_and_says_what_is_left_out() -> None:
    more = msgspec.structs.replace(NETWORK, more_offers=12)
    said = texts(offers.head_detail(more, 60))
    assert "4 of 5 models can be asked now." in said
    assert "▲ 12 more are not listed here." in said


def test_what_is_ours_says_why_it_is_not_offered() -> None:
    said = " ".join(texts(present.detail(NOT_NOW, None, 90)))
    assert "▲ Not offered now: it is not loaded: strangers never load a model." in said
    assert "● The network may use it while it is loaded." in " ".join(
        texts(present.detail(OFFERED, None, 90))
    )
    assert offers.lines(NEVER, 90) == ()
    one_slot = msgspec.structs.replace(OFFERED, unoffered=safe_text("it is loaded with one slot"))
    assert "▲ Not offered to the network: it is loaded with one slot." in texts(present.why(one_slot, 90))


@given(st.integers(0, MOST_RATE))
def test_prices_are_read_as_they_are_shown(rate: int) -> None:
    model = msgspec.structs.replace(NEVER, offer=True)
    for text in (offers.usd(rate), offers.dollars(rate)):
        answers = ("no", text, text)
        expected: dict[str, Any] = {"offer": False, "input_rate": rate, "output_rate": rate}
        if not rate:
            expected = {"offer": False}
        assert offers.changes(answers, model) == expected
        assert "e" not in text.casefold()


def test_only_what_differs_is_changed_and_the_command_line_says_it() -> None:
    assert [field.value for field in offers.fields(OFFERED)] == ["yes", "0.07", "0.2"]
    assert [field.value for field in offers.fields(NEVER)] == ["yes", "0", "0"]
    assert offers.changes(("yes", "0.07", "0.25"), OFFERED) == {"output_rate": 250_000}
    assert offers.changes(("NO", "0.070", "0.2"), OFFERED) == {"offer": False}
    line = offers.command("smollm2", ("no", "0.07", "0.25"), OFFERED)
    assert line == "relaydesk model set smollm2 offer=no output-price=0.25"
    assert offers.command("m", ("yes", "0", "0"), NEVER) == "relaydesk model set m offer=yes"
    assert offers.words({"offer": True, "output_rate": 250_000}) == "offered, 0.25 USD written"


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (("perhaps", "0", "0"), "offer: 'perhaps' is neither yes nor no"),
        (("yes", "-1", "0"), "read: a price must not be negative"),
        (("yes", "0", "cheap"), "written: a price must be a decimal number"),
        (("yes", "0", "1000000001"), "written: that is more than"),
        (("yes", "0.07", "0.2"), "nothing is different"),
    ],
)
def test_what_cannot_be_is_refused_by_the_fields_name(answers: tuple[str, ...], words: str) -> None:
    with pytest.raises(LocalError) as caught:
        offers.changes(answers, OFFERED)
    assert words in caught.value.fault.message


@pytest.mark.parametrize("width", [20, 44, 78])
def test_no_line_is_wider_than_the_card(width: int) -> None:
    for each in (*NETWORK.offers, *hostile_offers()):
        # The first is the name, which whoever draws it cuts.
        for line in (*offers.detail(each, width)[1:], *offers.why(each, width)):
            assert line_width(line) <= width


def test_hostile_names_make_rows() -> None:
    bad = NetworkView(on=True, offers=hostile_offers())
    rows = offers.rows(bad, len(present.COLUMNS))
    assert len(rows) == len(bad.offers) + 1
    assert all(offers.find(bad, row.key) is not None for row in rows[1:])
