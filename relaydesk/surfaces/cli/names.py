"""Nodes of the relay network by the names that directories give their operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from relaydesk.core.view.network import RelaysView, RelayView
from relaydesk.core.view.sections import Section
from relaydesk.surfaces.cli.attach import Node, read
from relaydesk.surfaces.control.routes import VIEWS

Named = Callable[[str], str]


def named_by(relays: Iterable[RelayView]) -> Named:
    """``ann 12:0`` for a reference whose operator has a name, else the reference alone.

    A name is the word of a directory's keeper and need not be unique: the number always stands beside it.
    """
    names = {each.ref: each.name for each in relays if each.name}
    return lambda ref: f"{names[ref]} {ref}" if ref in names else ref


def names_of(node: Node) -> Named:
    """By what ``node`` knows now."""
    found = read(node.get(f"{VIEWS}/relays"), Section[RelaysView]).value
    return named_by(found.relays if found is not None else ())
