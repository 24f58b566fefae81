"""What lies beside a model file: the other parts of a split one, the projector that goes with it."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path
from typing import Final

from relaydesk.core.errors import LocalError
from relaydesk.core.pool.reference import is_projector, quant_of, split_part
from relaydesk.core.text import safe_text

MAX_ENTRIES: Final = 5000  # of a folder looked at


def parts_of(path: Path) -> tuple[Path, ...]:
    """All parts of the model that ``path`` is one part of, in order; the file alone if it is not split.

    Raises `LocalError` ``bad_model_file`` where a part is missing.
    """
    part = split_part(path.name)
    if part is None:
        return (path,)
    stem, _, count = part
    if count > MAX_ENTRIES:
        raise LocalError(
            "bad_model_file", f"{safe_text(path.name)} claims {count} parts", "get the model again"
        )
    suffix = path.name[-5:]
    files = tuple(
        path.with_name(f"{stem}-{index:05d}-of-{count:05d}{suffix}") for index in range(1, count + 1)
    )
    for file in files:
        if not file.is_file():
            raise LocalError(
                "bad_model_file",
                f"{safe_text(path.name)} is a part of a split model, and {safe_text(file.name)} is missing",
                "put all parts into one directory",
            )
    return files


def projector_beside(path: Path) -> Path | None:
    """The projector in a model's folder, where it is plain that they belong together.

    That is: one projector there, and all models there are quantisations of the same one.
    """
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, MAX_ENTRIES)]
    except OSError:
        return None
    gguf = [name for name in names if name.lower().endswith(".gguf")]
    projectors = [name for name in gguf if is_projector(name)]
    families = {_family(name) for name in gguf if not is_projector(name)}
    return path.with_name(projectors[0]) if len(projectors) == len(families) == 1 else None


def _family(name: str) -> str:
    part = split_part(name)
    stem = (part[0] if part else name[:-5]).lower()
    quant = quant_of(name)
    return re.sub(rf"[-._]?{re.escape(quant.lower())}$", "", stem) if quant else stem
