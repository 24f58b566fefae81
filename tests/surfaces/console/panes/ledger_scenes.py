"""The books of a node that sells to six payers and buys at three targets; what others offer."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from relaydesk.core.relay.address import encode_address, operator_id
from relaydesk.core.text import safe_text
from relaydesk.core.view.ledger import (
    AccountView,
    CreditView,
    EarningView,
    LedgerView,
    TicketView,
    VoucherView,
)
from relaydesk.core.view.network import NetworkModelView
from tests.contract.rigs import HOSTILE

_SECOND: Final = 1_000
_DAY: Final = 86_400_000
# Name, note, balance, spent, rows; what is held comes of the tickets.
_ACCOUNTS: Final = (
    ("ann", "ann, autumn", 4_118_240, 1_822_360, 812),
    ("ben", "ben's workshop", 1_640_000, 371_200, 144),
    ("cai", "", 905_512, 94_488, 61),
    ("dora", "dora, trial", 250_000, 0, 2),
    ("eve", "eve (night jobs)", 88_640, 2_921_360, 2_310),
    ("finn", "", 0, 500_000, 377),
)
# Name, payer, model, seconds since it opened, state, price, receipt, what the payer says, about what.
_TICKETS: Final = (
    ("t1", "ann", "smollm2", 4, "open", 14_400, None, None, ""),
    ("t2", "eve", "gemma-3-270m", 19, "open", 61_440, None, None, ""),
    ("t3", "ann", "smollm2", 41, "open", 14_400, 3_912, None, ""),
    ("t4", "ben", "smollm2", 96, "pending_settle", 28_800, 11_058, None, ""),
    ("t5", "cai", "gemma-3-270m", 684, "pending_settle", 30_720, None, 9_240, ""),
    ("t6", "", "smollm2-long", 12, "open", 0, None, None, ""),
    ("d1", "eve", "gemma-3-270m", 5_460, "frozen", 61_440, 48_210, 22_005, "claims"),
    ("d2", "finn", "smollm2", 93_000, "frozen", 14_400, None, None, "protest"),
)
# Model, and what it earned on each of the last days, today first; a ticket is 5,000 or so.
_EARNED: Final = (
    ("smollm2", (182_410, 402_120, 377_815, 211_090, 0, 388_002, 451_700, 420_555, 128_300, 96_004)),
    ("gemma-3-270m", (94_870, 310_400, 0, 188_312, 64_015, 252_900, 199_640, 301_077, 0, 41_500)),
    ("smollm2-long", (0, 22_318, 61_903, 0, 0, 118_440, 0, 9_870)),
)
_OFFERS: Final = (
    ("gemma-3-27b-it", 80_000, 160_000, 131_072, 4, 12, True),
    ("llama-3.3-70b-instruct", 230_000, 400_000, 65_536, 2, 11, True),
    ("qwen3-coder-480b-a35b", 300_000, 1_200_000, 262_144, 1, 1, True),
    ("qwen3-4b", 0, 0, 32_768, 3, 13, True),
    ("mistral-small-3.2-24b", 50_000, 110_000, 0, 1, 0, False),
)


def address(name: str) -> str:
    """A payer's address."""
    return encode_address(hashlib.sha256(f"payer {name}".encode()).digest())


def transaction(name: str) -> str:
    """A transaction's id."""
    return base64.b32encode(hashlib.sha256(name.encode()).digest()).decode().rstrip("=")


def ledger(now_ms: int) -> LedgerView:
    """Every kind of account, ticket, dispute, voucher and credit; the sums agree."""
    tickets = [_ticket(*each, now_ms) for each in _TICKETS]
    held = {
        name: sum(each.max_price for each in tickets if each.payer == address(name)) for name, *_ in _ACCOUNTS
    }
    accounts = tuple(
        AccountView(address(name), balance, held[name], spent, rows, safe_text(note))
        for name, note, balance, spent, rows in _ACCOUNTS
    )
    balance, spent = sum(each.balance for each in accounts), sum(each.spent for each in accounts)
    fees = spent // 200
    return LedgerView(
        issued=balance + sum(held.values()) + spent,
        balance=balance,
        held=sum(held.values()),
        earned=spent - fees,
        fees=fees,
        accounts=accounts,
        open_tickets=tuple(each for each in tickets if each.state != "frozen"),
        disputes=tuple(each for each in tickets if each.state == "frozen"),
        earnings=_earnings(now_ms // _DAY),
        vouchers=(
            VoucherView(
                "5be0177c",
                2_000_000,
                now_ms - 3 * 3_600_000,
                now_ms + 90 * _DAY + _DAY // 4,
                safe_text("gus"),
            ),
            VoucherView(
                "c41d09aa", 250_000, now_ms - 12 * _DAY, now_ms + 2 * _DAY + _DAY // 4, safe_text("hackday")
            ),
            VoucherView("0f93e6b2", 100_000, now_ms - 40 * _DAY, now_ms - 10 * _DAY),
        ),
        credit=(
            CreditView(
                _operator("grace"), 2, address("us at grace"), 2_871_300, 48_000, 2, 1, now_ms - 44_000
            ),
            CreditView(_operator("ada"), 1, address("us at ada"), 412_600, 0, 0, 0, now_ms - 7 * 3_600_000),
            CreditView(_operator("bjorn"), 1, address("us at bjorn"), waiting=1),
        ),
    )


def offers() -> tuple[NetworkModelView, ...]:
    """What others offer, by name."""
    return tuple(NetworkModelView(safe_text(name), *rest) for name, *rest in _OFFERS)  # type: ignore[arg-type]


def _operator(name: str) -> int:
    return operator_id(hashlib.sha256(name.encode()).digest())


def _ticket(
    name: str, payer: str, model: str, ago_s: int, state: str, price: int, ours: int | None,
    theirs: int | None, about: str, now_ms: int,
) -> TicketView:  # fmt: skip
    opened_ms = now_ms - ago_s * _SECOND
    return TicketView(
        transaction(name), address(payer) if payer else "", safe_text(model), state, price, opened_ms,
        opened_ms + 720 * _SECOND, ours, theirs, about,
    )  # fmt: skip


def _earnings(today: int) -> tuple[EarningView, ...]:
    found = [
        EarningView(
            today - back, safe_text(model), max(1, earned // 5_120), earned, earned // 31 if back else 0
        )
        for model, days in _EARNED
        for back, earned in enumerate(days)
        if earned
    ]
    return tuple(sorted(found, key=lambda each: (-each.day, -each.earned)))


def hostile_ledger(now_ms: int) -> LedgerView:
    """Every text somebody else's, as the node makes it safe, and amounts beyond any column."""
    bad = [safe_text(text, 512) for text in HOSTILE]
    states = ("open", "pending_settle", "frozen")
    tickets = tuple(
        TicketView(f"{at}{text}", text, text, states[at % 3], 10**15, now_ms, now_ms + at, 10**15, None, text)
        for at, text in enumerate(bad)
    )
    return LedgerView(
        10**15, 10**15, 0, 0, 0,
        tuple(AccountView(f"{at}{text}", 10**15, 10**15, 10**15, at, text) for at, text in enumerate(bad)),
        tuple(each for each in tickets if each.state != "frozen"),
        tuple(each for each in tickets if each.state == "frozen"),
        tuple(EarningView(now_ms // _DAY - at, text, at, 10**15, at) for at, text in enumerate(bad)),
        tuple(VoucherView(f"{at}{text}", 10**12, now_ms, now_ms + at, text) for at, text in enumerate(bad)),
        tuple(CreditView(at, 2**64 - 1, text, 10**15, 10**15, at, at, now_ms) for at, text in enumerate(bad)),
    )  # fmt: skip


def hostile_offers() -> tuple[NetworkModelView, ...]:
    """Names that somebody else gave."""
    return tuple(
        NetworkModelView(safe_text(f"{at}{text}", 512), 10**15, 1, 2**40, 9_999, at, at % 2 == 0)
        for at, text in enumerate(HOSTILE)
    )
