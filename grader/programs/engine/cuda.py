"""Runs submissions on an NVIDIA GPU, traced by our CUPTI library."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pynvml

from cudaemu.process import Runner
from grader import sandbox
from grader.base.errors import MachineFault
from grader.base.verdict import Fault
from grader.gpu.nvml import keep_open, opened
from grader.plans.plan import MAX_KERNEL_BYTES
from grader.plans.refusals import Refused, refusal
from grader.plans.replay_program import replay_program
from grader.programs import trace
from grader.programs.engine import plan_program, probe
from grader.programs.engine.interface import Compiled, Launch, Recording
from grader.programs.makefile import CPP_IS_CUDA
from grader.programs.stubs import STUB_HEADERS, header_flags
from grader.programs.toolkit import Toolkit
from grader.programs.trace.tracer import SOURCES, build_tracer
from grader.sandbox import quarantine
from grader.sandbox.budget import Budget
from grader.sandbox.cache import kept
from grader.sandbox.scratch import scratch_folder

_PROBE_S = 60.0
_STANDARD = re.compile(r"--?std=")
_WINDOWS_NODE = "dxg"
"""The only device node in Windows' subsystem for Linux. It stands for all GPUs; NVIDIA's device nodes are missing
there."""


@dataclass(frozen=True)
class Gpu:
    """One GPU as NVML describes it. `compute_capability` is (major, minor). `node` is the number of its device node,
    which differs from its index in a container or Slurm job that has only some of the machine's GPUs."""

    node: int
    uuid: str
    name: str
    driver: str
    compute_capability: tuple[int, int]
    memory_bytes: int

    @property
    def architecture(self) -> str:
        """nvcc's name for the architecture without `sm_`: 90a if the chip has architecture-specific instructions, else,
        for example, 86."""
        major, minor = self.compute_capability
        return f"{major}{minor}{'a' if major >= 9 else ''}"


def find_gpu() -> Gpu | None:
    """The first GPU that this process may use, by CUDA_VISIBLE_DEVICES; None without a GPU or driver."""
    return next(iter(find_gpus()), None)


def find_gpus() -> tuple[Gpu, ...]:
    """All GPUs that this process may use, in the order of CUDA_VISIBLE_DEVICES. The list leaves out GPUs that do not
    answer and GPUs divided by MIG: the sandbox does not know the device nodes of MIG instances."""
    found = []
    with opened() as there:
        if not there:
            return ()
        keep_open()
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        for index in dict.fromkeys(_visible(pynvml.nvmlDeviceGetCount())):
            with contextlib.suppress(pynvml.NVMLError):
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                if _is_sliced(handle):
                    continue
                gpu = Gpu(
                    node=_node(handle, index),
                    uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
                    name=_text(pynvml.nvmlDeviceGetName(handle)),
                    driver=driver,
                    compute_capability=tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle)),
                    memory_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
                )
                found.append(gpu)
    return tuple(found)


def no_gpu_reason() -> str:
    """The reason why `find_gpus` finds none, as a phrase."""
    with opened() as there:
        if not there:
            return "there is no NVIDIA driver"
        if (count := pynvml.nvmlDeviceGetCount()) == 0:
            return "the driver reports none"
        wanted = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        if "MIG-" in wanted:
            return f"CUDA_VISIBLE_DEVICES={wanted} names a MIG instance, and only whole GPUs can be used"
        if not (visible := _visible(count)):
            return f"CUDA_VISIBLE_DEVICES={wanted} selects none (the driver reports {count})"
        if any(_is_sliced(pynvml.nvmlDeviceGetHandleByIndex(index)) for index in visible):
            return "MIG divides the GPU, and only whole GPUs can be used"
        return "none answers (see nvidia-smi)"


def _node(handle: Any, index: int) -> int:
    try:
        return int(pynvml.nvmlDeviceGetMinorNumber(handle))
    except pynvml.NVMLError:  # Windows' subsystem for Linux has no minor numbers
        return index


def _is_sliced(handle: Any) -> bool:
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE)
    except pynvml.NVMLError:  # most GPUs do not support MIG
        return False


def _visible(count: int) -> list[int]:
    """Device indices in the order of CUDA_VISIBLE_DEVICES; all devices if it is unset."""
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return list(range(count))
    indices: list[int] = []
    for item in filter(None, (part.strip() for part in wanted.split(","))):
        if item.isdigit():
            indices.append(int(item))
        elif item.startswith("GPU-"):
            with contextlib.suppress(pynvml.NVMLError):
                indices.append(pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByUUID(item)))
        else:  # CUDA stops at the first entry that names no device, so -1 hides the devices after it
            break
    return [index for index in indices if index < count]


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


@dataclass(frozen=True)
class CudaEngine:
    """The `cuda` engine on one GPU."""

    toolkit: Toolkit
    gpu: Gpu
    name: str = "cuda"
    measures_time: bool = True

    @property
    def device(self) -> str:
        return self.gpu.name

    @property
    def facts(self) -> Mapping[str, str]:
        major, minor = self.gpu.compute_capability
        return {
            "driver": self.gpu.driver,
            "compute_capability": f"{major}.{minor}",
            "gpu_uuid": self.gpu.uuid,
            "compiler": f"nvcc {self.toolkit.version}",
        }

    def identity(self) -> str:
        return f"cuda {self.gpu.architecture} {self.toolkit.identity} {platform.machine()}"

    @property
    def build_paths(self) -> tuple[Path, ...]:
        return (self.toolkit.root, *self.toolkit.added_headers, STUB_HEADERS)

    def compile(
        self, sources: Sequence[str], flags: Sequence[str], *, folder: Path, output: Path, run: Runner
    ) -> Compiled:
        architecture = self.gpu.architecture
        own = [str(self.toolkit.nvcc), *(flag for flag in flags if flag != CPP_IS_CUDA)]
        own += [f"-gencode=arch=compute_{architecture},code=sm_{architecture}", *header_flags(self.toolkit)]
        log, inputs = "", list[str]()
        for number, source in enumerate(sources):  # a language or standard applies to all files of an nvcc command
            if source.endswith(".c"):
                words = [word for word in own if not _STANDARD.match(word)]
            elif CPP_IS_CUDA in flags and not source.endswith(".cu"):
                words = [*own, "-x", "cu"]
            else:
                inputs.append(source)
                continue
            target = output.parent / f"{number}-{Path(source).stem}.o"
            done = run([*words, "-c", source, "-o", str(target)], folder)
            log += done.output
            if done.exit_code != 0:
                return Compiled(Fault.STUDENT, log)
            inputs.append(str(target))
        libraries = (f"-L{library}" for library in self.toolkit.library_folders)
        done = run([*own, *libraries, "-o", str(output), *inputs], folder)
        if done.exit_code != 0:
            return Compiled(Fault.STUDENT, log + done.output)
        if "--cudadevrt=none" in flags and _launches_from_kernels(output):
            return Compiled(Fault.STUDENT, f"{sources[0]}: error: {_NOT_FROM_KERNELS}")
        return Compiled(None, log + done.output)

    def recording(self) -> Recording:
        """See `Recording`. What the recorder tries is machine code of its own process, which no package has."""
        major, minor = self.gpu.compute_capability
        program, *how = self.replay()
        launch = self.launch(Path(program), how, "", traced=False)
        return Recording(
            f"cuda:{major}{minor}",
            partial(machine_code, f"sm_{major}{minor}{'a' if major >= 9 else ''}", self.toolkit.nvcc),
            replace(launch, readable=(Path(program), *launch.readable)),
        )

    def replay(self) -> tuple[str, ...]:
        return str(replay_program("gpu", self.toolkit.include)), "gpu"

    def problem(self) -> str:
        """The reason why a context, an allocation or a copy fails on this GPU, in a process confined like a submission;
        '' if all work."""
        outcome = self._probed()
        said = outcome.stderr.strip().splitlines()
        return "" if outcome.exit_code == 0 else said[-1] if said else outcome.ending

    def start_up_cpu_s(self) -> float | None:
        """The processor time of a minimal CUDA program on this GPU; None if it fails."""
        try:
            outcome = self._probed()
        except MachineFault:
            return None
        return outcome.cpu_s if outcome.exit_code == 0 else None

    def _probed(self) -> sandbox.Outcome:
        launch = self.launch(Path(sys.executable).resolve(), ("-I", "-S", probe.__file__), "", traced=False)
        with scratch_folder("probe") as folder:
            return _run_probe(launch, folder, Path(probe.__file__), Path(sys.base_prefix))

    def launch(self, program: Path, arguments: Sequence[str], trace_target: str, *, traced: bool = True) -> Launch:
        """See `Engine.launch`. `traced=False` leaves out the tracer, which cannot share a process with NVIDIA's own
        tools."""
        environment = {"CUDA_VISIBLE_DEVICES": self.gpu.uuid, "CUDA_MODULE_LOADING": "LAZY"}
        tracer = self.tracer if traced else None
        if tracer is not None:
            environment |= {"CUDA_INJECTION64_PATH": str(tracer), trace.PATH_VARIABLE: trace_target}
        devices = [Path("/dev") / name for name in ("nvidiactl", "nvidia-uvm", f"nvidia{self.gpu.node}", _WINDOWS_NODE)]
        cupti = self.toolkit.cupti()
        start = plan_program.started(program, arguments, self)
        own = (path for path in (tracer, cupti and cupti.library.resolve().parent) if path)
        return replace(
            start,
            environment={**start.environment, **environment},
            readable=(*start.readable, *own),
            devices=tuple(device for device in devices if device.exists()),
            traced=tracer is not None,
            untraced_reason="" if tracer or not traced else "CUPTI was not found (see `grader doctor`)",
        )

    @cached_property
    def tracer(self) -> Path | None:
        """The CUPTI tracer, built once per toolkit and cached; None if CUPTI is missing."""
        cupti = self.toolkit.cupti()
        if cupti is None:
            return None
        content = b"".join(source.read_bytes() for source in SOURCES)
        key = hashlib.sha256(content + f"{platform.machine()} {self.toolkit.version} {cupti}".encode()).hexdigest()[:16]
        paths = (self.toolkit.root, cupti.include, cupti.library.parent, *(source.parent for source in SOURCES))
        make = partial(
            build_tracer,
            cupti_include=cupti.include,
            cuda_include=self.toolkit.include,
            cupti_library=cupti.library,
            cxx="g++",
            run=sandbox.linker(120, readable=paths),
        )
        return kept("native", f"libgrader_tracer-{key}.so", lambda folder: make(folder / "tracer.so"))


_FROM_KERNELS = re.compile(rb"cnpLaunchDevice|__cuda_syscall_")
_FROM_PLANS = re.compile(_FROM_KERNELS.pattern + rb"|cudaGraph")
"""Functions that ptxas and the driver know without any library, with which a kernel launches others on an H100 (driver
of CUDA 13): no trace shows those. Host code of a CUDA program has the names of those for graphs, too."""
_NOT_FROM_KERNELS = "A kernel calls functions of CUDA that launch kernels from kernels: launch them from the host."


def _launches_from_kernels(program: Path) -> bool:
    """Whether machine code of a program calls such functions. nvcc compresses PTX only, of which a program has none."""
    with (
        contextlib.suppress(quarantine.Refused, ValueError),  # what is no file, or is empty, is no program
        quarantine.open_file(program.parent, program.name, sys.maxsize) as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return _FROM_KERNELS.search(content) is not None
    return False


def machine_code(
    arch: str, nvcc: Path, ptx: bytes, ptxas: Sequence[str], _source: Path, work: Path, budget: Budget
) -> bytes:
    """What ptxas makes of a kernel's PTX. Nothing is linked to it, such as the runtime for launches from kernels."""
    tool, *options = ptxas or ("ptxas", "-lineinfo")
    tool_file = plan_program.triton_tool(tool) or nvcc.with_name("ptxas")
    with scratch_folder("kernel", work) as folder:
        (folder / "kernel.ptx").write_bytes(ptx)
        command = [str(tool_file), *options, f"--gpu-name={arch}", "kernel.ptx", "-o", "kernel.cubin"]
        done = sandbox.runner(budget, readable=(tool_file.parent,), writable=(folder,))(command, folder)
        if done.exit_code != 0:
            budget.left_s()
            raise Refused(refusal(done.output, ptx.decode(errors="replace")))
        try:
            made = quarantine.read_bytes(folder, "kernel.cubin", MAX_KERNEL_BYTES)
        except quarantine.Refused as refused:
            raise Refused(f"The machine code of a kernel {refused}.") from None
        if _FROM_PLANS.search(made):
            raise Refused(_NOT_FROM_KERNELS)
        return made


def _run_probe(launch: Launch, folder: Path, *readable: Path) -> sandbox.Outcome:
    job = sandbox.Job(
        command=launch.command,
        folder=folder,
        environment=launch.environment,
        readable=(*readable, *launch.readable),
        devices=launch.devices,
    )
    return sandbox.run(job, sandbox.Limits(wall_s=_PROBE_S))
