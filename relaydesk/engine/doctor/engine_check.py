"""Whether the inference engine starts on this machine, tried in a child: a bad build may crash."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from typing import Any, Final

from relaydesk.core.text import safe_text
from relaydesk.engine.doctor.finding import Finding
from relaydesk.engine.doctor.gpu import Gpu, find_gpus, install_line, wheel

_TIMEOUT_S: Final = 60.0
_LEAST_GLIBC: Final = (2, 35)  # of the wheels for CUDA and ROCm
_ASK: Final = """
import json, xllamacpp
kinds = xllamacpp.ggml_backend_dev_type
gpus = (kinds.GGML_BACKEND_DEVICE_TYPE_GPU, kinds.GGML_BACKEND_DEVICE_TYPE_IGPU)
found = [str(d["description"]) for d in xllamacpp.get_device_info() if d["type"] in gpus]
print(json.dumps({"version": xllamacpp.__version__, "gpus": found}))
"""


def check_engine() -> list[Finding]:
    """The engine library, then the GPUs against what it can use."""
    told = _ask_child()
    if isinstance(told, str):
        hint = f"`{sys.executable} -m pip install --force-reinstall xllamacpp`"
        return [Finding("engine", "fail", f"the engine does not start: {told}", hint)]
    usable = [str(safe_text(name, 80)) for name in told.get("gpus", ())]
    version = safe_text(str(told.get("version")), 40)
    return [
        Finding("engine", "ok", f"xllamacpp {version} starts"),
        gpu_finding(find_gpus(), usable),
    ]


def gpu_finding(present: tuple[Gpu, ...], usable: list[str]) -> Finding:
    """GPUs that are there against GPUs that the installed engine sees."""
    if usable:
        return Finding("GPU", "ok", f"the engine uses {', '.join(usable)}")
    if not present:
        return Finding("GPU", "ok", "none is present: models run on the CPU")
    gpu = present[0]
    index = wheel(gpu)
    message = f"{gpu.title} is present and the installed engine runs on the CPU only"
    if gpu.vendor == "nvidia" and gpu.cuda == (0, 0):
        return Finding(
            "GPU",
            "warn",
            f"{gpu.title} is present without a working driver",
            f"install it, then `{install_line(index)}`",
        )
    if index != "vulkan" and not _glibc_is_new_enough():
        return Finding(
            "GPU",
            "warn",
            f"{message}; its {index} wheel needs glibc {'.'.join(map(str, _LEAST_GLIBC))} or later",
            "upgrade the system, or build xllamacpp from source",
        )
    return Finding("GPU", "warn", message, f"`{install_line(index)}`")


def _ask_child() -> dict[str, Any] | str:
    """What the engine says of itself, or the reason why it does not."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("RELAY_")}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _ASK],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            env=env,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it did not answer within {_TIMEOUT_S:.0f} seconds"
    except OSError as error:
        return f"no process could be started ({error.strerror})"
    if done.returncode < 0:
        return f"it ended with signal {-done.returncode}: this build does not run on this processor"
    try:
        told = json.loads(done.stdout.strip().rpartition("\n")[2])
    except ValueError:
        last = done.stderr.strip().rpartition("\n")[2]
        return safe_text(last or f"exit code {done.returncode}", 200)
    return told if isinstance(told, dict) else "it printed something else"


def _glibc_is_new_enough() -> bool:
    library, version = platform.libc_ver()
    try:
        found = tuple(int(part) for part in version.split(".")[:2])
    except ValueError:
        return True
    return library != "glibc" or found >= _LEAST_GLIBC
