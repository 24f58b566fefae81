from __future__ import annotations

import sqlite3

import pytest

from relaydesk.core.errors import LocalError
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.voucher import MOST_CREDIT, parse_code
from tests.support.ledger_rig import ANN, BOB, REF, LedgerRig


async def refused(call: object, code: str) -> None:
    with pytest.raises(LedgerRefusal) as caught:
        await call  # type: ignore[misc]
    assert caught.value.code == code


async def test_a_voucher_counts_once(rig: LedgerRig) -> None:
    ledger = await rig.start()
    code = await ledger.issue(500)
    assert await ledger.redeem(ANN.address, code) == 500
    assert await ledger.redeem(ANN.address, code.upper().replace("RDV", "rdv")) == 500
    assert await ledger.balance(ANN.address) == (500, 0)
    await refused(ledger.redeem(BOB.address, code), "voucher_used")
    ledger = await rig.start()
    await refused(ledger.redeem(BOB.address, code), "voucher_used")
    assert (await ledger.totals()).issued == 500


async def test_the_code_is_nowhere(rig: LedgerRig) -> None:
    ledger = await rig.start()
    code = await ledger.issue(500)
    secret = code.rpartition(".")[2]
    await ledger.close()
    found = b"".join(path.read_bytes() for path in rig.path.parent.glob("ledger.db*"))
    assert parse_code(code).id.encode() in found
    for form in (secret.encode(), secret.upper().encode(), parse_code(code).secret):
        assert form not in found
    conn = sqlite3.connect(rig.path)
    assert conn.execute("SELECT count(*) FROM vouchers").fetchone() == (1,)
    conn.close()


async def test_what_is_refused(rig: LedgerRig) -> None:
    ledger = await rig.start()
    code = await ledger.issue(5, rig.clock.wall_ms() + 1000)
    await refused(ledger.redeem("nobody", code), "bad_record")
    await refused(ledger.redeem(ANN.address, code.replace(f".{REF.node}.", ".9.")), "bad_voucher")
    await refused(ledger.redeem(ANN.address, code[:-8] + "aaaaaaaa"), "bad_voucher")
    await refused(ledger.redeem(ANN.address, "x"), "bad_voucher")
    rig.clock.advance(1)
    await refused(ledger.redeem(ANN.address, code), "voucher_expired")
    for amount, expires in ((0, 0), (-1, 0), (MOST_CREDIT + 1, 0), (1, 1), (1, 1 << 60)):
        with pytest.raises(LocalError):
            await ledger.issue(amount, expires)
    assert (await ledger.totals()).issued == 0
