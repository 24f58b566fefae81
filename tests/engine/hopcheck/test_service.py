from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.commands import CheckHop, LookFromOutside, PrepareHopCheck
from relaydesk.engine.hopcheck.service import ALERT, HopChecks
from relaydesk.engine.jobs import JobBoard
from tests.support.edge_rig import CheckedNode, checked_node, edge, without
from tests.support.lab_ground import network_service, network_settings


def alerts(node: CheckedNode) -> list[str]:
    return [each.code for each in node.service.ground.alerts.view().alerts]


async def test_a_check_by_command_is_a_job_and_is_seen_in_its_section(tmp_path: Path) -> None:
    async with checked_node(tmp_path) as node, edge(node.port, rewrite=without("X-Zs-Relay-Hop")) as front:
        outcome = await node.dispatcher.call(CheckHop(front.url, (f"inner={node.url}/",)))
        assert outcome.ok
        view = node.checks.view()
        while not view.probes:
            await asyncio.sleep(0)
            view = node.checks.view()
        assert (view.running, view.job, view.url) == (True, outcome.job, front.url)
        assert {row.state for row in view.probes} <= {"waiting", "running", "passed", "failed", "not_tested"}
        second = await node.dispatcher.call(CheckHop(front.url))
        assert second.fault is not None
        assert second.fault.code == "conflict"
        assert await node.finished(outcome.job) == "done"
        view = node.checks.view()
        assert not view.running
        report = view.report
        assert report is not None
        assert not report.ok
        assert [(each.code, each.layer) for each in report.findings] == [("marker_removed", "public")]
        assert [each.name for each in report.layers] == ["loopback", "inner", "public"]
        assert "waiting" not in {row.state for row in report.probes}


async def test_a_check_that_is_cancelled_leaves_the_last_report(tmp_path: Path) -> None:
    async with checked_node(tmp_path) as node, edge(node.port) as front:
        first = await node.dispatcher.call(CheckHop(front.url))
        await node.finished(first.job)
        report = node.checks.view().report
        second = await node.dispatcher.call(CheckHop(front.url))
        await asyncio.sleep(0)
        await node.jobs.cancel(second.job)
        assert node.checks.view().report == report
        assert not node.checks.view().running


@pytest.mark.parametrize(
    "command", [CheckHop(), CheckHop("nonsense"), CheckHop("http://x", ("a",)), LookFromOutside()]
)
async def test_what_cannot_be_checked_is_refused_by_name(tmp_path: Path, command: Any) -> None:
    async with checked_node(tmp_path) as node:
        outcome = await node.dispatcher.call(command)
        assert outcome.fault is not None
        assert outcome.fault.code == "invalid_request"
        assert outcome.fault.param in ("url", "via")


async def test_what_a_check_elsewhere_gets(tmp_path: Path) -> None:
    async with checked_node(tmp_path, public_url="http://127.0.0.1:9") as node:
        value = (await node.dispatcher.call(PrepareHopCheck())).value
        assert value["url"] == "http://127.0.0.1:9"
        assert [each["url"] for each in value["layers"]] == [node.url]
        assert (value["target"], value["lab"]) == ("", True)
        assert node.checks.nonces.asked(value["nonce"]) is not None
        assert [each.name for each in node.checks.view().suggested] == ["loopback", "public"]
        # Nobody of the network is known here who could look.
        assert (await node.dispatcher.call(LookFromOutside())).value is None


async def test_where_the_network_is_off_each_command_says_so(tmp_path: Path) -> None:
    async with network_service(tmp_path, network_settings(network="off")) as service:
        checks = HopChecks(service, JobBoard(service.ground.clock, service.ground.rng, service.ground.bus))
        for call in (checks.check(CheckHop("http://x")), checks.prepare(PrepareHopCheck())):
            with pytest.raises(Exception, match="the relay network is off"):
                await call
        assert checks.view().suggested == ()


class _Schedule:
    """The schedule's sleeps, let go one by one."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._go = asyncio.Semaphore(0)
        self._slept = asyncio.Semaphore(0)

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        self._slept.release()
        await self._go.acquire()

    async def step(self) -> None:
        """Let it go on, until it sleeps again."""
        self._go.release()
        await self._slept.acquire()

    async def started(self) -> None:
        await self._slept.acquire()


async def test_by_schedule_an_edge_that_starts_to_fail_is_an_alert_until_it_passes(tmp_path: Path) -> None:
    async with checked_node(tmp_path) as node, edge(node.port) as front:
        settings = network_settings(public_url=front.url, hop_check_interval=3600.0)
        object.__setattr__(node.service.ground, "settings", lambda: settings)
        schedule = _Schedule()
        checks = HopChecks(node.service, node.jobs, sleep=schedule.sleep)
        running = asyncio.create_task(checks.run())
        await schedule.started()
        assert checks.view().schedule.next_at_ms
        # The probes' nonces are the listener's: those of the rig's own checks.
        checks.nonces = node.checks.nonces
        await schedule.step()
        assert checks.view().schedule.passing is True
        assert alerts(node) == ["network_lab"]
        front.rewrite = without("X-Zs-Relay-Hop")
        await schedule.step()
        assert alerts(node) == ["network_lab"]  # once is nothing
        await schedule.step()
        assert ALERT in alerts(node)
        assert checks.view().schedule.passing is False
        (alert,) = [each for each in node.service.ground.alerts.view().alerts if each.code == ALERT]
        assert "X-Zs-Relay-Hop" in alert.message
        front.rewrite = without()
        await schedule.step()
        assert ALERT not in alerts(node)
        assert schedule.asked == [120.0, 3600.0, 30.0, 3600.0, 3600.0]
        running.cancel()
        # What an operator asked for is shown by itself.
        assert checks.view().report is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"hop_check_interval": 0.0, "public_url": "http://x"}, "INTERVAL"), ({}, "RELAY_PUBLIC_URL")],
)
async def test_a_schedule_that_cannot_be_kept_says_why(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    async with checked_node(tmp_path) as node:
        settings = network_settings(**changes)
        object.__setattr__(node.service.ground, "settings", lambda: settings)
        schedule = _Schedule()
        checks = HopChecks(node.service, node.jobs, sleep=schedule.sleep)
        running = asyncio.create_task(checks.run())
        await schedule.started()
        assert why in checks.view().schedule.why
        assert checks.view().schedule.next_at_ms == 0
        running.cancel()
