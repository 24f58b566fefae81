"""The books on the disk: what ends the process, a disk that is full, a file somebody has been at."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError
from relaydesk.core.ledger.statement import fault_in
from relaydesk.engine.ledger.ledger import Ledger
from relaydesk.store.ledger import Books, LedgerRepo
from tests.store.conftest import SmallDisk
from tests.support.ledger_rig import ANN, REF, VALUES, LedgerRig, claim_request, ticket_id
from tests.support.tree import ROOT

CHILD = """
import asyncio, sys
from pathlib import Path
from tests.support.ledger_rig import ANN, VALUES, LedgerRig, claim_request

async def main():
    rig = LedgerRig(Path(sys.argv[1]), sys.argv[2])
    rig.numbers = int(sys.argv[2])
    ledger = await rig.start()
    while True:
        await rig.credit(ledger, ANN, 100)
        print("issued", flush=True)
        tx_id, terms = await rig.open(ledger, ANN)
        print("open", tx_id, terms.ticket_id, flush=True)
        await ledger.receipt(tx_id, VALUES)
        print("receipt", tx_id, flush=True)
        await ledger.settle(claim_request(tx_id, terms.ticket_id, VALUES, ANN))
        print("settled", tx_id, flush=True)

asyncio.run(main())
"""


def killed_after(directory: Path, lines: int, number: int) -> list[list[str]]:
    """What a process said that was killed with SIGKILL while it went on, and no sooner than after so much."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", CHILD, str(directory), str(number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as child:
        assert child.stdout is not None
        said = [child.stdout.readline() for _ in range(lines)]
        child.send_signal(signal.SIGKILL)
        said += child.stdout.readlines()
    assert child.returncode == -signal.SIGKILL
    return [line.split() for line in said if line.endswith("\n")]


async def test_a_kill_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    said: list[list[str]] = []
    for number, lines in enumerate((5, 10, 3)):
        said += killed_after(tmp_path, lines, number * 1000)
        rig = LedgerRig(tmp_path)
        ledger = await rig.start()
        totals = await ledger.totals()
        assert totals.issued == totals.balance + totals.held + totals.earned + totals.fees
        states = {line[1]: line[0] for line in said if len(line) > 1}
        for tx_id, heard in states.items():
            ticket = await ledger.ticket(tx_id)
            assert ticket is not None
            reached = ["open"] + ["receipt"] * (ticket.receipt is not None) + [ticket.state]
            assert heard in reached
        settled = sum(heard == "settled" for heard in states.values())
        issued = sum(line[0] == "issued" for line in said)
        # At most one call was under way at each kill.
        assert 0 <= totals.earned // VALUES.amount - settled <= number + 1
        assert 0 <= totals.issued // 100 - issued <= number + 1
        assert fault_in(await ledger.statement(ANN.address)) == ""
        await rig.close()


async def until_it_fails(rig: LedgerRig, ledger: Ledger) -> None:
    for _ in range(200):
        await rig.open(ledger, ANN, 0)


async def test_a_full_disk_refuses_and_loses_nothing(small_disk: SmallDisk) -> None:
    rig = LedgerRig(small_disk.path)
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 1000)
    tx_id, terms = await rig.open(ledger, ANN)
    await ledger.receipt(tx_id, VALUES)
    before = await ledger.totals()
    small_disk.fill()
    with pytest.raises(EnvError) as caught:
        await until_it_fails(rig, ledger)
    assert caught.value.fault.code == "storage_failed"
    assert "full" in caught.value.fault.message
    assert await ledger.totals() == before
    claim = claim_request(tx_id, terms.ticket_id, VALUES, ANN)
    # Answered or refused: the claim is there afterwards or it is not, and the deadline pays the same.
    with contextlib.suppress(EnvError):
        await ledger.settle(claim)
    rig.clock.advance(900)
    small_disk.empty()
    await ledger.due()
    assert await ledger.balance(ANN.address) == (960, 0)
    await rig.close()
    again = await LedgerRig(small_disk.path).start()
    assert (await again.totals()).earned == 40
    assert fault_in(await again.statement(ANN.address)) == ""
    await again.close()


async def test_the_file_is_synced_at_every_commit(tmp_path: Path) -> None:
    repo = LedgerRepo(tmp_path / "ledger.db", REF)
    await repo.open()
    assert await repo.read(lambda books: books._conn.execute("PRAGMA synchronous").fetchone()) == (2,)
    await repo.close()
    assert (tmp_path / "ledger.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE accounts SET balance = balance + 1",
        "UPDATE accounts SET held = held + 1",
        "UPDATE sums SET earned = earned + 1",
        "UPDATE vouchers SET amount = amount + 1",
        "UPDATE tickets SET held = 0",
        "UPDATE tickets SET amount = 1",
    ],
)
async def test_books_that_do_not_agree_are_not_opened(tmp_path: Path, change: str) -> None:
    rig = LedgerRig(tmp_path)
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 100)
    await rig.open(ledger, ANN, 60)
    await rig.close()
    with sqlite3.connect(rig.path) as conn:
        conn.execute(change)
    conn.close()
    with pytest.raises(EnvError) as caught:
        await LedgerRig(tmp_path).start()
    assert "do not agree" in caught.value.fault.message


@pytest.mark.parametrize("change", ["UPDATE rows SET issued = 0", "DELETE FROM rows"])
async def test_rows_are_never_changed(tmp_path: Path, change: str) -> None:
    rig = LedgerRig(tmp_path)
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 100)
    await rig.close()
    conn = sqlite3.connect(rig.path)
    with pytest.raises(sqlite3.IntegrityError, match="never"):
        conn.execute(change)
    conn.close()


async def test_work_that_fails_undoes_all_of_it(tmp_path: Path) -> None:
    rig = LedgerRig(tmp_path)
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 100)
    await rig.open(ledger, ANN, 60)

    def work(books: Books) -> None:
        assert books.has_ticket(ticket_id(1))
        books.add_sums(5, 5, 5)
        raise asyncio.InvalidStateError

    with pytest.raises(asyncio.InvalidStateError):
        await ledger._repo.run(work)
    assert (await ledger.totals()).earned == 0
    await rig.close()
