from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import psutil
import pytest
import uvloop

from relaydesk.core.errors import EnvError
from relaydesk.engine.tls.acme.dns01 import Dns01Hook

PLACE, VALUE = "_acme-challenge.hub.test", "dig-est_1"


def script(directory: Path, body: str, mode: int = 0o755) -> Path:
    path = directory / "dns hook.sh"
    path.write_text(f"#!/bin/sh\necho \"$# $1 $2 $3\" >> '{directory}/calls'\n{body}\n")
    path.chmod(mode)
    return path


def calls(directory: Path) -> list[str]:
    path = directory / "calls"
    return path.read_text().splitlines() if path.exists() else []


async def use(hook: Dns01Hook, *values: str) -> None:
    async with hook:
        for value in values or (VALUE,):
            await hook.publish(PLACE, value)


def environ() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}


async def test_every_record_is_set_and_taken_away(tmp_path: Path) -> None:
    await use(Dns01Hook(script(tmp_path, "exit 0"), environ()), VALUE, "-second; rm -rf $HOME")
    assert calls(tmp_path) == [
        f"3 {verb} {PLACE} {value}"
        for verb in ("present", "cleanup")
        for value in (VALUE, "-second; rm -rf $HOME")
    ]


async def test_a_hook_gets_its_environment_but_nothing_of_the_nodes(tmp_path: Path) -> None:
    hook = script(tmp_path, f"env > '{tmp_path}/env'")
    given = environ() | {
        "CF_TOKEN": "theirs",
        "RELAY_API_KEY": "ours",
        "NOTIFY_SOCKET": "/run/x",
        "WATCHDOG_USEC": "1",
        "LISTEN_FDS": "1",
    }
    await use(Dns01Hook(hook, given))
    found = (tmp_path / "env").read_text()
    assert "CF_TOKEN=theirs" in found
    assert not any(name in found for name in ("RELAY_API_KEY", "ours", "NOTIFY", "WATCHDOG", "LISTEN_FDS"))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo one >&2; echo 'no zone\x1b[31m' >&2; exit 3", r"ended with status 3 \(no zone"),
        ("exit 1", r"ended with status 1: try it by hand"),
        ("kill -9 $$", r"ended with status -9"),
        ("sleep 60 & yes x | head -c 300000 >&2; echo last >&2; exit 1", r"status 1 \(last\)"),
    ],
)
async def test_a_hook_that_fails(tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises(EnvError, match=said) as caught:
        await use(Dns01Hook(script(tmp_path, f'[ "$1" = cleanup ] || {{ {body}\n }}'), environ()))
    assert caught.value.fault.param == "RELAY_ACME_DNS_HOOK"
    assert caught.value.fault.sentence.isprintable()
    assert [call.split()[1] for call in calls(tmp_path)] == ["present", "cleanup"]


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_hook_that_hangs_is_ended_with_all_it_started(tmp_path: Path, loop: object) -> None:
    hook = script(tmp_path, f"sleep 61 & echo $! > '{tmp_path}/child'; [ $1 = cleanup ] || wait")
    with (
        asyncio.Runner(loop_factory=loop) as runner,
        pytest.raises(EnvError, match=r"had not ended after 0\.5 s"),
    ):  # type: ignore[arg-type]
        runner.run(use(Dns01Hook(hook, environ(), limit_s=0.5, cleanup_s=20)))
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 10
    # A container may have nobody who buries orphans.
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def test_a_cleanup_that_fails_is_only_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await use(Dns01Hook(script(tmp_path, '[ "$1" = present ]'), environ()))
    assert f"a TXT record at {PLACE} may be left" in caplog.text


async def test_stopping_takes_the_record_away(tmp_path: Path) -> None:
    hook = Dns01Hook(script(tmp_path, '[ "$1" = cleanup ] || sleep 60'), environ(), cleanup_s=100)
    task = asyncio.ensure_future(use(hook))
    while not calls(tmp_path):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [call.split()[1] for call in calls(tmp_path)] == ["present", "cleanup"]


async def test_what_cannot_be_run(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="is not there"):
        await use(Dns01Hook(tmp_path / "none", environ()))
    with pytest.raises(EnvError, match=r"not executable: `chmod \+x"):
        await use(Dns01Hook(script(tmp_path, "", 0o644), environ()))
    plain = tmp_path / "plain"
    plain.write_text("no first line")
    plain.chmod(0o755)
    with pytest.raises(EnvError, match="cannot be run"):
        await use(Dns01Hook(plain, environ()))
