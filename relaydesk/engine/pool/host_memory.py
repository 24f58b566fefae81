"""What memory this machine has for models, asked of the system or pretended by a setting."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import psutil

from relaydesk.core.pool.memory import MIB, Device, HostMemory, mib_down
from relaydesk.core.text import safe_text
from relaydesk.core.view.sections import MemoryView

_log: Final = logging.getLogger(__name__)


class HostMemoryProbe:
    """Reads the machine's memories.

    ``pretend_mib`` is ``RELAY_HOST_MEMORY_MB``; ``held`` tells how many bytes loaded models hold. What the
    system calls free is never believed beyond the total less what models hold: their weights are mapped
    files, which the kernel counts as free although unloading them is what would free them.
    """

    def __init__(self, pretend_mib: int | None, held: Callable[[], int]) -> None:
        self.pretend_mib = pretend_mib
        self._held = held
        self._nvml: Any = _open_nvml()

    def read(self, without: int = 0) -> HostMemory:
        """All memories now, as if models held ``without`` bytes less.

        Takes well under a millisecond without GPUs, a few with them.
        """
        held = max(0, self._held() - without)
        if self.pretend_mib is not None:
            total = self.pretend_mib * MIB
            return HostMemory((Device("RELAY_HOST_MEMORY_MB", "ram", total, max(0, total - held)),))
        gpus = _given_back(self._gpus(), without)
        memory = psutil.virtual_memory()
        ram_held = 0 if gpus else held
        free = max(0, min(memory.available, memory.total - ram_held))
        return HostMemory((*gpus, Device("RAM", "ram", memory.total, free)))

    def view(self) -> MemoryView:
        """The memory that counts, for fronts."""
        memory = self.read()
        usable = memory.usable()
        kind = usable[0].kind if usable else "ram"
        return MemoryView(
            source=kind if self.pretend_mib is None else "setting",
            total_mib=mib_down(memory.total_bytes()),
            free_mib=mib_down(memory.free_bytes()),
            devices=tuple(
                safe_text(f"{each.name} {mib_down(each.free_bytes)} of {mib_down(each.total_bytes)} MiB free")
                for each in usable
            ),
        )

    def _gpus(self) -> tuple[Device, ...]:
        if self._nvml is None:
            return ()
        found: list[Device] = []
        try:
            for index in range(self._nvml.nvmlDeviceGetCount()):
                handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
                memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
                name = safe_text(str(self._nvml.nvmlDeviceGetName(handle)), 64)
                found.append(Device(f"GPU {index} {name}", "gpu", int(memory.total), int(memory.free)))
        except self._nvml.NVMLError as error:
            _log.warning("the GPU's memory cannot be read (%s): counting RAM instead", error)
            return ()
        return tuple(found)


def _given_back(gpus: tuple[Device, ...], count: int) -> tuple[Device, ...]:
    """The devices with ``count`` bytes more free, the fullest first: which ones held them is not known."""
    found = list(gpus)
    for index in sorted(range(len(found)), key=lambda each: found[each].free_bytes - found[each].total_bytes):
        gpu = found[index]
        back = min(count, gpu.total_bytes - gpu.free_bytes)
        found[index] = Device(gpu.name, gpu.kind, gpu.total_bytes, gpu.free_bytes + back)
        count -= back
    return tuple(found)


def _open_nvml() -> Any:
    """NVIDIA's management library where its driver is, else None."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:
        # No driver, no library, no permission: whatever the reason, there is no GPU to count on.
        return None
    return pynvml
