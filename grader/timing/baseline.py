"""The sequential times that speedups are measured against: facts about a kind of machine.

A baseline is measured once for each processor model, compiler, flags and source (`sequential` says how), and kept in
the cache for good. Every later grading on such a machine uses it, and its record names it by `id`, date and spread. So
the same program gets the same speedup tomorrow, whatever else the machine does then. Only `grader baseline --refresh`
measures again. Since disturbances only make a program slower, it replaces a baseline by a faster one only.

Equal loops have one rate. If the time of a shape is proportional to its operations among shapes that agree in some
dimensions (`baseline.rate_by`), one shape of each such group is timed, and the others are scaled from it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from cudaemu.process import Runner
from grader.base.errors import GraderFault, MachineFault
from grader.base.machine import cpu_model
from grader.base.paths import shown
from grader.course.assignment import Assignment
from grader.course.testcase import Case, load_suite
from grader.operators import Operator, Shape, shape_words
from grader.programs.engine import Engine
from grader.records.score import KNOWN_TO
from grader.sandbox import linker
from grader.sandbox.cache import cache_entry, making, put
from grader.timing.sequential import (
    AGREEING_RUNS,
    COMPILE_LIMIT_S,
    Rate,
    compiler,
    compiler_version,
    measure,
    own_compiler_version,
    with_headers,
)

_KIND = "baseline"
_VERSION = 4


@dataclass(frozen=True)
class Baseline:
    """The sequential time of one shape in seconds, for computing only, by the rate of the shape `sampled`. `id` names
    the measurement; baselines of equal loops share it."""

    id: str
    shape: Shape
    seconds: float
    sampled: Shape
    rate: Rate
    cpu: str
    compiler: str
    flags: tuple[str, ...]
    source_sha256: str
    date: str

    def describe(self) -> str:
        """One sentence that says what was measured and what was scaled."""
        rate = self.rate
        of = "" if self.sampled == self.shape else f" of {shape_words(self.sampled)}, whose loops are the same"
        doubt = ""
        if rate.spread > KNOWN_TO:
            doubt = f", not to {KNOWN_TO:.0%} (other programs were running: `grader baseline --refresh` measures again)"
        return (
            f"{self.seconds:.4g} s by baseline {self.id}: {rate.seconds:.3g} s for {rate.iterations:,} of "
            f"{rate.total:,} iterations of equal cost{of}, the fastest slice of {rate.runs} runs, the fastest "
            f"{AGREEING_RUNS} of which agree to {rate.spread:.1%}{doubt} (core {rate.core} of {self.cpu}, "
            f"{self.compiler}, {' '.join(self.flags)}, {self.date[:10]})."
        )

    def of_shape(self, shape: Shape, operator: Operator) -> Baseline:
        """The sequential time of another shape whose loops have the same rate."""
        if shape == self.shape:
            return self
        scale = operator.flops(shape) / operator.flops(self.shape)
        return replace(self, shape=shape, seconds=self.seconds * scale)


def baselines_of(rules: Assignment, engine: Engine) -> Callable[[Case], Baseline] | None:
    """A function that returns the sequential time of a case on this machine; None if `engine` measures no times, or if
    there is no sequential program, as on a student's machine."""
    return cache(partial(baseline_of, rules)) if engine.measures_time and rules.reference_folder.is_dir() else None


def time_all(
    rules: Assignment, baseline: Callable[[Case], Baseline] | None, cases: Sequence[Case], say: Callable[[str], None]
) -> None:
    """Time what was not timed yet, before submissions make the machine busy."""
    if baseline is not None:
        timed = {_representative(rules, case) for case in cases}
        if any(_kept(_key(rules, case, None)[0]) is None for case in timed):
            say("Timing the sequential program on the testcases that this machine has not timed yet")
        for case in cases:
            baseline(case)


def baseline_of(rules: Assignment, case: Case) -> Baseline:
    """The sequential time of a case, as it is kept for this kind of machine, or measured now and kept. Raises what
    `measure` raises."""
    sampled = _representative(rules, case)
    return _fact(rules, sampled).of_shape(case.shape, case.operator)


def measured_again(rules: Assignment, cases: Iterable[Case]) -> list[tuple[Case, Baseline | None, Baseline]]:
    """Measure the baselines of these cases again. For each, return the case that was timed, the baseline that was kept
    before, and the new one, which is kept if it is faster."""
    found = []
    for sampled in dict.fromkeys(_representative(rules, case) for case in cases):
        key, sources = _key(rules, sampled, None)
        before = _kept(key)
        after = _measured(rules, sampled, key, sources, None)
        if before is None or after.seconds < before.seconds:
            _keep(key, after)
        found.append((sampled, before, after))
    return found


_suite = cache(load_suite)


def _representative(rules: Assignment, case: Case) -> Case:
    """Of the graded cases with the same loops as `case`, the one whose units take the middle number of operations."""
    names = case.operator.dimension_names
    fixed = tuple((at, case.shape[at]) for at in map(names.index, rules.baseline.rate_by))
    return (fixed and _middle(rules.testcases_file, fixed)) or case


@cache
def _middle(suite: Path, fixed: tuple[tuple[int, float], ...]) -> Case | None:
    """The middle one of the graded cases whose shapes have these numbers at these places; None if there are none."""
    equal = [case for case in _suite(suite).graded if all(case.shape[at] == number for at, number in fixed)]
    by_flops = sorted(equal, key=lambda case: case.flops / case.operator.units(case.shape))
    return by_flops[len(equal) // 2] if equal else None


def _fact(rules: Assignment, case: Case, run: Runner | None = None) -> Baseline:
    """The baseline of a case's own shape. `run` runs the compiler and the program; by default the grader's runner with
    a time limit does."""
    key, sources = _key(rules, case, run)
    if (kept := _kept(key)) is not None:
        return kept
    measured = _measured(rules, case, key, sources, run)
    if (kept := _kept(key)) is not None:  # another grader measured meanwhile, and its records name that one
        return kept
    _keep(key, measured)
    return measured


def _key(rules: Assignment, case: Case, run: Runner | None) -> tuple[dict[str, Any], tuple[Path, ...]]:
    """What the time of a case depends on, and the source of the sequential program with its headers."""
    source = rules.reference_folder / rules.baseline.source
    try:
        sources = with_headers(source)
        text = b"".join(path.read_bytes() for path in sources)
    except OSError as error:
        raise GraderFault(f"{shown(source)}: the sequential program cannot be read ({error.strerror}).") from error
    key = {
        "version": _VERSION,
        "operator": case.operator.name,
        "shape": list(case.shape),
        "cpu": cpu_model(),
        "compiler": own_compiler_version(compiler()) if run is None else compiler_version(compiler(), run),
        "flags": list(rules.baseline.flags),
        "source_sha256": hashlib.sha256(text).hexdigest(),
    }
    return key, sources


def _measured(
    rules: Assignment, case: Case, key: dict[str, Any], sources: Sequence[Path], run: Runner | None
) -> Baseline:
    budget_s = rules.baseline.budget_s
    run = run or linker(max(COMPILE_LIMIT_S, 10 * budget_s))
    rate = measure(case, sources, rules.baseline.flags, budget_s, run)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    said = json.dumps([key, asdict(rate), date], sort_keys=True)
    return Baseline(
        id=hashlib.sha256(said.encode()).hexdigest()[:8],
        shape=case.shape,
        seconds=rate.whole_s,
        sampled=case.shape,
        rate=rate,
        cpu=key["cpu"],
        compiler=key["compiler"],
        flags=tuple(key["flags"]),
        source_sha256=key["source_sha256"],
        date=date,
    )


# ---- what is kept -----------------------------------------------------------------------------------------------


def _file(key: dict[str, Any]) -> Path:
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:24]
    return cache_entry(_KIND, f"{name}.json")


def _kept(key: dict[str, Any]) -> Baseline | None:
    """The baseline that is kept; None if it is missing, damaged, or does not match the key."""
    try:
        content = json.loads(_file(key).read_text(encoding="utf-8"))
        if content["key"] != key:
            return None
        fields = dict(content["baseline"])
        fields |= {name: tuple(fields[name]) for name in ("shape", "sampled", "flags")}
        return Baseline(**fields | {"rate": Rate(**fields["rate"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(key: dict[str, Any], baseline: Baseline) -> None:
    """Keep a baseline. If the cache cannot be written, it still counts, but the next grading measures again."""
    entry = _file(key)
    with contextlib.suppress(MachineFault), making(entry, for_good=True) as folder:
        made = folder / "baseline.json"
        made.write_text(json.dumps({"key": key, "baseline": asdict(baseline)}, indent=2) + "\n", encoding="utf-8")
        put(made, entry)
