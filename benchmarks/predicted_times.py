"""Compares predicted with measured times.

    python benchmarks/predicted_times.py count FOLDER TESTS [NAME...]     what programs execute, on the emulator
    python benchmarks/predicted_times.py measure GPU.json TESTS [NAME...] their times on this machine's GPU
    python benchmarks/predicted_times.py table FOLDER h100|h200           the tables of docs/estimates.md
    python benchmarks/predicted_times.py pairs FOLDER GPU.json            predicted and measured gains of one fix

TESTS are names with commas, or `pairs`; programs are those whose name begins with a NAME. `count` and `measure` leave
out what is there already. A changed model needs no new counts. `table FOLDER h100` also writes calibration.json in
grader/estimates.
Measured times are in estimates/*.json: GPU time in ms, the least of up to four runs.

Figures leave one author out: the intervals and the middle of each kind of limit come from all other authors' programs.
Versions of one program have one author.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import math
import pickle
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from predicted_programs import EDITED, PAIRS, PROGRAMS, Program

from grader.base.errors import UsageError
from grader.course.assignment import Limits, load_assignment
from grader.course.coherence import suite_of
from grader.course.testcase import Case
from grader.estimates.counts import counted, plans, sampled
from grader.estimates.estimate import estimate_of, fixes_of, unpredictable
from grader.estimates.gpus import GPUS, Gpu
from grader.estimates.machine_code import NotPredictable, machine_code, read_code
from grader.programs.build import build
from grader.programs.engine import Engine, select_engine
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.run import run_program
from grader.programs.submission import read_submission
from grader.programs.toolkit import find_toolkit
from grader.sandbox.room import Unreadable
from grader.timing.sequential import write_sample

HERE = Path(__file__).parent / "estimates"
ROOT = HERE.parents[1]
CALIBRATION = ROOT / "grader/estimates/calibration.json"
LEAST = 10
"""Kinds of limit with fewer measured times share one calibration."""
TAIL = 0.095
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


def built(program: Program, engine: Engine, cases: Sequence[Case]) -> Path:
    rules = load_assignment(program.assignment)
    submission = read_submission(ROOT / program.source, rules, any_name=True)
    if not submission.is_python:
        submission = replace(submission, flags=(*rules.build.default_flags, *program.flags))
    for old, new in program.edits:
        ((name, source),) = submission.files
        assert old.encode() in source, f"{program.name}: no {old}"
        source = source.replace(old.encode(), new.encode())
        submission = replace(submission, files=((name, source),), sha256=hashlib.sha256(source).hexdigest())
    made = build(submission, rules, engine, cases)
    if made.program is None:
        raise UsageError(f"{program.name}: {made.reason}\n{made.log}")
    return made.program


def count(program: Program, tests: Sequence[str], folder: Path) -> str:
    """Write a program's machine code to FOLDER/codes, and to FOLDER/counts what each test executes, or why it cannot be
    predicted."""
    toolkit, rules, name, said = find_toolkit(), load_assignment(program.assignment), file_name(program), ""
    engine = EmulatorEngine(toolkit, "sm_90a", count=True)
    cases = suite_of(rules).select(",".join(tests))
    made = built(program, engine, [one for case in cases for plan in plans(case) for part in plan for one in part])
    (folder / "codes" / name).mkdir(parents=True, exist_ok=True)
    for file in machine_code(made, GPUS["h100"], toolkit).iterdir():
        (folder / "codes" / name / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    for case in cases:
        began = time.monotonic()
        try:
            found: Any = sampled(engine, made, case, rules.limits)
        except NotPredictable as why:
            found = str(why)
        (folder / "counts" / f"{name}.{case.name}").write_bytes(gzip.compress(pickle.dumps(found)))
        said += (
            f"{program.name} {case.name}: {time.monotonic() - began:.1f} s {found if isinstance(found, str) else ''}\n"
        )
    return said


def file_name(program: Program) -> str:
    return program.name.replace("/", "@")


def predict(counts: Path, gpu: Gpu, *, fixes: bool = False) -> dict[str, Any]:
    """The prediction from a file of `count`."""
    found = pickle.loads(gzip.decompress(counts.read_bytes()))
    folder = counts.parents[1] / "codes" / counts.name.rpartition(".")[0]
    units = [
        tuple(io.BytesIO(gzip.decompress((folder / f"{number}.{kind}.gz").read_bytes())) for kind in _KINDS)
        for number in range(len(list(folder.glob("*.sass.gz"))))
    ]
    try:
        if isinstance(found, str):
            raise NotPredictable(found)
        codes = read_code(units)  # type: ignore[arg-type]
        kernels = []
        for group in counted(found):
            kernel, code = estimate_of(group, codes, gpu)
            found_fixes = fixes_of(group, code, gpu, kernel.ms, 0.0) if fixes and code else ()
            kernels.append(replace(kernel, fixes=tuple(found_fixes)))
        if why := unpredictable(kernels):
            raise NotPredictable(why)
    except (NotPredictable, Unreadable) as why:
        return {"why": str(why)}
    run = found.large[-1]
    fills_ms = found.units / run.units * sum(_LAUNCH_MS + m.bytes / gpu.dram_gb_per_s / 1e6 for m in run.trace.memsets)
    return {
        "ms": sum(kernel.ms for kernel in kernels) + fills_ms,
        "kernels": kernels,
        "limit": max(kernels, key=lambda kernel: kernel.ms).limit,
    }


_KINDS = "ptx", "log", "sass"
_LAUNCH_MS = 0.0018


def build_for_gpu(program: Program) -> None:
    """Leave the program in the cache of builds."""
    cases = list(suite_of(load_assignment(program.assignment)).cases.values())[:1]
    with contextlib.suppress(UsageError):
        built(program, select_engine("cuda", "sm_90a"), cases)


def measure(wanted: Sequence[tuple[Program, str]], out: Path) -> None:
    """Add the GPU times of programs to a file: the least of four runs, or of those within 2 s; one program runs at a
    time."""
    measured: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {"gpu": "", "times": {}}
    with ProcessPoolExecutor() as pool:
        list(pool.map(build_for_gpu, dict.fromkeys(program for program, _ in wanted)))
    engine = select_engine("cuda", "sm_90a")
    measured["gpu"] = measured["gpu"] or f"{engine.device}, {engine.facts.get('driver')}"
    by_case: dict[tuple[str, str], list[Program]] = defaultdict(list)
    for program, test in wanted:
        by_case[program.assignment, test].append(program)
    for (assignment, test), programs in by_case.items():
        rules = load_assignment(assignment)
        (case,) = suite_of(rules).select(test)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "input"
            write_sample(case.operator, case.shape, case.operator.units(case.shape), case.distribution, path)
            for program in programs:
                try:
                    best = least(engine, built(program, engine, [case]), path, case, rules.limits)
                except UsageError as why:
                    print(f"{program.name} {test}: {why}", flush=True)
                    continue
                measured["times"].setdefault(program.name, {})[test] = best
                out.write_text(json.dumps(measured, indent=None).replace('}, "', '},\n"'))
                print(f"{program.name} {test}: {best['ms']:.4g} ms", flush=True)


def least(engine: Engine, made: Path, path: Path, case: Case, limits: Limits) -> dict[str, Any]:
    """The GPU time of the fastest run, in ms, and [launches, ms] of each kernel."""
    best: dict[str, Any] = {}
    began = time.monotonic()
    for _ in range(4):
        with run_program(engine, made, path, output_bytes=case.output_bytes, wall_s=60, limits=limits) as run:
            if run.outcome.exit_code != 0 or run.trace is None or not run.trace.complete:
                raise UsageError(f"{run.outcome.ending}, {run.outcome.stderr[-300:]}")
            if not best or run.trace.gpu_ns / 1e6 < best["ms"]:
                sums = {k.name: [k.launches, k.total_ns / 1e6] for k in run.trace.kernel_summaries()}
                best = {"ms": run.trace.gpu_ns / 1e6, "kernels": sums}
        if time.monotonic() - began > 2:
            break
    return best


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
    lines += ["", "| limit | times | median error | within 1.5 x | in the 80 % interval | share of all errors |"]
    lines += ["|---|---|---|---|---|---|"]
    total = sum(map(error, pairs))
    for limit in sorted({pair.limit for pair in pairs}):
        some = [pair for pair in pairs if pair.limit == limit]
        lines.append(f"| {limit} | {figures(some)} | {sum(map(error, some)) / total:.0%} |")
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


def pairs_of(folder: Path, measured: dict[str, Any], gpu: Gpu) -> Iterator[str]:
    """For each pair: the share of the program's time that the advice on the first program promises, and the share that
    the second one saves, measured."""
    files = {program.name: file_name(program) for program in (*PROGRAMS, *EDITED)}
    yield "| before | after | test | fix | predicted | measured |\n|---|---|---|---|---|---|"
    for before, after, tests, what in PAIRS:
        for test in tests.split():
            counts, times = (
                folder / "counts" / f"{files[before]}.{test}",
                [measured.get(n, {}) for n in (before, after)],
            )
            made: dict[str, Any] = predict(counts, gpu, fixes=True) if counts.exists() else {"why": "not counted"}
            fixes = [[k.ms - f.without_ms for f in k.fixes if what in f.what] for k in made.get("kernels", ())]
            gain = f"{sum(max(saved, default=0.0) for saved in fixes) / made['ms']:.0%}" if fixes else made["why"]
            real = f"{1 - times[1][test]['ms'] / times[0][test]['ms']:.0%}" if all(test in t for t in times) else "-"
            yield f"| {before} | {after} | {test} | {what} | {gain} | {real} |"


def chosen(tests: str, names: Sequence[str]) -> Iterator[tuple[Program, str]]:
    if tests == "pairs":
        named = {program.name: program for program in (*PROGRAMS, *EDITED)}
        both = ((named[name], test) for pair in PAIRS for test in pair[2].split() for name in pair[:2])
        yield from dict.fromkeys((p, t) for p, t in both if not names or p.name.startswith(tuple(names)))
        return
    for program in PROGRAMS:
        known = suite_of(load_assignment(program.assignment)).cases
        if not names or program.name.startswith(tuple(names)):
            yield from ((program, test) for test in tests.split(",") if test in known)


def main() -> None:
    command, target, option, *names = sys.argv[1:]
    folder = Path(target)
    if command == "count":
        (folder / "counts").mkdir(parents=True, exist_ok=True)
        wanted: dict[str, list[str]] = defaultdict(list)
        for program, test in chosen(option, names):
            if not (folder / "counts" / f"{file_name(program)}.{test}").exists():
                wanted[program.name].append(test)
        by_name = {program.name: program for program in (*PROGRAMS, *EDITED)}
        with ProcessPoolExecutor() as pool:
            jobs = {name: pool.submit(count, by_name[name], tests, folder) for name, tests in wanted.items()}
            for name, job in jobs.items():
                print(f"{name}: {why}\n" if (why := job.exception()) else job.result(), end="", flush=True)
        return
    if command == "measure":
        known = json.loads(folder.read_text())["times"] if folder.exists() else {}
        measure([(p, test) for p, test in chosen(option, names) if test not in known.get(p.name, {})], folder)
        return
    if command == "pairs":
        print("\n".join(pairs_of(folder, json.loads(Path(option).read_text())["times"], GPUS["h100"])))
        return
    measured: dict[str, Any] = json.loads((HERE / f"{option}.json").read_text())["times"]
    pairs, unknown = [], []
    for program in PROGRAMS:
        for test, time_of in measured.get(program.name, {}).items():
            path = folder / "counts" / f"{file_name(program)}.{test}"
            made = predict(path, GPUS[option]) if path.exists() else {}
            if "ms" in made:
                pairs.append(Pair(program, test, made["ms"], time_of["ms"], made["limit"]))
            elif made:
                unknown.append(f"{program.name} {test}: {made['why']}")
    print(table(pairs, unknown))
    if option == "h100":
        CALIBRATION.write_text(json.dumps(calibration(pairs), indent=1) + "\n")


if __name__ == "__main__":
    main()
