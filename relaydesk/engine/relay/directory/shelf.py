"""A directory that is kept here, as files of one folder: its key, whom it admits, records, the document.

``key`` is secret; ``directory.json`` is what its keeper decided; ``records/`` what nodes handed in;
``document.json`` the signed directory, which any web server may give out. All of it blocks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.ports import Rng
from relaydesk.core.relay.directory.document import (
    LONGEST_S,
    MAX_OPERATORS,
    NAME_LIMIT,
    Admission,
    Operator,
    floor_of_bytes,
    issue_document,
)
from relaydesk.core.relay.directory.record import NodeRecord, read_record
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.relay.directory.signing_key import SigningKey, new_key, parse_key
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.text import safe_text
from relaydesk.engine.relay.directory.fetch import read_file
from relaydesk.store.files import atomic_write, file_error, private_dir

_KEY: Final = "key"
_DECIDED: Final = "directory.json"
_DOCUMENT: Final = "document.json"
_RECORDS: Final = "records"
_LOCK: Final = "lock"


class _Admitted(msgspec.Struct, frozen=True):
    owner: str
    status: Admission = "active"
    name: str = ""


class _Decided(msgspec.Struct, frozen=True):
    name: str = ""
    operators: list[_Admitted] = []


@dataclass(frozen=True, slots=True)
class Held:
    """What a folder holds: the keeper's decisions, and the records that are valid at the time of reading."""

    name: str
    operators: tuple[Operator, ...]
    records: tuple[NodeRecord, ...]


class Shelf:
    """One folder. Whoever writes holds its lock, so that a verb and a running keeper do not meet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def document_file(self) -> Path:
        """The signed directory."""
        return self.folder / _DOCUMENT

    def watched(self) -> tuple[Path, ...]:
        """What another process changes: the decisions, and the document where a verb signed."""
        return (self.folder / _DECIDED, self.document_file)

    def exists(self) -> bool:
        """Whether a directory is kept here."""
        return (self.folder / _KEY).exists()

    def create(self, name: str, rng: Rng) -> SigningKey:
        """Begin a directory. Raises `LocalError` ``conflict`` where there is one, `EnvError`."""
        private_dir(self.folder)
        with self._locked():
            if self.exists():
                raise LocalError(
                    "conflict", f"a directory is kept in {self.folder} already", "choose another folder"
                )
            self._make_records()
            self._decide(_Decided(str(safe_text(name, NAME_LIMIT)) if name else "", []))
            key = new_key("directory", rng)
            atomic_write(self.folder / _KEY, key.text().encode() + b"\n")
        return key

    def key(self) -> SigningKey:
        """The directory's key. Raises `LocalError` ``not_found`` where no directory is kept here."""
        try:
            text = (self.folder / _KEY).read_text("ascii", "replace")
        except FileNotFoundError:
            raise LocalError(
                "not_found",
                f"no directory is kept in {self.folder}",
                "begin one with `relaydesk directory init`",
            ) from None
        except OSError as error:
            raise file_error(error, "read", self.folder / _KEY) from error
        return parse_key(text, "directory")

    def admit(self, owner: str, status: Admission, name: str = "") -> None:
        """Admit an operator, or evict one. Raises `Refused` full, `LocalError`, `EnvError`."""
        self.key()
        with self._locked():
            decided = self._decided()
            standing = {each.owner: each for each in decided.operators}
            given = str(safe_text(name, NAME_LIMIT)) if name else ""
            kept = standing[owner].name if owner in standing else ""
            standing[owner] = _Admitted(owner, status, given or kept)
            if len(standing) > MAX_OPERATORS:
                raise Refused("full", f"a directory has at most {MAX_OPERATORS} operators")
            self._decide(_Decided(decided.name, list(standing.values())))

    def put(self, record: NodeRecord) -> None:
        """Keep a node's record in place of its last one. Raises `EnvError`."""
        with self._locked():
            self._make_records()
            atomic_write(self._record_file(record.ref), record.encode())

    def read(self, now_s: int) -> Held:
        """Everything that is good at ``now_s``; others of its records are passed over."""
        decided = self._decided()
        operators = tuple(
            Operator(each.owner, each.status, safe_text(each.name, NAME_LIMIT)) for each in decided.operators
        )
        active = {each.owner for each in operators if each.status == "active"}
        records = tuple(record for record in self._records(now_s) if record.owner in active)
        return Held(decided.name, operators, records)

    def document(self) -> bytes | None:
        """The signed directory as it was signed last; None before the first time."""
        return read_file(self.document_file) if self.document_file.exists() else None

    def sign(self, now_s: int, life_s: int = LONGEST_S) -> bytes:
        """Sign what is held, as a new version. Raises `Refused` full, `LocalError`, `EnvError`."""
        key = self.key()
        with self._locked():
            last = self.document()
            floor = floor_of_bytes(last, key.address) if last is not None else None
            held = self.read(now_s)
            # Seconds since 1970 are above every version given before, even where the last document is lost.
            version = max(now_s, floor.version + 1 if floor is not None else 1)
            issued_at = max(now_s, floor.issued_at if floor is not None else 0)
            data = issue_document(
                key.address,
                key.sign,
                version=version,
                issued_at=issued_at,
                expires_at=issued_at + min(life_s, LONGEST_S),
                operators=held.operators,
                records=held.records,
                name=held.name,
            )
            atomic_write(self.document_file, data, 0o644)
        return data

    def _records(self, now_s: int) -> Iterator[NodeRecord]:
        folder = self.folder / _RECORDS
        for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
            try:
                yield read_record(read_file(path), now_s)
            except Refused:
                continue  # expired meanwhile, or not ours

    def _record_file(self, ref: NodeRef) -> Path:
        return self.folder / _RECORDS / f"{ref.operator}-{ref.node}.json"

    def _make_records(self) -> None:
        private_dir(self.folder / _RECORDS)

    def _decided(self) -> _Decided:
        path = self.folder / _DECIDED
        try:
            return msgspec.json.decode(read_file(path), type=_Decided)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise EnvError(
                "storage_failed", f"{path} cannot be read ({safe_text(str(error), 120)})", "correct it"
            ) from error

    def _decide(self, decided: _Decided) -> None:
        data = msgspec.json.format(msgspec.json.encode(decided), indent=2)
        atomic_write(self.folder / _DECIDED, data + b"\n", 0o644)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        path = self.folder / _LOCK
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise file_error(error, "lock", path) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def stamp(paths: Iterable[Path]) -> tuple[tuple[int, int, int], ...]:
    """What changes whenever one of these files does. Blocks."""
    found = []
    for path in paths:
        try:
            seen = path.stat()
            found.append((seen.st_ino, seen.st_mtime_ns, seen.st_size))
        except OSError:
            found.append((0, 0, 0))
    return tuple(found)
