"""The commands about operators, carried out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from relaydesk.core.commands import (
    BlockOperator,
    ForgetOperator,
    ImportCertificate,
    Outcome,
    ShowOperators,
    TrustOperator,
)
from relaydesk.core.errors import LocalError
from relaydesk.core.relay.address import decode_address
from relaydesk.core.relay.directory.certificate import operator_of
from relaydesk.core.relay.directory.merge import Entry, Known
from relaydesk.core.text import safe_text
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.relay.directory.book import Book
from relaydesk.engine.relay.directory.publisher import Publisher
from relaydesk.engine.relay.identity import Identity

# What one answer holds; a directory may list more than a terminal shows.
_SHOWN: Final = 1000
# Of operators that one name may mean.
_SAID: Final = 8


class OperatorCommands:
    """Handlers for what is decided about operators by hand, and for the node's certificate."""

    def __init__(self, book: Book, identity: Identity, publisher: Publisher) -> None:
        self._book = book
        self._identity = identity
        self._publisher = publisher

    def register(self, dispatcher: Dispatcher) -> None:
        """Offer all handlers."""
        dispatcher.on(ShowOperators, self.show)
        dispatcher.on(TrustOperator, self.trust)
        dispatcher.on(BlockOperator, self.block)
        dispatcher.on(ForgetOperator, self.forget)
        dispatcher.on(ImportCertificate, self.import_certificate)

    async def show(self, _command: ShowOperators) -> Outcome:
        identity = self._identity
        own = {
            "operator": str(identity.operator_id),
            "node": identity.node_id,
            "owner": identity.owner_addr,
            "signing": identity.signing_addr,
            "self_certified": identity.self_certified,
            "certificate_expires_ms": identity.certificate.expires_at * 1000,
        }
        operators = operators_of(self._book.entries(), self._book.known)
        value = {"own": own, "operators": operators[:_SHOWN], "more": max(0, len(operators) - _SHOWN)}
        return Outcome(ok=True, value=value)

    async def trust(self, command: TrustOperator) -> Outcome:
        owner = self._other(command.owner)
        await self._book.choose(owner, "trusted")
        return self._done(owner)

    async def block(self, command: BlockOperator) -> Outcome:
        owner = self._other(command.owner)
        await self._book.choose(owner, "blocked")
        return self._done(owner)

    async def forget(self, command: ForgetOperator) -> Outcome:
        owner = self._owner(command.owner)
        name = self._book.owners().get(owner, "")
        if not await self._book.forget(owner):
            raise LocalError(
                "not_found",
                "nothing was decided or remembered about that operator",
                "see `relaydesk operators list`",
                param="owner",
            )
        return self._done(owner, name)

    async def import_certificate(self, command: ImportCertificate) -> Outcome:
        now = await asyncio.to_thread(self._identity.adopt, command.certificate.encode())
        if now:
            self._publisher.changed()
        return Outcome(ok=True, value={"in_force": now})

    def _other(self, text: str) -> str:
        owner = self._owner(text)
        if owner == self._identity.owner_addr:
            raise LocalError("invalid_request", "that is this node's own owner", param="owner")
        return owner

    def _owner(self, text: str) -> str:
        """The owner that ``text`` means: its address, its operator's id, or a name that only one has."""
        try:
            decode_address(text)
        except ValueError:
            pass
        else:
            return text
        names = self._book.owners()
        found = [owner for owner in names if str(operator_of(owner)) == text]
        found = found or [owner for owner, name in names.items() if name.casefold() == text.casefold() != ""]
        said = repr(str(safe_text(text, 64)))
        if len(found) > 1:
            ids = ", ".join(str(operator_of(owner)) for owner in found[:_SAID])
            raise LocalError(
                "invalid_request",
                f"{len(found)} operators are called {said}",
                f"give an id: {ids}",
                param="owner",
            )
        if not found:
            raise LocalError(
                "invalid_request",
                f"no operator is known as {said}",
                "give an id or a name that `relaydesk operators list` shows, or an owner's address of 58 "
                "characters",
                param="owner",
            )
        return found[0]

    def _done(self, owner: str, name: str = "") -> Outcome:
        nodes = sum(1 for each in self._book.nodes() if each.owner == owner)
        name = name or self._book.owners().get(owner, "")
        value = {"owner": owner, "operator": str(operator_of(owner)), "name": name, "eligible": nodes}
        return Outcome(ok=True, value=value)


def operators_of(entries: Sequence[Entry], known: Known) -> list[dict[str, Any]]:
    """Operators with their nodes as JSON; those decided about by hand are listed without nodes too."""
    found: dict[str, dict[str, Any]] = {}

    def operator(owner: str) -> dict[str, Any]:
        choice = "trusted" if owner in known.trusted else "blocked" if owner in known.blocked else ""
        fresh = {
            "operator": str(operator_of(owner)),
            "owner": owner,
            "name": "",
            "choice": choice,
            "nodes": [],
        }
        return found.setdefault(owner, fresh)

    for entry in entries:
        row = operator(entry.owner)
        row["name"] = str(entry.name)
        row["nodes"].append(
            {
                "node": entry.ref.node,
                "base_url": str(entry.base_url),
                "standing": entry.standing,
                "why": str(entry.why),
                "staging": entry.staging,
                "version": entry.version,
                "until_ms": entry.until_s * 1000,
                "directories": list(entry.sources),
            }
        )
    for owner in sorted(known.trusted | known.blocked):
        operator(owner)
    return list(found.values())
