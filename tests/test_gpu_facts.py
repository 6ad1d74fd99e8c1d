"""What a GPU is and how it is, from a driver and an NVML that are fakes and answer as an H200's did (2026-11-21)."""

import ctypes
import re
from types import SimpleNamespace
from typing import Any

import pytest

from grader.base.errors import UsageError
from grader.gpu import facts as module
from grader.gpu import idle as gpu_idle
from grader.gpu import nvml
from grader.gpu import state as gpu_state
from grader.gpu.facts import gpu_facts, known_limits
from grader.gpu.idle import Use, use_reader
from grader.gpu.state import Instant, nvml_reader
from grader.programs.engine import cuda, select_engines

UUID = "GPU-0f0e0d0c-0b0a-0908-0706-050403020100"
OTHER = "GPU-ffffffff-ffff-ffff-ffff-ffffffffffff"
ATTRIBUTES = {
    1: 1024, 8: 49152, 10: 32, 12: 65536, 13: 1_980_000, 16: 132, 36: 3_201_000, 37: 6016, 38: 62914560, 39: 2048,
    75: 9, 76: 0, 81: 233472, 82: 65536, 97: 232448, 106: 32, 111: 1024,
}  # fmt: skip


class Libcuda:
    """Two GPUs; the second is the H200."""

    def __init__(self, problem: int = 0) -> None:
        self.problem = problem

    def cuInit(self, flags: int) -> int:
        return self.problem

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 2
        return 0

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:
        device._obj.value = ordinal
        return 0

    def cuDeviceGetUuid_v2(self, found: Any, device: Any) -> int:
        uuid = UUID if device.value == 1 else OTHER.replace("f", "e")
        found[:] = bytes.fromhex(uuid.removeprefix("GPU-").replace("-", ""))
        return 0

    def cuDeviceGetAttribute(self, value: Any, number: int, device: Any) -> int:
        assert device.value == 1
        value._obj.value = ATTRIBUTES[number]
        return 0


def test_the_gpu_of_that_uuid_is_read_and_agrees_with_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.ctypes, "CDLL", lambda name: Libcuda())
    facts = gpu_facts(UUID)
    assert facts is not None
    assert (facts.sms, facts.clock_mhz, facts.memory_clock_mhz, facts.bus_bits) == (132, 1980, 3201, 6016)
    assert facts.bandwidth == pytest.approx(4.81e12, rel=0.001)
    assert facts.limits == known_limits((9, 0))
    assert gpu_facts(OTHER) is None


def test_without_a_driver_or_with_one_that_fails_there_are_no_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.ctypes, "CDLL", lambda name: Libcuda(problem=100))
    assert gpu_facts(UUID) is None

    def missing(name: str) -> ctypes.CDLL:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(module.ctypes, "CDLL", missing)
    assert gpu_facts(UUID) is None


# ---- NVML -------------------------------------------------------------------------------------------------------


class NVMLError(Exception):
    pass


class Nvml:
    """One H200, busy. Functions named in `refused` are not supported; `open` counts inits without a shutdown."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU, nvmlMemory_v2 = 1, 2, 0, 33554472
    NVMLError = NVMLError

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.open = 0

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvmlDevice") and name in self.refused:

            def refuse(*arguments: object, **options: object) -> None:
                raise NVMLError("Not Supported")

            return refuse
        return super().__getattribute__(name)

    def nvmlInit(self) -> None:
        if "nvmlInit" in self.refused:
            raise NVMLError("NVML Shared Library Not Found")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes) -> str:
        if uuid.decode() != UUID:
            raise NVMLError("Not Found")
        return "handle"

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:
        return {1: 1980, 2: 3201}[kind]

    def nvmlDeviceGetTemperature(self, handle: str, kind: int) -> int:
        return 36

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        return 207_400

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        return 0

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=4711, usedGpuMemory=None)]

    def nvmlDeviceGetMemoryInfo(self, handle: str, version: int) -> SimpleNamespace:
        assert version == self.nvmlMemory_v2  # the first version counts what the driver reserves as used
        return SimpleNamespace(used=70 << 30, reserved=600 << 20)

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> SimpleNamespace:
        return SimpleNamespace(gpu=98, memory=40)


def _answered_by(monkeypatch: pytest.MonkeyPatch, driver: Nvml) -> None:
    for user in (gpu_idle, gpu_state, nvml, cuda):
        monkeypatch.setattr(user, "pynvml", driver)


def test_clocks_temperature_power_and_reasons_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Nvml()
    _answered_by(monkeypatch, driver)
    with nvml_reader(UUID) as read:
        assert read is not None
        assert read() == Instant(1980, 3201, 36, 207.4, 0)
    assert driver.open == 0


def test_who_uses_the_gpu_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Nvml()
    _answered_by(monkeypatch, driver)
    with use_reader(UUID) as read:
        assert read is not None
        assert read() == Use((4711,), 70 << 30, 98)
    assert driver.open == 0


def test_what_a_gpu_does_not_support_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("ComputeRunningProcesses", "MemoryInfo", "UtilizationRates")
    _answered_by(monkeypatch, Nvml(*(f"nvmlDeviceGet{name}" for name in names)))
    with use_reader(UUID) as read:
        assert read is not None
        assert read() == Use((), None, None)
    _answered_by(monkeypatch, Nvml("nvmlDeviceGetPowerUsage"))
    with nvml_reader(UUID) as sample:
        assert sample is not None
        assert sample() is None


@pytest.mark.parametrize("driver", [Nvml("nvmlInit"), Nvml("nvmlDeviceGetHandleByUUID")])
def test_without_nvml_or_without_that_gpu_nothing_is_read(driver: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    _answered_by(monkeypatch, driver)
    with nvml_reader(UUID) as read, use_reader(UUID) as used:
        assert read is None and used is None
    assert driver.open == 0


class Machine(Nvml):
    """One GPU, whole or cut into slices."""

    NVML_DEVICE_MIG_ENABLE = 1

    def __init__(self, gpus: int = 1, sliced: bool = False, refused: str = "") -> None:
        super().__init__(refused)
        self.gpus = gpus
        self.sliced = sliced

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.159.04"

    def nvmlDeviceGetCount(self) -> int:
        return self.gpus

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return "handle"

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return UUID

    def nvmlDeviceGetName(self, handle: str) -> str:
        return "NVIDIA H200"

    def nvmlDeviceGetCudaComputeCapability(self, handle: str) -> tuple[int, int]:
        return 9, 0

    def nvmlDeviceGetMinorNumber(self, handle: str) -> int:
        return 3

    def nvmlDeviceGetMemoryInfo(self, handle: str, version: int = 1) -> SimpleNamespace:
        return SimpleNamespace(total=140 << 30)

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:
        return [int(self.sliced), 0]


def test_the_device_node_is_the_gpus_own_number(monkeypatch: pytest.MonkeyPatch) -> None:
    _answered_by(monkeypatch, Machine())
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    [gpu] = cuda.find_gpus()
    assert gpu == cuda.Gpu(3, UUID, "NVIDIA H200", "580.159.04", (9, 0), 140 << 30)
    _answered_by(monkeypatch, Machine(refused="nvmlDeviceGetMinorNumber"))
    assert cuda.find_gpus()[0].node == 0


@pytest.mark.parametrize(
    ("machine", "visible", "reason"),
    [
        (Machine(refused="nvmlInit"), None, "there is no NVIDIA driver"),
        (Machine(gpus=0), None, "the driver reports none"),
        (Machine(), "-1", "CUDA_VISIBLE_DEVICES=-1 selects none (the driver reports 1)"),
        (Machine(), "MIG-0f0e0d0c", "CUDA_VISIBLE_DEVICES=MIG-0f0e0d0c names a MIG instance"),
        (Machine(sliced=True), None, "MIG divides the GPU"),
    ],
)
def test_why_there_is_no_gpu_is_told(
    machine: Machine, visible: str | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _answered_by(monkeypatch, machine)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(UsageError, match=re.escape(f"none was found: {reason}")):
        select_engines("cuda", "sm_80")
