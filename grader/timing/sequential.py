"""Times a sequential program, whose rate can be measured again and is then the same.

The program's contract: `./seq INPUT OUTPUT TIMES BUDGET_S` does iterations of equal cost for BUDGET_S seconds, and
writes one line to TIMES, `seconds iterations total`: the processor time of the fastest slice of a few milliseconds, how
many iterations it had, and how many there are in all. `reference/sequential.h` implements everything except the
algorithm; a source may include headers from its own folder or the folder above.

Disturbances (interrupts, a clock that has not risen yet, another virtual machine on the other half of a hyper-threaded
core) only ever make a program slower, and few last without a gap. So the fastest of thousands of short slices repeats
where an average does not: on a virtual machine at load 14, runs of one second each differed by 9 % in their average and
by 3 % in their fastest slice, the three fastest of twelve by 0.2 % (2026-11-24). The program runs again and again, in
turns on cores far apart, each time pinned to one, until the three fastest runs agree.

The program need not run on a testcase's own input. Its time does not depend on the values, so the grader draws an input
from a public seed. The time is also linear in the number of units (batches), so the grader writes a few of them, and
never the 944 MB of the largest testcase.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import resource
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cudaemu.process import Runner
from grader.base.errors import GraderFault, MachineFault
from grader.base.paths import shown
from grader.course.distributions import Distribution
from grader.course.seeds import draw_tensors, public_seed
from grader.course.testcase import Case
from grader.operators import Operator, Shape
from grader.sandbox import linker, runner
from grader.sandbox.scratch import scratch_folder

SAMPLE_BYTES = 32 << 20
"""The largest input written for a measurement, unless two units are larger: more than most caches hold."""

LEAST_RUNS, AGREEING_RUNS, AGREED = 8, 3, 0.005
"""After at least LEAST_RUNS runs, the rate is known if the AGREEING_RUNS fastest differ by at most this share."""

RUNS_IN_BUDGET, PATIENCE = 8, 10
"""A run computes for an eighth of the budget. Runs that do not agree are repeated for up to ten budgets of processor
time, which their reading and writing counts towards."""

CORES = 4
"""The number of cores on which runs take turns."""

COMPILE_LIMIT_S = 60


@dataclass(frozen=True)
class Rate:
    """The time of an iteration by the fastest slice of `runs` runs: `seconds` for `iterations` iterations on `core`.
    `total` iterations make the whole shape. `spread` is the time by which the slowest of the AGREEING_RUNS fastest runs
    exceeded the fastest, as a share."""

    seconds: float
    iterations: int
    total: int
    runs: int
    spread: float
    core: int

    @property
    def whole_s(self) -> float:
        """The time of the whole shape."""
        return self.seconds / self.iterations * self.total


def measure(case: Case, sources: Sequence[Path], flags: Sequence[str], budget_s: float, run: Runner) -> Rate:
    """Compile and time the sequential program, the first of `sources`, on a case.

    Raises GraderFault if the program does not compile or breaks its contract, and MachineFault if there is no C
    compiler or not enough disk space.
    """
    operator, whole = case.operator, case.operator.units(case.shape)
    units = min(whole, max(2, SAMPLE_BYTES // operator.unit_input_bytes(case.shape)))
    try:
        with scratch_folder("baseline") as folder:
            program = _compile(compiler(), sources, flags, folder, run)
            units = operator.units(write_sample(operator, case.shape, units, case.distribution, folder / "input"))
            runs: list[_Slice] = []
            end_s = _childrens_s() + PATIENCE * budget_s
            for core in itertools.islice(itertools.cycle(_cores()), PATIENCE * RUNS_IN_BUDGET):
                if len(runs) >= LEAST_RUNS and (_spread(runs) <= AGREED or _childrens_s() >= end_s):
                    break
                runs.append(_run_once(program, folder, budget_s / RUNS_IN_BUDGET, run, core))
    except OSError as error:
        raise MachineFault(
            f"The sequential program could not be timed on {case.name}: {error.strerror}; it needs up to "
            f"{SAMPLE_BYTES * 4 // 3:,} bytes in {tempfile.gettempdir()}."
        ) from error
    fastest = min(runs, key=lambda one: one.per_iteration)
    return Rate(
        seconds=fastest.seconds,
        iterations=fastest.iterations,
        total=fastest.total * whole // units,
        runs=len(runs),
        spread=_spread(runs),
        core=fastest.core,
    )


@contextlib.contextmanager
def computed(source: Path, flags: Sequence[str], input: Path, limit_s: float) -> Iterator[Path]:
    """The output file that the whole sequential program writes for `input`, removed after the block. Raises GraderFault
    if it writes none within `limit_s` seconds."""
    with scratch_folder("baseline") as folder:
        program = _compile(compiler(), with_headers(source), flags, folder, linker(COMPILE_LIMIT_S))
        shutil.copyfile(input, folder / "input")
        done = runner(limit_s)([str(program), str(folder / "input"), str(folder / "output")], folder)
        if done.exit_code != 0 or not (folder / "output").is_file():
            raise GraderFault(f"it writes no output ({done.exit_code}: {done.output.strip()[:200] or 'no message'})")
        yield folder / "output"


def _childrens_s() -> float:
    """The processor time of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True)
class _Slice:
    seconds: float
    iterations: int
    total: int
    core: int

    @property
    def per_iteration(self) -> float:
        return self.seconds / self.iterations


def _spread(runs: Sequence[_Slice]) -> float:
    fastest = sorted(one.per_iteration for one in runs)[:AGREEING_RUNS]
    return fastest[-1] / fastest[0] - 1


def write_sample(operator: Operator, shape: Shape, units: int, distribution: Distribution, path: Path) -> Shape:
    """Write an input like the case's with `units` units, or with all units if the operator cannot shrink the shape.
    Return the shape of the input."""
    with contextlib.suppress(ValueError):
        shape = operator.shrink(shape, units)
    seed = public_seed("baseline")
    with path.open("wb", buffering=0) as file:
        file.write(operator.encode_header(shape))
        for unit in range(operator.units(shape)):
            tensors = draw_tensors(operator, shape, distribution, seed, operator.name, unit)
            operator.write_unit(file.fileno(), shape, unit, tensors)
    return shape


def _run_once(program: Path, folder: Path, budget_s: float, run: Runner, core: int) -> _Slice:
    times = folder / "times"
    times.unlink(missing_ok=True)
    with _pinned(core):
        completed = run(
            [str(program), str(folder / "input"), str(folder / "output"), str(times), f"{budget_s:g}"], folder
        )
    text = times.read_text(encoding="utf-8", errors="replace") if times.exists() else ""
    try:
        seconds, iterations, total = text.split()
        found = _Slice(float(seconds), int(iterations), int(total), core)
    except ValueError:
        found = _Slice(0.0, 0, 0, core)
    if completed.exit_code != 0 or not (found.iterations > 0 and found.total > 0 and found.seconds > 0):
        raise GraderFault(
            "The sequential program broke its contract: it must exit with 0 (found "
            f"{completed.exit_code}) and write `seconds iterations total` to its third argument (found "
            f"{text.strip()[:80]!r}). Its messages: {completed.output.strip()[:500] or 'none'}"
        )
    return found


def _cores() -> list[int]:
    """The cores for the runs, evenly spaced, the last allowed one first: the first core takes most interrupts, and
    neighbours may be two halves of one."""
    allowed = sorted(os.sched_getaffinity(0), reverse=True)
    count = min(CORES, len(allowed))
    return [allowed[number * len(allowed) // count] for number in range(count)]


@contextlib.contextmanager
def _pinned(core: int) -> Iterator[None]:
    """Pin the children that the block starts to one core."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


# ---- compiling --------------------------------------------------------------------------------------------------


def compiler() -> str:
    found = shutil.which("gcc")
    if found is None:
        raise MachineFault("gcc is not on PATH; timing the sequential program needs it: apt install gcc.")
    return found


@cache
def own_compiler_version(compiler: str) -> str:
    """The compiler's version, read only once per process because the key of every cached time contains it."""
    return compiler_version(compiler, runner(COMPILE_LIMIT_S))


def compiler_version(compiler: str, run: Runner) -> str:
    with scratch_folder("baseline") as folder:
        completed = run([compiler, "--version"], folder)
    return completed.output.splitlines()[0].strip() if completed.output else compiler


_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([\w.-]+)"', re.MULTILINE)


def with_headers(source: Path) -> tuple[Path, ...]:
    """The source, followed by the headers that it includes, directly or not, from its own folder or the folder
    above."""
    folders = (source.parent, source.parent.parent)
    found = [source]
    for path in found:
        names = (name.decode() for name in _INCLUDE.findall(path.read_bytes()))
        headers = (next((f / name for f in folders if (f / name).is_file()), None) for name in names)
        found += [header for header in headers if header is not None and header not in found]
    return tuple(found)


def _compile(compiler: str, sources: Sequence[Path], flags: Sequence[str], folder: Path, run: Runner) -> Path:
    source = sources[0]
    program, copied = folder / "seq", folder / source.name
    for path in sources:
        shutil.copyfile(path, folder / path.name)  # a runner need not see anything outside the folder
    command = [compiler, *flags, "-o", str(program), str(copied), "-lm"]
    completed = run(command, folder)
    if completed.exit_code != 0 or not program.exists():
        raise GraderFault(
            f"{shown(source)}: the sequential program does not compile (`{' '.join(command[:-4])}`):\n"
            f"{completed.output.strip()}"
        )
    return program
