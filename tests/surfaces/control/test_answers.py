from __future__ import annotations

import json

import pytest

from relaydesk.core.codec import fault_view, schema_fingerprint
from relaydesk.core.commands import Outcome
from relaydesk.core.errors import ERRORS, Fault, LocalError
from relaydesk.surfaces.control.answers import answer, failed, outcome_answer, refuse_unknown, text_field


def _body(response: object) -> object:
    return json.loads(response.body)  # type: ignore[attr-defined]


def test_an_answer_is_json_with_its_schema() -> None:
    response = answer({"a": 1}, 202)
    assert response.body == b'{"a":1}\n'
    assert response.status == 202
    assert response.content_type == "application/json"
    assert response.headers["X-Relaydesk-Schema"] == schema_fingerprint()
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("code", ERRORS)
def test_a_fault_has_the_status_of_its_code(code: str) -> None:
    response = failed(Fault(code, "what", "next"))
    assert response.status == ERRORS[code].status
    error = _body(response)["error"]  # type: ignore[index]
    assert (error["code"], error["message"], error["hint"]) == (code, "what", "next")


def test_a_good_outcome_is_200() -> None:
    response = outcome_answer(Outcome(ok=True, value=[1], job="j"))
    assert response.status == 200
    assert _body(response) == {"ok": True, "value": [1], "job": "j", "fault": None}


def test_a_failed_outcome_keeps_what_it_has() -> None:
    fault = fault_view(Fault("model_unavailable", "no room"))
    response = outcome_answer(Outcome(ok=False, value={"report": 1}, fault=fault))
    assert response.status == 503
    body = _body(response)
    assert body["value"] == {"report": 1}  # type: ignore[index]
    assert body["error"] == body["fault"]  # type: ignore[index]


def test_a_failure_without_a_fault_is_still_a_failure() -> None:
    assert outcome_answer(Outcome(ok=False)).status == 500


def test_fields() -> None:
    assert text_field({"a": "x"}, "a") == "x"
    assert text_field({}, "a") == ""
    for wrong in (None, 5, ["x"]):
        with pytest.raises(LocalError, match="a must be a string"):
            text_field({"a": wrong}, "a")
    refuse_unknown({"a": 1}, frozenset({"a", "b"}), "it")
    with pytest.raises(LocalError, match=r"it has no field 'c'.*a, b"):
        refuse_unknown({"a": 1, "c": 2}, frozenset({"a", "b"}), "it")
