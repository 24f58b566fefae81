"""Where this node stands in the relay network, in sentences for people."""

from __future__ import annotations

from typing import Literal

import msgspec

from relaydesk.core.view.network import NetworkView

State = Literal["off", "closed", "unread", "unlisted", "listed"]


class Presence(msgspec.Struct, frozen=True):
    """``message`` is a sentence without a full stop, ``hint`` the next step, empty where none is needed.

    ``unread``: directories are pinned, and there is one of which nothing is known now. ``unlisted``: no
    directory lists this node.
    """

    state: State
    message: str
    hint: str = ""


def presence(view: NetworkView) -> Presence:
    """Of a network section that is ready."""
    if not view.on:
        return Presence("off", "the relay network is off", "set RELAY_NETWORK=on and start the node anew")
    if view.problem:
        return Presence(
            "closed", f"the relay network stays closed: {view.problem}", "then start the node anew"
        )
    for each in view.directories:
        if each.problem and not each.version:
            return Presence("unread", f"the directory at {each.source} is not used: {each.problem}")
    if view.unpublished:
        return Presence("unlisted", f"no directory lists this node: {view.unpublished}")
    return Presence("listed", f"this node is listed as {view.public_url}")


def nobody(view: NetworkView) -> Presence:
    """Why no node of the network is known, where none is."""
    found = presence(view)
    if found.state in ("off", "closed", "unread"):
        return found
    if not view.directories:
        return Presence(
            "unlisted",
            "no directory is pinned, so that no node is known",
            "set RELAY_DIRECTORIES to ADDRESS@URL, as its keeper gives it, and start the node anew",
        )
    if not any(each.version for each in view.directories):
        return Presence("unread", "the directories have not been read yet", "look again in a moment")
    return Presence(
        "unlisted",
        "the directories that are pinned list no node",
        "a keeper admits operators with `relaydesk directory admit`; their nodes list themselves where "
        "RELAY_PUBLIC_URL is set",
    )
