"""Times the sequential program that speedups are measured against, on this machine, and caches the times.

The program's contract: `./seq INPUT OUTPUT TIMES BUDGET_S` does outer iterations of equal cost until all are done
or BUDGET_S seconds of computing are spent, and writes one line to TIMES, `compute_seconds done total`. These seconds
do not include reading and writing files. `reference/sequential.h` implements everything except the algorithm; a source
may include headers from its own folder or the folder above. Because iterations cost the same, the time of all of them
is the measured time multiplied by total / done.

The program need not run on the testcase's own input. Its time does not depend on the values, so the grader draws an
input from a public seed. The time is also linear in the number of units (batches), so the grader writes only as many
units as the budget needs, and never the 944 MB of the largest testcase. A Baseline records how much was measured and
how much was scaled.

Several runs, at least three, share the budget, and the fastest counts: disturbances of a run on one core (interrupts,
neighbours) only ever make it slower. The Baseline also holds the slowest, so that a person sees how far the runs
differ.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from grader.base.errors import GraderFault, MachineFault
from grader.base.machine import cpu_model
from grader.base.paths import shown
from grader.base.process import Runner
from grader.course.assignment import Assignment
from grader.course.catalogue.piece import draw_tensors
from grader.course.seeds import Distribution, public_seed
from grader.course.testcase import Case
from grader.operators import Operator, Shape
from grader.programs.engine import Engine
from grader.sandbox import runner
from grader.sandbox.cache import cache_entry, making, mark_used, put
from grader.sandbox.scratch import scratch_folder

MAX_SAMPLE_BYTES = 128 << 20
"""The largest input written for a measurement. A program that needs less than its budget for this input is measured for
less time."""

LEAST_RUNS, MAX_RUNS = 3, 5
"""Each run may take a third of the budget. Shorter runs are repeated up to five times while the budget lasts."""

QUIET = 0.05
"""If the slowest run takes longer than the fastest by more than this share, another program was running."""

GROWTH = 1.5
"""A sample that finishes before its budget is spent is enlarged to this many times the size that should fill the
budget."""

_COMPILE_LIMIT_S = 60
_CACHE_VERSION = 2


@dataclass(frozen=True)
class Baseline:
    """The sequential time of one shape, for computing only. `seconds` is the time of the whole problem in the fastest
    of `runs` runs, scaled from `measured_seconds` for `done` of its `total` iterations. `slowest_seconds` is the time
    of the whole problem in the slowest of these runs."""

    shape: Shape
    seconds: float
    measured_seconds: float
    done: int
    total: int
    runs: int
    cpu: str
    core: int
    compiler: str
    flags: tuple[str, ...]
    source_sha256: str
    date: str
    slowest_seconds: float

    @property
    def scaled(self) -> bool:
        return self.done < self.total

    def describe(self) -> str:
        """One sentence that says what was measured and what was scaled."""
        how = f"core {self.core} of {self.cpu}, {self.compiler}, {' '.join(self.flags)}, {self.date[:10]}"
        runs = f"fastest of {self.runs} runs, the slowest {self.spread:+.1%}"
        if self.spread > QUIET:
            runs += " (the machine was busy: run `grader baseline --refresh` when it is idle)"
        if not self.scaled:
            return f"measured completely, {runs}: {self.seconds:.4g} s ({how})."
        return (
            f"scaled from a sample, {runs}: {self.measured_seconds:.3g} s measured for {self.done:,} of "
            f"{self.total:,} iterations of equal cost, {self.seconds:.4g} s for all ({how})."
        )

    @property
    def spread(self) -> float:
        """The time by which the slowest run exceeded the fastest, as a share of the fastest."""
        return self.slowest_seconds / self.seconds - 1


def baselines_of(rules: Assignment, engine: Engine) -> Callable[[Case], Baseline] | None:
    """A function that returns the sequential time of a case on this machine; None if `engine` measures no times, or if
    there is no sequential program, as on a student's machine."""
    return cache(partial(baseline_of, rules)) if engine.measures_time and rules.reference_folder.is_dir() else None


def baseline_of(rules: Assignment, case: Case, *, refresh: bool = False) -> Baseline:
    """Time the assignment's sequential program on a case; see `time_baseline`."""
    return time_baseline(
        case,
        source=rules.reference_folder / rules.baseline.source,
        flags=rules.baseline.flags,
        budget_s=rules.baseline.budget_s,
        refresh=refresh,
    )


def time_baseline(
    case: Case,
    *,
    source: Path,
    flags: Sequence[str] = ("-O3",),
    budget_s: float = 2.0,
    refresh: bool = False,
    run: Runner | None = None,
) -> Baseline:
    """Return the sequential time of a case's shape on this machine, from the cache if possible. With `refresh`, or
    if it is not cached, measure it.

    `run` runs the compiler and the program; the default is the grader's runner with a time limit. Raises MachineFault
    if there is no C compiler or not enough disk space, and GraderFault if the program does not compile or breaks its
    contract.
    """
    own_runner = run is None
    run = run or runner(max(_COMPILE_LIMIT_S, 10 * budget_s))
    try:
        sources = _with_headers(source)
        text = b"".join(path.read_bytes() for path in sources)
    except OSError as error:
        raise GraderFault(f"{shown(source)}: the sequential program cannot be read ({error.strerror}).") from error
    compiler = _compiler()
    key: dict[str, Any] = {
        "version": _CACHE_VERSION,
        "operator": case.operator.name,
        "shape": list(case.shape),
        "cpu": cpu_model(),
        "compiler": _own_compiler_version(compiler) if own_runner else _compiler_version(compiler, run),
        "flags": list(flags),
        "source_sha256": hashlib.sha256(text).hexdigest(),
        "budget_s": budget_s,
    }
    kept_at = _cache_file(key)
    if not refresh and (kept := _read(kept_at, key)) is not None:
        mark_used(kept_at)
        return kept
    try:
        with scratch_folder("baseline") as folder:
            program = _compile(compiler, sources, flags, folder, run)
            baseline = _measure(case, program, budget_s, folder, run, key)
    except OSError as error:
        raise MachineFault(
            f"The sequential program could not be timed on {case.name}: {error.strerror}; it needs up to "
            f"{MAX_SAMPLE_BYTES * 4 // 3:,} bytes in {tempfile.gettempdir()}."
        ) from error
    _write(kept_at, key, baseline)
    return baseline


# ---- compiling --------------------------------------------------------------------------------------------------


def _compiler() -> str:
    found = shutil.which("gcc")
    if found is None:
        raise MachineFault("gcc is not on PATH; timing the sequential program needs it: apt install gcc.")
    return found


@cache
def _own_compiler_version(compiler: str) -> str:
    """The compiler's version, read only once per process because the key of every cached time contains it."""
    return _compiler_version(compiler, runner(_COMPILE_LIMIT_S))


def _compiler_version(compiler: str, run: Runner) -> str:
    with scratch_folder("baseline") as folder:
        completed = run([compiler, "--version"], folder)
    return completed.output.splitlines()[0].strip() if completed.output else compiler


_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([\w.-]+)"', re.MULTILINE)


def _with_headers(source: Path) -> tuple[Path, ...]:
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


# ---- measuring --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Times:
    seconds: float
    done: int
    total: int

    @property
    def per_iteration(self) -> float:
        return self.seconds / self.done


def _measure(case: Case, program: Path, budget_s: float, folder: Path, run: Runner, key: dict[str, Any]) -> Baseline:
    operator, whole = case.operator, case.operator.units(case.shape)
    most = max(1, MAX_SAMPLE_BYTES // operator.unit_input_bytes(case.shape))
    units = min(whole, 2)
    source = folder / "input"
    with _pinned() as core:
        shape = write_sample(operator, case.shape, units, case.distribution, source)
        units = operator.units(shape)
        each_s = budget_s / LEAST_RUNS
        times = _run_once(program, source, each_s, folder, run)
        while times.done == times.total and units < min(whole, max(most, 2)):
            wanted = GROWTH * each_s / times.seconds * units
            units = max(units + 1, min(whole, most, int(min(wanted, float(whole)))))
            write_sample(operator, case.shape, units, case.distribution, source)
            times = _run_once(program, source, each_s, folder, run)
            if times.seconds >= 0.7 * each_s:
                break
        runs = [times]
        while len(runs) < LEAST_RUNS or (
            len(runs) < MAX_RUNS and sum(one.seconds for one in runs) + times.seconds <= budget_s
        ):
            runs.append(_run_once(program, source, each_s, folder, run))
    times = min(runs, key=lambda one: one.per_iteration)
    slowest = max(runs, key=lambda one: one.per_iteration)
    total = times.total * whole // units
    seconds = times.seconds if times.done == total else times.per_iteration * total
    return Baseline(
        shape=case.shape,
        seconds=seconds,
        measured_seconds=times.seconds,
        done=times.done,
        total=total,
        runs=len(runs),
        cpu=key["cpu"],
        core=core,
        compiler=key["compiler"],
        flags=tuple(key["flags"]),
        source_sha256=key["source_sha256"],
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        slowest_seconds=slowest.per_iteration * total,
    )


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


def _run_once(program: Path, source: Path, budget_s: float, folder: Path, run: Runner) -> _Times:
    times = folder / "times"
    times.unlink(missing_ok=True)
    completed = run([str(program), str(source), str(folder / "output"), str(times), f"{budget_s:g}"], folder)
    text = times.read_text(encoding="utf-8", errors="replace") if times.exists() else ""
    try:
        seconds, done, total = text.split()
        found = _Times(float(seconds), int(done), int(total))
    except ValueError:
        found = _Times(0.0, 0, 0)
    if completed.exit_code != 0 or not (0 < found.done <= found.total and found.seconds > 0):
        raise GraderFault(
            "The sequential program broke its contract: it must exit with 0 (found "
            f"{completed.exit_code}) and write `compute_seconds done total` to its third argument (found "
            f"{text.strip()[:80]!r}). Its messages: {completed.output.strip()[:500] or 'none'}"
        )
    return found


@contextlib.contextmanager
def _pinned() -> Iterator[int]:
    """Pin the children that the block starts to one core: the last allowed one, since the first takes most
    interrupts."""
    allowed = os.sched_getaffinity(0)
    core = max(allowed)
    os.sched_setaffinity(0, {core})
    try:
        yield core
    finally:
        os.sched_setaffinity(0, allowed)


# ---- the cache --------------------------------------------------------------------------------------------------


def _cache_file(key: dict[str, Any]) -> Path:
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:24]
    return cache_entry("baseline", f"{name}.json")


def _read(path: Path, key: dict[str, Any]) -> Baseline | None:
    """The cached time; None if it is missing, damaged, or does not match the key."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["key"] != key:
            return None
        fields = dict(content["baseline"])
        fields["shape"], fields["flags"] = tuple(fields["shape"]), tuple(fields["flags"])
        return Baseline(**fields)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, key: dict[str, Any], baseline: Baseline) -> None:
    """Cache a time. If the cache cannot be written, the measurement still counts, but the next grading repeats it."""
    with contextlib.suppress(MachineFault), making(path) as folder:
        made = folder / "baseline.json"
        made.write_text(json.dumps({"key": key, "baseline": asdict(baseline)}, indent=2) + "\n", encoding="utf-8")
        put(made, path)
