"""The frame through keys and clicks: panes, states, filter, help, palette, confirm, looks, sizes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.commands import Outcome, Stop
from relaydesk.core.errors import EnvError
from relaydesk.core.text import safe_text
from relaydesk.core.view.sections import AlertsView, HealthView, LogLine, LogView
from relaydesk.node_api import NodeApi
from relaydesk.surfaces.console import themes
from relaydesk.surfaces.console.app import ConsoleApp
from relaydesk.surfaces.console.ask import Confirm
from relaydesk.surfaces.console.data import Link
from relaydesk.surfaces.console.filter_bar import FilterBar
from relaydesk.surfaces.console.frame_actions import FrameActions
from relaydesk.surfaces.console.help import Help
from relaydesk.surfaces.console.keymap import read_keymap
from relaydesk.surfaces.console.piece_line import PieceLine
from relaydesk.surfaces.console.prefs import Prefs
from relaydesk.surfaces.control.client import RemoteNode
from relaydesk.surfaces.control.server import ControlServer
from tests.contract.rigs import HOSTILE
from tests.surfaces.console.stage import (
    NOW_MS,
    Desk,
    console,
    refreshed,
    screen_lines,
    screen_text,
    settled,
    until,
)

SIZES = [(60, 16), (80, 24), (120, 36)]


async def _log(app: ConsoleApp, pilot: Any) -> None:
    """The log pane, whichever is the first."""
    await app.show_pane("log")
    await settled(app, pilot)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_screens(desk: Desk, same_screen: Any, size: tuple[int, int]) -> None:
    name = f"{size[0]}x{size[1]}"
    async with console(desk, size) as (app, pilot):
        await _log(app, pilot)
        same_screen(f"log-{name}", await settled(app, pilot))
        await pilot.press("enter")
        same_screen(f"log-detail-{name}", await settled(app, pilot))
        await pilot.press("escape", "question_mark")
        same_screen(f"log-help-{name}", await settled(app, pilot))


async def test_below_the_floor_one_sentence_with_the_command_line(desk: Desk) -> None:
    async with console(desk, (40, 10)) as (app, pilot):
        await app.show_pane("models")
        await pilot.pause()
        said = " ".join(line for line in screen_lines(app) if line)
        assert said == ("Terminal too small (40x10, needs 60x16): enlarge it, or run `relaydesk model list`.")
        # Nothing that is not seen can be done.
        await pilot.press("question_mark", "x", "t", "down", "5", "enter")
        await pilot.pause()
        assert len(app.screen_stack) == 1
        assert (app.theme, app.current) == (themes.DARK.name, "models")
        await pilot.resize_terminal(60, 15)
        await pilot.pause()
        assert " ".join(line for line in screen_lines(app) if line) == said.replace("40x10", "60x15")
        await pilot.resize_terminal(60, 16)
        await pilot.pause()
        assert "ATTACHED" in screen_text(app)


async def test_strip_shows_what_the_node_does(desk: Desk) -> None:
    async with console(desk, (120, 24)) as (app, pilot):
        assert "in flight 2 +1 queued   tokens/s 42   lag 1 ms" in screen_lines(app)[0]
        assert screen_lines(app)[0].endswith("▲ 1 alert")
        desk.set(health=HealthView(3, 0, 7.25), alerts=AlertsView())
        await refreshed(app, pilot)
        assert "in flight 3   tokens/s 7.2   lag 0 ms" in screen_lines(app)[0]
        assert screen_lines(app)[0].endswith("● no alerts")


async def test_the_four_states(desk: Desk) -> None:
    full = desk.values["log"]
    async with console(desk) as (app, pilot):
        await _log(app, pilot)
        desk.set(log=LogView())
        await refreshed(app, pilot)
        assert "○ Nothing was logged yet." in screen_text(app)
        assert "TIME" not in screen_text(app)
        desk.set(log=full)
        await refreshed(app, pilot)
        assert "smollm2 is warm" in screen_text(app)
        # Failed with a last good value: it stays, under a notice.
        desk.set(log=EnvError("storage_failed", "the disk is full", "make room"))
        await refreshed(app, pilot)
        text = screen_text(app)
        assert "✗ as of 15:09:26: the disk is full  make room" in text
        assert "smollm2 is warm" in text
        await desk.stop()
        await until(pilot, lambda: app.feed.link.state == "lost")
        assert "▲ as of 15:09:26: the node has stopped  g tries again now" in screen_text(app)
        assert app.pane is not None
        assert app.pane.table is not None
        assert app.pane.table.stale


async def test_a_section_that_never_came_says_why(desk: Desk) -> None:
    desk.values["log"] = EnvError("storage_failed", "the disk is gone", "look at it")
    async with console(desk) as (app, pilot):
        await _log(app, pilot)
        assert "✗ Log cannot be read: the disk is gone." in screen_text(app)
        assert "look at it" in screen_text(app)


async def test_loading_and_then_no_node(desk: Desk) -> None:
    gate = asyncio.Event()

    async def connect() -> NodeApi:
        await gate.wait()
        raise EnvError("no_node", "no node answers at /x", "start one with `relaydesk serve`")

    from relaydesk.surfaces.console.session import Session

    app = ConsoleApp(Session(connect, desk.clock))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "◐ Waiting for the node's first answer." in screen_text(app)
        assert "◐ connecting" in screen_lines(app)[0]
        gate.set()
        await until(pilot, lambda: app.feed.link.state == "lost")
        assert "✗ No node: no node answers at /x." in screen_text(app)
        assert "start one with `relaydesk serve`" in screen_text(app)
        assert "▲ no node" in screen_lines(app)[0]


async def test_filter_is_typed_kept_and_cleared(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await _log(app, pilot)
        await pilot.press("slash", *"warm")
        await pilot.pause()
        text = screen_text(app)
        assert "smollm2 is warm" in text
        assert "unknown name" not in text
        # Letters are text here, whatever they mean outside; so are the palette's.
        await pilot.press("ctrl+p", "q", "colon", "1")
        assert app.query_one(FilterBar).text == "warmq:1"
        await pilot.press("backspace", "backspace", "backspace", "enter")
        await pilot.pause()
        assert app.screen_stack[-1] is app.screen_stack[0]
        assert "smollm2 is warm" in screen_text(app)
        assert "unknown name" not in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: "unknown name" in screen_text(app))
        assert not app.query_one(FilterBar).display


async def test_escape_while_typing_clears_the_filter(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await _log(app, pilot)
        await pilot.press("slash", *"zzz")
        await pilot.pause()
        assert "No row holds" in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert "smollm2 is warm" in screen_text(app)
        assert app.pane is not None
        assert app.focused is app.pane.table


async def test_pause_holds_and_goes_on(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("p")
        assert "▲ paused" in screen_lines(app)[0]
        assert "p go on" in screen_lines(app)[-1]
        desk.set(health=HealthView(9))
        await refreshed(app, pilot)
        assert "in flight 2" in screen_lines(app)[0]
        await pilot.press("p")
        await pilot.pause()
        assert "in flight 9" in screen_lines(app)[0]


async def test_help_is_the_panes_own_and_has_its_keys(desk: Desk) -> None:
    async with console(desk, (100, 70)) as (app, pilot):
        await _log(app, pilot)
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, Help)
        text = screen_text(app)
        assert "The newest lines of the node's own log" in text
        assert "stay at the newest line" in text
        assert "confirm a question that says what would be lost" in text
        await pilot.press("escape")
        assert not isinstance(app.screen, Help)


async def test_palette_finds_runs_and_says_why_not(desk: Desk) -> None:
    desk.answer(Stop, Outcome(ok=True))
    async with console(desk, (100, 30), read_only=True) as (app, pilot):
        await pilot.press("colon", *"node stop")
        await until(pilot, lambda: "Node: stop" in screen_text(app))
        assert "not now: this console is read-only" in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: "stop: this console is read-only" in screen_text(app))
        await pilot.press("ctrl+p", *"theme")
        await until(pilot, lambda: "View: theme" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.theme == themes.LIGHT.name)
    assert desk.sent == []


async def test_danger_is_confirmed_by_another_key_and_says_what_is_lost(desk: Desk) -> None:
    desk.answer(Stop, Outcome(ok=True))
    async with console(desk) as (app, pilot):
        app.action_run("node.stop")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        text = screen_text(app)
        assert "Lost: the service: no new requests" in text
        assert "kill -TERM 4711" in text
        await pilot.press("enter", "space", "s")
        assert isinstance(app.screen, Confirm)
        await pilot.press("escape")
        await pilot.pause()
        assert desk.sent == []
        app.action_run("node.stop")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: desk.sent == [Stop()])
        await until(pilot, lambda: "stop the node: done" in screen_text(app))


async def test_a_command_that_fails_says_why_as_plain_text(desk: Desk) -> None:
    async def fail(_command: Any) -> Outcome:
        raise EnvError("storage_failed", "[@click=app.quit]disk[/] is full", "[/oops] make room")

    desk.dispatcher.on(Stop, fail)
    async with console(desk, (100, 30)) as (app, pilot):
        app.action_run("node.stop")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: "[@click=app.quit]disk[/] is full" in screen_text(app).replace("\n", " "))


async def test_quit_attached_leaves_and_embedded_asks_twice(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("q")
        await pilot.pause()
        assert app.return_code == 0
    stopped: list[int] = []
    async with console(desk, stop=lambda: stopped.append(1)) as (app, pilot):
        assert screen_lines(app)[0].startswith(" EMBEDDED")
        await pilot.press("q")
        await pilot.pause()
        assert "Lost: 2 requests in flight, 1 loaded model" in screen_text(app)
        await pilot.press("q")
        await pilot.pause()
        assert stopped == []
        await pilot.press("q", "y")
        await pilot.pause()
        assert stopped == [1]
        await pilot.press("q")
        await pilot.pause()
        assert "Stop at once?" in screen_text(app)
        await pilot.press("y")
        await pilot.pause()
        assert stopped == [1, 1]


async def test_a_question_that_is_no_longer_seen_is_not_answered(desk: Desk) -> None:
    stopped: list[int] = []
    async with console(desk, stop=lambda: stopped.append(1)) as (app, pilot):
        await pilot.press("q")
        await pilot.resize_terminal(40, 10)
        await pilot.pause()
        assert "Lost" not in screen_text(app)
        assert "Terminal too small" in screen_text(app)
        await pilot.press("y")
        await pilot.pause()
        assert stopped == []
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "Lost: 2 requests in flight" in screen_text(app)
        await pilot.press("escape")
        await pilot.resize_terminal(40, 10)
        await pilot.pause()
        # With no room for a card, the sentence asks.
        await pilot.press("q")
        await pilot.pause()
        assert stopped == []
        assert "q once more stops it" in " ".join(screen_text(app).split())
        await pilot.press("q")
        await pilot.pause()
        assert stopped == [1]


async def test_tabs_and_footer_are_clickable(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await _log(app, pilot)
        footer = app.query_one("#footer", PieceLine)
        column = screen_lines(app)[-1].index("? help")
        await pilot.click(footer, offset=(column, 0))
        await pilot.pause()
        assert isinstance(app.screen, Help)
        await pilot.press("escape")
        tab = screen_lines(app)[1].index("Log")
        await pilot.click("#tabs", offset=(tab, 0))
        await pilot.pause()
        assert app.pane is not None
        assert app.pane.spec.id == "log"


async def test_keys_can_be_changed(desk: Desk) -> None:
    keymap = read_keymap({"view.pause": "P", "app.help": "f1"})
    async with console(desk, keymap=keymap) as (app, pilot):
        assert "f1 help" in screen_lines(app)[-1]
        await pilot.press("p")
        assert not app.feed.paused
        await pilot.press("P")
        await pilot.pause()
        assert app.feed.paused
        assert "P go on" in screen_lines(app)[-1]


async def test_what_is_wrong_with_the_keys_is_said(desk: Desk) -> None:
    async with console(desk, keymap=read_keymap({"view.pose": "P"})) as (app, pilot):
        await until(pilot, lambda: "there is no action 'view.pose'" in screen_text(app))


async def test_copy_says_what_was_copied(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await _log(app, pilot)
        await pilot.press("home", "c")
        await until(pilot, lambda: "Copied: 15:08:26" in screen_text(app))
        assert app.clipboard == "15:08:26  ○ info  node  node 5f2d7c0e9a41b3d8 is ready"


async def test_hostile_text_stays_text(desk: Desk) -> None:
    lines = tuple(LogLine(NOW_MS + at, "info", "peer", safe_text(text)) for at, text in enumerate(HOSTILE))
    desk.values["log"] = LogView(lines)
    async with console(desk, (120, 36)) as (app, pilot):
        await _log(app, pilot)
        for _ in HOSTILE:
            shown = screen_text(app)
            assert not set(shown) & set("\x1b\x07\u202e\u200b\ud800")
            await pilot.press("up")
            await pilot.pause()
        assert "[@click=app.quit]x[/]" in shown
        assert "[/oops]" in shown
        await pilot.press("c", "question_mark", "escape", "enter")
        await pilot.pause()
        row = next(at for at, line in enumerate(screen_lines(app)) if "[@click=app.quit]" in line)
        await pilot.click(offset=(screen_lines(app)[row].index("[@click"), row))
        await pilot.pause()
        assert app.is_running


async def test_ascii_lets_nothing_else_out(desk: Desk) -> None:
    async with console(desk, (120, 36), ascii=True) as (app, pilot):
        await _log(app, pilot)
        for keys in ((), ("question_mark",), ("escape", "colon"), ("escape", "slash"), ("escape", "c")):
            await pilot.press(*keys)
            await pilot.pause(0.1)
            assert screen_text(app).isascii(), keys
        assert "* no alerts" in screen_text(app) or "! 1 alert" in screen_text(app)


async def test_no_colour_draws_none(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with console(desk, (120, 36)) as (app, pilot):
        await _log(app, pilot)
        await pilot.press("home")
        await pilot.pause()
        styles = [seg.style for strip in app.screen._compositor.render_strips() for seg in strip if seg.style]
        assert all(style.color is None or style.color.is_default for style in styles)
        assert all(style.bgcolor is None or style.bgcolor.is_default for style in styles)
        # The cursor is still to be seen.
        assert any(style.reverse for style in styles)


@pytest.mark.parametrize("theme", themes.NAMES)
async def test_every_theme_opens_everything(desk: Desk, theme: str) -> None:
    async with console(desk, prefs=Prefs(theme)) as (app, pilot):
        assert app.theme == themes.NAMES[theme]
        await pilot.press("question_mark", "escape", "colon", "escape", "slash", "escape")
        app.action_run("node.stop")
        await pilot.pause()
        assert app.is_running


async def test_nothing_is_drawn_of_a_console_that_is_gone(desk: Desk) -> None:
    async with console(desk) as (app, _pilot):
        pass
    # A timer that was due, a view or a link that was under way: the widgets are gone already.
    app._tick()
    app._draw()
    app._on_link(Link("lost"))
    app._on_view(app.feed.shown, frozenset({"models"}))


async def test_the_node_dies_and_comes_back(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "c.sock"
    server = ControlServer(desk.node, path, desk.clock)
    await server.start()

    async def attach() -> NodeApi:
        return remote

    async with RemoteNode(path) as remote, console(desk, connect=attach) as (app, pilot):
        await _log(app, pilot)
        await server.close()
        await desk.stop()
        await until(pilot, lambda: app.feed.link.state == "lost")
        assert "no node" in screen_lines(app)[0]
        assert "g tries again now" in screen_text(app)
        assert "smollm2 is warm" in screen_text(app)
        line = LogLine(NOW_MS + 5_000, "info", "engine.node", safe_text("started again"))
        desk.set(log=LogView((line,)))
        desk.start()
        server = ControlServer(desk.node, path, desk.clock)
        await server.start()
        await pilot.press("g")
        # A try that was under way when the key came has failed, and waits for its own next one.
        await until(pilot, lambda: app.feed.link.state == "live", timeout_s=15)
        await until(pilot, lambda: "started again" in screen_text(app))
        assert "smollm2 is warm" not in screen_text(app)
        assert "no node" not in screen_lines(app)[0]
        await server.close()


async def test_a_pane_that_fails_ends_the_console_without_its_variables(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(self: FrameActions) -> None:
        secret = "do-not-" + "show"
        raise TypeError("lost", len(secret))

    monkeypatch.setattr(FrameActions, "do_theme", fail)
    apps: list[ConsoleApp] = []

    async def crash() -> None:
        async with console(desk) as (app, pilot):
            apps.append(app)
            await pilot.press("t")
            await pilot.pause()

    with pytest.raises(TypeError, match="lost"):
        await crash()
    assert isinstance(apps[0].crash, TypeError)
    assert "do-not-show" not in capfd.readouterr().err
