from __future__ import annotations

import ssl
import sys
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.errors import EnvError
from relaydesk.core.text import SafeText
from relaydesk.core.tls.names import home_constraints, parse_name
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.tls.authority import open_authority
from relaydesk.engine.tls.context import LiveContext, load_context, silence_undecodable_names
from relaydesk.engine.tls.leaf import ensure_leaf


def hello(name: bytes) -> bytes:
    """A ClientHello whose server name is ``name``, whatever a client library thinks of it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    sent = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="q" * len(name))
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read().replace(b"q" * len(name), name)


def greet(context: ssl.SSLContext, name: bytes) -> bytes:
    """What the server answers to `hello`."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(hello(name))
    with pytest.raises(ssl.SSLError):
        server.do_handshake()
    return outgoing.read()


def test_a_hostile_name_is_safe_to_show(hub: Any) -> None:
    service = hub.service()
    service.prepare()
    assert len(greet(service.server_context, b"pi\x1b[2J.lan")) > 500  # served all the same
    (line,) = hub.said("unknown-name")
    assert "\x1b" not in line and "RELAY_TLS_NAMES" not in line and "not a host name" in line


def test_an_undecodable_name_ends_the_handshake_without_a_traceback(
    hub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = hub.service()
    service.prepare()
    printed: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)
    assert len(greet(service.server_context, b"\xff\xfe\xfd\xfc")) < 20
    assert len(printed) == 1  # what the filter is for
    silence_undecodable_names()
    assert len(greet(service.server_context, b"\xff\xfe\xfd\xfc")) < 20
    assert len(printed) == 1
    sys.unraisablehook(type("Other", (), {"exc_type": ValueError, "object": None}))  # type: ignore[arg-type]
    assert len(printed) == 2
    assert hub.alerts == []


def test_before_the_first_swap_a_handshake_fails_cleanly() -> None:
    told: list[SafeText] = []
    live = LiveContext(told.append)
    assert len(greet(live.context, b"hub.local")) < 20
    assert told == []


def test_a_name_that_becomes_covered_may_be_told_again_once_it_is_lost(hub: Any) -> None:
    service = hub.service()
    service.prepare()
    told: list[SafeText] = []
    live = LiveContext(told.append)
    inner = load_context(hub.state / "tls" / "leaf.pem")
    for names in (["hub"], ["hub"], ["hub", "pi.lan"], ["hub"]):
        live.swap(inner, names)
        greet(live.context, b"pi.lan")
    assert told == ["pi.lan", "pi.lan"]


def test_files_that_cannot_be_loaded_are_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("-----BEGIN CERTIFICATE-----\n")
    for path in (tmp_path / "x", tmp_path / "absent"):
        with pytest.raises(EnvError, match="cannot be used"):
            load_context(path)


def test_a_second_certificate_is_for_who_asks_for_its_names(hub: Any, tmp_path: Path) -> None:
    def certificate(*names: str) -> tuple[Path, list[Any]]:
        directory = tmp_path / names[0]
        authority = open_authority(directory, home_constraints("pi", []), SystemClock())
        parsed = [parse_name(name) for name in names]
        return ensure_leaf(directory, authority, tuple(parsed), SystemClock()).path, parsed

    unknown: list[SafeText] = []
    live = LiveContext(unknown.append)
    home, home_names = certificate("pi.lan", "localhost")
    live.swap(load_context(home), home_names)
    public, public_names = certificate("hub.home.arpa")
    live.prefer(load_context(public), public_names)
    assert live.names == frozenset(home_names) | frozenset(public_names)

    def got(name: str | None) -> bytes:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(to_client, to_server, server_hostname=name)
        server = live.context.wrap_bio(to_server, to_client, server_side=True)
        for end in (client, server, client):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                pass
        found = client.getpeercert(binary_form=True)
        assert found is not None
        return found

    assert got("hub.home.arpa") == got("HUB.home.arpa") != got("pi.lan")
    assert got("pi.lan") == got(None) == got("127.0.0.1") == got("nobody.lan")
    assert unknown == ["nobody.lan"] or unknown == ["127.0.0.1", "nobody.lan"]
    live.prefer(load_context(home), home_names)
    assert got("hub.home.arpa") == got("pi.lan")
