"""How a minimal target lies: its knobs, and ready-made ways to turn them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.wire import codec
from tests.support.wire.events import DONE

Document = dict[str, Any]
Edit = Callable[[Document], None]
Blocks = list[bytes]


def _nothing(_: Any) -> None:
    return None


@dataclass
class Lies:
    """The knobs of ``MinimalTarget.lies``; all off, it is honest. Edits change what they get in place."""

    ephemeral: Edit = _nothing  # details before they are signed
    details: Edit = _nothing  # and after
    ticket: Edit = _nothing  # before it is signed: prices, counts, model, expiry, commitment
    ticket_sent: Edit = _nothing  # and after
    reserve_response: Edit = _nothing  # the whole response before it is sealed
    receipt: Edit = _nothing  # before it is signed: amount, counts, hash
    receipt_sent: Edit = _nothing  # and after
    headers: Callable[[dict[str, str]], None] = _nothing  # of a sealed answer
    body: Callable[[bytes], bytes] | None = None  # the sealed body as it goes out
    events: Callable[[Blocks], Blocks] | None = None  # the stream's blocks, [DONE] last
    key: bytes | None = None  # wrapped in X-Zs-Response-Key instead of K
    unsealed: bool = False  # a plain 200 instead of the sealed one
    settle_group: bytes | None = None  # sent where there is one
    keep_alive: bool = False  # a comment before each event
    # Step (details, reserve, inference) -> (status, code): refused in plain before any work; "" for no code.
    refuse: dict[str, tuple[int, str]] = field(default_factory=dict)
    sealed_error: tuple[int, str] | None = None  # sealed, with a receipt for nothing
    # Hang up at: details, reserve, inference (nothing done yet), answer (all done, nothing sent),
    # headers (they are out), event:N (before block N).
    close: str = ""
    pause_s: float = 0.0  # before each event, or before a whole answer
    gate: asyncio.Event | None = None  # an inference waits here once its ticket is spent
    paid: Callable[[str, Document, Document], bool] = lambda tx_id, ticket, header: True  # the ledger's word


def put(**values: object) -> Edit:
    """An edit that sets fields: ``lies.ticket = put(max_price=1)``; None removes one."""

    def edit(document: Document) -> None:
        document.update(values)
        for name in [name for name, value in values.items() if value is None]:
            del document[name]

    return edit


def without(name: str) -> Callable[[dict[str, str]], None]:
    """Leave a response header out."""

    def edit(headers: dict[str, str]) -> None:
        headers.pop(name, None)

    return edit


def swap(one: int, other: int) -> Callable[[Blocks], Blocks]:
    """Two blocks change places."""

    def edit(blocks: Blocks) -> Blocks:
        blocks[one], blocks[other] = blocks[other], blocks[one]
        return blocks

    return edit


def drop(at: int) -> Callable[[Blocks], Blocks]:
    """One block is missing: -1 is [DONE], -2 the receipt."""
    return lambda blocks: [block for block in blocks if block is not blocks[at]]


def double(at: int) -> Callable[[Blocks], Blocks]:
    """One block comes twice."""
    return lambda blocks: [one for block in blocks for one in [block] * (1 + (block is blocks[at]))]


def move(start: int, to: int) -> Callable[[Blocks], Blocks]:
    """One block comes elsewhere: ``move(-2, 1)`` puts the receipt into the content."""

    def edit(blocks: Blocks) -> Blocks:
        blocks.insert(to, blocks.pop(start))
        return blocks

    return edit


def flip(at: int) -> Callable[[Blocks], Blocks]:
    """One bit of a block's sealed bytes turns."""

    def edit(blocks: Blocks) -> Blocks:
        head, _, data = blocks[at].rpartition(b"data: ")
        raw = bytearray(base64.b64decode(data))
        raw[-1] ^= 1
        blocks[at] = head + b"data: " + codec.b64(bytes(raw)).encode() + b"\n\n"
        return blocks

    return edit


def insert(at: int, block: bytes) -> Callable[[Blocks], Blocks]:
    """A foreign block stands among them."""
    return lambda blocks: [*blocks[:at], block, *blocks[at:]]


def end_after(count: int) -> Callable[[Blocks], Blocks]:
    """Only the first blocks, then [DONE]."""
    return lambda blocks: [*blocks[:count], DONE]
