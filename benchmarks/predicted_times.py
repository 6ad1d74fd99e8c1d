"""Compares predicted with measured times: python benchmarks/predicted_times.py predict|table FILE [NAME...]

`predict` adds the raw predictions of programs (those whose name begins with a NAME) to FILE. `table` prints the table of
docs/estimates.md from it, and writes grader/estimates/calibration.json. Measured times are in h100.json: median of the
GPU time of five runs on an H100 80GB HBM3, driver 580.159, 2026-11-24.

Figures leave one author out: the intervals and the middle of each kind of limit come from all other authors' programs.
Versions of one program have one author.
"""

from __future__ import annotations

import json
import math
import pickle
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from predicted_programs import PROGRAMS, Program

from grader.base.errors import UsageError
from grader.course.assignment import load_assignment
from grader.course.coherence import suite_of
from grader.estimates.counts import NoLaw
from grader.estimates.estimate import estimate_of, interval, unpredictable
from grader.estimates.gpus import GPUS, Gpu
from grader.estimates.machine_code import Code, NoMachineCode, machine_code, read_code
from grader.estimates.sampled import counted
from grader.programs.build import build
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.submission import read_submission
from grader.programs.toolkit import find_toolkit
from grader.sandbox.room import Unreadable

HERE = Path(__file__).parent / "estimates"
ROOT = HERE.parents[1]
CALIBRATION = ROOT / "grader/estimates/calibration.json"
LEAST = 10
"""Kinds of limit with fewer measured times share one calibration."""
TAIL = 0.075
"""Quantile at an interval's ends, such that intervals hold 80 % of the times of an author who was left out."""
APART = 1.1


@dataclass(frozen=True)
class Pair:
    program: Program
    test: str
    predicted: float
    measured: float
    limit: str

    @property
    def log(self) -> float:
        return math.log(self.measured / self.predicted)


def count(program: Program, tests: Sequence[str], folder: Path) -> None:
    """Write what each test executes to `folder`, so that a changed model needs no emulator: groups, ms of fills, and
    the folder with the machine code; or why the program cannot be predicted."""
    toolkit, gpu = find_toolkit(), GPUS["h100"]
    rules = load_assignment(program.assignment)
    submission = read_submission(ROOT / program.source, rules, any_name=True)
    submission = replace(submission, flags=(*rules.build.default_flags, *program.flags))
    cases = [case for test in tests for case in suite_of(rules).select(test)]
    engine = EmulatorEngine(toolkit, gpu.target, count=True)
    built = build(submission, rules, engine, cases)
    if built.program is None:
        raise UsageError(f"{program.name}: {built.reason}\n{built.log}")
    for case in cases:
        began = time.process_time(), time.monotonic()
        try:
            code = machine_code(built.program, gpu, toolkit)
            found: Any = (*counted(engine, built.program, case, rules.limits, gpu), code)
        except (NoLaw, NoMachineCode, Unreadable) as why:
            found = str(why)
        path = folder / f"{program.name.replace('/', '@')}.{case.name}"
        path.write_bytes(pickle.dumps(found))
        said = found if isinstance(found, str) else f"{len(found[0])} kernels"
        print(f"{program.name} {case.name}: {said}, {time.monotonic() - began[1]:.1f} s", flush=True)


def predict(path: Path, gpu: Gpu) -> dict[str, Any]:
    """The prediction from a file of `count`."""
    found = pickle.loads(path.read_bytes())
    if isinstance(found, str):
        return {"why": found}
    groups, fills_ms, folder = found
    codes: dict[str, Code] = {}
    for sass in sorted(folder.glob("*.sass")):
        with (
            sass.with_suffix(".ptx").open("rb") as ptx,
            sass.with_suffix(".log").open("rb") as log,
            sass.open("rb") as f,
        ):
            codes.update(read_code(ptx, log, f))
    kernels = [estimate_of(group, codes, gpu) for group in groups]
    if why := unpredictable(kernels):
        return {"why": why}
    return {
        "ms": interval(kernels, gpu, fills_ms).uncalibrated_ms,
        "limit": max(kernels, key=lambda kernel: kernel.ms).limit,
        "kernels": {kernel.name: (kernel.launches, kernel.ms, kernel.limit, kernel.busy) for kernel in kernels},
    }


def quantiles(logs: Iterable[float]) -> list[float]:
    """An interval's lower end, the median and its upper end, as factors."""
    ordered = sorted(logs)
    at = [q * (len(ordered) - 1) for q in (TAIL, 0.5, 1 - TAIL)]
    parts = ((ordered[int(x)], ordered[min(int(x) + 1, len(ordered) - 1)], x % 1) for x in at)
    return [round(math.exp(low + share * (high - low)), 4) for low, high, share in parts]


def calibration(pairs: Sequence[Pair]) -> dict[str, list[float]]:
    by_limit: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        by_limit[pair.limit].append(pair.log)
    found = {limit: quantiles(logs) for limit, logs in sorted(by_limit.items()) if len(logs) >= LEAST}
    return {"any": quantiles(pair.log for pair in pairs), **found}


def kendall(pairs: Sequence[tuple[float, float]], apart: float = 1.0) -> float:
    """Kendall's τ of (predicted, measured) times, of pairs whose measured times differ by this factor at least."""
    total = agreeing = 0
    for i, (a, b) in enumerate(pairs):
        for c, d in pairs[:i]:
            if max(b, d) < apart * min(b, d):
                continue
            total += 1
            agreeing += 1 if (a - c) * (b - d) > 0 else -1 if (a - c) * (b - d) < 0 else 0
    return agreeing / max(1, total)


def table(pairs: Sequence[Pair], unknown: Sequence[str]) -> str:
    authors = {pair.program.author for pair in pairs}
    left_out = {author: calibration([p for p in pairs if p.program.author != author]) for author in authors}

    def factors(pair: Pair) -> list[float]:
        known = left_out[pair.program.author]
        return known.get(pair.limit) or known["any"]

    def error(pair: Pair) -> float:
        return abs(pair.log - math.log(factors(pair)[1]))

    def figures(some: Sequence[Pair]) -> str:
        inside = sum(factors(p)[0] <= p.measured / p.predicted <= factors(p)[2] for p in some)
        return (
            f"{len(some)} | {math.expm1(median(map(error, some))):.1%} | "
            f"{sum(error(p) < math.log(1.5) for p in some) / len(some):.0%} | {inside / len(some):.0%}"
        )

    def ranked(some: Sequence[Pair], apart: float) -> str:
        pairs = [(p.predicted * factors(p)[1], p.measured) for p in some]
        return f"{kendall(pairs, apart):.3f}" if len(pairs) >= LEAST else "-"

    groups: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[pair.program.assignment, pair.test].append(pair)
    lines = [
        "| | times | median error | within 1.5 x | in the 80 % interval | τ | τ, 10 % apart |",
        "|---|---|---|---|---|---|---|",
        f"| all | {figures(pairs)} | | |",
    ]
    of_assignment: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        of_assignment[pair.program.assignment].append(pair)
    lines += [f"| {name} | {figures(some)} | | |" for name, some in sorted(of_assignment.items())]
    lines += [
        f"| {assignment} {test} | {figures(some)} | {ranked(some, 1.0)} | {ranked(some, APART)} |"
        for (assignment, test), some in sorted(groups.items())
        if len(some) >= LEAST
    ]
    lines += ["", "| limit | times | median error | within 1.5 x | in the 80 % interval |", "|---|---|---|---|---|"]
    for limit in sorted({pair.limit for pair in pairs}):
        lines.append(f"| {limit} | {figures([p for p in pairs if p.limit == limit])} |")
    for assignment, some in sorted(of_assignment.items(), key=lambda item: item[0] != "hw4"):
        tests = sorted({pair.test for pair in some})
        lines += ["", f"| {assignment} | {' | '.join(tests)} |", "|---|" + "---|" * len(tests)]
        by_name: dict[str, dict[str, Pair]] = defaultdict(dict)
        for pair in some:
            by_name[pair.program.name][pair.test] = pair
        for name, found in by_name.items():
            cells = (
                f"{p.predicted * factors(p)[1]:.3g} / {p.measured:.3g} = {p.predicted * factors(p)[1] / p.measured:.2f}"
                if (p := found.get(test))
                else ""
                for test in tests
            )
            lines.append(f"| {name} | {' | '.join(cells)} |")
    of_author = [[error(p) for p in pairs if p.program.author == author] for author in authors]
    once = math.expm1(median(sum(errors) / len(errors) for errors in of_author))
    lines += ["", f"By author, each counted once ({len(authors)}): median of their mean errors {once:.1%}."]
    return "\n".join([*lines, *(f"Not predictable: {line}" for line in unknown)])


def main() -> None:
    command, folder, *rest = sys.argv[1:]
    counts = Path(folder)
    counts.mkdir(parents=True, exist_ok=True)
    programs = {program.name: program for program in PROGRAMS}
    if command == "count":
        tests, *names = rest
        for program in programs.values():
            if names and not program.name.startswith(tuple(names)):
                continue
            wanted = [t for t in tests.split(",") if not (counts / f"{program.name.replace('/', '@')}.{t}").exists()]
            known = suite_of(load_assignment(program.assignment)).cases
            if wanted := [test for test in wanted if test in known]:
                count(program, wanted, counts)
        return
    measured: dict[str, Any] = json.loads((HERE / f"{rest[0]}.json").read_text())["times"]
    pairs, unknown = [], []
    for path in sorted(counts.iterdir()):
        name, test = path.name.replace("@", "/").rsplit(".", 1)
        if test not in measured.get(name, {}):
            continue
        made = predict(path, GPUS[rest[0]])
        if "ms" in made:
            pairs.append(Pair(programs[name], test, made["ms"], measured[name][test]["ms"], made["limit"]))
        else:
            unknown.append(f"{name} {test}: {made['why']}")
    print(table(pairs, unknown))
    if rest[0] == "h100":
        CALIBRATION.write_text(json.dumps(calibration(pairs), indent=1) + "\n")


if __name__ == "__main__":
    main()
