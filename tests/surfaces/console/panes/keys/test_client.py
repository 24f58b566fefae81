"""What a client needs to use a key."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.surfaces.console.panes.keys.client import client_lines
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.scenes import KEYS, hostile, texts
from tests.surfaces.console.stage import sample

META = sample()["meta"]
DEFAULT, ANN, _, TOOL = KEYS.keys


def test_what_a_client_needs() -> None:
    lines = texts(client_lines(META, 70))
    assert lines[1] == "address     https://localhost:8383/v1"
    assert "trust       /home/ada/.local/state/relaydesk/tls/ca.pem" in lines
    assert "  OPENAI_BASE_URL=https://localhost:8383/v1" in lines
    assert "  OPENAI_API_KEY=$(relaydesk token --api)" in lines
    assert lines == texts(client_lines(META, 70, DEFAULT))


def test_a_named_key_was_shown_once_and_one_in_a_url_stands_there() -> None:
    named = texts(client_lines(META, 70, ANN))
    assert "key         its secret, shown once when it was made" in named
    assert not any("token --api" in line for line in named)
    in_path = texts(client_lines(META, 70, TOOL))
    assert "  OPENAI_BASE_URL=https://localhost:8383/k/KEY/v1" in in_path


def test_plain_http_needs_no_trust() -> None:
    plain = msgspec.structs.replace(META, listening=("http://127.0.0.1:8383",))
    assert not any(line.startswith(("trust", "SHA-256")) for line in texts(client_lines(plain, 70)))
    assert client_lines(msgspec.structs.replace(META, listening=()), 70) == ()
    assert client_lines(None, 70) == ()


def test_a_fingerprint_breaks_between_its_groups() -> None:
    lines = [line for line in texts(client_lines(META, 40)) if "C0" in line]
    assert lines == [
        "SHA-256     7A:1F:C0:C0:C0:C0:C0:C0",
        "            C0:C0:C0:C0:C0:C0:C0:C0",
        "            C0:C0:C0:C0:C0:C0:C0:C0",
        "            C0:C0:C0:C0:C0:C0:C0:C0",
    ]


@pytest.mark.parametrize("width", [38, 56, 78])
def test_no_line_is_wider_than_there_is_room(width: int) -> None:
    for key in (*KEYS.keys, *hostile()["keys"].keys):
        assert all(line_width(line) <= width for line in client_lines(META, width, key))
