from __future__ import annotations

import json

from relaydesk.core.codec import encode
from relaydesk.core.hopcheck.decide import decide
from relaydesk.core.hopcheck.model import Observation
from relaydesk.core.hopcheck.report import (
    document,
    finding_view,
    layer_views,
    probe_of,
    probe_view,
    probe_views,
    summary,
)
from tests.support.edge_scenes import NODE, PUBLIC, clean, stripped

GOOD = decide((NODE, PUBLIC), {"loopback": clean(NODE), "public": clean(PUBLIC)})
BAD = decide((NODE, PUBLIC), {"loopback": clean(NODE), "public": stripped(clean(PUBLIC))})


def test_the_document_of_a_correct_edge() -> None:
    told = json.loads(encode(document(GOOD)))
    assert told["ok"] is True
    assert told["findings"] == []
    assert [layer["name"] for layer in told["layers"]] == ["loopback", "public"]
    assert {probe["state"] for probe in told["probes"]} == {"passed"}


def test_the_document_of_a_finding_has_all_that_is_promised() -> None:
    told = json.loads(encode(document(BAD)))
    assert told["ok"] is False
    (found,) = told["findings"]
    assert {"code", "severity", "layer", "product", "evidence", "effect", "remedy"} <= set(found)
    assert (found["code"], found["layer"], found["severity"]) == ("marker_removed", "public", "error")
    assert "400 relay_bad_target without the marker" in found["evidence"].split("\n")


def test_in_one_sentence() -> None:
    assert summary(GOOD) == "The marker reaches callers, and nothing else was found."
    assert summary(BAD) == "Public removes X-Zs-Relay-Hop."


def test_what_fronts_see() -> None:
    rows = {(row.layer, row.id): row for row in probe_views(BAD)}
    assert rows["loopback", "refusal"].state == "passed"
    assert rows["public", "refusal"].state == "failed"
    assert rows["public", "refusal"].evidence == "400 relay_bad_target without the marker"
    assert rows["public", "stream"].state == "passed"
    assert [layer.product for layer in layer_views(BAD)] == ["relaydesk", ""]
    view = finding_view(BAD.findings[0])
    assert view.evidence[0] == "400 relay_bad_target without the marker"


def test_a_probe_that_was_left_out_says_why() -> None:
    left = Observation("stream", "public", untested="it needs a nonce")
    row = probe_view(PUBLIC, left, {"stream": left})
    assert (row.state, row.evidence) == ("not_tested", "it needs a nonce")


def test_silences_of_any_length_have_a_title() -> None:
    assert probe_of("silence-2.5").title == "a silence of 2.5 s"
    assert probe_of("outside").title
