"""Times the sequential program that speedups are measured against, on this machine, and caches the times.

The program's contract: `./seq INPUT OUTPUT TIMES BUDGET_S` does outer iterations of equal cost until all are done
or BUDGET_S seconds of computing are spent, and writes one line to TIMES, `compute_seconds done total`. These are
seconds of processor time, which another program on the core does not lengthen, without reading and writing files.
`reference/sequential.h` implements everything except the algorithm; a source may include headers from its own folder
or the folder above. Because iterations cost the same, the time of all of them is the measured time multiplied by
total / done.

The program need not run on the testcase's own input. Its time does not depend on the values, so the grader draws an
input from a public seed. The time is also linear in the number of units (batches), so the grader writes only as many
units as the budget needs, and never the 944 MB of the largest testcase. A Baseline records how much was measured and
how much was scaled.

The program runs again and again, each time pinned to one core, until its rate is known: until the three fastest runs
agree to 2 %. Only the fastest counts, since disturbances (interrupts, a clock that has not risen yet, another program
on the other half of a hyper-threaded core) only ever make a run slower. The last can last for seconds: on one core of a
busy machine, three runs in a row agreed to 0.9 % at 0.63 times the rate (2026-11-24). So the runs take turns on cores
far apart. If the budget ends first, the Baseline says how far the runs differ. The grader times baselines before it
runs a submission, because its own threads, which prepare the inputs of the next test, would disturb them.

Equal loops have one rate. If the time of a shape is proportional to its operations among shapes that agree in some
dimensions (`baseline.rate_by`), one shape of each such group is timed, and the others are scaled from it.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
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
from grader.course.testcase import Case, load_suite
from grader.operators import Operator, Shape, shape_words
from grader.programs.engine import Engine
from grader.records.score import KNOWN_TO
from grader.sandbox import runner
from grader.sandbox.cache import cache_entry, making, mark_used, put
from grader.sandbox.scratch import scratch_folder

MAX_SAMPLE_BYTES = 128 << 20
"""The largest input written for a measurement. A program that needs less than its budget for this input is measured for
less time."""

LEAST_RUNS, AGREEING_RUNS = 6, 3
"""After at least LEAST_RUNS runs, the rate is known if the AGREEING_RUNS fastest differ by at most KNOWN_TO."""

CORES = 4
"""The number of cores on which runs take turns."""

RUNS_IN_BUDGET, PATIENCE = 6, 4
"""A run takes a sixth of the budget. Runs that do not agree are repeated for up to four budgets."""

GROWTH = 1.5
"""A sample that finishes before its budget is spent is enlarged to this many times the size that should fill the
budget."""

_COMPILE_LIMIT_S = 60
_CACHE_VERSION = 3


@dataclass(frozen=True)
class Baseline:
    """The sequential time of one shape, for computing only. `seconds` is the time of the whole problem, at the rate of
    the fastest of `runs` runs: `measured_seconds` for `done` of `total` iterations of the shape `sampled`. `spread` is
    the time by which the slowest of the AGREEING_RUNS fastest runs exceeded the fastest, as a share."""

    shape: Shape
    seconds: float
    sampled: Shape
    measured_seconds: float
    done: int
    total: int
    runs: int
    spread: float
    cpu: str
    core: int
    compiler: str
    flags: tuple[str, ...]
    source_sha256: str
    date: str

    @property
    def scaled(self) -> bool:
        return self.done < self.total or self.sampled != self.shape

    def describe(self) -> str:
        """One sentence that says what was measured and what was scaled."""
        how = f"core {self.core} of {self.cpu}, {self.compiler}, {' '.join(self.flags)}, {self.date[:10]}"
        runs = f"fastest of {self.runs} runs, the fastest {AGREEING_RUNS} agree to {self.spread:.1%}"
        if self.spread > KNOWN_TO:
            runs += f", not to {KNOWN_TO:.0%} (another program was running: `grader baseline --refresh` measures again)"
        if not self.scaled:
            return f"measured completely, {runs}: {self.seconds:.4g} s ({how})."
        of = "" if self.sampled == self.shape else f" of {shape_words(self.sampled)}, whose loops are the same"
        return (
            f"scaled from a sample, {runs}: {self.measured_seconds:.3g} s measured for {self.done:,} of "
            f"{self.total:,} iterations of equal cost{of}, {self.seconds:.4g} s for all ({how})."
        )

    def of_shape(self, shape: Shape, operator: Operator) -> Baseline:
        """The sequential time of another shape whose loops have the same rate."""
        scale = operator.flops(shape) / operator.flops(self.shape)
        return replace(self, shape=shape, seconds=self.seconds * scale)


def baselines_of(rules: Assignment, engine: Engine) -> Callable[[Case], Baseline] | None:
    """A function that returns the sequential time of a case on this machine; None if `engine` measures no times, or if
    there is no sequential program, as on a student's machine."""
    return cache(partial(baseline_of, rules)) if engine.measures_time and rules.reference_folder.is_dir() else None


def baseline_of(rules: Assignment, case: Case, *, refresh: bool = False) -> Baseline:
    """Time the assignment's sequential program on a case, or on the case that stands for all with the same loops; see
    `time_baseline`."""
    timed = time_baseline(
        _representative(rules, case),
        source=rules.reference_folder / rules.baseline.source,
        flags=rules.baseline.flags,
        budget_s=rules.baseline.budget_s,
        refresh=refresh,
    )
    return timed.of_shape(case.shape, case.operator) if timed.shape != case.shape else timed


_suite = cache(load_suite)


def _representative(rules: Assignment, case: Case) -> Case:
    """Of the graded cases with the same loops as `case`, the one whose units take the middle number of operations."""
    names = case.operator.dimension_names
    places = [names.index(name) for name in rules.baseline.rate_by]
    if not places:
        return case

    def unit_flops(other: Case) -> float:
        return other.flops / other.operator.units(other.shape)

    equal = [
        other
        for other in _suite(rules.testcases_file).graded
        if all(other.shape[at] == case.shape[at] for at in places)
    ]
    return sorted(equal, key=unit_flops)[len(equal) // 2] if equal else case


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
    core: int

    @property
    def per_iteration(self) -> float:
        return self.seconds / self.done


def _measure(case: Case, program: Path, budget_s: float, folder: Path, run: Runner, key: dict[str, Any]) -> Baseline:
    operator, whole = case.operator, case.operator.units(case.shape)
    most = max(1, MAX_SAMPLE_BYTES // operator.unit_input_bytes(case.shape))
    units = min(whole, 2)
    source = folder / "input"
    shape = write_sample(operator, case.shape, units, case.distribution, source)
    units = operator.units(shape)
    each_s = budget_s / RUNS_IN_BUDGET
    once = partial(_run_once, program, source, each_s, folder, run)
    cores = itertools.cycle(_cores())
    times = once(next(cores))
    while times.done == times.total and units < min(whole, max(most, 2)):
        wanted = GROWTH * each_s / times.seconds * units
        units = max(units + 1, min(whole, most, int(min(wanted, float(whole)))))
        write_sample(operator, case.shape, units, case.distribution, source)
        times = once(next(cores))
        if times.seconds >= 0.7 * each_s:
            break
    runs = [times]
    while len(runs) < LEAST_RUNS or (
        _spread(runs) > KNOWN_TO and sum(one.seconds for one in runs) + times.seconds <= PATIENCE * budget_s
    ):
        runs.append(once(next(cores)))
    times = min(runs, key=lambda one: one.per_iteration)
    total = times.total * whole // units
    return Baseline(
        shape=case.shape,
        seconds=times.seconds if times.done == total else times.per_iteration * total,
        sampled=case.shape,
        measured_seconds=times.seconds,
        done=times.done,
        total=total,
        runs=len(runs),
        spread=_spread(runs),
        cpu=key["cpu"],
        core=times.core,
        compiler=key["compiler"],
        flags=tuple(key["flags"]),
        source_sha256=key["source_sha256"],
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _spread(runs: Sequence[_Times]) -> float:
    """The time by which the slowest of the AGREEING_RUNS fastest runs exceeds the fastest, as a share."""
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


def _run_once(program: Path, source: Path, budget_s: float, folder: Path, run: Runner, core: int) -> _Times:
    times = folder / "times"
    times.unlink(missing_ok=True)
    with _pinned(core):
        completed = run([str(program), str(source), str(folder / "output"), str(times), f"{budget_s:g}"], folder)
    text = times.read_text(encoding="utf-8", errors="replace") if times.exists() else ""
    try:
        seconds, done, total = text.split()
        found = _Times(float(seconds), int(done), int(total), core)
    except ValueError:
        found = _Times(0.0, 0, 0, core)
    if completed.exit_code != 0 or not (0 < found.done <= found.total and found.seconds > 0):
        raise GraderFault(
            "The sequential program broke its contract: it must exit with 0 (found "
            f"{completed.exit_code}) and write `compute_seconds done total` to its third argument (found "
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
        fields |= {name: tuple(fields[name]) for name in ("shape", "sampled", "flags")}
        return Baseline(**fields)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, key: dict[str, Any], baseline: Baseline) -> None:
    """Cache a time. If the cache cannot be written, the measurement still counts, but the next grading repeats it."""
    with contextlib.suppress(MachineFault), making(path) as folder:
        made = folder / "baseline.json"
        made.write_text(json.dumps({"key": key, "baseline": asdict(baseline)}, indent=2) + "\n", encoding="utf-8")
        put(made, path)
