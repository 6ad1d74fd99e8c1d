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
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from predicted_programs import PROGRAMS, Program

from grader.base.progress import shown_progress
from grader.commands import estimating
from grader.course.assignment import load_assignment
from grader.course.coherence import suite_of
from grader.estimates.gpus import GPUS
from grader.programs.submission import read_submission

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


def predict(program: Program, tests: Sequence[str]) -> dict[str, Any]:
    rules = load_assignment(program.assignment)
    submission = read_submission(ROOT / program.source, rules, any_name=True)
    submission = replace(submission, flags=(*rules.build.default_flags, *program.flags))
    suite = suite_of(rules)
    found: dict[str, Any] = {}
    with shown_progress() as progress:
        cases = [case for test in tests for case in suite.select(test)]
        for made in estimating.estimates(submission, rules, cases, GPUS["h100"], progress, fixes=False):
            raw = made.time.uncalibrated_ms if made.time else 0.0
            found[made.test] = {"ms": raw, "limit": made.kernels[0].limit} if made.time else {"why": made.why}
    return found


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

    tests = sorted({pair.test for pair in pairs})
    lines = [
        "| | times | median error | within 1.5 x | in the 80 % interval | τ | τ, 10 % apart |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, some in [("all", list(pairs)), *((test, [p for p in pairs if p.test == test]) for test in tests)]:
        ranked = [[(p.predicted * factors(p)[1], p.measured) for p in some if p.test == test] for test in tests]
        taus = [[kendall(of_test, apart) for of_test in ranked if of_test] for apart in (1.0, APART)]
        lines.append(f"| {name} | {figures(some)} | {median(taus[0]):.3f} | {median(taus[1]):.3f} |")
    lines += ["", "| limit | times | median error | within 1.5 x | in the 80 % interval |", "|---|---|---|---|---|"]
    for limit in sorted({pair.limit for pair in pairs}):
        lines.append(f"| {limit} | {figures([p for p in pairs if p.limit == limit])} |")
    lines += ["", f"| program | {' | '.join(tests)} |", "|---|" + "---|" * len(tests)]
    by_name: dict[str, dict[str, Pair]] = defaultdict(dict)
    for pair in pairs:
        by_name[pair.program.name][pair.test] = pair
    for name, found in by_name.items():
        cells = (
            f"{p.predicted * factors(p)[1]:.3g} / {p.measured:.3g} = {p.predicted * factors(p)[1] / p.measured:.2f}"
            if (p := found.get(test))
            else "not predictable"
            for test in tests
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    of_author = [[error(p) for p in pairs if p.program.author == author] for author in authors]
    once = math.expm1(median(sum(errors) / len(errors) for errors in of_author))
    lines += ["", f"By author, each counted once ({len(authors)}): median of their mean errors {once:.1%}."]
    return "\n".join([*lines, *(f"Not predictable: {line}" for line in unknown)])


def main() -> None:
    command, file, *names = sys.argv[1:]
    path = Path(file)
    made: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    measured = json.loads((HERE / "h100.json").read_text())["times"]
    programs = {program.name: program for program in PROGRAMS if program.name in measured}
    if command == "predict":
        for program in programs.values():
            if program.name not in made and (not names or program.name.startswith(tuple(names))):
                made[program.name] = predict(program, list(measured[program.name]))
                path.write_text(json.dumps(made, indent=1))
                print(program.name, made[program.name], flush=True)
        return
    pairs = [
        Pair(programs[name], test, one["ms"], measured[name][test]["ms"], one["limit"])
        for name, tests in made.items()
        for test, one in tests.items()
        if "ms" in one
    ]
    unknown = [f"{n} {t}: {one['why']}" for n, tests in made.items() for t, one in tests.items() if "why" in one]
    print(table(pairs, unknown))
    CALIBRATION.write_text(json.dumps(calibration(pairs), indent=1) + "\n")


if __name__ == "__main__":
    main()
