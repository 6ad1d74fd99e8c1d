"""Computes expected outputs on the GPU, in float64, for operators that have a CUDA kernel (`Operator.gpu_oracle`).

This oracle is optional: it needs pycuda and a GPU; without them, numpy makes the same files more slowly. `grader
testcases verify` always recomputes with numpy, whichever oracle made a file. The file's sidecar names the oracle that
made it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pynvml

from grader import sandbox
from grader.base.errors import GraderFault, MachineFault
from grader.course.catalogue.piece import Made
from grader.course.testcase import Case
from grader.gpu.nvml import nvml_device
from grader.operators import GpuOracle, Operator, Shape
from grader.operators.base import Kernel
from grader.operators.number_types import F32
from grader.operators.tolerance import error_sums
from grader.programs.engine.cuda import Gpu, find_gpu
from grader.programs.toolkit import Toolkit, find_toolkit
from grader.sandbox.cache import kept

GROUP_BYTES = 256 << 20
"""Limit on the input of one launch; a launch has at least one unit. So much input fills any GPU with blocks and takes
little memory on the host and the device."""


class CudaOracle:
    """The float64 oracle on one GPU, in a CUDA context that must stay open while this object is in use."""

    def __init__(self, driver: Any, gpu: Gpu, toolkit: Toolkit) -> None:
        self._driver = driver
        self._gpu = gpu
        self._toolkit = toolkit
        self._functions: dict[tuple[Path, str], Any] = {}

    @property
    def name(self) -> str:
        return f"CUDA float64 on {self._gpu.name}"

    def can(self, case: Case) -> bool:
        return self._kernel(case) is not None

    def _kernel(self, case: Case) -> GpuOracle | None:
        return case.operator.gpu_oracle(case.shape)

    def compute(self, case: Case, source: Path, target: Path, done: Callable[[Made], None]) -> None:
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

    def _compute(self, kernel: GpuOracle, case: Case, source: Path, target: Path, done: Callable[[Made], None]) -> None:
        driver, operator, shape = self._driver, case.operator, case.shape
        launches = [(each, self._function(kernel, each)) for each in kernel.kernels]
        units = operator.units(shape)
        unit_in, unit_out = 4 * operator.unit_input_values(shape), operator.expected_bytes(shape) // units
        answers = 2 if kernel.plain else 1
        group = max(1, min(units, GROUP_BYTES // unit_in))
        sizes = unit_in, unit_out * answers, kernel.scratch_bytes
        memory = [driver.mem_alloc(group * size) for size in sizes]
        descriptor = os.open(target, os.O_WRONLY)
        try:
            with source.open("rb") as file:
                for first in range(0, units, group):
                    numbers = range(first, min(first + group, units))
                    tensors = [tensor.ravel() for unit in numbers for tensor in operator.read_unit(file, shape, unit)]
                    driver.memcpy_htod(memory[0], np.concatenate(tensors).view(np.uint8))
                    for launch, function in launches:
                        function(
                            *memory,
                            *kernel.arguments,
                            block=(kernel.threads, 1, 1),
                            grid=(launch.blocks * len(numbers), 1, 1),
                            shared=launch.shared_bytes,
                        )
                    result = np.empty(len(numbers) * unit_out * answers, np.uint8)
                    driver.memcpy_dtoh(result, memory[1])
                    answer, *plain = result.view("<f4").reshape(answers, len(numbers), -1)
                    done(_kept(operator, shape, descriptor, numbers, answer, plain[0] if plain else None))
        finally:
            os.close(descriptor)
            for each in memory:
                each.free()

    def _function(self, oracle: GpuOracle, kernel: Kernel) -> Any:
        cubin = self._cubin(oracle)
        if (cubin, kernel.name) not in self._functions:
            module = self._driver.module_from_file(str(cubin))
            function = module.get_function(kernel.name)
            function.set_attribute(self._driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel.shared_bytes)
            self._functions[cubin, kernel.name] = function
        return self._functions[cubin, kernel.name]

    def _cubin(self, kernel: GpuOracle) -> Path:
        """The compiled kernels, from the cache if possible."""
        defines = [f"-D{name}={value}" for name, value in sorted(kernel.defines.items())]
        text = kernel.source.read_bytes()
        made_for = f"{defines} {self._gpu.architecture} {self._toolkit.version}".encode()
        key = hashlib.sha256(text + made_for).hexdigest()[:16]

        def make(folder: Path) -> Path:
            (folder / kernel.source.name).write_bytes(text)
            command = [str(self._toolkit.nvcc), "-cubin", "-O3", f"-arch=sm_{self._gpu.architecture}", *defines]
            command += ["-o", str(folder / "out.cubin"), kernel.source.name]
            made = sandbox.runner(120, readable=(self._toolkit.root,), writable=(folder,))(command, folder)
            if made.exit_code != 0:
                raise GraderFault(f"{kernel.source}: the oracle does not compile: {made.output.strip()[:500]}")
            return folder / "out.cubin"

        return kept("native", f"{kernel.source.stem}-{key}.cubin", make)


def _kept(operator: Operator, shape: Shape, descriptor: int, units: range, answer: F32, plain: F32 | None) -> Made:
    """Write the expected output of some units, and accumulate the errors of the plain implementation."""
    sums, begin = [], 0
    for layout in operator.expected_layouts(shape):
        end = begin + layout.tensor.size
        for place, unit in enumerate(units):
            layout.write(descriptor, unit, answer[place, begin:end])
        if plain is not None:
            sums.append(error_sums(plain[:, begin:end], answer[:, begin:end].astype(np.float64)))
        begin = end
    return Made(len(units) * operator.unit_output_bytes(shape), tuple(sums))


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
    with nvml_device(gpu.uuid) as handle:
        found = pynvml.nvmlDeviceGetPciInfo(handle).busIdLegacy
    return driver.Device(found.decode() if isinstance(found, bytes) else found)
