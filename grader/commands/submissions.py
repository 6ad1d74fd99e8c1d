"""What the commands do: each function is one command of `cli`, from its words to the text or records it gives."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from tabulate import tabulate

from grader import sandbox
from grader.base.errors import UsageError
from grader.base.paths import shown
from grader.base.progress import Progress, shown_progress
from grader.commands import doctor
from grader.course import catalogue
from grader.course.assignment import Assignment, assignment_names, chosen_assignment, load_assignment
from grader.course.catalogue import TestcaseFiles
from grader.course.coherence import suite_of
from grader.course.testcase import Case
from grader.grading.bench import open_bench
from grader.grading.pipeline import Grading, grade
from grader.operators import shape_words
from grader.programs import run as running
from grader.programs.build import build
from grader.programs.engine import Engine, select_engine
from grader.programs.oracle import case_progress, ensure
from grader.programs.submission import read_submission
from grader.records import points
from grader.records.record import Record, read_record, read_records, write_records
from grader.report import explain as explanation
from grader.sandbox import runner
from grader.timing.baseline import Baseline, time_baseline

_MAKE_LIMIT_S = 10


def grade_paths(
    paths: Sequence[Path],
    *,
    assignment: str | None,
    tests: str | None,
    engine: str,
    json: Path | None,
    require_sandbox: bool = False,
    show: int = 0,
    quick: bool = False,
) -> list[Record]:
    """Grade every submission named; records are written to `json` after each, so that a later failure loses none.
    Points that a person entered into records that `json` holds already are kept. `show`: rows and columns of every
    output tensor to keep in the records. `quick`: a student's own look, as `Grading` has it."""
    if require_sandbox:
        sandbox.require()
    rules = chosen_assignment(assignment, paths[0])
    suite = suite_of(rules)
    folders = Counter(path.parent for path in paths)
    submissions = [
        read_submission(path, rules, runner(_MAKE_LIMIT_S), shared_folder=folders[path.parent] > 1) for path in paths
    ]
    chosen = select_engine(engine, rules.build.emulator_target)
    cases = suite.select(tests or ("all" if chosen.measures_time else "public"))
    files = TestcaseFiles.beside(suite)
    records: list[Record] = []
    entered = read_records(json) if json is not None and json.is_file() else ()
    with shown_progress() as progress, open_bench(chosen, rules, suite, files) as bench:
        began = time.monotonic()
        ensure(cases, suite, files, progress)
        prepared_s = time.monotonic() - began
        baselines = _baselines(rules, chosen, progress)
        grading = Grading(rules, suite, files, cases, chosen, baselines, bench, prepared_s, show, quick)
        for submission in submissions:
            records.append(points.keep(entered, grade(grading, submission, progress)))
            if json is not None:
                write_records(records, json)
    return records


def enter_points(path: Path, given: Sequence[str], note: str) -> Record:
    """Write `PART=POINTS` words into the record at `path`. Raises UsageError for words it cannot use."""
    wanted: dict[str, float] = {}
    for word in given:
        part, _, number = word.partition("=")
        try:
            wanted[part] = float(number)
        except ValueError as error:
            raise UsageError(f"{word!r}: write PART=POINTS, report=8.5 for example.") from error
    record = points.enter(read_record(path), wanted, note)
    write_records([record], path)
    return record


def explain_records(path: Path, other: Path | None) -> str:
    """Where the numbers of the records in `path` come from; with `other`, how its first record compares."""
    records = read_records(path)
    if other is None:
        return f"\n\n{'=' * explanation.WIDTH}\n".join(explanation.explain(record) for record in records)
    return explanation.compare(records[0], read_records(other)[0])


def run_program(program: Path, arguments: Sequence[str], *, engine: str, assignment: str | None) -> int:
    """Build any CUDA program and run it here, with its own output and exit code."""
    rules = chosen_assignment(assignment, program)
    submission = read_submission(program, rules, runner(_MAKE_LIMIT_S))
    chosen = select_engine(engine, rules.build.emulator_target)
    free = rules.build.model_copy(update={"dynamic_parallelism": True})
    built = build(submission, rules.model_copy(update={"build": free}), chosen)
    if built.program is None:
        quoted = built.reason.rpartition(": ")[2] in built.log
        why = "" if quoted and built.log else f" {built.reason}"
        raise UsageError("\n".join((f"{shown(program)} was not built.{why}", *submission.notes, built.log)))
    if not built.cached:
        for note in submission.notes:
            print(f"grader: {note}", file=sys.stderr)
    folder = program if program.is_dir() else program.parent
    called = f"{folder}/{Path(submission.sources[0]).stem}"  # as if it had been compiled next to its source
    return running.pass_through(chosen, built.program, arguments, called)


def show_baseline(tests: str, *, assignment: str | None, refresh: bool) -> str:
    """Time the sequential program on the chosen testcases, or show the times that are kept."""
    rules = chosen_assignment(assignment)
    suite = suite_of(rules)
    rows = []
    with shown_progress() as progress:
        cases = suite.select(tests)
        for number, case in enumerate(cases):
            progress.stage(f"baseline {case.name}", total=len(cases))
            progress.advance(number)
            timed = _time(rules, case, refresh)
            rows.append((case.name, _shape(case), f"{timed.seconds:.3f}", timed.describe()))
    return tabulate(
        rows,
        headers=("test", "shape", "seconds", "how"),
        tablefmt="simple",
        disable_numparse=True,
        maxcolwidths=[None, None, None, 80],
    )


def list_assignments() -> str:
    """A table of what can be graded here."""
    rows = []
    for name in assignment_names():
        rules = load_assignment(name)
        suite = suite_of(rules)
        groups = ", ".join(f"{len(cases)} {group}" for group, cases in suite.groups.items())
        rows.append((name, rules.title, rules.submission.main, groups, f"{rules.max_points:g}"))
    return tabulate(rows, headers=("name", "title", "hand in", "testcases", "points"), tablefmt="simple")


def list_testcases(assignment: str | None) -> str:
    """A table of the testcases: shapes, sizes, limits, work, and what is on disk."""
    rules = chosen_assignment(assignment)
    suite = suite_of(rules)
    files = TestcaseFiles.beside(suite)
    limits = {case.name: rule.seconds for rule in reversed(rules.limits.wall_s) for case in suite.select(rule.tests)}
    rows = [
        (
            case.name,
            case.group,
            _shape(case),
            f"{case.input_bytes:,}",
            f"{case.output_bytes:,}",
            f"{limits[case.name]:g}" if case.name in limits else "-",
            f"{case.flops / 1e9:,.3f}",
            catalogue.state(case, files),
        )
        for case in suite.cases.values()
    ]
    dimensions = " x ".join(suite.operator.dimension_names)
    headers = ("test", "group", dimensions, "input bytes", "output bytes", "limit s", "GFLOP", "on disk")
    aligned = ("left", "left", "right", "right", "right", "right", "right", "left")
    return tabulate(rows, headers=headers, tablefmt="simple", colalign=aligned, disable_numparse=True)


def generate_testcases(tests: str, *, assignment: str | None, force: bool, oracle: str = "auto") -> str:
    """Write the files of the chosen testcases; a sentence on what was done."""
    rules = chosen_assignment(assignment)
    suite = suite_of(rules)
    cases = suite.select(tests)
    files = TestcaseFiles.beside(suite)
    with shown_progress() as progress:
        made = ensure(cases, suite, files, progress, oracle=oracle, force=force)
    kept = len(cases) - len(made)
    return f"{len(made)} written, {kept} already there, in {shown(files.folder)}."


def verify_testcases(tests: str | None, *, assignment: str | None, full: bool) -> tuple[str, bool]:
    """Read files again; a report, and whether all are what they should be."""
    rules = chosen_assignment(assignment)
    suite = suite_of(rules)
    files = TestcaseFiles.beside(suite)
    if tests is None:
        cases = tuple(case for case in suite.cases.values() if catalogue.state(case, files) != "missing")
        if not cases:
            raise UsageError(f"No testcase is on disk in {shown(files.folder)}: generate some first.")
    else:
        cases = suite.select(tests)
    lines, sound = [], True
    with shown_progress() as progress:
        for case in cases:
            found = catalogue.verify(case, files, suite.seed(case), full, case_progress(case, progress))
            sound &= found.ok
            lines += [f"{case.name}: ok, {found.values_recomputed:,} values recomputed"] if found.ok else []
            lines += [f"{case.name}: {problem}" for problem in found.problems]
    return "\n".join(lines), sound


def examine_machine() -> tuple[str, bool]:
    """What this machine has; whether something can be graded here."""
    findings = doctor.examine()
    return doctor.render(findings), all(finding.ok for finding in findings if finding.needed)


def _baselines(rules: Assignment, engine: Engine, progress: Progress) -> Callable[[Case], Baseline] | None:
    if not engine.measures_time:
        return None

    @cache
    def of_case(name: str, case: Case) -> Baseline:
        return _time(rules, case, refresh=False)

    return lambda case: of_case(case.name, case)


def _time(rules: Assignment, case: Case, refresh: bool) -> Baseline:
    return time_baseline(
        case,
        source=rules.reference_folder / rules.baseline.source,
        flags=rules.baseline.flags,
        budget_s=rules.baseline.budget_s,
        refresh=refresh,
    )


def _shape(case: Case) -> str:
    return shape_words(case.shape)
