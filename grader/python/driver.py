"""The drivers through which Triton launches kernels: on the emulator, on a GPU, and in the build step, which launches
none.

Triton asks a driver for its target, its device and streams, for a launcher for each kernel, and for ways to time a
kernel. There is one device. Times on the emulator say nothing about a GPU, so autotune runs each configuration only
once there.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.backends.nvidia.driver import ty_to_cpp

from grader.python.arrays import Array, empty, zeros
from grader.python.backend import ARCHITECTURE
from grader.python.device import MOST_THREADS, EmulatedDevice, current
from grader.python.launcher import EmulatorLauncher, Launcher, NoLauncher

_WARP = 32
_BRIEF_RUNS = 3
_CACHE_BYTES = 256 << 20
"""Clearing so much memory evicts all other data from any GPU's L2 cache."""
_SHARED_OPTIN_BYTES = {80: 163 << 10, 89: 99 << 10, 90: 227 << 10}
"""The most shared memory that a block can have, by architecture."""
_PROPERTIES = {  # those of an A100, for every architecture
    "max_num_regs": 65536,
    "multiprocessor_count": 108,
    "warpSize": _WARP,
    "sm_clock_rate": 1_410_000,
    "mem_clock_rate": 1_215_000,
    "mem_bus_width": 5120,
}

_SOME_REGISTERS = 32
"""For kernels that are only compiled. Programs such as Triton's second tutorial divide by this number."""

Loaded = tuple[None, int, int, int, int]
"""(no module, function, registers, spills, most threads) of a kernel. Triton passes the function to the launcher."""


class Utilities:
    """The `utils` of a driver, with the methods that Triton calls."""

    def __init__(self, architecture: int = ARCHITECTURE) -> None:
        self._most_shared = _SHARED_OPTIN_BYTES.get(architecture, max(_SHARED_OPTIN_BYTES.values()))

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> Loaded:
        return None, *current().load(name, binary, shared)

    def unload_module(self, module: Any) -> None:
        """Keep the kernels, since they may still be running."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": self._most_shared, **_PROPERTIES}

    def set_printf_fifo_size(self, size_bytes: int) -> None:
        current().set_printf_bytes(size_bytes)


class Event:
    """A point in the default stream, with the methods that triton.testing calls."""

    def __init__(self, enable_timing: bool = False) -> None:
        self._event = current().new_event()

    def record(self, stream: Any = None) -> None:
        current().record_event(self._event)

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to `end`."""
        return current().elapsed_ms(self._event, end._event)

    def synchronize(self) -> None:
        current().wait_for_event(self._event)


class DeviceInterface:
    """The part of torch.cuda that triton.testing uses."""

    Event = Event

    @staticmethod
    def synchronize() -> None:
        current().synchronize()

    @staticmethod
    def current_device() -> int:
        return 0


_warned: set[str] = set()


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        print(f"note: {text}", file=sys.stderr)


def try_once(kernel_call: Callable[[], Any], quantiles: Sequence[float] | None = None, **options: Any) -> Any:
    """Triton's benchmarker on the emulator: run a configuration once, to find its errors. All configurations get the
    same time, so autotune takes the first."""
    _warn_once("on the emulator, autotune runs each configuration once and takes the first, because times mean nothing")
    kernel_call()
    current().synchronize()
    return [EmulatedDevice.NO_TIME_MS] * len(quantiles) if quantiles else EmulatedDevice.NO_TIME_MS


class Driver(DriverBase):  # type: ignore[misc]
    """The parts that all drivers share."""

    launcher_cls: type[Launcher]

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        return str(ty_to_cpp(ty))

    def get_current_target(self) -> GPUTarget:
        major, minor = self.get_device_capability()
        return GPUTarget("cuda", 10 * major + minor, _WARP)

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return divmod(ARCHITECTURE, 10)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """There is only one device."""

    def get_current_stream(self, device: int = 0) -> int:
        return 0


class EmulatorDriver(Driver):
    """Triton's driver for the emulated GPU."""

    launcher_cls: type[Launcher] = EmulatorLauncher

    def __init__(self) -> None:
        super().__init__()
        self.utils = Utilities()

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> type[DeviceInterface]:
        return DeviceInterface

    def get_benchmarker(self) -> Callable[..., Any]:
        return try_once

    def get_empty_cache_for_benchmark(self) -> Array:
        _warn_once("on the emulator, do_bench runs a function a few times and reports no real time")
        return zeros((1,), "int32")

    def clear_cache(self, cache: Array) -> None:
        """No cache is emulated."""


class _Unloaded(Utilities):
    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> Loaded:
        return None, 0, _SOME_REGISTERS, 0, MOST_THREADS


class CompilingDriver(EmulatorDriver):
    """Compiles kernels, for the emulator or for a GPU's architecture, and launches none."""

    launcher_cls = NoLauncher

    def __init__(self, architecture: int) -> None:
        super().__init__()
        self._architecture = architecture or ARCHITECTURE
        self.utils = _Unloaded(self._architecture)

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return divmod(self._architecture, 10)


class GpuUtilities(Utilities):
    def get_device_properties(self, device: int) -> dict[str, int]:
        return current().properties()


def time_briefly(kernel_call: Callable[[], Any], quantiles: Sequence[float] | None = None, **options: Any) -> Any:
    """Triton's benchmarker on a GPU: a few runs of a configuration, since all of them count as GPU time."""
    kernel_call()
    times = []
    for _ in range(_BRIEF_RUNS):
        begin, end = Event(), Event()
        begin.record()
        kernel_call()
        end.record()
        current().synchronize()
        times.append(begin.elapsed_time(end))
    middle = statistics.median(times)
    return [middle, min(times), max(times)][: len(quantiles)] if quantiles else middle


class GpuDriver(Driver):
    """Triton's driver for the machine's GPU, with PyTorch or without it."""

    launcher_cls: type[Launcher] = Launcher

    def __init__(self) -> None:
        super().__init__()
        self.utils = GpuUtilities()

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return current().capability()

    def get_current_stream(self, device: int = 0) -> int:
        torch = sys.modules.get("torch")
        return int(torch.cuda.current_stream().cuda_stream) if torch is not None else 0

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        return getattr(sys.modules.get("torch"), "cuda", DeviceInterface)

    def get_benchmarker(self) -> Callable[..., Any]:
        return time_briefly

    def get_empty_cache_for_benchmark(self) -> Array:
        return empty((_CACHE_BYTES,), "int8")

    def clear_cache(self, cache: Array) -> None:
        current().clear(cache.data_ptr(), _CACHE_BYTES)
