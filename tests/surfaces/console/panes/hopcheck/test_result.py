"""The verdict, the findings, and what was not tested."""

from __future__ import annotations

from relaydesk.surfaces.console.panes.hopcheck import result
from relaydesk.surfaces.console.widgets.spans import line_text, line_width
from tests.support.hopcheck_scenes import FROM_INSIDE
from tests.surfaces.console.panes.hopcheck.scenes import BAD, CLEAN, FOUND, NOW_MS, STRIPPED, later, replace

assert CLEAN.report is not None
assert FOUND.report is not None
WELL, LOST = CLEAN.report, FOUND.report


def _texts(lines: tuple[object, ...]) -> list[str]:
    return [line_text(line) for line in lines]  # type: ignore[arg-type]


def _flat(lines: tuple[object, ...]) -> str:
    return " ".join(" ".join(_texts(lines)).split())


def test_the_verdict_comes_first_and_says_of_what_it_is() -> None:
    first, *rest = _texts(result.verdict(LOST, None, NOW_MS, 78))
    assert first == "✗ nginx removes X-Zs-Relay-Hop."
    assert "https://node.example.org at 10:52:20, in 3 s: 39 passed, 10" in rest[0]
    (first, *_) = _texts(result.verdict(WELL, None, NOW_MS, 78))
    assert first == "● The marker reaches the world; nothing was found."


def test_an_old_verdict_says_its_day() -> None:
    assert "at 2025-11-30 10:52 UTC" in _flat(result.verdict(WELL, None, NOW_MS + 86_400_000, 78))


def test_a_run_again_says_what_is_gone() -> None:
    text = _flat(result.verdict(later(WELL), LOST, NOW_MS, 78))
    assert "● Gone since 10:52:20: nginx removes X-Zs-Relay-Hop." in text


def test_findings_are_listed_in_their_order_with_severity_in_words() -> None:
    lines = _texts(result.listing(BAD, 1, 70, 6))
    assert [line.split() for line in lines] == [
        ["✗", "error", "Nginx", "removes", "X-Zs-Relay-Hop", "nginx"],
        ["▸", "▲", "warning", "Cloudflare", "holds", "streams", "back", "edge"],
        ["–", "What", "was", "not", "tested"],
    ]
    # The one that is looked at is among those that have room.
    assert len(result.listing(BAD, 2, 70, 2)) == 2
    assert "▸" in _flat(result.listing(BAD, 2, 70, 2))
    assert result.listing(WELL, 0, 70, 6) == ()


def test_a_finding_is_whole() -> None:
    text = _flat(result.finding_lines(STRIPPED, LOST.layers, 76))
    for said in (
        "✗ Nginx removes X-Zs-Relay-Hop.",
        "layer nginx, http://127.0.0.1:8080",
        "product nginx",
        "callers When a target behind this node fails with a bare 502",
        "What to change c copies it",
        "+ add_header X-Zs-Relay-Hop",
        "Evidence as it was seen",
        "│ POST http://127.0.0.1:8080/v1/zs/relay HTTP/1.1",
        "│ HTTP/1.1 400",
    ):
        assert said in text
    assert "Nginx removes" not in _flat(result.finding_lines(STRIPPED, LOST.layers, 76, titled=False))


def test_nobody_is_blamed_where_nobody_can_be() -> None:
    report = FROM_INSIDE.report
    assert report is not None
    text = _flat(result.page(report, 0, 76))
    assert "layer none can be blamed" in text
    assert "product not recognised" in text


def test_what_was_not_tested_stands_under_its_reason_with_the_layers_it_is_so_at() -> None:
    report = replace(
        LOST, probes=tuple(each for each in LOST.probes if each.layer != "lan" or each.id != "websocket")
    )
    lines = _texts(result.page(report, 1, 76))
    assert "Only with --long." in lines
    assert "○ a silence of 65 s" in lines
    assert "○ WebSocket upgrades (at loopback, nginx, public)" in lines
    assert lines[-1] == "b, then l: run again with the long silences."
    assert "run again" not in _flat(result.page(replace(report, long=True), 1, 76))
    whole = replace(report, probes=report.probes[:3])
    assert _texts(result.untested_lines(whole, 76)) == ["● Every probe was made at every layer."]


def test_nothing_is_wider_than_its_place() -> None:
    for width in (56, 78, 118):
        for report in (BAD, WELL, LOST):
            made = [*result.verdict(report, LOST, NOW_MS, width), *result.listing(report, 0, width, 6)]
            for at in range(result.count(report)):
                made += result.page(report, at, width)
            assert all(line_width(line) <= width for line in made)


def test_what_is_copied_is_the_remedy_else_the_page() -> None:
    text, what = result.copied(LOST, 0)
    assert "add_header X-Zs-Relay-Hop" in text
    assert what == "what to change, 7 lines"
    text, what = result.copied(LOST, 1)
    assert text.startswith("Not tested")
    assert what.endswith("lines")


def test_the_toast_of_a_check_that_ended_elsewhere() -> None:
    assert result.told(WELL) == "The marker reaches the world; nothing was found."
    assert result.told(LOST) == "nginx removes X-Zs-Relay-Hop. 1 finding: H shows them."
