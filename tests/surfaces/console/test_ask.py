"""Cards that ask: what is typed stays typed, and what is not seen is not answered."""

from __future__ import annotations

from textual.app import App

from relaydesk.surfaces.console.ask import Confirm, Field, Prompt, Question
from tests.surfaces.console.stage import Desk, console, screen_text, settled

FIELDS = (Field("name", "who", needed=True), Field("limit", "none", "20"))


async def test_a_form_shows_its_line_and_needs_what_it_needs(desk: Desk) -> None:
    answers: list[tuple[str, ...] | None] = []
    async with console(desk) as (app, pilot):
        card = Prompt("Make one", FIELDS, lambda given: " ".join(("make", *given)), ("Any name will do.",))
        app.push_screen(card, answers.append)
        text = await settled(app, pilot)
        assert "does the same as  make  20" in text
        assert "Any name will do." in text
        await pilot.press("down", "enter")
        # The name is missing: the keyboard goes there.
        await pilot.press(*"eve", "tab", "end", "0")
        assert "make eve 200" in await settled(app, pilot)
        await pilot.press("enter")
        await pilot.pause()
    assert answers == [("eve", "200")]


async def test_a_refusal_stands_above_what_was_typed(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        app.push_screen(Prompt("Make one", FIELDS, lambda _: "", said="[@click=app.quit]no[/] such thing"))
        text = await settled(app, pilot)
        assert "✗ [@click=app.quit]no[/] such thing" in text
        assert text.index("such thing") < text.index("limit")


async def test_a_card_keeps_what_was_typed_while_the_terminal_is_too_small(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("2", "a", *"xy")
        await pilot.resize_terminal(40, 10)
        assert "Terminal too small" in await settled(app, pilot)
        await pilot.press("z", "escape", "enter")
        assert isinstance(app.screen, Prompt)
        await pilot.resize_terminal(80, 24)
        await settled(app, pilot)
        await pilot.press("z")
        assert isinstance(app.screen, Prompt)
        assert app.screen.answers == ("xyz",)
        await pilot.press("escape")
        await pilot.pause()
        assert len(app.screen_stack) == 1


async def test_only_y_confirms() -> None:
    answers: list[bool | None] = []
    app: App[None] = App()
    async with app.run_test() as pilot:
        for key in ("enter", "space", "x", "n"):
            if not isinstance(app.screen, Confirm):
                app.push_screen(
                    Confirm(Question("Sure?", ("It is so.",), "do it", loses="all")), answers.append
                )
                await pilot.pause()
            await pilot.press(key)
            await pilot.pause()
        assert answers == [False]
        app.push_screen(Confirm(Question("Sure?", (), "do it")), answers.append)
        await pilot.pause()
        await pilot.press("y")
        await pilot.pause()
    assert answers == [False, True]


async def test_a_card_fills_a_narrow_terminal_so_that_nothing_shows_beside_it(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("2", "x")
        await settled(app, pilot)
        row = next(line for line in screen_text(app).splitlines() if "Remove smollm2?" in line)
        assert row.split() == ["Remove", "smollm2?"]
        assert app.screen.query_one(".card").region.width == 80
