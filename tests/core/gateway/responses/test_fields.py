"""The fields of a response's request that no chat has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import decode
from relaydesk.core.gateway.responses.fields import (
    ENVELOPE,
    Envelope,
    check_refused,
    effort_of,
    metadata_echo,
    wants_logprobs,
)


def envelope(**fields: Any) -> Envelope:
    return decode(ENVELOPE, json.dumps(fields).encode())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("previous_response_id", "resp_1"),
        ("conversation", {"id": "conv_1"}),
        ("prompt", {"id": "pmpt_1"}),
        ("context_management", [{"type": "compaction"}]),
        ("moderation", {}),
        ("background", True),
    ],
)
def test_what_needs_a_memory_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(PeerError) as caught:
        check_refused(envelope(**{field: value}))
    assert (caught.value.fault.code, caught.value.fault.param) == ("unsupported", field)
    assert field in caught.value.fault.message
    check_refused(envelope(**{field: None}))


def test_what_changes_nothing_is_accepted() -> None:
    check_refused(envelope(background=False, truncation="auto", context_management=[], store=True, user="u"))
    with pytest.raises(PeerError, match="truncation must be"):
        check_refused(envelope(truncation="middle"))


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, False),
        ({"include": None}, False),
        ({"include": ["reasoning.encrypted_content", "web_search_call.action.sources"]}, False),
        ({"include": ["message.output_text.logprobs"]}, True),
        ({"top_logprobs": 2}, True),
        ({"top_logprobs": 0}, False),
    ],
)
def test_when_logprobs_are_wanted(fields: Any, wanted: bool) -> None:
    assert wants_logprobs(envelope(**fields)) is wanted


@pytest.mark.parametrize(
    ("include", "code", "param"),
    [
        (["reasoning.encrypted_content", "everything"], "unsupported", "include[1]"),
        ("everything", "invalid_request", "include"),
        (["x" * 5000], "invalid_request", "include"),
    ],
)
def test_what_cannot_be_included(include: Any, code: str, param: str) -> None:
    with pytest.raises(PeerError) as caught:
        wants_logprobs(envelope(include=include))
    assert (caught.value.fault.code, caught.value.fault.param) == (code, param)


def test_effort() -> None:
    assert effort_of(envelope().reasoning) is None
    assert (
        effort_of(envelope(reasoning={"effort": "low", "summary": "auto", "mode": "standard"}).reasoning)
        == "low"
    )


@pytest.mark.parametrize("field", ["summary", "generate_summary", "mode", "context"])
def test_other_ways_to_reason_are_refused_by_name(field: str) -> None:
    with pytest.raises(PeerError) as caught:
        effort_of(envelope(reasoning={field: "detailed"}).reasoning)
    assert (caught.value.fault.code, caught.value.fault.param) == ("unsupported", f"reasoning.{field}")


def test_metadata_is_told_back_within_bounds() -> None:
    full = {f"{n:064}": "😀" * 512 for n in range(16)}
    for given in (None, {}, {"a": "b"}, full):
        assert json.loads(metadata_echo(envelope(metadata=given).metadata)) == (given or {})


@pytest.mark.parametrize(
    "metadata",
    [
        {str(n): "" for n in range(17)},
        {"a" * 65: ""},
        {"a": "b" * 513},
        {"a": 1},
        [],
        {"a": "b" * 200_000},
    ],
)
def test_metadata_beyond_them_is_refused(metadata: Any) -> None:
    with pytest.raises(PeerError) as caught:
        metadata_echo(envelope(metadata=metadata).metadata)
    assert caught.value.fault.code == "invalid_request"
    assert (caught.value.fault.param or "").startswith("metadata")
