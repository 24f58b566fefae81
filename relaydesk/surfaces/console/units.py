"""Amounts as people read them."""

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


def mib(count: float) -> str:
    """MiB, as GiB from ten of those on."""
    return f"{count / 1024:.1f} GiB" if count >= 10 * 1024 else f"{count:.0f} MiB"


def size(count: float) -> str:
    """Bytes, in binary units."""
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def plural(count: int, noun: str) -> str:
    """``1 request in flight``, ``2 requests in flight``, ``3 loaded models``."""
    head, _, tail = noun.partition(" in ")
    word = f"{count} {head}{'' if count == 1 else 's'}"
    return f"{word} in {tail}" if tail else word
