"""The overview: one picture, drawn anew for every size and view."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.app import ComposeResult

from relaydesk.core.commands import Command, PullModel
from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.console.action import Action
from relaydesk.surfaces.console.bindings import bindings_for
from relaydesk.surfaces.console.data import Link
from relaydesk.surfaces.console.pane import Pane
from relaydesk.surfaces.console.panes.hopcheck.actions import OPEN
from relaydesk.surfaces.console.panes.made import Made
from relaydesk.surfaces.console.panes.models import jobs
from relaydesk.surfaces.console.panes.models.present import FIRST
from relaydesk.surfaces.console.panes.overview import present
from relaydesk.surfaces.console.panes.overview.history import STEP_MS, History
from relaydesk.surfaces.console.registry import PaneSpec
from relaydesk.surfaces.console.states import Notice

# Where there is a network, its check is worth a place in the footer.
_CHECK: Final = 35


class OverviewPane(Pane):
    """Clients, hub, host, models, and what they do."""

    BINDINGS = bindings_for("overview")
    HAS_LIST: ClassVar[bool] = False

    def __init__(self, spec: PaneSpec) -> None:
        super().__init__(spec)
        self.history = History()
        self._drawn: tuple[object, int] = ((), 0)

    def compose_body(self) -> ComposeResult:
        picture = Made(id="picture")
        picture.can_focus = True
        yield picture

    def on_mount(self) -> None:
        # The rate is written down while another pane is looked at, too.
        self.set_interval(STEP_MS / 1000, self._sample)

    def take(self, view: NodeView, link: Link) -> None:
        super().take(view, link)
        self.query_one("#picture", Made).dimmed = self.state.kind in ("stale", "failed")

    def empty(self, view: NodeView) -> Notice | None:
        return present.empty(view)

    def show(self, view: NodeView) -> None:
        self._sample()
        self._draw(view)

    def tick(self, now_ms: int) -> None:
        # A sample was added, and an alert may be a minute older; while views come in there is nothing to add.
        fresh = (self.history.values, now_ms // 60_000) != self._drawn
        if fresh and self.view is not None and not self.state.covers:
            self._draw(self.view)

    def reason(self, action: Action) -> str:
        models = self.view.models.value if self.view is not None else None
        if models is not None and models.models:
            return "there is a model already; 2 has the others"
        if self.view is not None and jobs.running(self.view.jobs.value):
            return "it is being fetched"
        return ""

    def weight(self, action: Action) -> int:
        if action.id == OPEN.id:
            network = self.view.network.value if self.view is not None else None
            return _CHECK if network is not None and network.on else 0
        if action.where != self.spec.id:
            return action.footer
        models = self.view.models.value if self.view is not None else None
        # A first model is pulled once.
        return 0 if models is None or models.models else action.footer

    def meant(self, action: Action, *answers: str) -> str:
        # The label names it already.
        return ""

    def request(self, action: Action, *answers: str) -> Command:
        return PullModel(reference=FIRST)

    def _sample(self) -> None:
        feed = self.desk.feed
        if feed.paused:
            return
        health = feed.shown.health.value if feed.link.state == "live" else None
        rate = health.tokens_per_s if health is not None else None
        self.history.add(self.now_ms, rate)

    def _draw(self, view: NodeView) -> None:
        models = view.models.value
        if models is None:
            return
        history, now_ms = self.history.values, self.now_ms
        self._drawn = (history, now_ms // 60_000)
        self.query_one("#picture", Made).show(
            lambda width, height, ascii: present.picture(
                view, models, history, now_ms, width, height, ascii=ascii
            )
        )
