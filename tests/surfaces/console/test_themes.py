"""Contrast of every ink on every ground, and that every tone has a colour."""

from __future__ import annotations

import itertools

import pytest
from textual.color import Color

from relaydesk.surfaces.console import themes
from relaydesk.surfaces.console.themes import DARK, LIGHT, Palette
from relaydesk.surfaces.console.widgets.tones import TONES


def luminance(color: str) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    rgb = Color.parse(color)
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (rgb.r / 255, rgb.g / 255, rgb.b / 255)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """From 1 to 21."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_measure_is_the_standards() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=lambda palette: palette.name)
def test_all_text_is_legible(palette: Palette) -> None:
    pairs = itertools.product(palette.inks.items(), palette.grounds.items())
    low = {
        f"{ink} on {ground}": round(contrast(one, other), 2)
        for (ink, one), (ground, other) in pairs
        if contrast(one, other) < 4.5
    }
    assert not low
    assert contrast(palette.cursor, palette.cursor_text) >= 4.5
    assert contrast(palette.cursor_blurred, palette.text) >= 4.5
    # The pill of the current tab: the ground's colour on the accent.
    assert contrast(palette.background, palette.key) >= 4.5


# Colours as people without one kind of cone see them (Viénot, Brettel and Mollon 1999), in linear RGB.
_BLIND = {
    "protan": ((0.11238, 0.88762, 0.0), (0.11238, 0.88762, 0.0), (0.00401, -0.00401, 1.0)),
    "deutan": ((0.29275, 0.70725, 0.0), (0.29275, 0.70725, 0.0), (-0.02234, 0.02234, 1.0)),
}


def seen(color: str, matrix: tuple[tuple[float, ...], ...]) -> tuple[float, ...]:
    rgb = Color.parse(color)
    linear = [(part / 255) ** 2.2 for part in (rgb.r, rgb.g, rgb.b)]
    mixed = (sum(share * part for share, part in zip(row, linear, strict=True)) for row in matrix)
    return tuple(255 * max(0.0, part) ** (1 / 2.2) for part in mixed)


@pytest.mark.parametrize("kind", list(_BLIND))
@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=lambda palette: palette.name)
def test_good_and_bad_stay_apart_without_red_and_green(palette: Palette, kind: str) -> None:
    good = seen(palette.good, _BLIND[kind])
    for other in (palette.warn, palette.bad):
        assert sum((a - b) ** 2 for a, b in zip(good, seen(other, _BLIND[kind]), strict=True)) ** 0.5 > 60


@pytest.mark.parametrize("theme", themes.all_themes(), ids=lambda theme: theme.name)
def test_every_tone_has_a_colour(theme: themes.Theme) -> None:
    assert {f"tone-{name}" for name in TONES if name} <= set(theme.variables)
    assert themes.own(DARK).variables.keys() >= theme.variables.keys() - {
        "ansi-background",
        "ansi-foreground",
        "block-cursor-blurred-text-style",
        "input-cursor-text-style",
    }
