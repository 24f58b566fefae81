"""Amounts as people read them, on the command line and in the console."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A duration in two units at most: ``3 h 12 min``."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for unit, step in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, step)
        if count:
            parts.append(f"{count} {unit}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"


def millis(value: float | None) -> str:
    """A duration given in milliseconds; a dash where it is not known (yet)."""
    if value is None:
        return "–"
    return f"{value:.0f} ms" if value < 10_000 else f"{value / 1000:.1f} s"


def rate(per_s: float) -> str:
    """Tokens a second: three digits say enough."""
    return f"{per_s:.1f}" if per_s < 10 else f"{per_s:.0f}"


def mib(count: float, scale: float = 0) -> str:
    """MiB; GiB where the amount, or ``scale``, the largest beside it, has ten of them."""
    large = max(count, scale) >= 10 * 1024
    return f"{count / 1024:.1f} GiB" if large else f"{count:.0f} MiB"


def size(count: float) -> str:
    """Bytes, in binary units."""
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def of_size(done: float, total: float) -> str:
    """``42.0 of 88.6 MiB``: both in the unit of the whole."""
    if total <= 0:
        return size(done)
    whole, _, unit = size(total).partition(" ")
    step = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}.get(unit, 1 << 30)
    part = f"{done / step:.0f}" if step == 1 else f"{done / step:.1f}"
    return f"{part} of {whole} {unit}"


def count(value: int) -> str:
    """A count in few cells: ``40.2 k``."""
    if value < 10_000:
        return str(value)
    return f"{value / 1000:.1f} k" if value < 1_000_000 else f"{value / 1_000_000:.1f} M"


def some(value: int, noun: str) -> str:
    """``1 token``, ``40.2 k tokens``."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def plural(count: int, noun: str) -> str:
    """``1 request in flight``, ``2 requests in flight``, ``3 loaded models``."""
    head, _, tail = noun.partition(" in ")
    word = f"{count} {head}{'' if count == 1 else 's'}"
    return f"{word} in {tail}" if tail else word
