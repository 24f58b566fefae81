from __future__ import annotations

import time
from typing import Any

import pytest

from relaydesk.core.access.audit import AuditFilter, AuditRecord
from relaydesk.core.codec import to_builtins
from relaydesk.core.commands import Outcome, ShowAudit
from relaydesk.surfaces.cli import audit as module

AT = 1_796_007_817_000


def record(number: int, **fields: Any) -> AuditRecord:
    given: dict[str, Any] = {"key": "ann", "key_id": "a", "route": "/v1/x", "outcome": "done", "status": 200}
    return AuditRecord(at_ms=AT + number, id=f"r{number}", **(given | fields))


def value(*records: AuditRecord) -> dict[str, Any]:
    return {"records": [to_builtins(each) for each in records]}


def test_the_newest_stand_last(cli: Any, node: Any) -> None:
    node.answer(
        ShowAudit,
        value(
            record(2, outcome="refused", status=429, code="concurrency_exceeded"),
            record(1, model="m", client="10.0.0.7", prompt_tokens=1200, completion_tokens=30, total_ms=1500),
        ),
    )
    done = cli("audit", "tail")
    lines = done.out.splitlines()
    assert lines[0].split()[:3] == ["TIME", "(UTC)", "KEY"]

    assert all(part in lines[1] for part in ("ann", "10.0.0.7", " m ", "1,200+30", "1500 ms", "done"))
    assert "refused concurrency_exceeded" in lines[2]
    assert node.seen == [ShowAudit(AuditFilter(), 20)]
    assert [each["id"] for each in cli("audit", "tail", "--json").json["records"]] == ["r1", "r2"]


def test_who_carried_and_who_read_what_went_to_the_network(cli: Any, node: Any) -> None:
    away = {
        "placement": "network",
        "machines": ("7:2",),
        "relays": ("5:1",),
        "targets": ("7:2",),
        "paid": 1234,
    }
    node.answer(ShowAudit, value(record(2, model="net/a", **away), record(1, model="m", placement="host")))
    lines = cli("audit", "tail").out.splitlines()
    assert lines[0].split()[-1] == "PAID"
    assert lines[1].split()[-2:] == ["done", "-"] and " host " in lines[1]
    assert "7:2 via 5:1" in lines[2] and lines[2].split()[-1] == "1,234"
    assert cli("audit", "tail", "--json").json["records"][1]["relays"] == ["5:1"]


def test_filters(cli: Any, node: Any) -> None:
    node.answer(ShowAudit, value())
    done = cli(
        "audit", "tail", "-n", "5", "--key", "ann", "--model", "m", "--outcome", "failed", "--since", "2h"
    )
    (seen,) = node.seen
    assert (seen.limit, seen.wanted.key, seen.wanted.model, seen.wanted.outcome) == (5, "ann", "m", "failed")
    assert abs(seen.wanted.since_ms - (time.time_ns() // 1_000_000 - 7_200_000)) < 60_000
    assert "No request matches" in done.out + done.err


@pytest.mark.parametrize(
    "options", [("--since", "soon"), ("--outcome", "well"), ("-n", "0"), ("-n", "1001"), ("--since", "1x")]
)
def test_what_cannot_be_is_a_usage_error(cli: Any, node: Any, options: tuple[str, str]) -> None:
    refused = cli("audit", "tail", *options)
    assert (refused.code, refused.out, node.seen) == (2, "", [])


def test_following_shows_each_record_once(cli: Any, node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSE_S", 0.0)
    answers = [value(record(1)), value(record(2), record(1)), value(record(3), record(2), record(1))]

    async def one_after_another(_: ShowAudit) -> Outcome:
        return Outcome(ok=True, value=answers.pop(0))

    def show(*args: Any, **options: Any) -> None:
        real(*args, **options)
        if not answers:
            raise KeyboardInterrupt

    real = module._show
    monkeypatch.setattr(module, "_show", show)
    node.answers[ShowAudit] = one_after_another
    done = cli("audit", "tail", "--follow")
    assert done.out.count("ann") == 3
    assert done.out.count("TIME (UTC)") == 1
