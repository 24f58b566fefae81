from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Iterator

import pytest

from relaydesk.core.events import Event, LogWritten
from relaydesk.core.text import SafeText
from relaydesk.engine.bus import Bus
from relaydesk.engine.logbook import KEPT, LogBook, install


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, put back as it was."""
    logger = logging.getLogger()
    asyncio_level, access = logging.getLogger("asyncio").level, logging.getLogger("aiohttp.access")
    handlers, level, disabled = list(logger.handlers), logger.level, access.disabled
    yield logger
    logger.handlers[:], access.disabled = handlers, disabled
    logger.setLevel(level)
    logging.getLogger("asyncio").setLevel(asyncio_level)


def test_lines_are_kept_and_safe(root: logging.Logger) -> None:
    book = LogBook()
    install(book, level=logging.INFO, stderr=False)
    logging.getLogger("relaydesk.engine.pool").warning("model \x1b[31m%s\x1b[0m", "a\nb\u202e")
    (line,) = book.view().lines
    assert line.level == "warning"
    assert line.source == "engine.pool"
    assert line.text == "model [31ma b[0m"
    assert type(line.text) is SafeText
    assert line.at_ms > 1_600_000_000_000


def test_only_the_newest_are_kept(root: logging.Logger) -> None:
    book = LogBook()
    install(book, level=logging.INFO, stderr=False)
    for number in range(KEPT + 10):
        logging.getLogger("x").info("line %d", number)
    lines = book.view().lines
    assert len(lines) == KEPT
    assert lines[0].text == "line 10"


def test_debug_lines_stay_out(root: logging.Logger) -> None:
    book = LogBook()
    install(book, level=logging.DEBUG, stderr=False)
    logging.getLogger("x").debug("detail")
    assert book.view().lines == ()


def test_an_exception_is_named_on_the_line(root: logging.Logger) -> None:
    book = LogBook()
    install(book, level=logging.INFO, stderr=False)
    try:
        raise ValueError("odd")
    except ValueError:
        logging.getLogger("x").exception("it failed")
    assert book.view().lines[0].text == "it failed: ValueError('odd')"


def test_a_broken_log_call_harms_nobody(root: logging.Logger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    book = LogBook()
    install(book, level=logging.INFO, stderr=False)
    logging.getLogger("x").info("%d", "not a number")
    logging.getLogger("x").info("next")
    assert [line.text for line in book.view().lines] == ["next"]


def test_each_line_is_an_event_also_from_threads(root: logging.Logger) -> None:
    book = LogBook()
    bus = Bus()
    heard: list[Event] = []
    bus.listen(heard.append)
    install(book, level=logging.INFO, stderr=False)
    book.attach(bus)
    threads = [
        threading.Thread(target=lambda: [logging.getLogger("x").info("y") for _ in range(20)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == [LogWritten()] * 80


def test_stderr_has_one_safe_line_a_record(root: logging.Logger, monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    install(LogBook(), level=logging.INFO, stderr=True)
    logging.getLogger("relaydesk.x").error("bad \x1b]52;c;AAAA\x07 name\nforged line")
    try:
        raise ValueError("a\x1bb")
    except ValueError:
        logging.getLogger("relaydesk.x").exception("failed")
    lines = stderr.getvalue().splitlines()
    assert lines[0] == "error x: bad ]52;c;AAAA name forged line"
    assert lines[1] == "error x: failed"
    assert all(line.startswith("    ") for line in lines[2:])
    assert lines[-1] == "    ValueError: ab"
    assert "\x1b" not in stderr.getvalue()


def test_embedded_nothing_is_written_to_the_terminal(
    root: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    root.addHandler(logging.StreamHandler(stderr))
    install(LogBook(), level=logging.INFO, stderr=False)
    logging.getLogger("x").error("over the screen")
    assert stderr.getvalue() == ""


def test_paths_of_requests_are_not_logged(root: logging.Logger) -> None:
    book = LogBook()
    install(book, level=logging.INFO, stderr=False)
    logging.getLogger("aiohttp.access").error("GET /v1/models")
    assert book.view().lines == ()
