"""The question for a layer: what was typed stands there again, however the card was left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from textual.app import App

from relaydesk.core.errors import FaultError
from relaydesk.core.view.hopcheck import HopCheckView
from relaydesk.surfaces.console.ask import Field, Prompt
from relaydesk.surfaces.console.panes.hopcheck.memory import Memory
from relaydesk.surfaces.console.panes.hopcheck.plan import PUBLIC, Entry, Plan

NOTE: Final = (
    "Only URLs that are listed are asked. Layers stand from the inside outwards: add the innermost first."
)
PUBLIC_NOTE: Final = (
    "Where the world reaches this node: the outermost layer. Empty is the URL that the node advertises."
)


class KeptPrompt(Prompt):
    """A `Prompt` that tells what stood in it when it was left without an answer."""

    def __init__(
        self,
        title: str,
        fields: Sequence[Field],
        line: Callable[[tuple[str, ...]], str],
        notes: Sequence[str],
        said: str,
        keep: Callable[[tuple[str, ...]], None],
    ) -> None:
        super().__init__(title, fields, line, notes, said)
        self._keep = keep

    def action_leave(self) -> None:
        """Close, and keep what is typed."""
        self._keep(self.answers)
        super().action_leave()


async def ask(app: App[None], memory: Memory, check: HopCheckView, entry: Entry | None) -> str:
    """Ask for a layer until it can be used, and put it into the plan; its name, empty where it was left.

    For a worker. ``entry`` None is a layer to be added.
    """
    about = entry.name if entry is not None else ""
    title = f"Layer {about}" if about else "A layer between"
    notes = (PUBLIC_NOTE if about == PUBLIC else NOTE,)

    def keep(answers: tuple[str, ...]) -> None:
        memory.typed[about] = answers

    def line(answers: tuple[str, ...]) -> str:
        try:
            return planned(memory.plan, answers, about, check).cli(check)
        except FaultError:
            return ""

    said = ""
    while True:
        asked = fields(entry, memory.typed.get(about, ()))
        answers = await _answers(app, KeptPrompt(title, asked, line, notes, said, keep))
        if answers is None:
            return ""
        keep(answers)
        try:
            memory.plan = planned(memory.plan, answers, about, check)
        except FaultError as error:
            said = error.fault.sentence
            continue
        del memory.typed[about]
        return answers[0] if about != PUBLIC else PUBLIC


async def _answers(app: App[None], card: KeptPrompt) -> tuple[str, ...] | None:
    return await app.push_screen_wait(card)


def planned(plan: Plan, answers: tuple[str, ...], about: str, check: HopCheckView) -> Plan:
    """The plan with the answers in it. Raises `LocalError` saying what is wrong with them."""
    if about != PUBLIC:
        return plan.with_layer(answers[0], answers[1], check, about)
    advertised = plan.without(PUBLIC).target(check)
    return plan.with_public("" if answers[0] == advertised else answers[0])


def fields(entry: Entry | None, typed: tuple[str, ...]) -> tuple[Field, ...]:
    """What is asked about a layer; None is one to be added. ``typed`` is what a card that was left held."""
    if entry is not None and entry.name == PUBLIC:
        (url,) = typed or (entry.url,)
        return (Field("URL", "https://node.example.org", url),)
    name, url = typed or ((entry.name, entry.url) if entry is not None else ("", ""))
    return (
        Field("name", "nginx, tunnel, edge-1", name, needed=True),
        Field("URL", "http://127.0.0.1:8080", url, needed=True),
    )
