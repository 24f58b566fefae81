"""The source tree as the tests of its rules see it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "relaydesk"
TESTS: Final = ROOT / "tests"


def modules(folder: Path = SOURCE) -> list[Path]:
    """Every Python file below ``folder``."""
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def dotted(path: Path) -> str:
    """A module's import name."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
