"""Runs a program with a wrong answer on the probes of its operator, and reads the mistake off the outputs.

It needs no build with checks, and works on every engine. It takes place after the verdicts, and changes none.
"""

from __future__ import annotations

from collections.abc import Sequence

from grader.base.hints import hint
from grader.base.stopwatch import Stopwatch
from grader.base.verdict import Verdict
from grader.checking.probes.reading import examine, read_probe, write_probe
from grader.course.assignment import Assignment
from grader.course.testcase import Case
from grader.findings import CLAIMED, KINDS, Finding, claimed, kind_of, rank, sentence
from grader.grading.hidden_testcases import shows_diagnosis
from grader.grading.session import Grading
from grader.grading.tested import Tested
from grader.operators.probes import Probe
from grader.programs.build import Build
from grader.programs.engine import Engine
from grader.programs.run import run_program
from grader.programs.submission import Submission
from grader.sandbox.scratch import scratch_folder

PROBE_LIMIT_S, WALL_PER_CPU_S = 10.0, 8
"""The limit of one run. On the emulator it is processor time, so that a loaded machine sees what an idle one sees; the
wall limit is then a net."""


def by_probes(
    grading: Grading, submission: Submission, built: Build, tested: list[Tested], watch: Stopwatch
) -> list[Tested]:
    """Run the probes of the operator if a wrong answer has no cause that is surer. All tests with wrong values get what
    the probes or the watch show, since one mistake is likely to be behind them all."""
    by_case = dict(zip(grading.cases, tested, strict=True))
    wrong = [
        case
        for case, test in by_case.items()
        if test.verdict is Verdict.WRONG_ANSWER and shows_diagnosis(grading.assignment.hidden_inputs, case)
    ]
    if not wrong or submission.is_python:  # a Python program is built for the shape of one testcase
        return tested
    known = rank([by_case[case].judgement.findings for case in wrong])
    if any(kind_of(each).order < KINDS["scale_wrong"].order and each.certainty >= CLAIMED for each in known):
        return tested
    with watch.stage("probes"):
        found = hint((), _probed, grading.engine, grading.assignment, built, min(wrong, key=lambda case: case.flops))
    first = claimed([rank([known, found])])
    if first is None or kind_of(first).check not in ("probe", "watch"):
        return tested
    found = tuple(_placed(each, known) for each in found)
    cause = sentence(_placed(first, known) if first.file is None else first, submission.line)
    for case in wrong:
        by_case[case] = by_case[case].with_cause(cause, found)
    return [by_case[case] for case in grading.cases]


def _placed(finding: Finding, known: Sequence[Finding]) -> Finding:
    """The finding with the line where the watch saw a wrong value of the same array."""
    for each in known:
        place = each.place if each.kind == finding.kind else each.other or each.place
        if kind_of(each).check == "watch" and each.array and each.array == finding.array and place is not None:
            return finding.model_copy(update={"file": place.file, "line": place.line})
    return finding


def _probed(engine: Engine, assignment: Assignment, built: Build, case: Case) -> tuple[Finding, ...]:
    """What the probes for `case` show, the likeliest first."""
    operator, program = case.operator, built.program

    def show(probe: Probe) -> list[Finding]:
        if program is None or operator.problem(probe.shape):
            return []
        with scratch_folder("probe") as folder:
            write_probe(operator, probe, folder / "input")
            with run_program(
                engine,
                program,
                folder / "input",
                output_bytes=operator.output_bytes(probe.shape),
                wall_s=PROBE_LIMIT_S * (1 if engine.measures_time else WALL_PER_CPU_S),
                cpu_s=None if engine.measures_time else PROBE_LIMIT_S,
                limits=assignment.limits,
            ) as run:
                return read_probe(operator, probe, run.output)

    return examine(operator.probes(case.shape), show)
