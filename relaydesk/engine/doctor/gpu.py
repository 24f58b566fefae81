"""GPUs by what the kernel and the driver show, and the line that installs an engine for one.

The index's wheel of the engine is built for the CPU (on macOS for Metal as well). Its project keeps wheels
for GPUs on indexes of its own; their addresses and what they need are from that project's README.
"""

from __future__ import annotations

import importlib.util
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

Vendor = Literal["nvidia", "amd", "intel"]

_PCI_VENDORS: Final[dict[str, Vendor]] = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}
_TITLES: Final = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}
# PCI base class 03 is a display controller; 0x12 a processing accelerator (AMD Instinct).
_GPU_CLASSES: Final = ("0x03", "0x12")
_INDEX: Final = "https://xorbitsai.github.io/xllamacpp/whl"
# The CUDA 13 wheel has no kernels below compute capability 7.5 (Turing).
_TURING: Final = (7, 5)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One vendor's GPUs. ``cuda`` is the newest CUDA version the driver runs, ``compute`` the lowest
    compute capability of the cards, both (0, 0) where the driver does not say."""

    vendor: Vendor
    count: int
    name: str = ""
    cuda: tuple[int, int] = (0, 0)
    compute: tuple[int, int] = (0, 0)

    @property
    def title(self) -> str:
        """The GPU as a sentence names it."""
        kind = self.name or f"{_TITLES[self.vendor]} GPU"
        return kind if self.count == 1 else f"{kind} and {self.count - 1} more"


def find_gpus(root: Path = Path("/")) -> tuple[Gpu, ...]:
    """The GPUs of this machine, NVIDIA first. An integrated Intel display adapter counts as well."""
    seen: dict[Vendor, int] = {}
    for device in sorted((root / "sys/bus/pci/devices").glob("*")):
        vendor = _PCI_VENDORS.get(_text(device / "vendor"))
        if vendor is not None and _text(device / "class").startswith(_GPU_CLASSES):
            seen[vendor] = seen.get(vendor, 0) + 1
    nvidia = _nvml() if root == Path("/") else None
    found = [nvidia] if nvidia else [Gpu("nvidia", seen["nvidia"])] if "nvidia" in seen else []
    # In WSL2 there is no PCI device, only the driver's door.
    return tuple(found) + tuple(Gpu(vendor, seen[vendor]) for vendor in ("amd", "intel") if vendor in seen)


def wheel(gpu: Gpu, root: Path = Path("/")) -> str:
    """The name of the engine's wheel index for a GPU."""
    if gpu.vendor == "nvidia":
        # A driver runs programs of an older CUDA; those of a newer minor one only in part.
        new = gpu.cuda >= (13, 2) and gpu.compute >= _TURING
        return "cu132" if new else "cu128"
    if gpu.vendor == "amd" and (root / "dev/kfd").exists():
        version = _text(root / "opt/rocm/.info/version")
        return "rocm-6.4.1" if version.startswith("6.") else "rocm-7.2.4"
    return "vulkan"


def install_line(index: str) -> str:
    """The command that puts the engine of a wheel index into this program's own environment."""
    python = shlex.quote(sys.executable)
    if importlib.util.find_spec("pip") is None:
        return f"uv pip install --python {python} --reinstall xllamacpp --index-url {_INDEX}/{index}"
    return f"{python} -m pip install --force-reinstall xllamacpp --index-url {_INDEX}/{index}"


def _nvml() -> Gpu | None:
    """What NVIDIA's driver says of its GPUs; None where there is no driver."""
    try:
        import pynvml as nvml

        nvml.nvmlInit()
        try:
            return _ask_nvml(nvml)
        finally:
            nvml.nvmlShutdown()
    except Exception:
        # No driver, no library, no permission: PCI still says whether there is a card.
        return None


def _ask_nvml(nvml: Any) -> Gpu | None:
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    if not handles:
        return None
    version = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
    compute = min(tuple(nvml.nvmlDeviceGetCudaComputeCapability(handle)) for handle in handles)
    name = str(nvml.nvmlDeviceGetName(handles[0]))
    return Gpu("nvidia", len(handles), name, (version // 1000, version % 1000 // 10), compute)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
