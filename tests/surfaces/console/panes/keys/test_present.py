"""Keys as rows, and what a client needs."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.view.sections import KeyView
from relaydesk.surfaces.console.panes.keys import present
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.scenes import hostile, texts
from tests.surfaces.console.stage import NOW_MS, sample

KEY = sample()["keys"].keys[0]
META = sample()["meta"]


def test_a_row_has_a_fingerprint_and_its_use() -> None:
    (row,) = present.rows(sample()["keys"], sample()["requests"], NOW_MS)
    assert [cell.text for cell in row.cells] == ["default", "1b9e4f07", "generated", "1 d", "2", "3"]
    (alone,) = present.rows(sample()["keys"], None, NOW_MS)
    assert [cell.text for cell in alone.cells][-2:] == ["0", "0"]


def test_ages_stand_still_within_a_minute() -> None:
    ages = [present.age(NOW_MS - 1000 * seconds, NOW_MS) for seconds in (5, 60, 119, 7_260)]
    assert ages == ["just now", "1 min", "1 min", "2 h 1 min"]
    assert present.age(0, NOW_MS) == "–"


def test_the_younger_key_sorts_first() -> None:
    keys = (KeyView("old", "a", "x", NOW_MS - 9), KeyView("new", "b", "x", NOW_MS - 1))
    rows = present.rows(msgspec.structs.replace(sample()["keys"], keys=keys), None, NOW_MS)
    assert [row.cells[3].sort for row in rows] == [9 - NOW_MS, 1 - NOW_MS]


def test_what_a_client_needs() -> None:
    lines = texts(present.client_lines(META, 70))
    assert lines[1] == "address     https://localhost:8383/v1"
    assert "trust       /home/ada/.local/state/relaydesk/tls/ca.pem" in lines
    assert "  OPENAI_BASE_URL=https://localhost:8383/v1" in lines
    assert "  OPENAI_API_KEY=$(relaydesk token --api)" in lines


def test_plain_http_needs_no_trust() -> None:
    plain = msgspec.structs.replace(META, listening=("http://127.0.0.1:8383",))
    assert not any(line.startswith(("trust", "SHA-256")) for line in texts(present.client_lines(plain, 70)))
    assert present.client_lines(msgspec.structs.replace(META, listening=()), 70) == ()
    assert present.client_lines(None, 70) == ()


def test_a_fingerprint_breaks_between_its_groups() -> None:
    lines = [line for line in texts(present.client_lines(META, 40)) if "C0" in line]
    assert lines == [
        "SHA-256     7A:1F:C0:C0:C0:C0:C0:C0",
        "            C0:C0:C0:C0:C0:C0:C0:C0",
        "            C0:C0:C0:C0:C0:C0:C0:C0",
        "            C0:C0:C0:C0:C0:C0:C0:C0",
    ]


@pytest.mark.parametrize("width", [38, 56, 78])
def test_no_line_is_wider_than_the_detail(width: int) -> None:
    values = hostile()
    for key in (KEY, *values["keys"].keys):
        lines = present.detail(key, META, values["requests"], width)
        # The first is the name, which whoever draws it cuts.
        assert all(line_width(line) <= width for line in lines[1:])
