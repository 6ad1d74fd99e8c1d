"""Compares the clock outside the program with the traces of honest programs: prints the table of
docs/benchmarks-archive.md.

Run on a CUDA machine from the checkout:

    python benchmarks/outside_clock.py [--tests t23] [--gradings 1] [--only NAME ...] [--seconds S] [--json FILE]

Grades the model solutions and the honest variants so many times each, round by round, on all GPUs that there are, one
grading at a time on each. `--within` and `--budget-s` are the assignment's, for how often a test is timed. The columns,
over all gradings and tests of a program:

    busy - traced    ms a run that the GPU was busy without a traced kernel or memset: smallest, largest
    of allowed       the largest share of what `grader.timing.evidence` allows that was used; above 1 is a false alarm
    cpu              the most processor time of a run, s
    occupancy        achieved: by Nsight Compute, and as seen from outside, smallest and largest
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from tabulate import tabulate

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from grader.base.progress import Progress  # noqa: E402
from grader.base.workers import cores  # noqa: E402
from grader.course.assignment import load_assignment  # noqa: E402
from grader.course.catalogue import TestcaseFiles, ensure  # noqa: E402
from grader.course.testcase import load_suite  # noqa: E402
from grader.grading.bench import open_bench  # noqa: E402
from grader.grading.pipeline import grade  # noqa: E402
from grader.grading.session import Grading  # noqa: E402
from grader.grading.setup import Setup  # noqa: E402
from grader.programs.build import build  # noqa: E402
from grader.programs.engine import select_engine  # noqa: E402
from grader.programs.engine.cuda import find_gpus  # noqa: E402
from grader.programs.submission import read_submission  # noqa: E402
from grader.records.record import Record  # noqa: E402
from grader.timing.baseline import baseline_of  # noqa: E402
from tests.honest.__main__ import hand_in, variants  # noqa: E402

MODELS = ("naive", "tiled", "flash2", "tensor_cores", "hopper")


def handed_in(place: Path, only: Iterable[str]) -> list[Path]:
    """The model solutions and the honest variants, as files and folders that can be graded."""
    paths = [ROOT / "reference" / "hw4" / f"{name}.cu" for name in MODELS]
    paths += [hand_in(path, place) for path in variants()]
    return [path for path in paths if not only or path.stem in only]


def grade_rounds(options: argparse.Namespace, place: Path, until: float, into: Path) -> None:
    """Grade on the first GPU, round by round, and append each record to the file `into`."""
    rules = load_assignment("hw4")
    timing = rules.timing.model_copy(update={"within": options.within, "budget_s": options.budget_s})
    rules = rules.model_copy(update={"timing": timing})
    suite, engine = load_suite(rules.testcases_file), select_engine("cuda", rules.build.emulator_target)
    files, cases = TestcaseFiles.beside(suite), suite.select(options.tests)
    with ExitStack() as stack, into.open("w", encoding="utf-8") as kept:
        bench = stack.enter_context(open_bench(Setup(rules, suite, files, cases, engine)))
        grading = Grading(
            rules, suite, files, cases, engine, baseline=lambda case: baseline_of(rules, case), bench=bench
        )
        paths = handed_in(place, options.only)
        for turn in range(options.gradings):
            for path in paths:
                if time.monotonic() > until:
                    return
                record = grade(grading, read_submission(path, rules), Progress())
                kept.write(record.model_dump_json() + "\n")
                kept.flush()
                print(turn, *row(path.stem, [record]), sep="  ", file=sys.stderr, flush=True)


def row(name: str, records: list[Record]) -> list[str]:
    """A program's row of the table."""
    tests = [test for record in records for test in record.tests]
    timings = [test.timing for test in tests if test.timing is not None]
    seen = [(timing.outside, len(timing.runs) - 1) for timing in timings if timing.outside is not None]
    extra = [(outside.busy_ms - outside.traced_ms) / runs for outside, runs in seen]
    share = [outside.busy_ms / outside.allowed_ms for outside, _ in seen]
    cpu_s = [run.cpu_s for timing in timings for run in timing.runs]
    profiled = [profile.achieved for record in records for profile in record.profiles if profile.achieved]
    outside_occupancy = [outside.occupancy for outside, _ in seen if outside.occupancy]
    flags = [flag for record in records for flag in record.flags]
    wrong = [f"{test.name} {test.verdict}" for test in tests if test.verdict != "passed"]
    return [
        name,
        str(len(records)),
        str(len(seen)),
        _range(extra, 2),
        f"{max(share):.2f}" if share else "-",
        f"{max(cpu_s):.2f}" if cpu_s else "-",
        f"{_range(profiled, 3)} / {_range(outside_occupancy, 3)}",
        " ".join([*flags, *wrong]),
    ]


def _range(values: list[float], digits: int) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}" if values else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tests", default="t23")
    parser.add_argument("--gradings", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no grading later than this")
    parser.add_argument("--within", type=float, default=0.01)
    parser.add_argument("--budget-s", type=float, default=10)
    parser.add_argument("--json", type=Path, help="write all records here, one a line")
    parser.add_argument("--on-one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory(prefix="outside-clock-") as place:
        if options.on_one is not None:
            return grade_rounds(options, Path(place), until, options.on_one)
        found = find_gpus()
        rules = load_assignment("hw4")
        suite = load_suite(rules.testcases_file)
        ensure(suite.select(options.tests), suite, TestcaseFiles.beside(suite))
        engine = select_engine("cuda", rules.build.emulator_target)
        with ThreadPoolExecutor(max(1, cores() // 2)) as pool:  # builds are kept
            submissions = [read_submission(path, rules) for path in handed_in(Path(place), options.only)]
            list(pool.map(lambda submission: build(submission, rules, engine), submissions))
        parts = [Path(place) / f"{number}.jsonl" for number in range(len(found))]
        gradings = -(-options.gradings // len(found))
        again = [sys.executable, __file__, *sys.argv[1:], "--gradings", str(gradings), "--on-one"]
        running = [
            subprocess.Popen([*again, str(part)], env=os.environ | {"CUDA_VISIBLE_DEVICES": gpu.uuid})
            for gpu, part in zip(found, parts, strict=True)
        ]
        codes = [one.wait() for one in running]
        lines = [line for part in parts if part.exists() for line in part.read_text(encoding="utf-8").splitlines()]
    if options.json is not None:
        options.json.write_text("\n".join(lines), encoding="utf-8")
    records: defaultdict[str, list[Record]] = defaultdict(list)
    for record in map(Record.model_validate_json, lines):
        records[record.submission.id].append(record)
    headers = ["program", "gradings", "timings", "busy - traced, ms a run", "of allowed", "cpu", "occupancy", ""]
    print(tabulate([row(name, records[name]) for name in sorted(records)], headers=headers, tablefmt="github"))
    flagged = sum(bool(record.flags) for each in records.values() for record in each)
    wrong = sum(test.verdict != "passed" for each in records.values() for record in each for test in record.tests)
    print(
        f"\n{flagged} of {len(lines)} gradings flagged, {wrong} tests not passed; {found[0].name}, driver "
        f"{found[0].driver}, {len(found)} GPUs"
    )
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
