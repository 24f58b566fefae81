"""The hub's own leaf: a short-lived certificate for every name and address this machine has at home.

Key, leaf and authority are one file, ``leaf.pem`` (0600), so that they change together. It can always be
made again, therefore a damaged, foreign or readable one is replaced without asking.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from relaydesk.core.errors import EnvError
from relaydesk.core.ports import Clock
from relaydesk.core.tls.names import Name
from relaydesk.engine.tls.authority import BACKDATE, Authority, key_usage, private_pem, utc
from relaydesk.engine.tls.files import read_file
from relaydesk.store.files import atomic_write

LEAF_FILE: Final = "leaf.pem"
LEAF_DAYS: Final = 90


@dataclass(frozen=True, slots=True)
class Leaf:
    """A certificate on disk that a context can load. ``path`` holds key and full chain."""

    path: Path
    names: frozenset[Name]
    not_before: dt.datetime
    not_after: dt.datetime

    def stale(self, names: frozenset[Name], now: dt.datetime) -> bool:
        """Whether it must be replaced: other names, or less than a third of its life left.

        A start in the future is a clock that was set back since.
        """
        third = (self.not_after - self.not_before) / 3
        return self.names != names or now < self.not_before or self.not_after - now < third


def certificate_names(certificate: x509.Certificate) -> frozenset[Name]:
    """The DNS names and addresses a certificate is for."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    names: set[Name] = {name.lower() for name in found.get_values_for_type(x509.DNSName)}
    names.update(
        address for address in found.get_values_for_type(x509.IPAddress) if not hasattr(address, "prefixlen")
    )
    return frozenset(names)


def ensure_leaf(directory: Path, authority: Authority, names: tuple[Name, ...], clock: Clock) -> Leaf:
    """The leaf in ``directory`` where it is still right, else a new one. Raises `EnvError` ``tls_failed``."""
    now = utc(clock)
    present = _load(directory / LEAF_FILE, authority)
    if present is not None and not present.stale(frozenset(names), now):
        return present
    return _issue(directory / LEAF_FILE, authority, names, now)


def _load(path: Path, authority: Authority) -> Leaf | None:
    try:
        data = read_file(path, forbidden=0o077)
        key = serialization.load_pem_private_key(data, password=None)
        chain = x509.load_pem_x509_certificates(data)
        chain[0].verify_directly_issued_by(authority.certificate)
        names = certificate_names(chain[0])
    except (FileNotFoundError, EnvError, ValueError, TypeError, InvalidSignature):
        return None
    if key.public_key() != chain[0].public_key() or chain[1:] != [authority.certificate]:
        return None
    return Leaf(path, names, chain[0].not_valid_before_utc, chain[0].not_valid_after_utc)


def _issue(path: Path, authority: Authority, names: tuple[Name, ...], now: dt.datetime) -> Leaf:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    start = max(now - BACKDATE, issuer.not_valid_before_utc)
    end = min(start + dt.timedelta(days=LEAF_DAYS), issuer.not_valid_after_utc)
    issuer_id = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    alternatives = [x509.DNSName(n) if isinstance(n, str) else x509.IPAddress(n) for n in names]
    certificate = (
        x509.CertificateBuilder()
        # With a space it cannot be mistaken for a host name, which verifiers would hold to the constraints.
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "relaydesk hub")]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage("digital_signature"), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_id), critical=False
        )
        .sign(authority.key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    # The authority goes along: who joins by its fingerprint finds it in the handshake.
    atomic_write(path, private_pem(key) + pem + authority.pem, 0o600)
    return Leaf(path, frozenset(names), start, end)
