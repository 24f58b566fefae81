from __future__ import annotations

import json
from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.relay.directory.certificate import issue_certificate, read_certificate
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.engine.relay.identity import NODE_SECRET, OWN_LIFE_S, OWNER_SECRET, Identity
from relaydesk.store.secrets import FileSecrets
from tests.support.clock import FakeClock, FakeRng
from tests.support.directory_world import ANN, BOB, DAY, Key, certificate


def opened(state: Path, clock: FakeClock, seed: str = "") -> Identity:
    secrets = FileSecrets(state)
    secrets.prepare()
    return Identity.open(secrets, state / "network", clock, FakeRng(seed))


def given(identity: Identity, owner: Key = ANN, node: int = 3, **changes: object) -> bytes:
    """A certificate by an owner elsewhere, for this node's key."""
    payload = {"signing": identity.signing_addr, "node_id": node, **changes}
    return json.dumps(certificate(owner, **payload)).encode()  # type: ignore[arg-type]


def test_a_first_start_certifies_itself_and_a_second_is_the_same(tmp_path: Path) -> None:
    clock = FakeClock()
    one = opened(tmp_path, clock)
    assert one.self_certified
    assert one.node_id == 0
    assert one.owner_addr != one.signing_addr
    assert one.certificate.signing == one.signing_addr
    assert one.seconds_left() == OWN_LIFE_S
    two = opened(tmp_path, clock, "other")
    assert (two.ref, two.signing_addr, two.certificate) == (one.ref, one.signing_addr, one.certificate)


def test_what_it_signs_is_checked_by_another_library(tmp_path: Path) -> None:
    identity = opened(tmp_path, FakeClock())
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(identity.seed)
    key.public_key().verify(identity.sign(b"x" * 32), b"x" * 32)


def test_nothing_shows_a_secret(tmp_path: Path) -> None:
    identity = opened(tmp_path, FakeClock())
    assert identity.seed.hex() not in repr(identity)
    assert repr(identity.seed) not in repr(vars(identity))


def test_its_own_certificate_is_renewed_at_half_its_life(tmp_path: Path) -> None:
    clock = FakeClock()
    identity = opened(tmp_path, clock)
    first = identity.certificate
    assert not identity.renew()
    clock.advance(OWN_LIFE_S / 2 + 1)
    assert identity.renew()
    assert identity.certificate.expires_at == first.expires_at + OWN_LIFE_S // 2 + 1
    assert (identity.ref, identity.signing_addr) == (first.ref, first.signing)
    clock.advance(OWN_LIFE_S * 3)
    assert opened(tmp_path, clock).seconds_left() == OWN_LIFE_S


def test_an_imported_certificate_of_another_owner_counts_from_the_next_start(tmp_path: Path) -> None:
    clock = FakeClock()
    identity = opened(tmp_path, clock)
    before = identity.ref
    assert identity.adopt(given(identity)) is False
    assert identity.ref == before
    again = opened(tmp_path, clock)
    assert (again.owner_addr, again.node_id, again.operator_id) == (ANN.address, 3, ANN.operator)
    assert again.signing_addr == identity.signing_addr
    assert not again.self_certified
    # A renewal by the same owner is in force at once.
    assert again.adopt(given(again, issued_at=clock.wall_ms() // 1000)) is True
    assert again.seconds_left() == 30 * DAY
    with pytest.raises(Refused) as caught:
        again.adopt(given(again))
    assert caught.value.kind == "rollback"


def test_an_imported_certificate_is_never_renewed_here(tmp_path: Path) -> None:
    clock = FakeClock()
    identity = opened(tmp_path, clock)
    identity.adopt(given(identity))
    clock.advance(40 * DAY)
    again = opened(tmp_path, clock)
    assert again.owner_addr == ANN.address
    assert again.seconds_left() < 0
    assert not again.renew()


@pytest.mark.parametrize("kind", ["another key", "not by its owner", "expired", "not json"])
def test_certificates_that_are_not_taken(tmp_path: Path, kind: str) -> None:
    clock = FakeClock()
    identity = opened(tmp_path, clock)
    data = {
        "another key": json.dumps(certificate(ANN)).encode(),
        "not by its owner": given(identity, signer=BOB),
        "expired": given(identity, expires_at=clock.wall_ms() // 1000 - 5),
        "not json": b"[1",
    }[kind]
    with pytest.raises(Refused):
        identity.adopt(data)
    assert opened(tmp_path, clock).certificate == identity.certificate


def test_a_certificate_for_another_key_stops_the_start_with_a_sentence(tmp_path: Path) -> None:
    clock = FakeClock()
    identity = opened(tmp_path, clock)
    identity.adopt(given(identity))
    (tmp_path / "secrets" / NODE_SECRET).unlink()
    with pytest.raises(LocalError) as caught:
        opened(tmp_path, clock, "new key")
    assert "certify" in caught.value.fault.sentence


def test_an_own_certificate_follows_a_lost_node_key(tmp_path: Path) -> None:
    clock = FakeClock()
    before = opened(tmp_path, clock)
    (tmp_path / "secrets" / NODE_SECRET).unlink()
    after = opened(tmp_path, clock, "new key")
    assert after.owner_addr == before.owner_addr
    assert after.certificate.signing == after.signing_addr != before.signing_addr


def test_damaged_files_are_sentences(tmp_path: Path) -> None:
    clock = FakeClock()
    opened(tmp_path, clock)
    (tmp_path / "network" / "certificate.json").write_bytes(b"{}")
    with pytest.raises(LocalError) as caught:
        opened(tmp_path, clock)
    assert caught.value.fault.code == "directory_refused"
    (tmp_path / "network" / "certificate.json").unlink()
    (tmp_path / "secrets" / OWNER_SECRET).write_text("nonsense")
    with pytest.raises(EnvError) as broken:
        opened(tmp_path, clock)
    assert broken.value.fault.code == "secret_failed"


def test_the_certificate_is_as_the_design_says(tmp_path: Path) -> None:
    made = issue_certificate(
        BOB.address,
        BOB.private.sign,
        node_id=5,
        signing=ANN.address,
        issued_at=1_700_000_000,
        expires_at=1_700_086_400,
    )
    payload = {
        "owner": BOB.address,
        "node_id": 5,
        "signing": ANN.address,
        "issued_at": 1_700_000_000,
        "expires_at": 1_700_086_400,
    }
    data = json.dumps(payload, separators=(",", ":")).encode()
    assert json.loads(made.encode()) == BOB.seal("certificate", data)
    assert read_certificate(made.encode(), 1_700_000_001).ref == (BOB.operator, 5)
