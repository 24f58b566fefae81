"""Which route a request's path means, whatever base URL its sender was given.

People write base URLs with and without ``/v1``, with slashes at the end, or paste one that a client then
adds ``/v1`` or ``/api`` to. All of these are served where they ask, without a redirect: many clients do not
follow one with a body. Clients that can send no header have their key in the base URL, ``/k/<key>``. Paths
are compared as text in which only ``%2F`` and ``%25`` are still escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

BASES: Final = ("v1", "api")
# What stands before a key in a path.
KEY: Final = "k"
# Behind these the rest of the path is an id, whose slashes are its own.
_IDS: Final = ("v1", "models")


@dataclass(frozen=True, slots=True)
class Paths:
    """``prefix`` is where a proxy mounts the hub (``/relay``, empty for nowhere); ``bare`` the first segments
    that mean a route below ``/v1`` where nothing stands before them."""

    prefix: str = ""
    bare: frozenset[str] = frozenset()

    def canonical(self, path: str) -> str:
        """The path a route is known by; what names no route comes out as a path that names none.

        Doubled slashes and slashes at the end go. The prefix goes, as often as it stands there; without it
        everything is served too, because some proxies take it off. So does a key. Of a run of ``v1`` and
        ``api`` at the start the last counts. Idempotent.
        """
        return self.split(path)[0]

    def split(self, path: str) -> tuple[str, str]:
        """The canonical path, and the key in the path as it came, empty where there is none."""
        mount = [part for part in self.prefix.split("/") if part]
        key = base = ""
        while True:
            first, rest = _take(path)
            if mount and (after := _behind(path, mount)) is not None:
                path = after
            elif first == KEY and _take(rest)[0]:
                given, path = _take(rest)
                key = key or given
            else:
                break
        while first in BASES:
            base = first
            first, rest = _take(rest)
        if not base and first in self.bare:
            base = _IDS[0]
        tail = [rest.strip("/")] if (base, first) == _IDS else rest.split("/")
        return "/" + "/".join(filter(None, (base, first, *tail))), key


def bare_segments(routes: Iterable[str]) -> frozenset[str]:
    """The first segments of the routes below ``/v1``, without those that begin a route of their own."""
    below: set[str] = set()
    own: set[str] = set(BASES)
    for route in routes:
        first, rest = _take(route)
        if first == _IDS[0]:
            below.add(_take(rest)[0])
        else:
            own.add(first)
    return frozenset(below - own)


def _take(path: str) -> tuple[str, str]:
    """The first segment and what stands behind it."""
    first, _, rest = path.lstrip("/").partition("/")
    return first, rest


def _behind(path: str, mount: list[str]) -> str | None:
    """What stands behind the mount's segments, None where the path does not begin with them."""
    for part in mount:
        first, path = _take(path)
        if first != part:
            return None
    return path
