from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.access.origins import ALWAYS, Origins, parse_origin


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost",
        "https://localhost:3000",
        "HTTP://LOCALHOST:1",
        "http://tauri.localhost",
        "https://a.b.localhost:8080",
        "http://127.0.0.1:5173",
        "http://[::1]:80",
        "app://obsidian.md",
        "app://-",
        "file://",
        "tauri://localhost",
        "vscode-webview://0f3a-11",
        "vscode-file://vscode-app",
    ],
)
def test_pages_of_this_machine_are_always_allowed(origin: str) -> None:
    assert Origins().allows(origin)


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "*",
        "https://evil.example",
        "http://localhost.evil.example",
        "http://evil-localhost",
        "http://xlocalhost",
        "http://127.0.0.1.evil.example",
        "http://127.0.0.2",
        "http://evil.example:80/http://localhost",
        "http://localhost@evil.example",
        "http://evil.example#http://localhost",
        "http://localhost:80:80",
        "http://localhost, http://evil.example",
        "http://localhost\n",
        "http://.localhost.",
        "localhost",
        "https://[::1",
        "http://[::2]",
        "ftp://localhost",
        "httpx://localhost",
        "app:obsidian.md",
        "chrome-extension://abc",
    ],
)
def test_foreign_origins_are_not(origin: str) -> None:
    assert not Origins().allows(origin)


@pytest.mark.parametrize(
    ("setting", "allowed", "refused"),
    [
        ("https://chat.example.org", "https://chat.example.org", "http://chat.example.org"),
        ("https://chat.example.org", "https://CHAT.example.org", "https://chat.example.org:8443"),
        ("https://Chat.Example.org/", "https://chat.example.org", "https://xchat.example.org"),
        ("http://*.lan:*", "http://a.b.lan:99", "http://lan"),
        ("http://*.lan:*", "http://box.lan", "http://evilan"),
        ("http://box:8080", "http://box:8080", "http://box"),
        ("chrome-extension://*", "chrome-extension://abcdef", "moz-extension://abcdef"),
        ("https://*", "https://anything.example", "https://anything.example:1"),
        ("*", "https://evil.example:9", "null"),
        ("null", "null", "https://evil.example"),
        ("http://[fd00::1]:*", "http://[fd00::1]:3", "http://[fd00::2]:3"),
    ],
)
def test_more_origins(setting: str, allowed: str, refused: str) -> None:
    origins = Origins([parse_origin(setting)])
    assert origins.allows(allowed)
    assert not origins.allows(refused)
    assert origins.allows("http://localhost:1")


@pytest.mark.parametrize(
    "text",
    ["", "example.org", "https:/x", "https://a/b", "https://a*b", "https://*a", "https://a.*", "http://*:*:*",
     "http://user@x", "https://a b", "http://x:port", "http://x?y", "**"],
)  # fmt: skip
def test_no_origins(text: str) -> None:
    with pytest.raises(ValueError, match="not an origin"):
        parse_origin(text)


def test_what_is_kept_is_read_again() -> None:
    for text in (*ALWAYS, "*", "null", "https://A.example/"):
        kept = parse_origin(text)
        assert parse_origin(kept) == kept


HOSTS = st.from_regex(r"[a-z0-9-]{1,8}(\.[a-z0-9-]{1,8}){0,3}", fullmatch=True)


@given(host=HOSTS, port=st.none() | st.integers(0, 65535))
def test_no_name_of_the_web_is_taken_for_this_machine(host: str, port: int | None) -> None:
    origin = f"https://{host}" + ("" if port is None else f":{port}")
    own = host in ("localhost", "127.0.0.1") or host.endswith(".localhost")
    assert Origins().allows(origin) is own


@given(origin=st.text(max_size=80))
def test_any_text_has_an_answer(origin: str) -> None:
    assert Origins(["*"]).allows(origin) >= Origins().allows(origin)
