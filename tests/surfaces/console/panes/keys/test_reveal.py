"""The card with a secret."""

from __future__ import annotations

from textual.app import App

from relaydesk.surfaces.console.panes.keys.reveal import Reveal

SECRET = "sk-[b]not-bold[/b]-[@click=app.quit]x[/]"


async def test_shown_as_it_is_copied_by_c_and_gone_with_the_card() -> None:
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(Reveal("The key", SECRET, "Keep it."))
        await pilot.pause()
        shown = "\n".join(
            "".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()
        )
        assert SECRET in shown
        await pilot.press("c")
        assert app.clipboard == SECRET
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, Reveal)
