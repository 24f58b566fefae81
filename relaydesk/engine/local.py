"""``LocalNode``: the node of this process as a `NodeApi`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection

from relaydesk.core.codec import fault_view
from relaydesk.core.commands import Access, Command, Outcome, read_only_fault
from relaydesk.core.view.node_view import NodeView, Update
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.projector import Projector
from relaydesk.engine.watch import WatchHub


class LocalNode:
    """A node in this process. ``access`` READ refuses every command that changes something."""

    def __init__(
        self,
        projector: Projector,
        watch_hub: WatchHub,
        dispatcher: Dispatcher,
        access: Access = Access.WRITE,
    ) -> None:
        self._projector = projector
        self._watch_hub = watch_hub
        self._dispatcher = dispatcher
        self._access = access

    @property
    def access(self) -> Access:
        return self._access

    def read_only(self) -> LocalNode:
        """The same node for a front that may only look."""
        return LocalNode(self._projector, self._watch_hub, self._dispatcher, Access.READ)

    async def snapshot(self) -> NodeView:
        return self._projector.view()

    def watch(self, topics: Collection[str] | None = None) -> AsyncIterator[Update]:
        return self._watch_hub.watch(topics)

    async def call(self, command: Command) -> Outcome:
        if self._access is Access.READ and (fault := read_only_fault(command)) is not None:
            return Outcome(ok=False, fault=fault_view(fault))
        return await self._dispatcher.call(command)
