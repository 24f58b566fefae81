"""What memory a machine has for models."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from relaydesk.core.pool.model import ModelSpec

MIB: Final = 1 << 20


def mib_up(count: int) -> int:
    """Bytes as MiB, rounded up: for what is needed."""
    return -(-count // MIB)


def mib_down(count: int) -> int:
    """Bytes as MiB, rounded down: for what there is."""
    return count // MIB


class Device(msgspec.Struct, frozen=True):
    """One memory a model can be loaded into. ``free_bytes`` is what nobody uses now."""

    name: str
    kind: Literal["gpu", "ram"]
    total_bytes: int
    free_bytes: int


class HostMemory(msgspec.Struct, frozen=True):
    """All memories of one machine.

    The rule of the pool: GPUs if there are any, else RAM. RAM counts beside GPUs only for a model that may
    spill (part of its layers then runs on the CPU), and alone for one that asks for no GPU layers.
    """

    devices: tuple[Device, ...] = ()

    @property
    def gpus(self) -> tuple[Device, ...]:
        """The GPUs, the one with most free memory first: the order in which a model takes them."""
        found = [device for device in self.devices if device.kind == "gpu"]
        return tuple(sorted(found, key=lambda device: (-device.free_bytes, device.name)))

    @property
    def ram(self) -> tuple[Device, ...]:
        """The machine's own memory."""
        return tuple(device for device in self.devices if device.kind == "ram")

    def usable(self, spec: ModelSpec | None = None) -> tuple[Device, ...]:
        """The memories that count for this model; without one, by the pool's rule alone."""
        gpus = self.gpus
        if not gpus or (spec is not None and spec.gpu_layers == 0):
            return self.ram
        return gpus + self.ram if spec is not None and spec.spill else gpus

    def free_bytes(self, spec: ModelSpec | None = None) -> int:
        """What is free for this model now."""
        return sum(max(0, device.free_bytes) for device in self.usable(spec))

    def total_bytes(self, spec: ModelSpec | None = None) -> int:
        """What could ever be free for this model."""
        return sum(max(0, device.total_bytes) for device in self.usable(spec))
