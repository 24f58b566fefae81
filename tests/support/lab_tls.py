"""A CA of a test's own and a certificate for this machine."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class LabTls(NamedTuple):
    """``pem`` has the key and the chain; ``ca`` what trusts it."""

    pem: Path
    ca: Path

    def server(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.pem)
        return context

    def client(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca))


def make_lab_tls(directory: Path, *names: str) -> LabTls:
    """For localhost, 127.0.0.1 and ``names``, which may be addresses; valid for a day."""
    now = dt.datetime.now(dt.UTC)
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _signed("lab CA", ca_key, "lab CA", ca_key, now, x509.BasicConstraints(True, 0))
    alternatives = x509.SubjectAlternativeName(
        [
            *(_alternative(name) for name in ("localhost", "127.0.0.1", *names)),
        ]
    )
    leaf = _signed("lab", key, "lab CA", ca_key, now, alternatives)
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    pem, ca = directory / "lab.pem", directory / "lab-ca.pem"
    pem.write_bytes(private + leaf.public_bytes(encoding))
    ca.write_bytes(authority.public_bytes(encoding))
    return LabTls(pem, ca)


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _signed(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    now: dt.datetime,
    extension: x509.ExtensionType,
) -> x509.Certificate:
    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    return (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(extension, isinstance(extension, x509.BasicConstraints))
        .sign(issuer_key, hashes.SHA256())
    )
