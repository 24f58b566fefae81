"""Deleting what a pull wrote, and nothing else."""

from __future__ import annotations

import glob
from pathlib import Path

from relaydesk.core.errors import LocalError
from relaydesk.engine.pull.disk import storage_faults
from relaydesk.engine.pull.siblings import parts_of


def remove_pulled(model_dir: Path, *paths: Path) -> tuple[Path, ...]:
    """Delete pulled files with all their parts, and their folder once it is empty; blocks.

    A path outside ``model_dir`` is refused with `LocalError` ``refused`` before anything is deleted: such
    a file is not ours. Returns what was deleted; what is gone already is no error. Whether another model
    still uses a projector is the caller's to know.
    """
    root = model_dir.resolve()
    for path in paths:
        # The folder is resolved, the file is not: a link in our folder is deleted, never what it points to.
        if root not in (path.parent.resolve() / path.name).parents:
            raise LocalError(
                "refused", f"{path} is not a file that relaydesk wrote", "delete it yourself if you want to"
            )
    deleted: list[Path] = []
    for path in paths:
        with storage_faults(path):
            for file in _parts(path):
                if file.is_file() or file.is_symlink():
                    file.unlink()
                    deleted.append(file)
            _drop_empty(path.parent.resolve(), root)
    return tuple(deleted)


def _parts(path: Path) -> tuple[Path, ...]:
    try:
        return parts_of(path)
    except LocalError:  # a part is missing: take those that are there
        stem = path.name.rpartition("-of-")[0].rpartition("-")[0]
        count = path.name.rpartition("-of-")[2]
        return tuple(path.parent.glob(f"{glob.escape(stem)}-?????-of-{count}"))


def _drop_empty(folder: Path, root: Path) -> None:
    while folder != root and root in folder.parents:
        try:
            folder.rmdir()
        except OSError:
            return  # something is left in it
        folder = folder.parent
