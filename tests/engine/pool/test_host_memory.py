from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from relaydesk.core.pool.memory import MIB
from relaydesk.core.pool.model import ModelSpec
from relaydesk.engine.pool.host_memory import HostMemoryProbe

GIB = 1 << 30


class Driver:
    """The management library of a driver with these GPUs, (total, free) in GiB each."""

    class NVMLError(Exception):
        pass

    def __init__(self, *gpus: tuple[int, int]) -> None:
        self.gpus = gpus
        self.broken = False

    def nvmlDeviceGetCount(self) -> int:
        if self.broken:
            raise self.NVMLError("fell off the bus")
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetMemoryInfo(self, index: int) -> Any:
        total, free = self.gpus[index]
        return SimpleNamespace(total=total * GIB, free=free * GIB)

    def nvmlDeviceGetName(self, index: int) -> str:
        return f"GeForce\x1b[2J {index}"


def probe(monkeypatch: pytest.MonkeyPatch, *gpus: tuple[int, int], held: int = 0) -> HostMemoryProbe:
    made = HostMemoryProbe(None, lambda: held)
    monkeypatch.setattr(made, "_nvml", Driver(*gpus) if gpus else None)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=32 * GIB, available=24 * GIB))
    return made


def test_pretended_memory_is_what_the_setting_says_less_what_models_hold() -> None:
    held = 30 * MIB
    made = HostMemoryProbe(100, lambda: held)
    assert made.read().total_bytes() == 100 * MIB
    assert made.read().free_bytes() == 70 * MIB
    assert made.read(without=20 * MIB).free_bytes() == 90 * MIB
    assert made.read(without=500 * MIB).free_bytes() == 100 * MIB
    held = 500 * MIB
    assert made.read().free_bytes() == 0
    view = made.view()
    assert (view.source, view.total_mib, view.free_mib) == ("setting", 100, 0)
    made.pretend_mib = 0
    assert made.read().total_bytes() == 0


def test_free_ram_is_not_believed_beyond_what_models_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe(monkeypatch).read().free_bytes() == 24 * GIB
    # Mapped weights count as available to the system; to us they do not.
    made = probe(monkeypatch, held=12 * GIB)
    assert made.read().free_bytes() == 20 * GIB
    assert made.read(without=12 * GIB).free_bytes() == 24 * GIB
    assert made.view().source == "ram"
    assert made.view().devices == ("RAM 20480 of 32768 MiB free",)


def test_gpus_count_in_place_of_ram(monkeypatch: pytest.MonkeyPatch) -> None:
    made = probe(monkeypatch, (24, 20), (8, 6), held=6 * GIB)
    memory = made.read()
    assert memory.total_bytes() == 32 * GIB
    assert memory.free_bytes() == 26 * GIB
    # What models hold is on the GPUs: RAM beside them is as free as it says.
    assert memory.free_bytes(ModelSpec(name="a", spill=True)) == 50 * GIB
    assert made.view().source == "gpu"
    assert "\x1b" not in "".join(made.view().devices)


def test_what_a_model_would_give_back_is_bounded_by_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    made = probe(monkeypatch, (24, 20), (8, 6), held=6 * GIB)
    assert made.read(without=5 * GIB).free_bytes() == 31 * GIB
    assert made.read(without=500 * GIB).free_bytes() == 32 * GIB
    assert [gpu.free_bytes // GIB for gpu in made.read(without=5 * GIB).gpus] == [24, 7]


def test_a_driver_that_fails_leaves_ram(monkeypatch: pytest.MonkeyPatch) -> None:
    made = probe(monkeypatch, (24, 20))
    made._nvml.broken = True
    assert made.read().gpus == ()
    assert made.read().free_bytes() == 24 * GIB


def test_this_machine_has_some() -> None:
    memory = HostMemoryProbe(None, lambda: 0).read()
    assert 0 < memory.free_bytes() <= memory.total_bytes()
