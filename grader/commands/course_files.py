"""The commands for a course's own files: its assignments, their testcases and sequential programs."""

from __future__ import annotations

from tabulate import tabulate

from grader.base.errors import UsageError
from grader.base.paths import shown
from grader.base.progress import shown_progress
from grader.commands import durations
from grader.course import catalogue
from grader.course.assignment import assignment_names, chosen_assignment, load_assignment
from grader.course.catalogue import TestcaseFiles
from grader.course.coherence import suite_of
from grader.course.testcase import Case
from grader.operators import shape_words
from grader.programs.oracle import case_progress, ensure
from grader.timing.baseline import Baseline, baseline_of, measured_again


def show_baseline(tests: str, *, assignment: str | None, refresh: bool) -> str:
    """The sequential times of the chosen testcases on this machine. With `refresh`, measure them again first."""
    rules = chosen_assignment(assignment)
    cases = suite_of(rules).select(tests)
    changes, rows = [], []
    facts: dict[str, str] = {}
    with shown_progress() as progress:
        if refresh:
            progress.stage("measuring again")
            changes = [_change(*found) for found in measured_again(rules, cases)]
        for number, case in enumerate(cases):
            progress.stage(f"baseline {case.name}", total=len(cases))
            progress.advance(number)
            timed = baseline_of(rules, case)
            rate = f"{case.flops / timed.seconds / 1e9:.3f}"
            rows.append((case.name, shape_words(case.shape), f"{timed.seconds:.3f}", rate, timed.id))
            facts.setdefault(timed.id, f"{case.name}: {timed.describe()}")
    table = tabulate(
        rows,
        headers=("test", "shape", "seconds", "GFLOP/s", "baseline"),
        tablefmt="simple",
        disable_numparse=True,
        colalign=("left", "left", "right", "right", "left"),
    )
    return "\n\n".join([*changes, table, *facts.values()])


def _change(case: Case, before: Baseline | None, after: Baseline) -> str:
    """What a new measurement changes."""
    if before is None:
        return f"{after.id} is new: {after.seconds:.4g} s for {case.name}."
    change = after.seconds / before.seconds - 1
    both = f"{before.seconds:.4g} s before ({before.id}, {before.date[:10]}), {after.seconds:.4g} s now ({change:+.1%})"
    if change < 0:
        return (
            f"{case.name}: {both}. {after.id} replaces {before.id}: from now on, speedups are {-change:.1%} lower. "
            "Stored results keep theirs; `grader grade CLASS --rerun all` grades a class again."
        )
    return f"{case.name}: {both}. {before.id} stays, since whatever disturbs a measurement makes it slower."


def list_assignments() -> str:
    """A table of the assignments that can be graded here."""
    rows = []
    for name in assignment_names():
        rules = load_assignment(name)
        suite = suite_of(rules)
        groups = ", ".join(f"{len(cases)} {group}" for group, cases in suite.groups.items())
        defines = "a program" if rules.contract == "program" else "solve" if rules.contract == "function" else "either"
        mains, points = " ".join(rules.submission.mains), f"{rules.max_points:g}"
        rows.append((name, rules.title, mains, defines, groups, points, durations.last(rules)))
    headers = ("name", "title", "hand in", "in CUDA", "testcases", "points", "a grading takes")
    return tabulate(rows, headers=headers, tablefmt="simple")


def list_testcases(assignment: str | None) -> str:
    """A table of the testcases: shapes, sizes, limits, FLOPs, and the state of the files on disk."""
    rules = chosen_assignment(assignment)
    suite = suite_of(rules)
    files = TestcaseFiles.beside(suite)
    limits = {case.name: rule.seconds for rule in reversed(rules.limits.wall_s) for case in suite.select(rule.tests)}
    rows = [
        (
            case.name,
            case.group,
            shape_words(case.shape),
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
    """Write the files of the chosen testcases. Return a sentence on the result."""
    rules = chosen_assignment(assignment)
    suite = suite_of(rules)
    cases = suite.select(tests)
    files = TestcaseFiles.beside(suite)
    with shown_progress() as progress:
        made = ensure(cases, suite, files, progress, oracle=oracle, force=force)
        kept = [case for case in cases if case not in made]
        damaged = [case for case in kept if catalogue.changed_files(case, files)]
        ensure(damaged, suite, files, progress, oracle=oracle, force=True)
    again = f" ({', '.join(case.name for case in damaged)} again because a file had changed)" if damaged else ""
    written = len(made) + len(damaged)
    return f"{written} written{again}, {len(cases) - written} already there, in {shown(files.folder)}."


def verify_testcases(tests: str | None, *, assignment: str | None, full: bool) -> tuple[str, bool]:
    """Check files on disk. Return a report, and whether all files are correct."""
    rules = chosen_assignment(assignment)
    suite = suite_of(rules)
    files = TestcaseFiles.beside(suite)
    if tests is None:
        cases = tuple(case for case in suite.cases.values() if catalogue.state(case, files) != "missing")
        if not cases:
            raise UsageError(f"No testcase is on disk in {shown(files.folder)}: use `grader testcases generate`.")
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
