"""Several directories and the operator's own word become one answer: who is admitted, and who is not and why.

An operator is admitted where a pinned directory admits it and none evicts it, or where it is trusted by
hand. Whoever is blocked by hand, evicted, or in conflict with somebody known longer is not; what nobody
admits is unknown. Only the admitted may be used (design §6).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from relaydesk.core.relay.directory.base_url import check_base_url
from relaydesk.core.relay.directory.certificate import operator_of
from relaydesk.core.relay.directory.document import Document
from relaydesk.core.relay.directory.record import NodeRecord, Rank
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.core.text import SafeText, safe_text

Standing = Literal["admitted", "unknown", "blocked", "disabled"]


@dataclass(frozen=True, slots=True)
class Seen:
    """The newest record of a node that was ever seen."""

    rank: Rank
    digest: bytes


@dataclass(frozen=True, slots=True)
class Known:
    """What earlier merges found out and the operator decided.

    ``owners``: the owner known first for each operator id. ``trusted`` and ``blocked`` are owners.
    """

    owners: Mapping[int, str] = field(default_factory=dict)
    seen: Mapping[NodeRef, Seen] = field(default_factory=dict)
    trusted: frozenset[str] = frozenset()
    blocked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Entry:
    """A node as the directories list it. ``why`` says why it is not admitted, empty where it is.

    ``sources`` are the keys of the directories that list it; ``until_s`` is when what admits it ends
    (seconds since 1970): its certificate's end, or that of the last directory that vouches for it.
    """

    ref: NodeRef
    owner: str
    signing: str
    base_url: SafeText
    staging: bool
    standing: Standing
    why: SafeText
    name: SafeText
    sources: tuple[str, ...]
    version: int
    until_s: int

    def listed(self) -> Listed:
        """As the rest of the node takes it."""
        return Listed(self.ref, self.owner, self.signing, str(self.base_url), self.staging, self.name)


@dataclass(frozen=True, slots=True)
class Clash:
    """Something that two claim: ``subject`` is what it is about, for an alert."""

    subject: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Merged:
    """``entries`` in the order of their references; at most one admitted for each.

    ``owners`` and ``seen`` are what to remember beside what was `Known`.
    """

    entries: tuple[Entry, ...]
    clashes: tuple[Clash, ...]
    owners: Mapping[int, str]
    seen: Mapping[NodeRef, Seen]


def merge(documents: Sequence[Document], known: Known, *, allow_private: bool) -> Merged:
    """Merge directories, the one pinned first in front. All of them must be valid now."""
    return _Merge(documents, known, allow_private).run()


class _Merge:
    def __init__(self, documents: Sequence[Document], known: Known, allow_private: bool) -> None:
        self._documents = documents
        self._known = known
        self._allow_private = allow_private
        self._names: dict[str, SafeText] = {}
        self._admitted_until: dict[str, int] = {}
        self._evicted: set[str] = set()
        self._clashes: dict[str, Clash] = {}
        self._owners: dict[int, str] = {}
        self._seen: dict[NodeRef, Seen] = {}

    def run(self) -> Merged:
        self._admissions()
        entries = [entry for group in self._groups() if (entry := self._entry(*group)) is not None]
        entries.sort(key=lambda each: (each.ref, each.standing != "admitted", each.owner))
        return Merged(tuple(entries), tuple(self._clashes.values()), self._owners, self._seen)

    def _admissions(self) -> None:
        for document in self._documents:
            for operator in document.operators:
                self._names.setdefault(operator.owner, operator.name)
                if operator.status == "evicted":
                    self._evicted.add(operator.owner)
                else:
                    until = max(document.expires_at, self._admitted_until.get(operator.owner, 0))
                    self._admitted_until[operator.owner] = until
        # The order of the documents, and within one of its keeper, decides between two that are both new.
        for owner in (*sorted(self._known.trusted), *self._admitted_until):
            if self._refusal(owner) is None:
                self._claim(owner)

    def _claim(self, owner: str) -> None:
        """Remember the owner known first for its id; whoever comes second is in conflict for good."""
        operator = operator_of(owner)
        first = self._known.owners.get(operator) or self._owners.get(operator)
        if first is None:
            self._owners[operator] = owner
        elif first != owner:
            self._clash(
                f"operator {operator}",
                f"a second owner ({owner[:8]}…) has the id of operator {operator}, known as {first[:8]}…",
                "the one known first stays; if the newcomer is the right one, `relaydesk operators forget` "
                "the other",
            )

    def _groups(self) -> Iterable[tuple[tuple[NodeRef, str], list[tuple[NodeRecord, str]]]]:
        """Records of one node by one owner, each with the key of the directory that shows it."""
        found: dict[tuple[NodeRef, str], list[tuple[NodeRecord, str]]] = {}
        for document in self._documents:
            for record in document.records:
                found.setdefault((record.ref, record.owner), []).append((record, document.key))
        return found.items()

    def _entry(self, key: tuple[NodeRef, str], shown: list[tuple[NodeRecord, str]]) -> Entry | None:
        """What a node comes to; None where it is not to be shown: evicted, or withdrawn by its owner."""
        ref, owner = key
        if owner in self._evicted and owner not in self._known.trusted | self._known.blocked:
            return None
        best = max(shown, key=lambda each: each[0].rank)[0]
        standing, why = self._refusal(owner) or ("admitted", "")
        if standing == "admitted":
            first = self._known.owners.get(ref.operator) or self._owners.get(ref.operator)
            if first != owner:
                standing, why = "disabled", "another owner with the same id was known first"
        if standing == "admitted":
            best, why = self._newest(ref, [record for record, _ in shown])
            standing = "disabled" if why else "admitted"
        if best.status == "retired":
            return None
        if standing == "admitted":
            try:
                check_base_url(best.base_url, allow_private=self._allow_private)
            except Refused as error:
                standing, why = "disabled", error.fault.message
        return self._made(best, standing, why, tuple(dict.fromkeys(source for _, source in shown)))

    def _refusal(self, owner: str) -> tuple[Standing, str] | None:
        """Why an owner is not admitted; None where it is."""
        if owner in self._known.blocked:
            return "blocked", "blocked here by hand"
        if owner in self._known.trusted:
            return None
        if owner in self._evicted:
            return "disabled", "evicted by a directory"
        if owner not in self._admitted_until:
            return "unknown", "no pinned directory admits its operator"
        return None

    def _newest(self, ref: NodeRef, records: Sequence[NodeRecord]) -> tuple[NodeRecord, str]:
        """The record that counts, and why none does where that is so."""
        rank = max(each.rank for each in records)
        newest = [each for each in records if each.rank == rank]
        seen = self._known.seen.get(ref)
        if seen is not None and rank < seen.rank:
            return newest[0], "only older records of it are shown than were seen before"
        digests = {each.digest for each in newest}
        known = seen is not None and rank == seen.rank
        if len(digests) > 1 or (known and seen is not None and seen.digest not in digests):
            self._clash(
                f"node {ref}",
                f"two different records of node {ref} have the same version",
                "the one known first stays; its operator should publish a new version",
            )
        if known and seen is not None:
            chosen = [each for each in newest if each.digest == seen.digest]
            if not chosen:
                return newest[0], "its record is not the one that was known first"
            return chosen[0], ""
        self._seen[ref] = Seen(rank, newest[0].digest)
        return newest[0], ""

    def _made(self, record: NodeRecord, standing: Standing, why: str, sources: tuple[str, ...]) -> Entry:
        until = record.certificate.expires_at
        if record.owner not in self._known.trusted:
            until = min(until, self._admitted_until.get(record.owner, 0))
        shown = [each.expires_at for each in self._documents if each.key in sources]
        return Entry(
            record.ref,
            record.owner,
            record.certificate.signing,
            safe_text(record.base_url),
            record.staging,
            standing,
            safe_text(why),
            self._names.get(record.owner, SafeText("")),
            sources,
            record.version,
            min(until, max(shown)),
        )

    def _clash(self, subject: str, message: str, hint: str) -> None:
        self._clashes.setdefault(subject, Clash(subject, message, hint))
