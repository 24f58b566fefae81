"""A directory: which operators its keeper admits, and the records of nodes, signed by the directory's key.

Good for a day at most. Version and time only go forward, so that nobody can show an older one again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from relaydesk.core.relay.address import decode_address
from relaydesk.core.relay.directory import envelope as env
from relaydesk.core.relay.directory.envelope import Envelope, Signer
from relaydesk.core.relay.directory.record import NodeRecord, open_record
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.text import SafeText, safe_text

MAX_BYTES: Final = 4 * 1024 * 1024
LONGEST_S: Final = 86_400
MAX_OPERATORS: Final = 4096
MAX_RECORDS: Final = 4096
NAME_LIMIT: Final = 64
_WHAT: Final = "the directory"

Admission = Literal["active", "evicted"]
_NAMELESS: Final = SafeText("")


class _Operator(msgspec.Struct, frozen=True):
    owner: str
    status: Admission = "active"
    name: str = ""


class _Payload(msgspec.Struct, frozen=True):
    """Times are in seconds since 1970."""

    version: int
    issued_at: int
    expires_at: int
    operators: list[_Operator]
    records: list[Envelope]
    name: str = ""


_DECODER: Final = msgspec.json.Decoder(_Payload)


@dataclass(frozen=True, slots=True)
class Operator:
    """What the directory says of an operator; ``name`` is the keeper's word for it."""

    owner: str
    status: Admission = "active"
    name: SafeText = _NAMELESS


@dataclass(frozen=True, slots=True)
class Document:
    """A directory whose signature is good.

    ``operators`` has each owner once, ``records`` each node once (the newest). ``refused`` are sentences
    about records that did not count, at most a few.
    """

    key: str
    version: int
    issued_at: int
    expires_at: int
    name: SafeText
    operators: tuple[Operator, ...]
    records: tuple[NodeRecord, ...]
    refused: tuple[str, ...]
    digest: bytes


class Floor(msgspec.Struct, frozen=True):
    """The newest document seen of a key: nothing before it counts, across restarts."""

    version: int
    issued_at: int
    digest: bytes


def issue_document(
    key: str,
    sign: Signer,
    *,
    version: int,
    issued_at: int,
    expires_at: int,
    operators: Iterable[Operator],
    records: Iterable[NodeRecord],
    name: str = "",
) -> bytes:
    """A signed directory as JSON. Raises `Refused` where it would be larger than readers take."""
    payload = _Payload(
        version,
        issued_at,
        expires_at,
        [_Operator(each.owner, each.status, str(each.name)) for each in operators],
        [each.envelope for each in records],
        name,
    )
    _check(payload, issued_at)
    data = env.encode_envelope(env.seal(env.DIRECTORY, payload, key, sign))
    if len(data) > MAX_BYTES:
        raise Refused("full", f"{_WHAT} would be larger than {MAX_BYTES} bytes", "evict an operator")
    return data


def open_document(data: bytes, key: str, now_s: int) -> Document:
    """Check a directory: signed by ``key``, and valid at ``now_s``. Up to a second of work: off the loop.

    A record in it that is no good is left out and said in ``refused``; it spoils nothing else. Raises
    `Refused`.
    """
    envelope = env.parse_envelope(data, MAX_BYTES, _WHAT)
    if envelope.key != key:
        raise Refused("wrong_key", f"{_WHAT} is signed by another key than the one pinned")
    signed = env.unseal(envelope, env.DIRECTORY, _WHAT)
    payload = env.read_payload(signed.payload, _DECODER, _WHAT)
    _check(payload, now_s)
    records, refused = _records(payload.records, now_s)
    return Document(
        key,
        payload.version,
        payload.issued_at,
        payload.expires_at,
        safe_text(payload.name, NAME_LIMIT),
        _operators(payload.operators),
        records,
        refused,
        signed.digest,
    )


def check_forward(document: Document, floor: Floor | None) -> bool:
    """Whether ``document`` is newer than the newest seen; false where it is that one again.

    Raises `Refused`: rollback for an older one, conflict for another one of the same version.
    """
    if floor is None:
        return True
    if document.version == floor.version:
        if document.digest == floor.digest:
            return False
        raise Refused(
            "conflict",
            f"{_WHAT} shows two documents of version {floor.version}",
            "ask its keeper: its key is in two hands, or each node is shown another one",
        )
    if document.version < floor.version:
        raise Refused(
            "rollback",
            f"{_WHAT} shows version {document.version} after version {floor.version} was seen",
            "ask its keeper: an old copy was restored, or somebody shows one",
        )
    if document.issued_at < floor.issued_at:
        raise Refused(
            "rollback",
            f"version {document.version} of {_WHAT} was issued before version {floor.version}",
            "ask its keeper to check the clock",
        )
    return True


def floor_of(document: Document) -> Floor:
    """What a document sets for all that come after it."""
    return Floor(document.version, document.issued_at, document.digest)


def floor_of_bytes(data: bytes, key: str) -> Floor:
    """The floor that a document of one's own sets, whether it still holds or not. Raises `Refused`."""
    envelope = env.parse_envelope(data, MAX_BYTES, _WHAT)
    if envelope.key != key:
        raise Refused("wrong_key", f"{_WHAT} is signed by another key")
    signed = env.unseal(envelope, env.DIRECTORY, _WHAT)
    payload = env.read_payload(signed.payload, _DECODER, _WHAT)
    return Floor(payload.version, payload.issued_at, signed.digest)


def _check(payload: _Payload, now_s: int) -> None:
    env.check_number(payload.version, "version", _WHAT, least=1)
    env.check_window(payload.issued_at, payload.expires_at, now_s, LONGEST_S, _WHAT)
    if len(payload.operators) > MAX_OPERATORS or len(payload.records) > MAX_RECORDS:
        raise Refused(
            "too_large", f"{_WHAT} has more than {MAX_OPERATORS} operators or {MAX_RECORDS} records"
        )
    for each in payload.operators:
        try:
            decode_address(each.owner)
        except ValueError:
            raise Refused("malformed", f"{_WHAT} names an operator by an address that is none") from None


def _operators(given: Sequence[_Operator]) -> tuple[Operator, ...]:
    """Each owner once; where one stands twice, evicted counts."""
    found: dict[str, Operator] = {}
    for each in given:
        if each.owner not in found or each.status == "evicted":
            found[each.owner] = Operator(each.owner, each.status, safe_text(each.name, NAME_LIMIT))
    return tuple(found.values())


def _records(given: Sequence[Envelope], now_s: int) -> tuple[tuple[NodeRecord, ...], tuple[str, ...]]:
    """The newest record of each node. Records are told from each other by owner too: ids may collide."""
    newest: dict[tuple[NodeRef, str], NodeRecord] = {}
    refused: list[str] = []
    for each in given:
        try:
            record = open_record(each, now_s)
        except Refused as error:
            refused.append(error.fault.message)
            continue
        key = (record.ref, record.owner)
        standing = newest.get(key)
        if standing is None or record.rank > standing.rank:
            newest[key] = record
    return tuple(newest.values()), tuple(dict.fromkeys(refused))
