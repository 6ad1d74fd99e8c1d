"""The grader's own control program, the witness of every fault.

A submission can make a compiler, the emulator or the sandbox fail in ways that look like a fault of the grader or of
the machine. So such a fault is believed only if a program of the grader's own, built and run in the same way at the
same moment, fails too. If it works, the failure is the submission's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from cudaemu.process import Stopped
from grader import sandbox
from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.names import SOURCE_FOLDER
from grader.base.verdict import Fault
from grader.programs.compile_errors import first_line
from grader.programs.engine import Compiled, Engine, plan_program
from grader.programs.toolkit import find_toolkit
from grader.sandbox import quarantine
from grader.sandbox.scratch import scratch_folder

OWN_PROGRAM = "program"
"""The name of the program that `compile_own` builds."""
_CONTROL = """\
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __CUDACC__
#include <vector>
__global__ void root(float *values) { values[threadIdx.x] = sqrtf(values[threadIdx.x]); }
int main(void) {
    float *values, first = 4;
    if (cudaMalloc(&values, 32 * sizeof first) != cudaSuccess) return 1;
    if (cudaMemcpy(values, &first, sizeof first, cudaMemcpyHostToDevice) != cudaSuccess) return 2;
    root<<<1, 1>>>(values);
    if (cudaMemcpy(&first, values, sizeof first, cudaMemcpyDeviceToHost) != cudaSuccess) return 3;
    return first == 2 ? 0 : 4;
}
#else
int main(void) { return 0; }
#endif
"""
"""If this does not compile, the machine's g++ or its C library may be newer than nvcc can read, or files of the toolkit
may be missing."""
_COMPILE_LIMIT_S = 120
_RUN_LIMIT_S = 60
_MAX_QUOTED = 300
TRIES = 2


@dataclass
class Blame(AbstractContextManager["Blame", bool]):
    """A block that tries a step of grading a submission, in `python` or not; `for _ in range(TRIES)` repeats it. If the
    step fails and the control program of that language fails too, its error is raised, as a user's own error is. If
    the control program works, the error is suppressed, and `caused` says what the submission has caused twice."""

    engine: Engine
    python: bool
    caused: str = ""

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> bool:
        if not isinstance(error, Exception) or isinstance(error, UsageError):
            return False
        if not self.caused and problem(self.engine, python=self.python):
            return False
        name = "" if isinstance(error, GraderFault | MachineFault) else f"{type(error).__name__}: "
        said = first_line(str(error))[:_MAX_QUOTED]
        self.caused = f"The grader failed on this program twice, and not on its own: {name}{said}"
        return True


def problem(engine: Engine, *, python: bool = False) -> str:
    """The reason why not even the control program can be built and run for `engine` now, nor, for a submission in
    `python`, one with a Triton kernel be recorded; '' if they can."""
    try:
        return (plan_program.control_problem(engine.recording()) if python else "") or compile_problem(engine, run=True)
    except (GraderFault, MachineFault) as fault:
        return str(fault)


def compile_problem(engine: Engine, *, run: bool = False) -> str:
    """A sentence on why this machine cannot compile even the control program, or `run` it; '' if it can."""
    with scratch_folder("control") as folder:
        try:
            made = compile_own(engine, _CONTROL, folder)
        except Stopped as late:
            made = Compiled(Fault.MACHINE, str(late))
        if made.ok:
            return _run_problem(engine, folder) if run else ""
    errors = (line for line in made.log.splitlines() if re.search(r"\berror\b", line))
    said = next(errors, first_line(made.log)).strip()
    if "Unsupported gpu architecture" in said:
        remedy = (
            "This nvcc does not support the GPU: install one that does (CUDA 12 for GPUs before Turing, 2018), "
            "or use --engine emulator."
        )
    else:
        remedy = "If g++ is newer than nvcc supports, install an older one and set, for example, NVCC_CCBIN=g++-14."
    return f"This machine cannot even compile a one-line kernel: {said[:_MAX_QUOTED]}; see `grader doctor`. {remedy}"


def _run_problem(engine: Engine, folder: Path) -> str:
    launch = engine.launch(folder / OWN_PROGRAM, [], str(folder / "trace.jsonl"))
    job = sandbox.Job(
        launch.command, folder, launch.environment, launch.readable, devices=launch.devices, starts_processes=False
    )
    outcome = sandbox.run(job, sandbox.Limits(wall_s=_RUN_LIMIT_S))
    if outcome.exit_code == 0:
        return ""
    return f"This machine cannot even run a one-line kernel: {outcome.ending} {outcome.stderr[:_MAX_QUOTED]}".strip()


def lacks_curand() -> bool:
    """Whether this machine has no header of cuRAND's device library, so that no program can call it."""
    toolkit = find_toolkit()
    folders = (toolkit.root / "include", *toolkit.root.glob("targets/*/include"), *toolkit.added_headers)
    return not any((folder / "curand_kernel.h").exists() for folder in folders)


def compile_own(engine: Engine, source: str, folder: Path, flags: Sequence[str] = ()) -> Compiled:
    """Compile a small program of the grader, confined like a submission, into `folder`/OWN_PROGRAM: to find out whether
    this machine can compile, or to get a program that is known to run. The result is not cached."""
    sources, product = folder / SOURCE_FOLDER, folder / "build"
    sources.mkdir()
    product.mkdir()
    (sources / "program.cu").write_text(source, encoding="utf-8")
    run = sandbox.linker(_COMPILE_LIMIT_S, readable=(*engine.build_paths, folder), writable=(product,))
    made = engine.compile(("program.cu",), flags, folder=sources, output=product / OWN_PROGRAM, run=run)
    if made.ok and not quarantine.claim(product, OWN_PROGRAM, folder / OWN_PROGRAM, program=True):
        return Compiled(Fault.MACHINE, "The compiler ended without an error but wrote no program.")
    return made
