"""Triton's driver in a process that records a plan: its target, its launcher, and how it times a kernel.

Trial launches of autotune and `do_bench` are no part of the plan. Where there is a GPU, they run there, on random
values. Without one, each configuration is tried once, to find its errors, and the first one is chosen.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import triton.testing
from triton.backends import Backend, backends
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.backends.nvidia.compiler import CUDABackend
from triton.backends.nvidia.driver import ty_to_cpp
from triton.runtime import cache, driver
from triton.runtime.autotuner import Autotuner

from grader.gpu.facts import known_limits
from grader.plans import compiler
from grader.plans.handles import empty
from grader.plans.launcher import Launcher
from grader.plans.plan import MAX_NOTE
from grader.plans.recorder import current
from grader.plans.replayer import Replayer

_WARP = 32
_TIMED_RUNS = 3
_NO_TIME_MS = 1.0
_CACHE_BYTES = 256 << 20
"""Writing so much memory evicts all other data from any GPU's L2 cache."""
_PROPERTIES = {  # those of an A100, for every emulated architecture
    "multiprocessor_count": 108,
    "warpSize": _WARP,
    "sm_clock_rate": 1_410_000,
    "mem_clock_rate": 1_215_000,
    "mem_bus_width": 5120,
}


class RecordingDriver(DriverBase):  # type: ignore[misc]
    launcher_cls = Launcher

    def __init__(self, architecture: int) -> None:
        super().__init__()
        self._architecture = architecture
        self.utils = self  # Triton calls some methods there

    def load_binary(self, name: str, binary: bytes | str, shared: int, device: int) -> Any:
        loaded = current().load(name, binary.encode() if isinstance(binary, str) else binary, shared)
        return loaded.handle, *loaded  # Triton loads a kernel again whose module is None

    def get_device_properties(self, device: int) -> dict[str, int]:
        limits = known_limits(self.get_device_capability())
        own = {"max_shared_mem": limits.shared_per_block_optin, "max_num_regs": limits.registers} if limits else {}
        return {**_PROPERTIES, **own, **_of_gpu(current().replayer)}

    def set_printf_fifo_size(self, size_bytes: int) -> None:
        """The replayer has a buffer of one size."""

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        return str(ty_to_cpp(ty))

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self._architecture, _WARP)

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return divmod(self._architecture, 10)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        import torch

        return torch.cuda

    def get_benchmarker(self) -> Callable[..., Any]:
        return time_briefly


def _of_gpu(replayer: Replayer | None) -> dict[str, int]:
    """The properties of the replayer's GPU; empty without one."""
    return replayer.properties() if replayer is not None else {}


def time_briefly(
    kernel_call: Callable[[], Any], *rest: Any, quantiles: Sequence[float] | None = None, **options: Any
) -> Any:
    """The time of a call in ms, without its launches in the plan: the median of a few runs, or with `quantiles` a list.
    Without a GPU, the same time for every call."""
    recorder = current()
    replayer = recorder.replayer if _of_gpu(recorder.replayer) else None
    if replayer is not None:
        recorder.go_live()
    with recorder.trying():
        kernel_call()
        times = [_NO_TIME_MS]
        if replayer is not None:
            times = [replayer.elapsed_ms(kernel_call)]
            cold = empty((_CACHE_BYTES >> 2,))
            for _ in range(_TIMED_RUNS if times[0] < _LONG_MS else 0):
                cold.zero_()
                times.append(replayer.elapsed_ms(kernel_call))
    middle = statistics.median(times)
    return [middle, min(times), max(times)][: len(quantiles)] if quantiles else middle


_LONG_MS = 200.0
"""A configuration that takes longer is timed only once."""


def install(target: str) -> None:
    """Let Triton compile for `target`, sm_80 or cuda:90, and record its launches. `sm_` stands for the emulator."""
    kind, number = target.replace("_", ":").split(":")
    CUDABackend.make_cubin = compiler.make_cubin
    cache.triton_key = lambda: triton.__version__  # Triton would hash all its files, longer than most recordings
    if kind == "sm":
        backends["nvidia"] = Backend(compiler.PtxBackend, RecordingDriver)
    driver.set_active(RecordingDriver(int(number.rstrip("a"))))
    triton.testing.do_bench = triton.testing.do_bench_cudagraph = time_briefly
    Autotuner.run = _noted


_tune = Autotuner.run


def _noted(self: Any, *arguments: Any, **options: Any) -> Any:
    """Autotuner.run, which also notes what was chosen."""
    made = _tune(self, *arguments, **options)
    others = "; ".join(str(each) for each in self.configs if each is not self.best_config)
    note = f"autotune: {self.base_fn.__name__} runs with {self.best_config}; also tried: {others or 'none'}"
    current().notes.append(note[:MAX_NOTE])
    return made
