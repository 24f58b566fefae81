from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core import codec
from relaydesk.core.commands import Outcome
from relaydesk.core.errors import ERRORS, Fault
from relaydesk.core.text import SafeText, safe_text
from relaydesk.core.view.node_view import SECTIONS, NodeView, Update, loading_view
from relaydesk.core.view.sections import AlertsView, FaultView, LogLine, LogView, Section

ROOT = Path(__file__).parents[2]


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_safe_text_survives_the_wire(text: str) -> None:
    line = LogLine(1, "info", "x", safe_text(text, 300))
    back = codec.decode(codec.encode(line), LogLine)
    assert back == line
    assert type(back.text) is SafeText


def test_text_from_a_broken_peer_is_made_safe_again() -> None:
    wire = json.dumps({"at_ms": 1, "level": "info", "source": "x", "text": "\x1b]0;x\x07\u202ey\nz"})
    line = codec.decode(wire, LogLine)
    assert line.text == "]0;xy z"
    assert type(line.text) is SafeText


def test_a_whole_view_survives_the_wire() -> None:
    view = loading_view(5)
    section = Section(state="ready", as_of_ms=6, value=LogView((LogLine(1, "info", "a", safe_text("b")),)))
    view = view.replaced(Update(seq=3, log=section))
    assert codec.decode(codec.encode(view), NodeView) == view
    update = view.as_update()
    assert codec.decode(codec.encode(update), Update) == update


def test_absent_sections_take_no_room() -> None:
    assert json.loads(codec.encode(Update(seq=9))) == {"seq": 9}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'{"seq":"1"}',
        b'{"seq":1,"log":{}}',
        b'{"seq":1,"log":{"state":"odd"}}',
        b"\xff",
    ],
)
def test_malformed_updates_raise_one_family(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        codec.decode(data, Update)


def test_depth_is_bounded() -> None:
    with pytest.raises((msgspec.MsgspecError, RecursionError)):
        codec.decode(b'{"ok":true,"value":' + b"[" * 100_000, Outcome)


def test_to_builtins_is_plain_json() -> None:
    fault = codec.fault_view(Fault("conflict", "taken", "choose", "name", 3))
    plain = codec.to_builtins(fault)
    assert type(plain["message"]) is str
    assert plain == {
        "code": "conflict",
        "message": "taken",
        "hint": "choose",
        "param": "name",
        "retry_after": 3,
    }


@pytest.mark.parametrize("code", ERRORS)
def test_faults_come_back_as_they_went(code: str) -> None:
    fault = Fault(code, "what happened", "what next", "param", 5)
    wire = codec.encode(codec.fault_view(fault))
    assert codec.fault_of(codec.decode(wire, FaultView)) == fault


def test_a_fault_of_a_newer_node_is_still_a_fault() -> None:
    view = FaultView("from_the_future", safe_text("what happened"))
    assert codec.fault_of(view) == Fault("internal_error", "what happened")


def test_a_fault_view_is_bounded_and_safe() -> None:
    view = codec.fault_view(Fault("conflict", "\x1b[1m" + "x" * 9000, "\u202e" + "y" * 9000))
    assert len(view.message) == 1024
    assert len(view.hint) == 512
    assert "\x1b" not in view.message


def test_things_without_a_shape_cannot_be_sent() -> None:
    with pytest.raises(NotImplementedError, match="object"):
        codec.encode({"x": object()})


def test_fingerprint_is_the_same_in_every_process() -> None:
    script = "from relaydesk.core.codec import schema_fingerprint; print(schema_fingerprint())"
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {codec.schema_fingerprint()}
    assert len(codec.schema_fingerprint()) == 16


def test_fingerprint_changes_with_any_record(monkeypatch: pytest.MonkeyPatch) -> None:
    class Outcome2(msgspec.Struct, frozen=True):
        ok: bool
        extra: int = 0

    before = codec.schema_fingerprint()
    monkeypatch.setattr(codec, "Outcome", Outcome2)
    codec.schema_fingerprint.cache_clear()
    try:
        assert codec.schema_fingerprint() != before
    finally:
        codec.schema_fingerprint.cache_clear()


def test_sections_are_typed_not_just_dicts() -> None:
    alerts = codec.decode(b'{"seq":1,"alerts":{"state":"ready","as_of_ms":1,"value":{"alerts":[]}}}', Update)
    assert alerts.alerts is not None
    assert alerts.alerts.value == AlertsView()
    assert set(SECTIONS) == set(NodeView.__struct_fields__) - {"seq"}
