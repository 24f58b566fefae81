"""GPUs by what the kernel shows, and the wheel that serves each."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from relaydesk.engine.doctor.engine_check import gpu_finding
from relaydesk.engine.doctor.gpu import Gpu, find_gpus, install_line, wheel


def machine(root: Path, *devices: tuple[str, str]) -> Path:
    for number, (vendor, kind) in enumerate(devices):
        device = root / "sys/bus/pci/devices" / f"0000:0{number}:00.0"
        device.mkdir(parents=True)
        (device / "vendor").write_text(vendor + "\n")
        (device / "class").write_text(kind + "\n")
    return root


def test_display_and_accelerator_classes_of_known_vendors(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        ("0x8086", "0x030000"),  # integrated graphics
        ("0x10de", "0x030200"),  # 3D controller
        ("0x10de", "0x040300"),  # the sound device beside it
        ("0x1002", "0x120000"),  # accelerator
        ("0x1234", "0x030000"),  # a virtual machine's display
        ("0x1002", "0x030000"),
    )
    found = find_gpus(root)
    assert [(gpu.vendor, gpu.count) for gpu in found] == [("nvidia", 1), ("amd", 2), ("intel", 1)]


def test_no_pci_no_gpu(tmp_path: Path) -> None:
    assert find_gpus(tmp_path) == ()


@pytest.mark.parametrize(
    ("gpu", "index"),
    [
        (Gpu("nvidia", 1, cuda=(13, 2), compute=(8, 9)), "cu132"),
        (Gpu("nvidia", 1, cuda=(13, 4), compute=(7, 5)), "cu132"),
        (Gpu("nvidia", 1, cuda=(13, 1), compute=(9, 0)), "cu128"),  # newer than the driver runs
        (Gpu("nvidia", 1, cuda=(13, 2), compute=(6, 1)), "cu128"),  # Pascal: dropped by CUDA 13
        (Gpu("nvidia", 1), "cu128"),
        (Gpu("amd", 1), "vulkan"),  # without /dev/kfd ROCm cannot run
        (Gpu("intel", 1), "vulkan"),
    ],
)
def test_the_wheel_for_a_gpu(tmp_path: Path, gpu: Gpu, index: str) -> None:
    assert wheel(gpu, tmp_path) == index


@pytest.mark.parametrize(
    ("version", "index"), [("6.4.1-7", "rocm-6.4.1"), ("7.2.0", "rocm-7.2.4"), ("", "rocm-7.2.4")]
)
def test_the_wheel_for_rocm(tmp_path: Path, version: str, index: str) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kfd").touch()
    (tmp_path / "opt/rocm/.info").mkdir(parents=True)
    (tmp_path / "opt/rocm/.info/version").write_text(version)
    assert wheel(Gpu("amd", 1), tmp_path) == index


def test_the_line_is_for_this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(install_line("cu128"))
    assert words[0] == sys.executable
    assert words[1:4] == ["-m", "pip", "install"]
    assert words[-2:] == ["--index-url", "https://xorbitsai.github.io/xllamacpp/whl/cu128"]
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert shlex.split(install_line("cu128"))[:5] == ["uv", "pip", "install", "--python", sys.executable]


def test_a_gpu_that_lies_idle_names_the_line() -> None:
    card = Gpu("nvidia", 2, "NVIDIA L4", (13, 2), (8, 9))
    finding = gpu_finding((card,), [])
    assert finding.level == "warn"
    assert finding.message.startswith(
        "NVIDIA L4 and 1 more is present and the installed engine runs on the CPU"
    )
    assert finding.hint == f"`{install_line('cu132')}`"


def test_a_card_without_a_driver_comes_first() -> None:
    finding = gpu_finding((Gpu("nvidia", 1),), [])
    assert "without a working driver" in finding.message
    assert finding.hint == f"install it, then `{install_line('cu128')}`"


def test_an_old_c_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.libc_ver", lambda: ("glibc", "2.31"))
    finding = gpu_finding((Gpu("nvidia", 1, cuda=(12, 8), compute=(8, 6)),), [])
    assert "needs glibc 2.35 or later" in finding.message
    monkeypatch.setattr("platform.libc_ver", lambda: ("", ""))
    found = gpu_finding((Gpu("nvidia", 1, cuda=(12, 8), compute=(8, 6)),), [])
    assert found.hint == f"`{install_line('cu128')}`"


def test_nothing_to_do() -> None:
    assert gpu_finding((), []).level == "ok"
    used = gpu_finding((Gpu("intel", 1),), ["Apple M4"])
    assert (used.level, used.message) == ("ok", "the engine uses Apple M4")
