"""Semantic style names, and what the current theme makes of them.

Presenters say *warn*, never *orange*: the theme decides the colour, and a terminal without colours gets bold
or nothing. A tone alone never carries the meaning; a word or symbol stands beside it.

Tones come from theme variables and not from component classes: those cost a virtual node each for every
widget at every change of a style, and all widgets share these. A theme names a tone itself with the variable
``tone-<name>``; without it the variables of `TONES` are tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from rich.style import Style
from textual.color import Color, ColorParseError
from textual.widget import Widget


@dataclass(frozen=True, slots=True)
class Tone:
    """Theme variables in the order they are tried, and what is left of the tone without colours."""

    variables: tuple[str, ...]
    bold: bool = False


TONES: Final[dict[str, Tone]] = {
    "": Tone(("foreground",)),
    "ok": Tone(("text-success", "success")),
    "warn": Tone(("text-warning", "warning")),
    "error": Tone(("text-error", "error"), bold=True),
    "accent": Tone(("text-accent", "accent")),
    "info": Tone(("text-primary", "primary")),
    "strong": Tone(("foreground",), bold=True),
    "dim": Tone(("foreground-muted", "foreground")),
    "faint": Tone(("foreground-disabled", "foreground-muted", "foreground")),
    "part-1": Tone(("primary",)),
    "part-2": Tone(("accent", "warning")),
    "part-3": Tone(("success",)),
    "part-4": Tone(("text-secondary", "secondary")),
    "part-5": Tone(("text-error", "error")),
}
# For pieces of one whole, in order.
PARTS: Final = tuple(name for name in TONES if name.startswith("part-"))


@dataclass(frozen=True)
class Palette:
    """Every tone as a Rich style on one background, and the reversed lines of a cursor.

    The cursor's styles carry their colours the wrong way round and the reverse attribute, so that a terminal
    without colours reverses too.
    """

    tones: Mapping[str, Style]
    cursor: Style
    cursor_blurred: Style

    def __getitem__(self, tone: str) -> Style:
        # An unknown tone is plain: a presenter ahead of its theme must not take the console down.
        return self.tones.get(tone) or self.tones[""]


def palette_of(widget: Widget) -> Palette:
    """The palette of a mounted widget: its theme's colours on its background."""
    variables = widget.app.theme_variables
    wanted = tuple(_wanted(name, tone, variables) for name, tone in TONES.items())
    extra = tuple(variables.get(name, "") for name in _CURSOR)
    return _resolve(wanted, extra, widget.rich_style)


_CURSOR: Final = (
    "block-cursor-background",
    "block-cursor-foreground",
    "block-cursor-blurred-background",
    "block-cursor-blurred-foreground",
)


def _wanted(name: str, tone: Tone, variables: Mapping[str, str]) -> str:
    return next((variables[key] for key in (f"tone-{name}", *tone.variables) if key in variables), "")


@lru_cache(maxsize=64)
def _resolve(wanted: tuple[str, ...], cursor: tuple[str, ...], base: Style) -> Palette:
    plain = Style(color=base.color, bgcolor=base.bgcolor)
    tones = {
        name: plain + Style(bold=tone.bold or None) + _foreground(text, plain) if text else plain
        for (name, tone), text in zip(TONES.items(), wanted, strict=True)
    }
    tones[""] = plain
    return Palette(
        tones,
        _reversed(cursor[0], cursor[1], plain) or plain + Style(reverse=True),
        # On a ground we cannot mix colours with, reverse means that the table has the keys.
        _reversed(cursor[2], cursor[3], plain) or plain + Style(underline=True, bold=True),
    )


def _parse(text: str) -> tuple[Color, float] | None:
    """A theme variable: a colour, and how much of it; None for what depends on its background."""
    value, _, percent = text.partition(" ")
    try:
        color = Color.parse(value)
        share = float(percent.rstrip("%")) / 100 if percent else 1.0
    except (ColorParseError, ValueError):
        return None
    return color, share * color.a


def _foreground(text: str, plain: Style) -> Style:
    parsed = _parse(text)
    if parsed is None:
        return Style()
    color, share = parsed
    if color.ansi is not None:
        # The terminal's own colours cannot be mixed: half of one is its dim form.
        return Style(color=color.rich_color, dim=True if share < 1 else None)
    return Style(color=_over(color, share, plain).rich_color)


def _over(color: Color, share: float, plain: Style) -> Color:
    ground = plain.bgcolor
    if ground is None or ground.triplet is None:
        return color.with_alpha(1)
    return Color(*ground.triplet).blend(color, share, 1)


def _reversed(ground: str, ink: str, plain: Style) -> Style | None:
    parsed = _parse(ground)
    if parsed is None or parsed[0].ansi is not None or plain.bgcolor is None or plain.bgcolor.triplet is None:
        return None
    field = _over(*parsed, plain)
    given = _parse(ink)
    text = _over(*given, plain) if given is not None else field.get_contrast_text(1)
    return Style(color=field.rich_color, bgcolor=text.rich_color, reverse=True)
