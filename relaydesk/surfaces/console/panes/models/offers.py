"""Models and the relay network: what of ours it may use, what others offer, and at which prices."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from relaydesk.core.errors import LocalError
from relaydesk.core.pool.model import MOST_RATE
from relaydesk.core.relay.price.rate import MICRO, micro_rate, parse_usd
from relaydesk.core.view.amounts import plural
from relaydesk.core.view.network import NetworkModelView, NetworkView
from relaydesk.core.view.sections import ModelView
from relaydesk.surfaces.console.ask import Field
from relaydesk.surfaces.console.panes.prose import NOTHING, fact, marked, paragraph, sentence
from relaydesk.surfaces.console.pieces import MARKS
from relaydesk.surfaces.console.widgets.columns import Column
from relaydesk.surfaces.console.widgets.rows import BLANK, Cell, Row
from relaydesk.surfaces.console.widgets.spans import Line, Span

PREFIX: Final = "net/"
# The row that parts our models from those of others; no model has such a name.
HEAD: Final = "network:"
COLUMNS: Final = (
    Column("price", "USD IN/OUT", width=11, align="right", priority=3),
    Column("offer", "NETWORK", width=10, priority=5),
)
NOTE: Final = "Prices are USD for 1M tokens, read and written. Strangers come after your own requests."
_ANSWERS: Final = {"yes": True, "no": False}
_ROOM: Final = 12


def own_cells(model: ModelView) -> tuple[Cell, Cell]:
    """What the network pays for a model of ours, and whether it may use it."""
    if not model.offer:
        return BLANK, Cell("no", "faint")
    tone, word = ("warn", "not now") if model.unoffered else ("ok", "offered")
    price = price_cell(model.input_rate, model.output_rate)
    text = f"{MARKS[tone]} {word}"
    return Cell(f"{MARKS[tone]} {price.text}", tone, price.sort), Cell(text, tone, word)


def price_cell(input_rate: int, output_rate: int) -> Cell:
    """Both prices in one cell, ordered by what a token read and one written cost together."""
    both = input_rate + output_rate
    text = f"{dollars(input_rate)}/{dollars(output_rate)}" if both else "free"
    return Cell(text, "" if both else "dim", both)


def dollars(rate: int) -> str:
    """A rate in microUSDC per 1M tokens as USD with two places at least: ``0.20``, ``0.075``."""
    whole, _, places = usd(rate).partition(".")
    return f"{whole}.{places:0<2}"


def usd(rate: int) -> str:
    """A rate in microUSDC per 1M tokens as USD, as people type it: ``0.07``."""
    return format((Decimal(rate) / MICRO).normalize(), "f")


def rows(network: NetworkView | None, columns: int, *, apart: bool = True) -> tuple[Row, ...]:
    """A row for each model that others offer, below a head where they stand ``apart``.

    ``columns`` is how many a row of ours has, those of `COLUMNS` not counted.
    """
    if network is None or not network.on or not network.offers:
        return ()
    count = len(network.offers) + network.more_offers
    said = Cell(plural(count, "model"), "dim")
    head = _row(HEAD, Cell("── of others", "dim"), said, BLANK, (BLANK, BLANK), columns)
    return (*((head,) if apart else ()), *(_offer(each, columns) for each in network.offers))


def _offer(each: NetworkModelView, columns: int) -> Row:
    ctx = Cell(str(each.context_window), "", each.context_window) if each.context_window else BLANK
    tone, word = ("ok", "network") if each.warm else ("dim", "network")
    return _row(
        f"{PREFIX}{each.id}",
        Cell(f"{PREFIX}{each.id}"),
        Cell(f"{'◆' if each.warm else '◇'} {word}", tone, f"network {not each.warm}"),
        ctx,
        (
            price_cell(each.input_rate, each.output_rate),
            Cell(plural(each.targets, "target"), "" if each.warm else "warn", each.targets),
        ),
        columns,
    )


def _row(key: str, name: Cell, state: Cell, ctx: Cell, both: tuple[Cell, Cell], columns: int) -> Row:
    rest = (BLANK,) * (columns - 4)
    return Row(key, (name, state, BLANK, ctx, *both, *rest))


def find(network: NetworkView | None, key: str) -> NetworkModelView | None:
    """The model of a row of others."""
    if network is None or not key.startswith(PREFIX):
        return None
    return next((each for each in network.offers if f"{PREFIX}{each.id}" == key), None)


def lines(model: ModelView, width: int) -> tuple[Line, ...]:
    """What a model of ours is to the network; nothing where it is not offered."""
    if not model.offer:
        return ()
    if model.unoffered:
        said = marked("warn", f"Not offered now: {sentence(model.unoffered)}", width)
    else:
        said = marked("ok", "The network may use it while it is loaded.", width)
    return (*said, *_prices(model.input_rate, model.output_rate, width))


def _prices(input_rate: int, output_rate: int, width: int) -> tuple[Line, ...]:
    if not input_rate + output_rate:
        return fact("price", "free", width, room=_ROOM)
    said = f"{dollars(input_rate)} USD for 1M tokens read, {dollars(output_rate)} USD written"
    return fact("price", said, width, room=_ROOM)


def detail(each: NetworkModelView, width: int) -> tuple[Line, ...]:
    """A model of others."""
    head: Line = (Span(f"{PREFIX}{each.id}", "strong"),)
    tone, words = standing(each)
    said = marked(tone, words, width)
    made: list[Line] = [head, NOTHING, *said, NOTHING]
    made += _prices(each.input_rate, each.output_rate, width)
    many = "the cheapest of several" if each.targets > 1 else ""
    window = f"{each.context_window:,} tokens" if each.context_window else "not said"
    for label, text in (
        ("", many and f"{many}: each sets its own"),
        ("targets", str(each.targets)),
        ("context", window),
        ("placement", "network: another operator answers, sealed on the way"),
    ):
        made += fact(label, text, width, room=_ROOM)
    return (*made, NOTHING, *_how(f"{PREFIX}{each.id}", width))


def standing(each: NetworkModelView) -> tuple[str, str]:
    """Whether it can be asked, as a tone and a sentence."""
    if not each.warm:
        return "warn", "Nobody can be asked for it now: no relay reaches a target of it."
    if each.eligible_relays == 1:
        return "warn", "It can be asked through one relay only, which sees that and when, and nothing in it."
    return "ok", f"It can be asked now, through any of {plural(each.eligible_relays, 'relay')}."


def why(each: NetworkModelView, width: int) -> tuple[Line, ...]:
    """The same below the list, by its name."""
    tone, words = standing(each)
    return marked(tone, f"{PREFIX}{each.id}: {words[:1].lower()}{words[1:]}", width)


def head_detail(network: NetworkView, width: int) -> tuple[Line, ...]:
    """What the models of others are, and who may use them."""
    count = len(network.offers)
    warm = sum(each.warm for each in network.offers)
    made: list[Line] = [(Span("Models of other nodes", "strong"),), NOTHING]
    made += paragraph(f"{warm} of {plural(count, 'model')} can be asked now.", width)
    if network.more_offers:
        made += marked("warn", f"{network.more_offers} more are not listed here.", width)
    return (*made, NOTHING, *_how(f"{PREFIX}NAME", width))


def _how(name: str, width: int) -> tuple[Line, ...]:
    said = f"Clients ask for it as {name}, with a key that may: `relaydesk key set KEY --network`."
    return paragraph(said, width, "dim")


# What is asked for when a model is offered.


def fields(model: ModelView) -> tuple[Field, ...]:
    """Whether it is offered, and its prices as they hold now."""
    return (
        Field("offer", "yes or no", "yes" if model.offer or not _priced(model) else "no", needed=True),
        Field("read", "USD for 1M tokens read", usd(model.input_rate), needed=True),
        Field("written", "USD for 1M tokens written", usd(model.output_rate), needed=True),
    )


def _priced(model: ModelView) -> bool:
    return bool(model.input_rate or model.output_rate)


def changes(answers: tuple[str, ...], model: ModelView) -> dict[str, Any]:
    """What the answers to `fields` change. Raises `LocalError` naming the field."""
    offer, read, written = answers
    if offer.casefold() not in _ANSWERS:
        raise LocalError(
            "invalid_request", f"offer: {offer[:40]!r} is neither yes nor no", "write one of them"
        )
    found: dict[str, Any] = {
        "offer": _ANSWERS[offer.casefold()],
        "input_rate": _rate("read", read),
        "output_rate": _rate("written", written),
    }
    made = {name: value for name, value in found.items() if value != getattr(model, name)}
    if not made:
        raise LocalError("invalid_request", "nothing is different", "change a line, or leave it")
    return made


def _rate(label: str, text: str) -> int:
    try:
        rate = micro_rate(parse_usd(text))
    except ValueError as error:
        raise LocalError("invalid_request", f"{label}: {error}", "write USD for 1M tokens: 0.07") from None
    if rate > MOST_RATE:
        most = f"{MOST_RATE // MICRO} USD for 1M tokens"
        raise LocalError("invalid_request", f"{label}: that is more than {most}", "write less")
    return rate


def command(name: str, answers: tuple[str, ...], model: ModelView | None) -> str:
    """The command line that does the same; what cannot be read yet stands there as it is typed."""
    words = [f"relaydesk model set {name or 'NAME'}"]
    before = fields(model) if model is not None else ()
    held = ("yes" if model is not None and model.offer else "no", *(field.value for field in before[1:]))
    for option, answer, old in zip(("offer", "input-price", "output-price"), answers, held, strict=False):
        if answer != old:
            words.append(f"{option}={answer}")
    return " ".join(words)


def words(made: dict[str, Any]) -> str:
    """What was changed, in a word or two."""
    said = [{True: "offered", False: "not offered"}[made["offer"]]] if "offer" in made else []
    said += [f"{usd(made[name])} USD {what}" for name, what in _RATES if name in made]
    return ", ".join(said)


_RATES: Final = (("input_rate", "read"), ("output_rate", "written"))
