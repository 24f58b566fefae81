from __future__ import annotations

import asyncio
import datetime as dt
import os
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.engine.tls.own import OwnCertificate, OwnPair


class Issuer:
    """Somebody else's authority, unconstrained, as an ACME service is."""

    def __init__(self, place: Path, kind: str = "rsa") -> None:
        place.mkdir()
        self.cert, self.key, self.root = place / "cert.pem", place / "key.pem", place / "root.pem"
        self.kind = kind
        self._ca_key = ec.generate_private_key(ec.SECP256R1())
        self._ca = self._sign("root", self._ca_key, self._ca_key, "root", ca=True)
        self.root.write_bytes(self._ca.public_bytes(serialization.Encoding.PEM))

    def _sign(
        self, name: str, key: Any, signer: Any, issuer: str, *, ca: bool, days: float = 60
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=100))
            .not_valid_after(now + dt.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if not ca:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        return builder.sign(signer, hashes.SHA256())

    def issue(self, name: str, days: float = 60, kind: str = "ec") -> tuple[bytes, bytes]:
        key: Any = (
            rsa.generate_private_key(65537, 2048)
            if kind == "rsa"
            else ec.generate_private_key(ec.SECP256R1())
        )
        leaf = self._sign(name, key, self._ca_key, "root", ca=False, days=days)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return leaf.public_bytes(serialization.Encoding.PEM), pem

    def put(self, cert: bytes, key: bytes) -> None:
        """Replace both, the key first, as an ACME client's hook does."""
        for path, data in ((self.key, key), (self.cert, cert)):
            fresh = path.with_suffix(".tmp")
            fresh.write_bytes(data)
            fresh.chmod(0o640)
            os.replace(fresh, path)


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    made = Issuer(tmp_path / "acme")
    made.put(*made.issue("hub.example.com", kind="rsa"))
    return made


def connects(port: Any, name: str, root: Path) -> bool:
    try:
        context = ssl.create_default_context(cafile=str(root))
        with port.raw() as raw, context.wrap_socket(raw, server_hostname=name):
            return True
    except ssl.SSLCertVerificationError:
        return False


def test_own_files_are_served_and_no_authority_is_made(hub: Any, issuer: Issuer) -> None:
    port = hub.serve(hub.service(own=(issuer.cert, issuer.key)))
    assert connects(port, "hub.example.com", issuer.root)
    assert port.service.fingerprint == "" and port.service.ca_path is None
    assert not hub.state.exists()
    assert not connects(port, "else.example.com", issuer.root)
    assert f"put it into the certificate {issuer.cert}" in hub.said("unknown-name")[0]
    assert b"ca.pem" not in port.service.hint("https://x")
    with pytest.raises(LocalError, match="has no CA"):
        port.call(port.service.renew_ca)


def test_a_new_pair_is_picked_up_even_of_another_kind_of_key(
    hub: Any, issuer: Issuer, eventually: Callable[..., Any]
) -> None:
    port = hub.serve(hub.service(own=(issuer.cert, issuer.key)))
    issuer.put(*issuer.issue("new.example.com"))
    eventually(lambda: "new.example.com" in port.service.names)
    assert connects(port, "new.example.com", issuer.root)
    assert not connects(port, "hub.example.com", issuer.root)
    assert hub.said("certificate") == []


def test_a_bad_new_pair_keeps_the_old_and_is_told_once(
    hub: Any, issuer: Issuer, eventually: Callable[..., Any]
) -> None:
    port = hub.serve(hub.service(own=(issuer.cert, issuer.key), every=0.03))
    cert, _ = issuer.issue("a.example.com")
    _, key = issuer.issue("b.example.com")
    issuer.put(cert, key)
    said = eventually(lambda: hub.said("certificate"))
    assert "former ones stay in use" in said[0] and "does not belong to the first certificate" in said[0]
    assert connects(port, "hub.example.com", issuer.root)
    time.sleep(0.2)
    assert len(hub.said("certificate")) == 1
    issuer.put(*issuer.issue("c.example.com"))
    eventually(lambda: hub.said("certificate")[1:] == [""])
    assert connects(port, "c.example.com", issuer.root)


async def test_two_files_replaced_one_after_the_other_are_no_alert(hub: Any, issuer: Issuer) -> None:
    cert, key = issuer.issue("later.example.com")
    taken: list[OwnCertificate] = []
    told: list[str] = []
    failures: list[str] = []

    class Slow(OwnPair):
        """The second file arrives just after the first look has failed."""

        def load(self) -> OwnCertificate:
            try:
                return super().load()
            except EnvError as exc:
                failures.append(exc.fault.message)
                issuer.key.write_bytes(key)
                raise

    pair = Slow(issuer.cert, issuer.key, hub.clock)
    pair.load()
    issuer.cert.write_bytes(cert)
    watching = asyncio.create_task(pair.watch(taken.append, told.append, 0.02))
    while not taken:
        await asyncio.sleep(0.01)
    watching.cancel()
    await asyncio.wait([watching])
    assert len(failures) == 1 and told == []
    assert taken[0].names == {"later.example.com"}


def test_a_removed_file_is_told_and_its_return_noticed(
    hub: Any, issuer: Issuer, eventually: Callable[..., Any]
) -> None:
    port = hub.serve(hub.service(own=(issuer.cert, issuer.key), every=0.03))
    cert = issuer.cert.read_bytes()
    issuer.cert.unlink()
    assert "cannot be read" in eventually(lambda: hub.said("certificate"))[0]
    assert connects(port, "hub.example.com", issuer.root)
    issuer.cert.write_bytes(cert)
    eventually(lambda: hub.said("certificate")[-1] == "")


def test_the_end_of_an_own_certificate_is_announced(hub: Any, issuer: Issuer) -> None:
    hub.clock.forward_days(50)
    hub.service(own=(issuer.cert, issuer.key)).prepare()
    assert "ends on" in hub.said("certificate")[0]
    hub.clock.forward_days(11)
    with pytest.raises(EnvError, match="ended on"):
        hub.service(own=(issuer.cert, issuer.key)).prepare()


def encrypted(issuer: Issuer) -> bytes:
    key = serialization.load_pem_private_key(issuer.key.read_bytes(), None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"pw"),
    )


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda i: i.cert.unlink(), "the certificate .* cannot be read"),
        (lambda i: i.key.unlink(), "the key .* cannot be read"),
        (lambda i: i.cert.write_bytes(b"x"), "holds no PEM certificate"),
        (lambda i: i.cert.write_bytes(i.key.read_bytes()), "holds no PEM certificate"),
        (lambda i: i.key.write_bytes(b"x"), "holds no PEM private key"),
        (lambda i: i.key.write_bytes(encrypted(i)), "is encrypted"),
        (lambda i: (i.cert.unlink(), os.mkfifo(i.cert)), "is not a regular file"),
        (lambda i: (i.key.unlink(), os.mkfifo(i.key, 0o600)), "is not a regular file"),
        (lambda i: i.key.chmod(0o644), r"mode 0644.*chmod 640"),
        (lambda i: i.cert.write_bytes(i.issue("z.example")[0]), "does not belong"),
        (lambda i: i.put(*i.issue("z.example", days=-1)), "ended on"),
    ],
)
def test_bad_own_files_are_one_sentence(
    hub: Any, issuer: Issuer, spoil: Callable[[Issuer], Any], words: str
) -> None:
    spoil(issuer)
    with pytest.raises(EnvError, match=words) as caught:
        hub.service(own=(issuer.cert, issuer.key)).prepare()
    assert caught.value.fault.code == "tls_failed" and caught.value.fault.hint
