"""Finds out what this machine has, what is missing and how to get it. Where it can, it tries things out."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from grader import sandbox
from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.identity import identity
from grader.base.paths import cache_folder, course_root
from grader.programs import gpu_oracle
from grader.programs.control import OWN_PROGRAM, compile_own
from grader.programs.engine import plan_program
from grader.programs.engine.cuda import CudaEngine, find_gpu, no_gpu_reason
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.toolkit import Toolkit, find_toolkit
from grader.sandbox import bubblewrap
from grader.sandbox.promises import try_promises
from grader.sandbox.scratch import scratch_folder

_LEAST_FREE_BYTES = 2 << 30

_PROBE = """
#include <cstdio>
__global__ void add(int *sum, int value) { atomicAdd(sum, value + threadIdx.x); }
int main() {
    int *device = nullptr, sum = 0;
    cudaMalloc(&device, sizeof sum);
    cudaMemset(device, 0, sizeof sum);
    add<<<2, 32>>>(device, 1);
    cudaMemcpy(&sum, device, sizeof sum, cudaMemcpyDeviceToHost);
    std::printf("%d %s\\n", sum, cudaGetErrorName(cudaGetLastError()));
}
"""
_PROBE_SAYS = "1056 cudaSuccess"  # 2 blocks, each of which sums 1 + thread over 32 threads: 2 * 528


@dataclass(frozen=True)
class Answer:
    """The result of one check of the machine. If it is `needed`, nothing can be graded without it. `remedy` says what
    to do if it is not `ok`."""

    what: str
    ok: bool
    found: str
    remedy: str = ""
    needed: bool = False


def examine() -> list[Answer]:
    """Examine the whole machine."""
    return list(_findings())


def render(findings: list[Answer]) -> str:
    """A line per finding, and a remedy for each one that is not ok."""
    width = max(len(finding.what) for finding in findings)
    lines = []
    for finding in findings:
        mark = "ok     " if finding.ok else "MISSING" if finding.needed else "no     "
        lines.append(f"{mark}  {finding.what:<{width}}  {finding.found}")
        if not finding.ok and finding.remedy:
            lines.append(f"{'':{9 + width}}  -> {finding.remedy}")
    return "\n".join(lines)


def _findings() -> Iterator[Answer]:
    """All findings, those about compilers and engines first."""
    try:
        toolkit = find_toolkit()
    except MachineFault as fault:
        yield Answer("nvcc", False, "not found", str(fault), needed=True)
    else:
        yield Answer("nvcc", True, f"{toolkit.nvcc} {toolkit.version}", needed=True)
        yield from _gpu(toolkit)
        yield _emulator(toolkit)
        yield _triton(toolkit)
    yield Answer("grader", True, str(identity()))
    version = ".".join(map(str, sys.version_info[:3]))
    yield Answer("Python", sys.version_info >= (3, 11), version, "install Python 3.11 or newer", needed=True)
    course, course_files = _course()
    yield course_files
    gxx = shutil.which("g++")
    yield Answer("C++ compiler", gxx is not None, gxx or "no g++ on PATH", "apt install g++", needed=True)
    make = shutil.which("make")
    yield Answer("make", make is not None, make or "not on PATH", "apt install make (reads students' Makefiles)")
    yield from _confinement(course)
    yield _space(cache_folder(), "room for builds")
    yield _space(Path(tempfile.gettempdir()), "room for runs")


def _confinement(course: Path | None) -> Iterator[Answer]:
    """One finding for the confinement, and one for each promise that does not hold."""
    promises = list(try_promises(course))
    held = sum(promise.held is True for promise in promises)
    found = f"{sandbox.confinement()}; {held} of {len(promises)} promises were tried and hold (docs/integrity.md)"
    yield Answer("confinement", bubblewrap.problem() is None, found, "apt install bubblewrap")
    for promise in promises:
        if not promise.held:
            found = f"{'not tried' if promise.held is None else 'BROKEN'} ({promise.how})"
            remedy = "install bubblewrap, or grade only work that you trust on this machine"
            yield Answer(f"  {promise.what}", promise.held is None, found, remedy)


def _course() -> tuple[Path | None, Answer]:
    try:
        course = course_root()
    except UsageError as error:
        return None, Answer("course files", False, "not found", str(error), needed=True)
    return course, Answer("course files", True, str(course), needed=True)


def _space(folder: Path, what: str) -> Answer:
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(place).free
    found = f"{free / 1e9:.1f} GB free in {place}"
    return Answer(what, free >= _LEAST_FREE_BYTES, found, "free at least 2 GB there")


def _emulator(toolkit: Toolkit) -> Answer:
    remedy = (
        "see the message; `make setup` installs what it needs; if g++ is too new for nvcc, install an older one and "
        "set NVCC_CCBIN, for example to g++-14"
    )
    found = _check("emulator", lambda: _run_probe(EmulatorEngine(toolkit, "sm_80")), remedy)
    return replace(found, needed=find_gpu() is None)


def _gpu(toolkit: Toolkit) -> Iterator[Answer]:
    gpu = find_gpu()
    if gpu is None:
        remedy = "checks work without one, on the emulator; times and occupancy need an NVIDIA GPU and its driver"
        yield Answer("GPU", False, f"no NVIDIA GPU: {no_gpu_reason()}", remedy)
        return
    yield Answer("GPU", True, f"{gpu.name}, driver {gpu.driver}, {gpu.memory_bytes / 2**30:.0f} GiB")
    engine = CudaEngine(toolkit, gpu)
    yield _check("CUDA programs", lambda: _run_probe(engine), "check the driver with nvidia-smi")
    cupti = toolkit.cupti()
    remedy = "without it no GPU times are measured: install the toolkit's CUPTI or pip install nvidia-cuda-cupti"
    yield Answer("CUPTI", cupti is not None, str(cupti.library) if cupti else "not found", remedy)
    if cupti is not None:
        yield _check("GPU tracer", lambda: str(engine.tracer), "see the message; report it as a bug")
    remedy = "pip install 'cuda-homework-grader[gpu]'; without it, numpy makes expected outputs more slowly"
    without = gpu_oracle.unavailable()
    yield Answer("pycuda", not without, without or "installed", remedy)
    for name, what in (("ncu", "occupancy and metrics"), ("compute-sanitizer", "memory checks on the GPU")):
        tool = toolkit.tool(name)
        if tool is not None and (why := sandbox.tool_problem()):
            yield Answer(name, False, why.partition(": ")[0], why.partition(": ")[2])
        else:
            yield Answer(name, tool is not None, str(tool or "not found"), f"{what} need it: install the CUDA toolkit")


_TRITON_S = 60.0


def _triton(toolkit: Toolkit) -> Answer:
    found = plan_program.triton_version()
    problem = "" if found else "not installed"
    if found:
        problem = plan_program.control_problem(EmulatorEngine(toolkit, "sm_80").recording(), _TRITON_S)
    return Answer("Triton", not problem, problem or found, f"for Python submissions: {plan_program.INSTALL}")


def _run_probe(engine: CudaEngine | EmulatorEngine) -> str:
    with scratch_folder("doctor") as folder:
        began = time.monotonic()
        built = compile_own(engine, _PROBE, folder, ["-O1"])
        if not built.ok:
            raise GraderFault(f"a small test program does not compile: {built.log.strip()[:400]}")
        launch = engine.launch(folder / OWN_PROGRAM, [], str(folder / "trace.jsonl"))
        job = sandbox.Job(launch.command, folder, launch.environment, readable=launch.readable, devices=launch.devices)
        outcome = sandbox.run(job, sandbox.Limits(wall_s=60))
        if outcome.stdout.strip() != _PROBE_SAYS:
            said = (outcome.stdout + outcome.stderr).strip()[:300] or "nothing"
            raise GraderFault(f"a small test program ended with {outcome.ending} and printed: {said}")
        return f"{engine.device}: compiled and ran a kernel in {time.monotonic() - began:.1f} s"


def _check(what: str, attempt: Callable[[], str], remedy: str) -> Answer:
    try:
        return Answer(what, True, attempt())
    except (GraderFault, MachineFault, UsageError) as error:
        return Answer(what, False, str(error), remedy)
