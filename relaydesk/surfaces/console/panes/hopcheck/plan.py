"""What is to be checked: the layers of one check, as an operator puts them together."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from relaydesk.config.kinds import base_url
from relaydesk.core.commands import CheckHop
from relaydesk.core.errors import LocalError
from relaydesk.core.view.hopcheck import HopCheckView, LayerKind

PUBLIC: Final = "public"
# As many as a node takes.
MOST_LAYERS: Final = 6
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
_PARSE: Final = base_url().parse
_OWN: Final[dict[str, str]] = {
    "loopback": "found: own door",
    "lan": "found: LAN",
    "via": "found",
}


class Entry(NamedTuple):
    """One layer as the wizard lists it. ``origin`` says where its URL comes from; ``mine``: an operator gave
    it here."""

    name: str
    url: str
    kind: LayerKind
    origin: str
    mine: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What an operator chose: ``url`` is where the world reaches the node (empty: what it advertises),
    ``via`` are layers between by name and URL, from the inside outwards."""

    url: str = ""
    via: tuple[tuple[str, str], ...] = ()
    long: bool = False

    def entries(self, view: HopCheckView) -> tuple[Entry, ...]:
        """Every layer of the check, from the inside outwards: what the node found, and what was given."""
        given = {name for name, _ in self.via}
        found = [each for each in view.suggested if each.kind != "public" and each.name not in given]
        own = [Entry(each.name, each.url, each.kind, _OWN[each.kind]) for each in found]
        between = [Entry(name, url, "via", "given here", mine=True) for name, url in self.via]
        if self.url:
            return (*own, *between, Entry(PUBLIC, self.url, "public", "given here", mine=True))
        advertised = next((each.url for each in view.suggested if each.kind == "public"), "")
        outer = [Entry(PUBLIC, advertised, "public", "advertised")] if advertised else []
        return (*own, *between, *outer)

    def target(self, view: HopCheckView) -> str:
        """The URL where the world reaches the node, empty where none is known."""
        return next((each.url for each in self.entries(view) if each.kind == "public"), "")

    def with_public(self, url: str) -> Plan:
        """Another public URL; empty is the advertised one again. Raises `LocalError`."""
        return replace(self, url=read_url(url) if url else "")

    def with_layer(self, name: str, url: str, view: HopCheckView, instead: str = "") -> Plan:
        """A layer between added at the outer end, or put in place of the one named ``instead``. Raises
        `LocalError` ``invalid_request``, one sentence for whoever typed it."""
        taken = {each.name for each in self.entries(view)} | {"loopback", "lan", PUBLIC}
        layer = (_read_name(name, taken - {instead}), read_url(url))
        if instead:
            return replace(self, via=tuple(layer if each[0] == instead else each for each in self.via))
        if len(self.via) >= MOST_LAYERS:
            raise LocalError(
                "invalid_request", f"{MOST_LAYERS} layers are the most there can be", "remove one first"
            )
        return replace(self, via=(*self.via, layer))

    def without(self, name: str) -> Plan:
        """Without a layer that was given; the public one goes back to what the node advertises."""
        if name == PUBLIC:
            return replace(self, url="")
        return replace(self, via=tuple(each for each in self.via if each[0] != name))

    def command(self) -> CheckHop:
        """What the node is asked to do."""
        return CheckHop(url=self.url, via=tuple(f"{name}={url}" for name, url in self.via), long=self.long)

    def cli(self, view: HopCheckView) -> str:
        """The command line that does the same."""
        words = ["relaydesk", "check-hop", shlex.quote(self.target(view) or "URL")]
        for name, url in self.via:
            words += ["--via", shlex.quote(f"{name}={url}")]
        return " ".join([*words, *(["--long"] if self.long else [])])


def read_url(text: str) -> str:
    """A layer's URL as it is asked. Raises `LocalError` ``invalid_request`` saying what is wrong with it."""
    text = text.strip()
    if "://" not in text:
        raise LocalError(
            "invalid_request",
            f"{text[:60]!r} has no http:// or https:// in front",
            "write a URL like https://node.example.org",
        )
    try:
        return _PARSE(text)
    except ValueError:
        raise LocalError(
            "invalid_request",
            f"{text[:60]!r} is no URL that can be checked",
            "write one like http://127.0.0.1:8080, without name, password, ? or #",
        ) from None


def _read_name(text: str, taken: set[str]) -> str:
    name = text.strip()
    if not _NAME.fullmatch(name):
        raise LocalError(
            "invalid_request",
            f"{name[:40]!r} is no name for a layer",
            "letters, digits, dots and dashes, like nginx or edge-1",
        )
    if name in taken:
        raise LocalError("invalid_request", f"there is a layer {name!r} already", "give it another name")
    return name
