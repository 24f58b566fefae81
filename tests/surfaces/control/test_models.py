from __future__ import annotations

from typing import Any

import pytest

from relaydesk.core.commands import AddModel, PullModel, RemoveModel, SetModel
from relaydesk.core.errors import LocalError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.surfaces.control.models import to_add, to_remove, to_set


def test_a_path_is_added_in_place() -> None:
    body = {"path": "/m/a.gguf", "name": "a", "ctx": 4096, "aliases": ["b"], "host_only": True}
    spec = ModelSpec(name="a", path="/m/a.gguf", ctx=4096, aliases=("b",), host_only=True)
    assert to_add(body) == AddModel(spec)


def test_a_url_is_added_and_the_name_may_be_left_to_the_node() -> None:
    body = {"url": "http://127.0.0.1:11434/v1", "kind": "url"}
    assert to_add(body) == AddModel(ModelSpec(name="", url="http://127.0.0.1:11434/v1", kind="url"))


def test_a_reference_is_pulled() -> None:
    body = {"reference": "hf:o/r:Q4_K_M", "name": "o/r", "ctx": 2048}
    assert to_add(body) == PullModel("hf:o/r:Q4_K_M", "o/r", {"ctx": 2048})


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({}, "names none"),
        ({"name": "a"}, "names none"),
        ({"path": ""}, "names none"),
        ({"path": "/a", "url": "http://x"}, "path and url"),
        ({"path": "/a", "reference": "smollm2"}, "path and reference"),
        ({"path": "/a", "owned": True}, "'owned'"),
        ({"path": "/a", "sha256": "00"}, "'sha256'"),
        ({"path": "/a", "ctxx": 1}, "'ctxx'"),
        ({"path": 5}, r"\$\.path"),
        ({"path": "/a", "ctx": "many"}, r"\$\.ctx"),
        ({"path": "/a", "kv_k": "q3"}, r"\$\.kv_k"),
        ({"reference": 5}, "reference must be a string"),
        ({"reference": "x", "name": []}, "name must be a string"),
        ({"reference": "x", "owned": True}, "'owned'"),
    ],
)
def test_bodies_refused_by_name(body: dict[str, Any], text: str) -> None:
    with pytest.raises(LocalError, match=text) as caught:
        to_add(body)
    assert caught.value.fault.code == "invalid_request"


def test_fields_to_change() -> None:
    assert to_set("o/r:Q4", {"ctx": 1}) == SetModel("o/r:Q4", {"ctx": 1})
    assert to_set("", {"name": "a", "slots": 2}) == SetModel("a", {"slots": 2})
    assert to_set("a", {"name": "a", "slots": 2}) == SetModel("a", {"slots": 2})


def test_to_remove() -> None:
    assert to_remove("o/r", {}) == RemoveModel("o/r")
    assert to_remove("", {"name": "a"}) == RemoveModel("a")


@pytest.mark.parametrize(
    ("name", "body", "text"),
    [
        ("", {"ctx": 1}, "no model is named"),
        ("a", {}, "changes nothing"),
        ("a", {"name": "a"}, "changes nothing"),
        ("a", {"name": "b", "ctx": 1}, "another"),
        ("a", {"owned": True}, "'owned'"),
        ("", {"name": 5, "ctx": 1}, "must be a string"),
    ],
)
def test_changes_refused(name: str, body: dict[str, Any], text: str) -> None:
    with pytest.raises(LocalError, match=text):
        to_set(name, body)


def test_removal_takes_no_other_field() -> None:
    with pytest.raises(LocalError, match="'force'"):
        to_remove("a", {"force": True})
    with pytest.raises(LocalError, match="no model is named"):
        to_remove("", {})
