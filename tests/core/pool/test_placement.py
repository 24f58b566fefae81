from __future__ import annotations

from relaydesk.core.pool.fit import FitReport
from relaydesk.core.pool.memory import MIB
from relaydesk.core.pool.placement import Room, place, refusal

# The hub API's own texts, with its own figures.
NOWHERE_NOW = (
    '"qwen3-14b" needs about 12800 MB VRAM: the host has 6144 MB free, the best node has 0 MB free, and the '
    "pool aggregate (6144 MB) is not enough to shard it either — free VRAM, add a node, or pick a "
    "smaller/more-quantized model"
)
HOST_ONLY = (
    '"qwen3-14b" is host-only (a privacy setting — it never leaves this hub, not even as a shard): needs '
    "about 12800 MB VRAM, the host has 6144 MB free — free VRAM on the host or pick a "
    "smaller/more-quantized model"
)
NEVER = '"qwen3-70b" needs about 48000 MB and the whole pool tops out at 30720 MB'


def report(model: str, need: int, free: int, total: int, fits: bool = False) -> FitReport:
    return FitReport(
        model=model,
        fits=fits,
        ever_fits=need <= total,
        constraint="" if fits else "free",
        reason="",
        components=(),
        need_mib=need,
        free_mib=free,
        total_mib=total,
        ctx=1,
        slots=1,
    )


def text(model: str, need: int, free: int, total: int, host_only: bool = False) -> str:
    placed = place(report(model, need, free, total), host_only=host_only)
    assert placed.where == ""
    assert placed.fault is not None
    assert placed.fault.code == "model_unavailable"
    assert (placed.fault.rule.status, placed.fault.rule.type) == (503, "model_unavailable")
    assert placed.fault.sentence == placed.fault.message
    return placed.fault.message


def test_what_fits_goes_to_the_host() -> None:
    placed = place(report("m", 10, 20, 30, fits=True))
    assert (placed.where, placed.fault) == ("host", None)


def test_the_three_refusals_to_the_letter() -> None:
    assert text("qwen3-14b", 12800, 6144, 16384) == NOWHERE_NOW
    assert text("qwen3-14b", 12800, 6144, 16384, host_only=True) == HOST_ONLY
    assert text("qwen3-70b", 48000, 6144, 30720) == NEVER


def test_never_comes_before_host_only() -> None:
    assert text("qwen3-70b", 48000, 6144, 30720, host_only=True) == NEVER


def test_need_is_rounded_up_and_room_down() -> None:
    room = Room(host_free=6145 * MIB - 1, pool_total=20_000 * MIB)
    assert refusal("qwen3-14b", 12799 * MIB + 1, room).message == NOWHERE_NOW
    assert "tops out at 9 MB" in refusal("m", 9 * MIB + 1, Room(0, 10 * MIB - 1)).message


def test_other_machines_are_named_where_there_are_any() -> None:
    room = Room(2 * MIB, 90 * MIB, best_node_free=3 * MIB, aggregate_free=5 * MIB)
    message = refusal("m", 50 * MIB, room).message
    assert "the host has 2 MB free, the best node has 3 MB free, and the pool aggregate (5 MB)" in message
