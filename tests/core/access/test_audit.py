from __future__ import annotations

from typing import Any

import pytest

from relaydesk.core.access.audit import AuditFilter, AuditRecord

RECORD = AuditRecord(
    at_ms=100, id="r", key="ann", key_id="a" * 16, route="/v1/x", model="m", outcome="done", status=200
)


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        ({}, True),
        ({"key": "ann", "model": "m", "route": "/v1/x", "outcome": "done"}, True),
        ({"key": "bob"}, False),
        ({"model": "n"}, False),
        ({"route": "/v1"}, False),
        ({"outcome": "failed"}, False),
        ({"since_ms": 100}, True),
        ({"since_ms": 101}, False),
        ({"until_ms": 101}, True),
        ({"until_ms": 100}, False),
    ],
)
def test_every_given_field_has_to_match(wanted: dict[str, Any], matches: bool) -> None:
    assert AuditFilter(**wanted).matches(RECORD) is matches
