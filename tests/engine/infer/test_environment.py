from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from relaydesk.engine.infer.environment import worker_environment


def test_only_named_variables_pass() -> None:
    given = {
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "1",
        "RELAY_API_KEY": "s",
        "RELAY_STATE_DIR": "/x",
        "NVIDIA_API_KEY": "s",
        "HF_TOKEN": "s",
        "OPENAI_API_KEY": "s",
        "LD_PRELOAD": "/evil.so",
    }
    kept = worker_environment(given)
    assert sorted(kept) == ["CUDA_VISIBLE_DEVICES", "PATH", "PYTHONPATH"]
    assert kept["PATH"] == "/bin"


def test_the_worker_finds_this_package_from_anywhere(tmp_path: Path) -> None:
    line = "import relaydesk.engine.infer.child.main, sys; print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", line],
        cwd=tmp_path,
        env=worker_environment(os.environ),
        capture_output=True,
        check=True,
        text=True,
    )
    heavy = {"aiohttp", "asyncio", "uvloop", "sqlite3", "psutil", "xllamacpp", "cryptography"}
    assert not [name for name in heavy if f"'{name}'" in done.stdout]
