"""Who this node is on the network: its signing key, and the owner's certificate for that key.

Where no certificate was imported the node has an owner key of its own and certifies itself as node 0. The
keys are secrets of the node; the certificate is public and a file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.relay.directory.certificate import (
    DAY_S,
    MAX_BYTES,
    NodeCertificate,
    issue_certificate,
    read_certificate,
)
from relaydesk.core.relay.directory.envelope import SKEW_S
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.relay.directory.signing_key import Kind, SigningKey, new_key, parse_key
from relaydesk.core.relay.ref import NodeRef
from relaydesk.store.files import atomic_write, file_error, private_dir
from relaydesk.store.secrets import Secrets

OWNER_SECRET: Final = "network_owner_key"
NODE_SECRET: Final = "network_node_key"
CERTIFICATE_FILE: Final = "certificate.json"

# A certificate that the node gives itself: renewed when half of it is over, so that a month's rest harms
# nobody.
OWN_LIFE_S: Final = 90 * DAY_S
_OWN_NODE: Final = 0


class Identity:
    """Keys and certificate. `open`, `renew` and `adopt` block on the disk; the rest is in memory."""

    def __init__(
        self,
        key: SigningKey,
        owner: SigningKey | None,
        certificate: NodeCertificate,
        file: Path,
        clock: Clock,
    ) -> None:
        self._key = key
        self._owner = owner
        self._certificate = certificate
        self._file = file
        self._clock = clock

    def __repr__(self) -> str:
        return f"Identity({self.ref})"

    @classmethod
    def open(cls, secrets: Secrets, folder: Path, clock: Clock, rng: Rng) -> Identity:
        """Read keys and certificate below ``folder``; make what there is none of.

        Raises `EnvError` (``secret_failed``, ``storage_failed``), and `LocalError` ``directory_refused``
        where the certificate on the disk is not for this node's key.
        """
        private_dir(folder)
        file = folder / CERTIFICATE_FILE
        key = _kept_key(secrets, NODE_SECRET, "node", rng)
        certificate = _stored(file)
        owner_text = secrets.get(OWNER_SECRET)
        if certificate is None or owner_text is not None:
            owner = _kept_key(secrets, OWNER_SECRET, "owner", rng)
            if certificate is None or (
                certificate.owner == owner.address and certificate.signing != key.address
            ):
                certificate = _own_certificate(owner, key, clock)
                atomic_write(file, certificate.encode(), 0o644)
        else:
            owner = None
        if certificate.signing != key.address:
            raise LocalError(
                "directory_refused",
                f"the certificate {file} is for another key than this node's ({key.address})",
                "certify this key (`relaydesk operators certify`), or move that file away",
            )
        identity = cls(key, owner, certificate, file, clock)
        identity.renew()
        return identity

    @property
    def ref(self) -> NodeRef:
        """Operator's id and node's number."""
        return self._certificate.ref

    @property
    def operator_id(self) -> int:
        """The operator's id: the first 53 bits of SHA-256 of the owner key."""
        return self._certificate.ref.operator

    @property
    def node_id(self) -> int:
        """The node's number within its operator."""
        return self._certificate.node_id

    @property
    def owner_addr(self) -> str:
        """The owner key's address."""
        return self._certificate.owner

    @property
    def signing_addr(self) -> str:
        """The node key's address."""
        return self._key.address

    @property
    def seed(self) -> bytes:
        """The node key's secret, 32 bytes, for what signs records of the wire."""
        return self._key.seed

    @property
    def certificate(self) -> NodeCertificate:
        """The owner's certificate for the node key; it may have expired."""
        return self._certificate

    @property
    def self_certified(self) -> bool:
        """Whether the owner key is this node's own, kept beside the node key."""
        return self._owner is not None and self._owner.address == self._certificate.owner

    def sign(self, digest: bytes) -> bytes:
        """Ed25519 by the node key over a digest of 32 bytes: 64 bytes."""
        return self._key.sign(digest)

    def seconds_left(self) -> int:
        """How long the certificate is valid yet; 0 or less where it is not."""
        return self._certificate.expires_at - self._clock.wall_ms() // 1000

    def renew(self) -> bool:
        """Certify the node key anew where the owner key is here and it is time. Raises `EnvError`."""
        now = self._clock.wall_ms() // 1000
        life = self._certificate.expires_at - self._certificate.issued_at
        due = self.seconds_left() * 2 < life or self._certificate.issued_at > now + SKEW_S
        if not self.self_certified or self._owner is None or not due:
            return False
        fresh = _own_certificate(self._owner, self._key, self._clock, self._certificate.node_id)
        atomic_write(self._file, fresh.encode(), 0o644)
        self._certificate = fresh
        return True

    def adopt(self, data: bytes) -> bool:
        """Keep an owner's certificate; true where it is in force now, false where from the next start on.

        A change of owner or number waits: what is signed and advertised now is of the old one. Raises
        `Refused` for a certificate that is not valid now or not for this node's key, `EnvError`.
        """
        fresh = read_certificate(data, self._clock.wall_ms() // 1000)
        if fresh.signing != self._key.address:
            raise Refused(
                "identity",
                f"this certificate is for the key {fresh.signing}",
                f"certify this node's own: {self._key.address}",
            )
        if fresh.ref == self.ref and fresh.issued_at < self._certificate.issued_at:
            raise Refused("rollback", "this certificate is older than the one in force")
        atomic_write(self._file, fresh.encode(), 0o644)
        if fresh.ref != self.ref or fresh.owner != self.owner_addr:
            return False
        self._certificate = fresh
        return True


def _kept_key(secrets: Secrets, name: str, kind: Kind, rng: Rng) -> SigningKey:
    """The key among the secrets; a new one where there is none. Raises `EnvError` ``secret_failed``."""
    text = secrets.get(name)
    if text is None:
        key = new_key(kind, rng)
        secrets.put(name, key.text())
        return key
    try:
        return parse_key(text, kind)
    except LocalError as error:
        raise EnvError(
            "secret_failed", f"the secret {name} is no {kind} key", "restore it from a backup"
        ) from error


def _own_certificate(
    owner: SigningKey, key: SigningKey, clock: Clock, node_id: int = _OWN_NODE
) -> NodeCertificate:
    now = clock.wall_ms() // 1000
    return issue_certificate(
        owner.address,
        owner.sign,
        node_id=node_id,
        signing=key.address,
        issued_at=now,
        expires_at=now + OWN_LIFE_S,
    )


def _stored(file: Path) -> NodeCertificate | None:
    """The certificate on the disk, whether valid now or not; None where there is none."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise file_error(error, "read", file) from error
    try:
        data = os.read(handle, 2 * MAX_BYTES)
    except OSError as error:
        raise file_error(error, "read", file) from error
    finally:
        os.close(handle)
    try:
        return read_certificate(data, None)
    except Refused as error:
        raise LocalError(
            "directory_refused",
            f"{file} is no certificate that can be used ({error.fault.message})",
            "move it away, or import it again with `relaydesk operators certify --import`",
        ) from error
