"""What is written past the console: kept from the terminal, told to the log, and never a reason to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

import pytest

from relaydesk.surfaces.console.terminal import OwnTerminal, TerminalFile


async def test_lines_reach_the_log_made_safe(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    streams = (sys.__stdout__, sys.__stderr__)
    with caplog.at_level(logging.WARNING), OwnTerminal():
        os.write(2, b"one \x1b]52;c;aGk=\x07\xff\nhalf a ")
        os.write(1, b"line\n")
        assert sys.__stderr__ is not streams[1]
        assert sys.__stderr__ is not None
        sys.__stderr__.write("drawn")
        await asyncio.sleep(0.05)
        os.write(2, b"the last\n")
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        f"written past the log: {text}" for text in ("one ]52;c;aGk=\ufffd", "half a line", "the last")
    ]
    assert (sys.__stdout__, sys.__stderr__) == streams
    os.write(1, b"given back\n")
    shown = capfd.readouterr()
    assert shown.out == "given back\n"
    assert shown.err == "drawn"


async def test_a_flood_neither_stops_the_loop_nor_fills_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), OwnTerminal():
        for _ in range(100):
            try:
                os.write(2, b"x" * 65_536)
            except BlockingIOError:
                break
        else:
            pytest.fail("the pipe never filled")
        await asyncio.sleep(0.05)
    assert len(caplog.records) < 40
    assert all(len(record.getMessage()) < 1_100 for record in caplog.records)


def test_a_terminal_that_is_gone_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    file = TerminalFile(os.fdopen(write, "wb", buffering=16), encoding="utf-8", errors="replace")
    for _ in range(100):
        assert file.write("x" * 1000) == 1000
        file.flush()
    file.close()
