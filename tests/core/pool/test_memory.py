from __future__ import annotations

from relaydesk.core.pool.memory import MIB, Device, HostMemory, mib_down, mib_up
from relaydesk.core.pool.model import ModelSpec

RAM = Device("memory", "ram", 100, 60)
SMALL = Device("gpu0", "gpu", 10, 4)
LARGE = Device("gpu1", "gpu", 20, 9)


def test_ram_counts_where_there_is_no_gpu() -> None:
    memory = HostMemory((RAM,))
    assert (memory.free_bytes(), memory.total_bytes()) == (60, 100)


def test_gpus_count_alone_unless_the_model_may_spill() -> None:
    memory = HostMemory((RAM, SMALL, LARGE))
    assert (memory.free_bytes(), memory.total_bytes()) == (13, 30)
    assert memory.free_bytes(ModelSpec(name="m", spill=False)) == 13
    assert memory.free_bytes(ModelSpec(name="m", spill=True)) == 73
    assert memory.free_bytes(ModelSpec(name="m", gpu_layers=0)) == 60


def test_the_freest_gpu_is_first() -> None:
    assert [device.name for device in HostMemory((SMALL, RAM, LARGE)).gpus] == ["gpu1", "gpu0"]


def test_rounding_never_flatters() -> None:
    assert (mib_up(1), mib_up(MIB), mib_up(MIB + 1)) == (1, 1, 2)
    assert (mib_down(MIB - 1), mib_down(MIB), mib_down(2 * MIB - 1)) == (0, 1, 1)
    assert HostMemory((Device("memory", "ram", 10, -5),)).free_bytes() == 0
