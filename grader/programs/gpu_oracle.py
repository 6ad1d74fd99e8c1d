"""Computes expected outputs on the GPU, in float64, for operators that have a CUDA kernel (`Operator.gpu_oracle`).

This oracle is optional: it needs pycuda and a GPU; without them, numpy makes the same files more slowly. The numpy
oracle has the last word: `grader testcases verify` recomputes with numpy, no matter which oracle made a file. A file's
sidecar names that oracle.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pynvml

from grader import sandbox
from grader.base.errors import GraderFault, MachineFault
from grader.course.catalogue.piece import write_bytes_at
from grader.course.testcase import Case
from grader.operators import GpuOracle
from grader.programs.engine.cuda import Gpu, find_gpu
from grader.programs.toolkit import Toolkit, find_toolkit
from grader.sandbox.cache import kept

GROUP_BYTES = 256 << 20
"""Limit on the input of one launch, which has at least one unit. It is enough for blocks to fill any GPU and takes
little memory on the host and the device."""


class CudaOracle:
    """The float64 oracle on one GPU, in a CUDA context that must stay open while this object is in use."""

    def __init__(self, driver: Any, gpu: Gpu, toolkit: Toolkit) -> None:
        self._driver = driver
        self._gpu = gpu
        self._toolkit = toolkit
        self._functions: dict[Path, Any] = {}

    @property
    def name(self) -> str:
        return f"CUDA float64 on {self._gpu.name}"

    def can(self, case: Case) -> bool:
        return not case.operator.planar_output and self._kernel(case) is not None

    def _kernel(self, case: Case) -> GpuOracle | None:
        return case.operator.gpu_oracle(case.shape, case.distribution.largest)

    def compute(self, case: Case, source: Path, target: Path, done: Callable[[int], None]) -> None:
        """See `grader.course.catalogue.QuickOracle`. Raises GraderFault if the kernel does not compile, MachineFault
        if the GPU fails."""
        kernel = self._kernel(case)
        assert kernel is not None, "can() was not asked"
        try:
            self._compute(kernel, case, source, target, done)
        except self._driver.Error as error:
            raise MachineFault(
                f"The GPU failed while it computed the expected output of {case.name}: {error}; "
                "use `grader testcases generate --oracle numpy`."
            ) from error

    def _compute(self, kernel: GpuOracle, case: Case, source: Path, target: Path, done: Callable[[int], None]) -> None:
        driver, operator, shape = self._driver, case.operator, case.shape
        function = self._function(kernel)
        units = operator.units(shape)
        unit_in, unit_out = operator.unit_input_bytes(shape), operator.unit_output_bytes(shape)
        group = max(1, min(units, GROUP_BYTES // unit_in))
        device_in, device_out = driver.mem_alloc(group * unit_in), driver.mem_alloc(group * unit_out)
        descriptor = os.open(target, os.O_WRONLY)
        try:
            with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                for first in range(0, units, group):
                    count = min(group, units - first)
                    part = np.frombuffer(content, np.uint8, count * unit_in, offset=operator.input_offset(shape, first))
                    driver.memcpy_htod(device_in, part)
                    del part  # the mapping cannot be closed while a view of it lives
                    function(
                        device_in,
                        device_out,
                        *kernel.arguments,
                        block=kernel.block,
                        grid=kernel.grid(count),
                        shared=kernel.shared_bytes,
                    )
                    result = np.empty(count * unit_out, np.uint8)
                    driver.memcpy_dtoh(result, device_out)
                    write_bytes_at(descriptor, result.data, operator.output_offset(shape, 0, first))
                    done(count * unit_out)
        finally:
            os.close(descriptor)
            device_in.free()
            device_out.free()

    def _function(self, kernel: GpuOracle) -> Any:
        cubin = self._cubin(kernel)
        if cubin not in self._functions:
            module = self._driver.module_from_file(str(cubin))
            function = module.get_function(kernel.name)
            function.set_attribute(self._driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel.shared_bytes)
            self._functions[cubin] = function
        return self._functions[cubin]

    def _cubin(self, kernel: GpuOracle) -> Path:
        """The compiled kernel, from the cache if it is there."""
        defines = [f"-D{name}={value}" for name, value in sorted(kernel.defines.items())]
        text = kernel.source.read_bytes()
        key = hashlib.sha256(text + f"{defines} {self._gpu.architecture} {self._toolkit.version}".encode()).hexdigest()[
            :16
        ]

        def make(folder: Path) -> Path:
            (folder / kernel.source.name).write_bytes(text)
            command = [str(self._toolkit.nvcc), "-cubin", "-O3", f"-arch=sm_{self._gpu.architecture}", *defines]
            command += ["-o", str(folder / "out.cubin"), kernel.source.name]
            made = sandbox.runner(120, readable=(self._toolkit.root,), writable=(folder,))(command, folder)
            if made.exit_code != 0:
                raise GraderFault(f"{kernel.source}: the oracle does not compile: {made.output.strip()[:500]}")
            return folder / "out.cubin"

        return kept("native", f"{kernel.source.stem}-{key}.cubin", make)


def unavailable() -> str:
    """The reason why this machine has no GPU oracle, as a phrase; '' if it has one."""
    try:
        import pycuda.driver  # noqa: F401
    except ImportError:
        return "pycuda is not installed (pip install 'cuda-homework-grader[gpu]')"
    return "" if find_gpu() is not None else "no NVIDIA GPU was found"


@contextlib.contextmanager
def open_gpu_oracle() -> Iterator[CudaOracle]:
    """Open the oracle on the first GPU. Call this only if `unavailable()` returns ''. The CUDA context ends with the
    block, so that later timed runs have the GPU to themselves."""
    import pycuda.driver as driver

    gpu = find_gpu()
    assert gpu is not None, "unavailable() was not asked"
    driver.init()
    context = _device(driver, gpu).make_context()
    try:
        yield CudaOracle(driver, gpu, find_toolkit())
    finally:
        context.pop()
        context.detach()


def _device(driver: Any, gpu: Gpu) -> Any:
    """CUDA's device for `gpu`. CUDA and NVML may number GPUs differently, but both know the PCI address."""
    pynvml.nvmlInit()
    try:
        found = pynvml.nvmlDeviceGetPciInfo(pynvml.nvmlDeviceGetHandleByUUID(gpu.uuid.encode())).busIdLegacy
    finally:
        pynvml.nvmlShutdown()
    return driver.Device(found.decode() if isinstance(found, bytes) else found)
