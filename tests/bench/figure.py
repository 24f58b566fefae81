"""One figure of a run, its budget, and how both are printed. Nothing here fails a run: a bench reports."""

from __future__ import annotations

from typing import Literal

import msgspec

from tests.bench.stats import Spread, differences, ratios, spread

Kind = Literal["value", "ratio", "added"]


class Budget(msgspec.Struct, frozen=True):
    """A limit of the design: ``at_least`` says on which side of ``limit`` the median must lie."""

    limit: float
    at_least: bool = False

    def met_by(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """``result`` is the figure: a value, or of pairs the ratio or difference of ``measured`` to ``baseline``.

    ``against`` names the baseline. ``digits`` are those printed.
    """

    row: str
    name: str
    unit: str
    kind: Kind
    result: Spread
    measured: Spread | None = None
    baseline: Spread | None = None
    against: str = ""
    budget: Budget | None = None
    digits: int = 2

    @property
    def met(self) -> bool | None:
        """Whether the median keeps the budget; None without one."""
        return self.budget.met_by(self.result.median) if self.budget is not None else None

    def lines(self) -> list[str]:
        """The figure for people."""
        unit = "" if self.kind == "ratio" else f" {self.unit}"
        first = f"{self.name}: {self._shown(self.result)}{unit}"
        if self.kind == "added":
            first += " added"
        elif self.kind == "ratio":
            first += f" of {self.against}"
        if self.budget is not None:
            sign = "≥" if self.budget.at_least else "≤"
            verdict = "kept" if self.met else "MISSED"
            first += f"   [budget {sign} {self.budget.limit:g}{unit}: {verdict}]"
        lines = [first]
        if self.baseline is not None and self.measured is not None:
            lines.append(
                f"    {self.against} {self._shown(self.baseline)}, measured {self._shown(self.measured)} "
                f"{self.unit}, {self.result.count} pair{'s' if self.result.count > 1 else ''}"
            )
        return lines

    def _shown(self, found: Spread) -> str:
        ends = (found.least, found.median, found.greatest) if found.count > 1 else (found.median,)
        return " – ".join(f"{value:.{self.digits}f}" for value in ends)


def value(
    row: str, name: str, unit: str, values: list[float], *, budget: Budget | None = None, digits: int = 2
) -> Figure:
    """A figure without a baseline."""
    return Figure(
        row=row, name=name, unit=unit, kind="value", result=spread(values), budget=budget, digits=digits
    )


def pairs(
    row: str,
    name: str,
    unit: str,
    kind: Literal["ratio", "added"],
    baseline: list[float],
    measured: list[float],
    *,
    against: str,
    budget: Budget | None = None,
    digits: int = 2,
) -> Figure:
    """A figure out of pairs measured in turns."""
    compared = ratios(baseline, measured) if kind == "ratio" else differences(baseline, measured)
    return Figure(
        row=row,
        name=name,
        unit=unit,
        kind=kind,
        result=spread(compared),
        measured=spread(measured),
        baseline=spread(baseline),
        against=against,
        budget=budget,
        digits=digits,
    )
