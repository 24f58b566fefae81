"""The one interface: what every front needs of a node, and all it needs.

``LocalNode`` (engine/local.py) is a node in this process, ``RemoteNode`` (surfaces/control/client.py) one
behind a control socket, ``ScriptedNode`` (scripted.py) a recording. A front cannot tell which it has; one
contract suite (tests/contract) holds all three to the same behaviour.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Protocol

from relaydesk.core.commands import Access, Command, Outcome
from relaydesk.core.view.node_view import NodeView, Update


class WatchClosedError(Exception):
    """A watch ended although the watcher did not close it: it lagged, or the node went away.

    ``reason`` is ``lagged``, ``stopped`` or ``lost``. Normal: watch again, with back-off, and rebuild from
    the first update, which is a full snapshot.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the watch was closed: {reason}")
        self.reason = reason


class NodeApi(Protocol):
    """A node as a front sees it."""

    @property
    def access(self) -> Access:
        """What this front may do; a WRITE command on a READ attachment is refused by the node's side."""
        ...

    async def snapshot(self) -> NodeView:
        """Everything known now. Raises `EnvError` ``no_node`` where the node cannot be reached."""
        ...

    def watch(self, topics: Collection[str] | None = None) -> AsyncIterator[Update]:
        """Updates of the sections named (None: all), the first with all of them, until closed.

        Ends with `WatchClosedError`; a watcher that does not keep up is closed rather than fed stale data.
        """
        ...

    async def call(self, command: Command) -> Outcome:
        """Do something. What went wrong is in the outcome; only a lost node raises (``no_node``)."""
        ...
