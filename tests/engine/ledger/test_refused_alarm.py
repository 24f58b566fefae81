from __future__ import annotations

from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.bus import Bus
from relaydesk.engine.ledger.refused_alarm import STANDS_MS, RefusedAlarm
from tests.support.clock import FakeClock

REF = NodeRef(7, 1)


def test_each_voucher_stands_by_itself_until_it_is_over_or_old() -> None:
    clock = FakeClock()
    board = AlertBoard(clock, Bus())
    alarm = RefusedAlarm(board, clock)
    alarm.refused(REF, "a" * 64, "voucher_expired")
    clock.advance(1)
    alarm.refused(REF, "b" * 64, "code_lost")
    first, second = board.view().alerts
    assert first.message == "node 7:1 refused the voucher aaaaaaaa: the voucher has expired"
    assert (first.code, first.subject, second.subject) == ("voucher_refused", "aaaaaaaa", "bbbbbbbb")
    alarm.over("c" * 64)
    alarm.forget_old()
    assert len(board.view().alerts) == 2
    clock.advance(STANDS_MS / 1000 - 1)
    alarm.forget_old()
    assert [each.subject for each in board.view().alerts] == ["bbbbbbbb"]
    alarm.over("b" * 64)
    assert board.view().alerts == ()
