"""The palette over the table of actions: what cannot be done now stays in the list and says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.text import Text
from textual.command import DiscoveryHit, Hit, Hits, Provider

from relaydesk.surfaces.console.action import key_name
from relaydesk.surfaces.console.chrome import Offer

if TYPE_CHECKING:
    from relaydesk.surfaces.console.app import ConsoleApp


class Actions(Provider):
    """Every action of this moment."""

    async def discover(self) -> Hits:
        for offer in self._offers():
            # `Text`, not `str`: a string here would be read as markup.
            yield DiscoveryHit(Text(offer.action.title), self._run(offer), offer.action.title, _about(offer))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for offer in self._offers():
            title = offer.action.title
            score = matcher.match(f"{title} {offer.action.help}")
            if score > 0:
                yield Hit(score, Text(title), self._run(offer), title, _about(offer))

    def _offers(self) -> tuple[Offer, ...]:
        app: ConsoleApp = self.app  # type: ignore[assignment]
        return app.offers()

    def _run(self, offer: Offer) -> Callable[[], None]:
        app: ConsoleApp = self.app  # type: ignore[assignment]
        return lambda: app.action_run(offer.action.id)


def _about(offer: Offer) -> str:
    """The second line of an entry. Literals of ours only: Textual reads it as markup."""
    keys = f"{key_name(offer.keys)}  " if offer.keys else ""
    if offer.reason:
        return _literal(f"{keys}not now: {offer.reason}")
    cli = f"  = {offer.action.cli}" if offer.action.cli else ""
    return _literal(f"{keys}{offer.action.help}{cli}")


def _literal(text: str) -> str:
    """Brackets are all that markup is made of."""
    return text.replace("[", "(").replace("]", ")")
