from __future__ import annotations

import pytest
from textual.theme import Theme
from textual.widgets import Static

from relaydesk.surfaces.console.widgets.tones import PARTS, TONES, palette_of
from tests.surfaces.console.widgets.widget_app import WidgetApp

THEMES = ["textual-dark", "textual-light", "ansi-dark", "ansi-light", "nord"]


@pytest.mark.parametrize("theme", THEMES)
async def test_every_theme_gives_every_tone(theme: str) -> None:
    app = WidgetApp(Static())
    async with app.run_test() as pilot:
        app.theme = theme
        await pilot.pause()
        palette = palette_of(app.query_one(Static))
        plain = palette[""]
        for name in TONES:
            assert palette[name].color is not None
            assert palette[name].bgcolor == plain.bgcolor
            assert bool(palette[name].bold) == TONES[name].bold
        assert len({palette[name].color for name in ("ok", "warn", "error")}) == 3
        assert len({palette[name].color for name in PARTS}) >= 4
        assert bool(palette["dim"].dim) == theme.startswith("ansi")
        # Told apart without colours too.
        assert palette.cursor.reverse
        assert palette.cursor_blurred.reverse or palette.cursor_blurred.underline
        assert palette.cursor != palette.cursor_blurred


async def test_a_theme_may_name_a_tone_itself() -> None:
    app = WidgetApp(Static())
    async with app.run_test() as pilot:
        own = Theme(name="own", primary="#111111", variables={"tone-warn": "#ABCDEF", "tone-ok": "no colour"})
        app.register_theme(own)
        app.theme = "own"
        await pilot.pause()
        palette = palette_of(app.query_one(Static))
        color = palette["warn"].color
        assert color is not None and color.triplet is not None
        assert color.triplet.hex == "#abcdef"
        # What is no colour, and what is no tone, are plain.
        assert palette["ok"] == palette[""] == palette["a tone of next year"]


async def test_half_a_colour_is_mixed_with_the_ground() -> None:
    app = WidgetApp(Static())
    async with app.run_test() as pilot:
        own = Theme(
            name="own",
            primary="#111111",
            background="#000000",
            variables={"tone-dim": "#FFFFFF 50%", "tone-faint": "#FFFFFF40"},
        )
        app.register_theme(own)
        app.theme = "own"
        await pilot.pause()
        palette = palette_of(app.query_one(Static))
        shades = []
        for name in ("dim", "faint"):
            color = palette[name].color
            assert color is not None and color.triplet is not None
            shades.append(color.triplet.red)
        assert shades == [pytest.approx(0x80, abs=2), pytest.approx(0x40, abs=2)]
