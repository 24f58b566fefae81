"""What real clients make of the hub's certificate."""

from __future__ import annotations

import ipaddress
import os
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from relaydesk.core.tls.names import home_constraints, parse_name
from relaydesk.engine.tls.authority import open_authority
from relaydesk.engine.tls.leaf import ensure_leaf

NODE = shutil.which("node")


def split(leaf_pem: Path, into: Path) -> Path:
    """The leaf alone, as `openssl verify` wants it."""
    chain = x509.load_pem_x509_certificates(leaf_pem.read_bytes())
    into.write_bytes(chain[0].public_bytes(serialization.Encoding.PEM))
    return into


def openssl(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=20)


def test_openssl_accepts_every_name_strictly(hub: Any, tmp_path: Path) -> None:
    hub.have("192.168.1.5", "100.64.1.1", "fd00::5", "fe80::5", "203.0.113.7")
    service = hub.service(parse_name("hub.example.com"))
    service.prepare()
    leaf = split(hub.state / "tls" / "leaf.pem", tmp_path / "leaf.pem")
    ca = str(service.ca_path)
    base = ("verify", "-x509_strict", "-check_ss_sig", "-purpose", "sslserver", "-CAfile", ca)
    plain = openssl(*base, str(leaf))
    assert plain.returncode == 0, plain.stderr
    names = ["localhost", "hub", "hub.local", "hub.lan", "hub.home.arpa", "hub.internal", "hub.example.com"]
    for name in names:
        assert openssl(*base, "-verify_hostname", name, str(leaf)).returncode == 0, name
    for address in ("127.0.0.1", "::1", "192.168.1.5", "100.64.1.1", "fd00::5", "fe80::5"):
        assert openssl(*base, "-verify_ip", address, str(leaf)).returncode == 0, address
    assert openssl(*base, "-verify_ip", "203.0.113.7", str(leaf)).returncode != 0
    assert openssl(*base, "-verify_hostname", "other.example.com", str(leaf)).returncode != 0
    shown = openssl("x509", "-in", ca, "-noout", "-fingerprint", "-sha256").stdout.strip()
    assert shown.lower() == f"sha256 fingerprint={service.fingerprint}".lower()


@pytest.mark.parametrize(
    ("outside", "inside"),
    [("hub.example.com", "x.hub.local"), ("8.8.8.8", "10.255.1.1"), ("2001:db8::1", "fd12::1"),
     ("net", "a.b.ts.net")],
)  # fmt: skip
def test_the_constraints_bind_whoever_holds_the_key(
    hub: Any, tmp_path: Path, outside: str, inside: str
) -> None:
    """One name outside spoils the whole leaf, so a stolen key is of no use against the rest of the world."""
    directory = hub.state / "tls"
    authority = open_authority(directory, home_constraints("hub"), hub.clock)
    for extra, code in ((inside, 0), (outside, 2)):
        leaf = ensure_leaf(directory, authority, ("hub.local", parse_name(extra)), hub.clock)
        alone = split(leaf.path, tmp_path / "leaf.pem")
        result = openssl("verify", "-x509_strict", "-CAfile", str(authority.path), str(alone))
        assert result.returncode == code, (extra, result.stderr)
    assert "permitted subtree violation" in result.stderr


def test_python_connects_by_every_name_and_to_both_families(hub: Any) -> None:
    port = hub.serve(hub.service())
    for name, host in (
        ("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("localhost", "::1"), ("localhost", "127.0.0.1"),
        ("hub", "127.0.0.1"), ("hub.local", "127.0.0.1"),
    ):  # fmt: skip
        with port.connect(name, host=host) as client:
            assert client.version() == "TLSv1.3"
            assert client.selected_alpn_protocol() == "http/1.1"
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert b"hello" in b"".join(iter(lambda c=client: c.recv(4096), b""))
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        port.connect("hub.example.com").close()
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        port.connect("192.0.2.2").close()


def test_a_client_without_the_ca_refuses_and_one_with_old_tls_too(hub: Any) -> None:
    port = hub.serve(hub.service())
    with port.raw() as sock, pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(sock, server_hostname="hub")
    # The library's own security level may forbid more; ours must not depend on it.
    assert port.service.server_context.minimum_version == ssl.TLSVersion.TLSv1_2
    for newest, accepted in (("TLSv1.1", False), ("TLSv1.2", True)):
        option = "-tls1_2" if accepted else "-tls1_1"
        got = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{port.number}", option, "-cipher",
             "ALL:@SECLEVEL=0"],
            input=b"", capture_output=True, timeout=20,
        )  # fmt: skip
        assert (got.returncode == 0) is accepted, (newest, got.stderr)


def test_the_handshake_carries_the_authority_for_who_pins_its_fingerprint(hub: Any) -> None:
    port = hub.serve(hub.service())
    shown = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port.number}", "-showcerts"],
        input=b"", capture_output=True, timeout=20,
    ).stdout  # fmt: skip
    chain = x509.load_pem_x509_certificates(shown)
    assert len(chain) == 2
    assert chain[1] == x509.load_pem_x509_certificate(port.service.ca_path.read_bytes())


@pytest.mark.skipif(NODE is None, reason="node is not on PATH")
def test_node_fetch_with_extra_ca(hub: Any) -> None:
    port = hub.serve(hub.service())
    script = """
      const [port, ...hosts] = process.argv.slice(1);
      for (const h of hosts) {
        try { const r = await fetch(`https://${h}:${port}/`); console.log(h, r.status, await r.text()); }
        catch (e) { console.log(h, 'failed', e.cause?.code ?? e.cause?.message ?? e.message); }
      }
      const tls = await import('node:tls');
      await new Promise((done) => {
        const s = tls.connect({port, host: '127.0.0.1', servername: 'hub.local'}, () => {
          console.log('hub.local', s.authorized); s.destroy(); done(); });
        s.on('error', (e) => { console.log('hub.local', e.code); done(); });
      });
    """
    done = subprocess.run(
        [str(NODE), "--input-type=module", "-e", script, str(port.number), "127.0.0.1", "[::1]", "localhost"],
        env={"PATH": os.environ["PATH"], "NODE_EXTRA_CA_CERTS": str(port.service.ca_path)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "127.0.0.1 200 hello", "[::1] 200 hello", "localhost 200 hello", "hub.local true",
    ], done.stderr  # fmt: skip


def test_the_leaf_is_what_every_client_demands(hub: Any) -> None:
    hub.service().prepare()
    leaf, ca = x509.load_pem_x509_certificates((hub.state / "tls" / "leaf.pem").read_bytes())
    life = leaf.not_valid_after_utc - leaf.not_valid_before_utc
    assert 80 < life.total_seconds() / 86400 <= 90
    assert leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value == x509.ExtendedKeyUsage(
        [x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]
    )
    basic = ca.extensions.get_extension_for_class(x509.BasicConstraints)
    assert basic.critical and basic.value == x509.BasicConstraints(ca=True, path_length=0)
    usage = ca.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical and usage.value.key_cert_sign and usage.value.crl_sign
    names = ca.extensions.get_extension_for_class(x509.NameConstraints)
    assert names.critical and names.value.excluded_subtrees is None
    permitted = [entry.value for entry in names.value.permitted_subtrees or ()]
    assert "local" in permitted and ipaddress.ip_network("100.64.0.0/10") in permitted
    assert not any(str(value).startswith(".") for value in permitted)
