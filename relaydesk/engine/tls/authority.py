"""The hub's own certificate authority, kept in ``<state dir>/tls/``.

``ca.pem`` is what clients trust. ``ca-key.pem`` holds the key, the certificate it belongs to and, after a
renewal, the previous certificate: it alone is the truth, so that one rename makes or renews the
authority, and a crash before ``ca.pem`` followed is recognised and finished by the next start. Anything
else that does not fit together is a sentence, and no file is touched.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from relaydesk.core.errors import EnvError, FaultError
from relaydesk.core.ports import Clock
from relaydesk.core.tls.names import Constraints, Network
from relaydesk.engine.tls.files import read_file, reason
from relaydesk.store.files import atomic_write

CA_FILE: Final = "ca.pem"
KEY_FILE: Final = "ca-key.pem"
CA_DAYS: Final = 3650
# Clients whose clock is a little behind ours must accept what was just made.
BACKDATE: Final = dt.timedelta(hours=1)
# Before this no relaydesk existed: the clock has not been set, and ten years from 1970 are long over.
_EARLIEST: Final = dt.datetime(2025, 1, 1, tzinfo=dt.UTC)
_RENEW: Final = "or make a new CA with `relaydesk tls renew-ca`, which every client must then trust anew"
_KEY_USAGES: Final = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Authority:
    """A loaded authority. ``key`` never leaves the engine."""

    path: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    constraints: Constraints

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate's DER, upper-case hex between colons."""
        return fingerprint(self.certificate)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 of a certificate's DER as people compare it: upper-case hex between colons."""
    return certificate.fingerprint(hashes.SHA256()).hex(":").upper()


def utc(clock: Clock) -> dt.datetime:
    """The wall clock, whole seconds as certificates have them. Raises ``tls_failed`` if it is not set."""
    now = dt.datetime.fromtimestamp(clock.wall_ms() // 1000, dt.UTC)
    if now < _EARLIEST:
        raise EnvError(
            "tls_failed",
            f"this machine's clock says {now:%Y-%m-%d}, so no certificate it makes would be valid",
            "set the clock",
        )
    return now


def key_usage(*allowed: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{usage: usage in allowed for usage in _KEY_USAGES})


def open_authority(directory: Path, constraints: Constraints, clock: Clock) -> Authority:
    """The authority in ``directory``; made with ``constraints`` where there is none yet.

    An existing one keeps the constraints it was made with. Raises `EnvError` ``tls_failed``.
    """
    key_path, ca_path = directory / KEY_FILE, directory / CA_FILE
    try:
        bundle = read_file(
            key_path,
            forbidden=0o077,
            advice="; if somebody may have read it, also run `relaydesk tls renew-ca`",
        )
    except FileNotFoundError:
        if ca_path.exists():
            raise EnvError(
                "tls_failed",
                f"{ca_path} is there but its key {key_path} is missing",
                f"restore it from a backup, {_RENEW}",
            ) from None
        return _create(directory, constraints, None, clock)
    authority, previous = _parse(directory, bundle)
    _complete(authority, previous)
    now = utc(clock)
    if not authority.certificate.not_valid_before_utc <= now < authority.certificate.not_valid_after_utc:
        raise EnvError(
            "tls_failed",
            f"the hub's CA {ca_path} is valid from {authority.certificate.not_valid_before_utc:%Y-%m-%d} to "
            f"{authority.certificate.not_valid_after_utc:%Y-%m-%d} and today is {now:%Y-%m-%d}",
            f"set the clock, {_RENEW}",
        )
    return authority


def renew_authority(directory: Path, constraints: Constraints, clock: Clock) -> Authority:
    """A new authority in place of whatever is there; clients have to trust it anew."""
    previous: x509.Certificate | None = None
    try:
        previous = _parse(directory, read_file(directory / KEY_FILE))[0].certificate
    except (FileNotFoundError, FaultError):
        pass  # a broken or missing authority is a reason to renew, not to refuse
    return _create(directory, constraints, previous, clock)


def _create(
    directory: Path, constraints: Constraints, previous: x509.Certificate | None, clock: Clock
) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _certificate(key, constraints, utc(clock) - BACKDATE)
    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as exc:
        raise EnvError(
            "tls_failed",
            f"cannot make the directory {directory} ({reason(exc)})",
            "make the state directory writable, or choose another with RELAY_STATE_DIR",
        ) from exc
    authority = Authority(directory / CA_FILE, certificate, key, constraints)
    old = previous.public_bytes(serialization.Encoding.PEM) if previous else b""
    atomic_write(directory / KEY_FILE, private_pem(key) + authority.pem + old, 0o600)
    atomic_write(authority.path, authority.pem, 0o644)
    return authority


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _certificate(
    key: ec.EllipticCurvePrivateKey, constraints: Constraints, start: dt.datetime
) -> x509.Certificate:
    public = key.public_key()
    # The serial's head in the name tells an old and a new authority apart in a client's trust list.
    serial = x509.random_serial_number()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"relaydesk hub CA {serial:040x}"[:28])])
    subtrees: list[x509.GeneralName] = [x509.DNSName(domain) for domain in constraints.domains]
    subtrees += [x509.IPAddress(network) for network in constraints.networks]
    identifier = x509.SubjectKeyIdentifier.from_public_key(public)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(serial)
        .not_valid_before(start)
        .not_valid_after(start + dt.timedelta(days=CA_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage("key_cert_sign", "crl_sign"), critical=True)
        .add_extension(x509.NameConstraints(subtrees, excluded_subtrees=None), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
        )
        .sign(key, hashes.SHA256())
    )


def _parse(directory: Path, bundle: bytes) -> tuple[Authority, x509.Certificate | None]:
    """Key, certificate and previous certificate out of the key file; checks that they fit together."""
    path = directory / KEY_FILE
    try:
        key = serialization.load_pem_private_key(bundle, password=None)
        certificates = x509.load_pem_x509_certificates(bundle)
        constraints = _constraints(certificates[0])
        certificates[0].verify_directly_issued_by(certificates[0])
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound) as exc:
        raise EnvError(
            "tls_failed",
            f"the hub's CA in {path} is damaged and was left as it is",
            f"restore it from a backup, {_RENEW}",
        ) from exc
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificates[0].public_key():
        raise EnvError(
            "tls_failed",
            f"key and certificate in {path} do not belong together and were left as they are",
            f"restore the file from a backup, {_RENEW}",
        )
    previous = certificates[1] if len(certificates) > 1 else None
    return Authority(directory / CA_FILE, certificates[0], key, constraints), previous


def _constraints(certificate: x509.Certificate) -> Constraints:
    if not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
        raise ValueError("not an authority")
    permitted = certificate.extensions.get_extension_for_class(x509.NameConstraints).value.permitted_subtrees
    domains: list[str] = []
    networks: list[Network] = []
    for subtree in permitted or ():
        if isinstance(subtree, x509.DNSName):
            domains.append(subtree.value)
        elif isinstance(subtree, x509.IPAddress):
            value = subtree.value
            if not isinstance(value, ipaddress.IPv4Network | ipaddress.IPv6Network):
                raise ValueError("an address where a network belongs")
            networks.append(value)
    return Constraints(tuple(domains), tuple(networks))


def _complete(authority: Authority, previous: x509.Certificate | None) -> None:
    """Write ``ca.pem`` where a crash left it missing or as it was before a renewal."""
    try:
        present = x509.load_pem_x509_certificate(read_file(authority.path))
    except FileNotFoundError:
        atomic_write(authority.path, authority.pem, 0o644)
        return
    except ValueError as exc:
        raise EnvError(
            "tls_failed",
            f"the CA certificate {authority.path} is damaged and was left as it is",
            "move it away and start again: it is written anew from the key file, with the same fingerprint",
        ) from exc
    if present == authority.certificate:
        return
    if previous is not None and present == previous:
        atomic_write(authority.path, authority.pem, 0o644)
        return
    raise EnvError(
        "tls_failed",
        f"the CA certificate {authority.path} does not belong to the key in "
        f"{authority.path.parent / KEY_FILE}; both were left as they are",
        f"restore both from one backup, {_RENEW}",
    )
