from __future__ import annotations

import datetime as dt
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.config.listen import Listen
from relaydesk.core.errors import FaultError
from relaydesk.core.tls.renewal import Tries
from relaydesk.engine.tls.acme.files import AcmeFiles, check_pair
from relaydesk.engine.tls.acme.order import Issued
from relaydesk.engine.tls.acme.plan import AcmePlan
from relaydesk.engine.tls.authority import private_pem
from tests.engine.tls.conftest import FakeClock

PLAN = AcmePlan(("hub.test",), "https://acme.test/dir", "", None, Listen("", 80), None)


def issued(*names: str, days: float = 90, start: float = 0, spoil: str = "") -> Issued:
    """What a server might give for ``names``."""
    key, issuer = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC).replace(microsecond=0) + dt.timedelta(days=start)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Test CA")])

    def make(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=5))
            .not_valid_after(now + dt.timedelta(days=days))
        )

    alternatives = x509.SubjectAlternativeName([x509.DNSName(each) for each in names or ("hub.test",)])
    leaf = make(x509.Name([]), key.public_key()).add_extension(alternatives, critical=True)
    signer = ec.generate_private_key(ec.SECP256R1()) if spoil == "signature" else issuer
    chain = [
        leaf.sign(signer, hashes.SHA256()),
        make(name, issuer.public_key()).sign(issuer, hashes.SHA256()),
    ]
    if spoil == "order":
        chain.reverse()
    pem = b"".join(each.public_bytes(serialization.Encoding.PEM) for each in chain)
    return Issued(private_pem(ec.generate_private_key(ec.SECP256R1()) if spoil == "key" else key), pem)


@pytest.fixture
def files(tmp_path: Path) -> AcmeFiles:
    made = AcmeFiles(tmp_path, PLAN, FakeClock())
    made.prepare()
    return made


def test_what_was_saved_is_loaded_again(files: AcmeFiles) -> None:
    assert files.load() is None
    kept = files.save(issued())
    found = files.load()
    assert found is not None
    assert (found.names, found.life) == (kept.names, kept.life) == (frozenset({"hub.test"}), kept.life)
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.directory.iterdir()} == {0o600}
    assert [path.name for path in files.directory.iterdir()] == ["certificate.pem"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (issued(spoil="key"), "do not belong together"),
        (issued(spoil="signature"), "do not belong together"),
        (issued(spoil="order"), "do not belong together"),
        (issued("other.test"), "without hub.test"),
        (issued(days=-0.002), "clock"),
        (issued(start=3), "clock"),
        (Issued(issued().key, b""), "do not belong together"),
        (Issued(issued().key, b"<html>"), "do not belong together"),
        (Issued(b"", issued().chain), "do not belong together"),
    ],
)
def test_a_bad_new_certificate_leaves_the_old_one_in_its_place(
    files: AcmeFiles, bad: Issued, said: str
) -> None:
    files.save(issued())
    before = (files.directory / "certificate.pem").read_bytes()
    with pytest.raises(FaultError, match=said) as caught:
        files.save(bad)
    assert caught.value.fault.code == "tls_failed"
    assert (files.directory / "certificate.pem").read_bytes() == before
    assert files.load() is not None


def test_a_crash_before_the_rename_leaves_the_old_one(files: AcmeFiles) -> None:
    kept = files.save(issued())
    (files.directory / "certificate.pem.new").write_bytes(b"half")
    assert (found := files.load()) is not None
    assert found.life == kept.life
    files.save(issued())
    assert not (files.directory / "certificate.pem.new").exists()


@pytest.mark.parametrize("spoil", ["mode", "cut", "empty"])
def test_a_spoilt_certificate_counts_as_none(files: AcmeFiles, spoil: str) -> None:
    files.save(issued())
    path = files.directory / "certificate.pem"
    if spoil == "mode":
        path.chmod(0o644)
    else:
        path.write_bytes(path.read_bytes()[: 300 if spoil == "cut" else 0])
    assert files.load() is None


def test_an_account_is_made_once(files: AcmeFiles) -> None:
    first = files.account()
    assert files.account().private_numbers() == first.private_numbers()
    assert stat.S_IMODE((files.directory / "account-key.pem").stat().st_mode) == 0o600


@pytest.mark.parametrize("spoil", ["bytes", "kind", "mode"])
def test_an_account_that_cannot_be_used_is_made_anew(files: AcmeFiles, spoil: str) -> None:
    first = files.account()
    path = files.directory / "account-key.pem"
    if spoil == "bytes":
        path.write_bytes(b"x")
    elif spoil == "mode":
        path.chmod(0o604)
    else:
        other = rsa.generate_private_key(65537, 2048)
        form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        path.write_bytes(other.private_bytes(serialization.Encoding.PEM, *form))
    second = files.account()
    assert second.private_numbers() != first.private_numbers()
    assert files.account().private_numbers() == second.private_numbers()


def test_another_server_has_files_of_its_own(tmp_path: Path, files: AcmeFiles) -> None:
    files.save(issued())
    other = AcmePlan(PLAN.names, "https://acme.test/other", "", None, PLAN.listen, None)
    assert AcmeFiles(tmp_path, other, FakeClock()).load() is None


def test_tries_are_kept(files: AcmeFiles) -> None:
    assert files.tries() == Tries()
    tries = Tries(3, 1, 2, 3, "plan")
    files.keep_tries(tries)
    assert files.tries() == tries
    for text in (b"", b"[]", b'{"failures": "x"}', b"[" * 50_000):
        (files.directory / "tries.json").write_bytes(text)
        assert files.tries() == Tries()


def test_a_directory_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "tls").write_text("in the way")
    files = AcmeFiles(tmp_path, PLAN, FakeClock())
    calls: list[Callable[[], object]] = [files.prepare, files.account, lambda: files.save(issued())]
    for call in calls:
        with pytest.raises(FaultError) as caught:
            call()
        assert caught.value.fault.code == "tls_failed"
        assert caught.value.fault.hint


@given(st.binary(max_size=200), st.integers(0, 3000))
def test_no_bytes_pass_for_a_pair(noise: bytes, at: int) -> None:
    good = _GOOD.key + _GOOD.chain
    spoilt = good[:at] + noise + good[at:]
    try:
        leaf = check_pair(spoilt)
    except FaultError:
        return
    assert leaf == x509.load_pem_x509_certificates(good)[0]


_GOOD = issued()
