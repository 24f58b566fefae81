"""The client libraries for Node: installed once for each lock file, outside the source tree.

Scripts are run from a copy, because Node looks for libraries beside the script and nothing is installed in
a checkout.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

SOURCE: Final = Path(__file__).with_name("node")
INSTALL: Final = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")


class NotInstallable(Exception):
    """Why there are no client libraries here, for a person."""


def prepare(directory: Path) -> Path:
    """``directory`` with the scripts and the libraries they import.

    Raises `NotInstallable` without Node or npm, or where npm cannot fetch.
    """
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise NotInstallable(f"{program} is not on PATH")
    for script in SOURCE.glob("*.mjs"):
        shutil.copy(script, directory)
    (directory / "node_modules").symlink_to(_libraries(), target_is_directory=True)
    return directory


def run(directory: Path, script: str, environment: dict[str, str]) -> dict[str, Any]:
    """What a script prints as its one line of JSON; it fails where the script does."""
    done = subprocess.run(
        ["node", script],
        cwd=directory,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    # What a library warns about is a defect of an answer that it read.
    assert done.stderr == "", done.stderr[-3000:]
    return found


def _libraries() -> Path:
    """The installed libraries of this lock file, in the user's cache."""
    lock = SOURCE / "package-lock.json"
    version = hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relaydesk" / "node-clients"
    kept = base / version / "node_modules"
    if kept.is_dir():
        return kept
    base.mkdir(parents=True, exist_ok=True)
    # Complete or not there: two runs may install at once, and one may be interrupted.
    with tempfile.TemporaryDirectory(prefix=".installing-", dir=base) as name:
        fresh = Path(name) / version
        fresh.mkdir()
        for file in ("package.json", "package-lock.json"):
            shutil.copy(SOURCE / file, fresh)
        try:
            done = subprocess.run(
                INSTALL, cwd=fresh, capture_output=True, text=True, timeout=100, check=False
            )
        except subprocess.TimeoutExpired:
            raise NotInstallable("npm fetched nothing within 100 s") from None
        if done.returncode != 0:
            last = done.stderr.strip().splitlines() or ["no reason given"]
            raise NotInstallable(f"npm cannot install the client libraries: {last[0]}")
        try:
            fresh.rename(base / version)
        except OSError:
            if not kept.is_dir():
                raise
    return kept
