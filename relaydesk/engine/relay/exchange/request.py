"""What an exchange is asked for from outside, and what it says of its cost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from relaydesk.core.relay.ref import NodeRef


@dataclass(frozen=True, slots=True)
class Paid:
    """What one ticket came to, told once for each that was opened, however its exchange ended.

    ``max_price`` and ``amount`` are microUSDC. ``amount`` is what is owed by the receipt and the network's
    fee; without a receipt that holds it is the most that may still be taken, and 0 where the target refused
    before it served anything. ``relay`` is who carried the sealed request.
    """

    relay: NodeRef
    target: NodeRef
    max_price: int
    amount: int
    receipt_ok: bool


def _nobody(_: Paid) -> None:
    return None


async def _free(_: NodeRef, __: int) -> None:
    return None


@dataclass(frozen=True, slots=True)
class NetworkRequest:
    """One request of a key. ``model`` is the network's id, with or without ``net/``.

    ``hints`` is the JSON of the client's ``provider`` object, empty without one. ``credit_left`` is what the
    key may still spend today in microUSDC, None without a limit. ``hold`` is awaited with a target and the
    highest price of its ticket right before that is opened, and raises where it must not be; ``on_paid`` is
    called in the loop, once for each ``hold`` that returned.
    """

    model: str
    hints: bytes = field(default=b"", repr=False)
    credit_left: int | None = None
    on_paid: Callable[[Paid], None] = _nobody
    hold: Callable[[NodeRef, int], Awaitable[None]] = _free
