from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.surfaces.console.data import RATES_HZ
from relaydesk.surfaces.console.prefs import Prefs, load_prefs, save_prefs
from relaydesk.surfaces.console.themes import NAMES


@given(st.sampled_from(list(NAMES)), st.sampled_from(RATES_HZ))
def test_what_is_kept_is_read(theme: str, rate_hz: float) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "not" / "there" / "console.toml"
        assert load_prefs(path) == Prefs()
        assert save_prefs(path, Prefs(theme, rate_hz)) == ""
        assert load_prefs(path) == Prefs(theme, rate_hz)
        assert [each.name for each in path.parent.iterdir()] == ["console.toml"]


@pytest.mark.parametrize(
    ("text", "kept", "named"),
    [
        ('theme = "light"\nrate_hz = 3', Prefs("light"), "rate_hz"),
        ('theme = "pink"\nrate_hz = 4', Prefs(rate_hz=4.0), "theme"),
        ("theme = 1\nrate_hz = true", Prefs(), "theme and rate_hz"),
        ('theme = ["light"]', Prefs(), "theme"),
        ("rate_hz = 0.5\nlater = 1", Prefs(rate_hz=0.5), ""),
        ("theme", Prefs(), "cannot be read"),
        ("\udcff", Prefs(), "cannot be read"),
    ],
)
def test_what_is_wrong_counts_as_not_there(tmp_path: Path, text: str, kept: Prefs, named: str) -> None:
    path = tmp_path / "console.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    found = load_prefs(path)
    assert (found.theme, found.rate_hz) == (kept.theme, kept.rate_hz)
    assert named in found.problem
    assert bool(found.problem) == bool(named)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80) | st.text(max_size=60).map(str.encode))
def test_no_file_stops_the_console(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "console.toml"
        path.write_bytes(b"theme = " + data)
        found = load_prefs(path)
        assert found.theme in NAMES
        assert found.rate_hz in RATES_HZ


def test_what_cannot_be_written_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "console.toml"
    path.mkdir()
    (path / "in the way").touch()
    assert "cannot be written" in save_prefs(path, Prefs())
    assert [each.name for each in tmp_path.iterdir()] == ["console.toml"]
    assert "cannot be read" in load_prefs(path).problem
