"""The environment a worker gets: what libraries and GPU drivers need, by name, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import relaydesk

# No prefixes: NVIDIA_API_KEY is a secret and CUDA_VISIBLE_DEVICES is not.
_ALLOWED: Final = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "PYTHONHOME",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_CACHE_PATH",
    "CUDA_MODULE_LOADING",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HSA_OVERRIDE_GFX_VERSION",
    "GPU_DEVICE_ORDINAL",
    "ONEAPI_DEVICE_SELECTOR",
    "ZE_AFFINITY_MASK",
    "GGML_VK_VISIBLE_DEVICES",
    "VK_ICD_FILENAMES",
)


def worker_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The allowed part of ``environment``, and where this package lies."""
    kept = {name: environment[name] for name in _ALLOWED if name in environment}
    roots = [str(Path(relaydesk.__file__).parent.parent)]
    if environment.get("PYTHONPATH"):
        roots.append(environment["PYTHONPATH"])
    kept["PYTHONPATH"] = os.pathsep.join(roots)
    return kept
