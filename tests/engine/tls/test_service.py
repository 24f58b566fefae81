from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from relaydesk.config.listen import Listen
from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.tls.names import parse_name, permitted
from relaydesk.engine.tls.acme.plan import AcmePlan
from relaydesk.engine.tls.addresses import this_machine
from relaydesk.engine.tls.context import MAX_UNKNOWN
from tests.support.clock import FakeRng
from tests.support.pebble import free_ports


def served(client: ssl.SSLSocket) -> bytes:
    der = client.getpeercert(binary_form=True)
    assert der is not None
    return der


def leaf_on_disk(hub: Any) -> x509.Certificate:
    return x509.load_pem_x509_certificates((hub.state / "tls" / "leaf.pem").read_bytes())[0]


def test_a_new_address_gets_a_new_leaf_while_connections_stay(
    hub: Any, eventually: Callable[..., Any]
) -> None:
    hub.have("192.168.1.5")
    port = hub.serve(hub.service())
    with port.connect("hub.local") as old:
        with pytest.raises(ssl.SSLCertVerificationError):
            port.connect("10.9.8.7").close()
        hub.have("192.168.1.5", "10.9.8.7")
        eventually(lambda: parse_name("10.9.8.7") in port.service.names)
        with port.connect("10.9.8.7") as new:
            assert served(new) != served(old)
        old.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"hello" in b"".join(iter(lambda: old.recv(4096), b""))


def test_the_swap_holds_for_resumed_and_for_plain_sslsocket_style_clients(hub: Any) -> None:
    """A ticket of the former leaf must not break the next connection."""
    port = hub.serve(hub.service(every=60))
    context = ssl.create_default_context(cafile=str(port.service.ca_path))
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # its session is known right after the handshake
    with port.raw() as raw, context.wrap_socket(raw, server_hostname="hub") as first:
        session = first.session
    hub.have("10.1.1.1")
    port.call(lambda: port.service.rename(()))
    with port.raw() as raw, context.wrap_socket(raw, server_hostname="hub", session=session) as again:
        again.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert again.recv(4096).startswith(b"HTTP/1.1 200")


def test_a_leaf_is_renewed_at_a_third_of_its_life_and_kept_before(hub: Any) -> None:
    hub.service().prepare()
    first = leaf_on_disk(hub)
    hub.clock.forward_days(59)
    hub.service().prepare()
    assert leaf_on_disk(hub) == first
    hub.clock.forward_days(2)
    service = hub.service()
    service.prepare()
    second = leaf_on_disk(hub)
    assert second != first and second.public_key() != first.public_key()
    assert hub.service().fingerprint == "" and service.fingerprint.count(":") == 31


def test_age_is_noticed_while_running(hub: Any, eventually: Callable[..., Any]) -> None:
    port = hub.serve(hub.service())
    with port.connect("hub") as before:
        first = served(before)
    hub.clock.forward_days(61)
    # The new leaf starts in what this machine takes for the future: look at it without judging it.
    eventually(lambda: _peer(port.raw()) != first)


def _peer(sock: Any) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(sock) as client:
        return served(client)


def test_a_spoilt_or_readable_leaf_is_simply_made_again(hub: Any) -> None:
    hub.service().prepare()
    path = hub.state / "tls" / "leaf.pem"
    for spoil in (lambda: path.write_bytes(b"x"), lambda: path.chmod(0o644), path.unlink):
        before = path.read_bytes()
        spoil()
        hub.service().prepare()
        assert path.read_bytes() != before and path.stat().st_mode & 0o077 == 0


def test_an_outside_name_at_the_first_start_is_served_and_later_refused(hub: Any) -> None:
    hub.service("hub.example.com").prepare()
    port = hub.serve(hub.service("hub.example.com"))
    port.connect("hub.example.com").close()
    with pytest.raises(LocalError, match=r"without vpn\.example\.org .*RELAY_TLS_CERT.*renew-ca") as caught:
        hub.service("hub.example.com", "vpn.example.org").prepare()
    assert caught.value.fault.param == "RELAY_TLS_NAMES"
    with pytest.raises(LocalError, match=r"vpn\.example\.org"):
        port.call(lambda: port.service.rename(["vpn.example.org"]))
    port.connect("hub.example.com").close()
    port.call(lambda: port.service.rename(["hub.example.com", "nas.lan"]))
    port.connect("nas.lan").close()


def test_renew_ca_changes_the_leaf_of_the_same_names_too(hub: Any) -> None:
    port = hub.serve(hub.service(every=60))
    port.call(port.service.renew_ca)
    port.connect("hub").close()


def test_renew_ca_takes_the_new_names_without_a_restart(hub: Any) -> None:
    port = hub.serve(hub.service(every=60))
    old_ca = hub.state / "old.pem"
    old_ca.write_bytes(port.service.ca_path.read_bytes())
    before = port.service.fingerprint
    after = port.call(lambda: port.service.renew_ca(["vpn.example.org"]))
    assert after == port.service.fingerprint != before
    port.connect("vpn.example.org").close()
    with pytest.raises(ssl.SSLCertVerificationError):
        port.connect("hub", ca=old_ca).close()


async def test_renew_ca_is_the_way_out_of_a_damaged_authority(hub: Any) -> None:
    hub.service().prepare()
    (hub.state / "tls" / "ca-key.pem").write_bytes(b"rubbish")
    with pytest.raises(EnvError, match="renew-ca"):
        hub.service().prepare()
    renewed = await hub.service().renew_ca()
    again = hub.service()
    again.prepare()
    assert again.fingerprint == renewed


def test_an_unknown_server_name_is_told_once_with_the_line_to_add(hub: Any) -> None:
    port = hub.serve(hub.service(parse_name("nas.lan"), every=60))
    for _ in range(3):
        with pytest.raises(ssl.SSLCertVerificationError):
            port.connect("pi.lan").close()
        with pytest.raises(ssl.SSLCertVerificationError):
            port.connect("hub.example.com").close()
        port.connect("hub.local").close()
    lines = hub.said("unknown-name")
    assert len(lines) == 2
    assert "RELAY_TLS_NAMES=nas.lan,pi.lan" in lines[0] and "renew-ca" not in lines[0]
    assert "RELAY_TLS_NAMES=nas.lan,hub.example.com" in lines[1] and "renew-ca" in lines[1]


def test_invented_server_names_fill_neither_log_nor_memory(hub: Any) -> None:
    port = hub.serve(hub.service(every=60))
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for n in range(MAX_UNKNOWN + 10):
        with port.raw() as raw, context.wrap_socket(raw, server_hostname=f"n{n}.example"):
            pass
    assert len(hub.said("unknown-name")) == MAX_UNKNOWN


def test_a_full_disk_at_renewal_keeps_the_old_leaf_and_is_told(
    hub: Any, eventually: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = hub.serve(hub.service())

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        hub.have("10.7.7.7")
        said = eventually(lambda: hub.said("certificate"))
        assert "no space left" in said[0]
        port.connect("hub").close()
    eventually(lambda: hub.said("certificate")[-1] == "")
    port.connect("10.7.7.7").close()
    assert not list((hub.state / "tls").glob(".new-*"))


def test_the_end_of_the_authority_is_announced(hub: Any) -> None:
    hub.service().prepare()
    hub.clock.forward_days(3650 - 100)
    hub.service().prepare()
    assert "renew-ca" in hub.said("ca-expiry")[0]
    hub.clock.forward_days(80)
    hub.service().prepare()
    issuer = x509.load_pem_x509_certificate((hub.state / "tls" / "ca.pem").read_bytes())
    assert leaf_on_disk(hub).not_valid_after_utc <= issuer.not_valid_after_utc


def test_what_stays_out_is_listed(hub: Any) -> None:
    hub.have("203.0.113.9", "2001:db8::9", hostname="hub.example.com")
    service = hub.service()
    service.prepare()
    assert set(service.skipped) == {"hub.example.com", "203.0.113.9", "2001:db8::9"}


def test_one_file_of_a_pair_is_no_pair(hub: Any) -> None:
    from relaydesk.engine.tls.service import TlsService

    with pytest.raises(LocalError, match="RELAY_TLS_KEY is missing"):
        TlsService(hub.state, "hub", (), Path("c"), None, hub.clock, lambda _t, _s: None)


def test_this_machine_knows_its_own_addresses() -> None:
    machine = this_machine()
    assert machine.hostname
    assert parse_name("127.0.0.1") in machine.addresses


def test_the_real_machine_gets_a_leaf_inside_its_constraints(hub: Any) -> None:
    from relaydesk.engine.tls.service import TlsService

    service = TlsService(hub.state, None, (), None, None, hub.clock, lambda _t, _s: None)
    service.prepare()
    assert parse_name("127.0.0.1") in service.names
    assert service._authority is not None
    assert all(permitted(name, service._authority.constraints) for name in service.names)


def test_a_state_directory_that_is_none_is_a_sentence(hub: Any) -> None:
    hub.state.write_text("not a directory")
    with pytest.raises(EnvError, match=r"cannot read .*ca-key.pem \(Not a directory\)"):
        hub.service().prepare()


def test_an_acme_certificate_stands_beside_the_hubs_own(hub: Any, eventually: Callable[..., Any]) -> None:
    """Where no server answers; where one does: `tests/e2e/test_acme.py`."""
    (port_80,) = free_ports(1)
    plan = AcmePlan(
        ("hub.example.org",), "https://127.0.0.1:1/dir", "", None, Listen("127.0.0.1", port_80), None
    )
    service = hub.service()
    service.add_acme(plan, FakeRng(), {})
    assert service.certificate.startswith("none yet for hub.example.org")
    port = hub.serve(service)
    assert "until it is there the hub serves one of its own CA" in hub.said("acme")[0]
    eventually(lambda: "127.0.0.1 cannot be reached" in hub.said("acme")[-1])
    port.connect("hub.local").close()
    assert service.hint("https://localhost:8383") == (
        b"This port speaks HTTPS, not plain HTTP: use https://hub.example.org:8383\n"
    )
    # Its upkeep goes on beside it.
    hub.have("10.9.8.7")
    eventually(lambda: parse_name("10.9.8.7") in service.names)
