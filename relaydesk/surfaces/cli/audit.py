"""``relaydesk audit``: who asked what of which model, and what came of it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from relaydesk.config.kinds import parse_duration
from relaydesk.core.access.audit import AuditFilter, AuditRecord
from relaydesk.core.commands import ShowAudit
from relaydesk.surfaces.cli.attach import Node, answer, attach_option, find_node, json_option
from relaydesk.surfaces.cli.lazy import LazyGroup
from relaydesk.surfaces.cli.names import Named, named_by, names_of
from relaydesk.surfaces.cli.output import millis, print_json, say, table, tell
from relaydesk.surfaces.cli.verbs import verb

_PAUSE_S: Final = 1.0
_OUTCOMES: Final = ("done", "failed", "cancelled", "refused")
_HEAD: Final = ("TIME (UTC)", "KEY", "FROM", "MODEL", "WHERE", "ROUTE", "TOKENS", "TIME", "OUTCOME")


class _Found(msgspec.Struct):
    records: list[AuditRecord]


class Moment(click.ParamType[Any]):
    """A time back from now (``2h``, ``90m``, ``7d``) or a day (``2027-01-31``); milliseconds since 1970."""

    name = "WHEN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, int):
            return value
        text = str(value).strip().lower()
        try:
            if text.endswith("d") and text[:-1].isdigit() and len(text) < 7:
                back = int(text[:-1]) * 86_400.0
            else:
                back = parse_duration(text)
            return max(0, time.time_ns() // 1_000_000 - round(back * 1000))
        except ValueError:
            pass
        try:
            return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            self.fail(f"{text[:40]!r} is no time: give 2h, 7d or 2027-01-31.", param, ctx)


@click.group(cls=LazyGroup, verbs=verb("audit").below)
def audit() -> None:
    """Who asked what of which model. No prompts are kept, and no secrets."""


@click.command()
@click.option("--lines", "-n", type=click.IntRange(1, 1000), default=20, help="How many of the newest.")
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes, until Ctrl+C.")
@click.option("--key", default="", metavar="NAME", help="Only of this key.")
@click.option("--model", default="", metavar="NAME", help="Only for this model.")
@click.option("--route", default="", metavar="PATH", help="Only on this route, such as /v1/chat/completions.")
@click.option("--outcome", type=click.Choice(_OUTCOMES), default=None, help="Only what ended so.")
@click.option("--since", type=Moment(), default=0, help="2h, 7d or 2027-01-31.")
@json_option
@attach_option
def tail(
    lines: int,
    follow: bool,
    key: str,
    model: str,
    route: str,
    outcome: str | None,
    since: int,
    as_json: bool,
    attach: Path | None,
) -> None:
    """The newest records that match, oldest of them first."""
    wanted = AuditFilter(key=key, model=model, route=route, outcome=outcome or "", since_ms=since)
    node = find_node(attach)
    found = _newest(node, wanted, lines)
    if as_json and not follow:
        print_json({"records": found})
        return
    if not found and not follow:
        tell("No request matches. Every request that a key opened gets a record when it ends.")
        return
    _show(node, found, as_json=as_json)
    if follow:
        _follow(node, wanted, found, as_json=as_json)


def _newest(node: Node, wanted: AuditFilter, limit: int) -> list[AuditRecord]:
    value = node.call(ShowAudit(wanted=wanted, limit=limit)).value
    return answer(value, _Found).records[::-1]


def _follow(node: Node, wanted: AuditFilter, shown: list[AuditRecord], *, as_json: bool) -> None:
    """Print what ended since the last look. Records are told apart by id and time."""
    seen = {(each.id, each.at_ms) for each in shown}
    try:
        while True:
            time.sleep(_PAUSE_S)
            fresh = [each for each in _newest(node, wanted, 1000) if (each.id, each.at_ms) not in seen]
            seen.update((each.id, each.at_ms) for each in fresh)
            _show(node, fresh, as_json=as_json, head=False)
    except KeyboardInterrupt:
        return


def _show(node: Node, records: list[AuditRecord], *, as_json: bool, head: bool = True) -> None:
    if as_json:
        for record in records:
            print_json(record)
        return
    away = any(record.targets for record in records)
    named = names_of(node) if away else named_by(())
    rows = [_row(record, named) for record in records]
    top: tuple[str, ...] = _HEAD
    if away:
        top = (*_HEAD, "PAID")
        rows = [(*row, _paid(record)) for row, record in zip(rows, records, strict=True)]
    if rows:
        lines = table(top, rows, indent="", shrink=(2, 3, 5, 4))
        for line in lines if head else lines[1:]:
            say(line)


def _row(record: AuditRecord, named: Named) -> tuple[str, ...]:
    when = datetime.fromtimestamp(record.at_ms / 1000, UTC).strftime("%m-%d %H:%M:%S")
    tokens = f"{record.prompt_tokens:,}+{record.completion_tokens:,}" if record.prompt_tokens else "-"
    outcome = f"{record.outcome} {record.code}".strip()
    return (
        when,
        record.key,
        record.client or "-",
        record.model or "-",
        _where(record, named),
        record.route,
        tokens,
        millis(record.total_ms),
        outcome,
    )


def _paid(record: AuditRecord) -> str:
    """Microunits."""
    return f"{record.paid:,}" if record.targets else "-"


def _where(record: AuditRecord, named: Named) -> str:
    """Where it ran; of the network the target that read it, and the relay that carried it sealed."""
    if not record.targets:
        return record.placement or "-"
    relays = ", ".join(map(named, record.relays)) or "?"
    return f"{', '.join(map(named, record.targets))} via {relays}"
