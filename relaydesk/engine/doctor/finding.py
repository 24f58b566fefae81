"""What one check found."""

from __future__ import annotations

from typing import Literal

import msgspec

Level = Literal["ok", "warn", "fail"]


class Finding(msgspec.Struct, frozen=True):
    """One line of the report. ``hint`` is the next step, empty where there is nothing to do."""

    name: str
    level: Level
    message: str
    hint: str = ""
