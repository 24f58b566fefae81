"""Two themes of our own and the terminal's own colours.

States are told apart by blue, violet, amber and vermilion, which people who do not see red or green apart can
still tell apart, and never by colour alone: a symbol and a word stand beside it. A test computes the contrast
of every pair below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from textual.theme import Theme


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of a theme. ``background`` is the body's, ``surface`` that of strip and footer, ``panel``
    that of what lies on top."""

    name: str
    dark: bool
    background: str
    surface: str
    panel: str
    text: str
    dim: str
    rule: str
    key: str
    good: str
    busy: str
    warn: str
    bad: str
    cursor: str
    cursor_text: str
    cursor_blurred: str

    @property
    def inks(self) -> dict[str, str]:
        """Every colour that text may have on the three grounds."""
        return {
            "text": self.text,
            "dim": self.dim,
            "key": self.key,
            "good": self.good,
            "busy": self.busy,
            "warn": self.warn,
            "bad": self.bad,
        }

    @property
    def grounds(self) -> dict[str, str]:
        """What text may stand on."""
        return {"background": self.background, "surface": self.surface, "panel": self.panel}


DARK: Final = Palette(
    name="relaydesk-dark",
    dark=True,
    background="#10141a",
    surface="#181e27",
    panel="#1f2732",
    text="#d9dfe7",
    dim="#94a0af",
    rule="#364150",
    key="#7cc0ff",
    good="#6cb4f5",
    busy="#bda7f7",
    warn="#f0b45c",
    bad="#ff8e70",
    cursor="#2c567f",
    cursor_text="#ffffff",
    cursor_blurred="#26313f",
)
LIGHT: Final = Palette(
    name="relaydesk-light",
    dark=False,
    background="#fcfbf9",
    surface="#f1efeb",
    panel="#e9e6e0",
    text="#1c2430",
    dim="#57606c",
    rule="#c6c1b8",
    key="#0b559e",
    good="#0b5aa6",
    busy="#6437ac",
    warn="#7d4800",
    bad="#a62c14",
    cursor="#0b5aa6",
    cursor_text="#ffffff",
    cursor_blurred="#d8dde3",
)
TERMINAL: Final = "terminal"
NAMES: Final = {"dark": DARK.name, "light": LIGHT.name, "terminal": TERMINAL}


def own(palette: Palette) -> Theme:
    """A palette as a theme."""
    return Theme(
        name=palette.name,
        dark=palette.dark,
        primary=palette.good,
        secondary=palette.busy,
        accent=palette.key,
        warning=palette.warn,
        error=palette.bad,
        success=palette.good,
        foreground=palette.text,
        background=palette.background,
        surface=palette.surface,
        panel=palette.panel,
        boost=palette.panel,
        text_alpha=1.0,
        variables={
            "rule": palette.rule,
            "tone-ok": palette.good,
            "tone-info": palette.busy,
            "tone-warn": palette.warn,
            "tone-error": palette.bad,
            "tone-accent": palette.key,
            "tone-strong": palette.text,
            "tone-dim": palette.dim,
            "tone-faint": palette.dim,
            "tone-part-1": palette.good,
            "tone-part-2": palette.warn,
            "tone-part-3": palette.busy,
            "tone-part-4": palette.dim,
            "tone-part-5": palette.bad,
            "border": palette.rule,
            "border-blurred": palette.rule,
            "text-muted": palette.dim,
            "text-disabled": palette.dim,
            "block-cursor-background": palette.cursor,
            "block-cursor-foreground": palette.cursor_text,
            "block-cursor-text-style": "none",
            "block-cursor-blurred-background": palette.cursor_blurred,
            "block-cursor-blurred-foreground": palette.text,
            "block-hover-background": palette.panel,
            "scrollbar": palette.rule,
            "scrollbar-hover": palette.dim,
            "scrollbar-active": palette.key,
            "scrollbar-background": palette.background,
            "scrollbar-background-hover": palette.background,
            "scrollbar-background-active": palette.background,
            "scrollbar-corner-color": palette.background,
            "input-cursor-background": palette.text,
            "input-cursor-foreground": palette.background,
            "input-selection-background": palette.cursor,
        },
    )


def terminal() -> Theme:
    """The sixteen colours and the ground that the terminal's owner has chosen.

    What is dim elsewhere keeps the terminal's own ink: no other is legible on a ground we do not know.
    Selection is reverse video.
    """
    return Theme(
        name=TERMINAL,
        ansi=True,
        primary="ansi_cyan",
        secondary="ansi_magenta",
        accent="ansi_cyan",
        warning="ansi_yellow",
        error="ansi_red",
        success="ansi_cyan",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        variables={
            "rule": "ansi_default",
            "ansi-background": "ansi_default",
            "ansi-foreground": "ansi_default",
            "tone-ok": "ansi_cyan",
            "tone-info": "ansi_magenta",
            "tone-warn": "ansi_yellow",
            "tone-error": "ansi_red",
            "tone-accent": "ansi_default",
            "tone-strong": "ansi_default",
            "tone-dim": "ansi_default",
            "tone-faint": "ansi_default",
            "tone-part-1": "ansi_cyan",
            "tone-part-2": "ansi_yellow",
            "tone-part-3": "ansi_magenta",
            "tone-part-4": "ansi_default",
            "tone-part-5": "ansi_red",
            "border": "ansi_default",
            "border-blurred": "ansi_default",
            "text-muted": "ansi_default",
            "text-disabled": "ansi_default",
            "block-cursor-background": "ansi_default",
            "block-cursor-foreground": "ansi_default",
            "block-cursor-text-style": "reverse",
            "block-cursor-blurred-background": "ansi_default",
            "block-cursor-blurred-foreground": "ansi_default",
            "block-cursor-blurred-text-style": "underline",
            "input-cursor-text-style": "reverse",
            "scrollbar": "ansi_default",
            "scrollbar-background": "ansi_default",
        },
    )


def all_themes() -> tuple[Theme, ...]:
    """What the console registers."""
    return own(DARK), own(LIGHT), terminal()
