from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.relay.directory.document import open_document
from relaydesk.core.relay.directory.record import read_record
from relaydesk.engine.relay.directory.shelf import Shelf, stamp
from tests.support.clock import FakeRng
from tests.support.directory_world import ANN, BOB, DAY, EVE, NOW, certificate, record


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    made = Shelf(tmp_path / "directory")
    made.create("mine", FakeRng())
    return made


def put(shelf: Shelf, made: dict[str, str]) -> None:
    shelf.put(read_record(json.dumps(made).encode(), NOW))


def test_it_is_made_once_and_its_key_is_a_secret(shelf: Shelf) -> None:
    assert stat.S_IMODE((shelf.folder / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE(shelf.folder.stat().st_mode) == 0o700
    key = shelf.key()
    with pytest.raises(LocalError) as caught:
        shelf.create("again", FakeRng("other"))
    assert caught.value.fault.code == "conflict"
    assert shelf.key() == key


def test_none_is_a_sentence(tmp_path: Path) -> None:
    for call in (Shelf(tmp_path).key, lambda: Shelf(tmp_path).sign(NOW)):
        with pytest.raises(LocalError) as caught:
            call()
        assert "directory init" in caught.value.fault.sentence


def test_what_is_signed(shelf: Shelf) -> None:
    shelf.admit(ANN.address, "active", "ann\x1b[2J")
    shelf.admit(BOB.address, "active")
    shelf.admit(BOB.address, "evicted")
    for each in (record(ANN), record(ANN, 1), record(BOB), record(EVE)):
        put(shelf, each)
    ends = certificate(ANN, 2, expires_at=NOW + 5)
    put(shelf, record(ANN, 2, cert=ends))
    found = open_document(shelf.sign(NOW + 5), shelf.key().address, NOW + 5)
    assert found.name == "mine"
    assert [(each.owner, each.status, each.name) for each in found.operators] == [
        (ANN.address, "active", "ann [2J".replace(" ", "")),
        (BOB.address, "evicted", ""),
    ]
    assert [each.ref for each in found.records] == [(ANN.operator, 0), (ANN.operator, 1)]
    assert found.expires_at - found.issued_at == DAY
    assert shelf.document() == shelf.document_file.read_bytes()


def test_versions_only_go_forward_whatever_the_clock_does(shelf: Shelf) -> None:
    address = shelf.key().address
    seen = []
    for now in (NOW, NOW, NOW - 500, NOW + 9):
        data = shelf.sign(now)
        found = open_document(data, address, NOW + 10)
        seen.append((found.version, found.issued_at))
    assert seen == sorted(seen)
    assert len({version for version, _ in seen}) == 4
    # Even where the last document is lost.
    shelf.document_file.unlink()
    assert open_document(shelf.sign(NOW + 20), address, NOW + 20).version > seen[-1][0]


def test_a_damaged_file_is_a_sentence(shelf: Shelf) -> None:
    (shelf.folder / "directory.json").write_text('{"operators": 5}')
    with pytest.raises(EnvError) as caught:
        shelf.sign(NOW)
    assert "directory.json" in caught.value.fault.sentence


def test_a_stray_file_among_the_records_is_passed_over(shelf: Shelf) -> None:
    shelf.admit(ANN.address, "active")
    put(shelf, record(ANN))
    (shelf.folder / "records" / "x.json").write_text("{}")
    assert len(shelf.read(NOW).records) == 1


def test_a_stamp_changes_with_the_files(shelf: Shelf) -> None:
    before = stamp(shelf.watched())
    assert stamp(shelf.watched()) == before
    shelf.admit(ANN.address, "active")
    after = stamp(shelf.watched())
    assert after != before
    shelf.sign(NOW)
    assert stamp(shelf.watched()) != after
