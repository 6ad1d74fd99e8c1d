"""Looks for the single change of a wrong program that makes every sample right (see checking/repairs).

The tries run in the sandbox, several in one job, since a try takes less time than a sandbox.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from grader import sandbox
from grader.checking.check import check_output
from grader.checking.repairs.schemata import MOST_TRIES, Change, Schemata, schemata
from grader.course.catalogue import limits
from grader.course.testcase import Case
from grader.cpp.reading import asked
from grader.findings import Finding, kind_of
from grader.grading.session import Grading
from grader.programs.build import Build, build
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.submission import Submission
from grader.sandbox.scratch import scratch_folder

SEARCH_CPU_S, VERIFY_CPU_S, TRY_CPU_S = 9.0, 4, 2
"""Limits of processor time: for all tries together, for trying on the other samples what helped, for one try. An
eighth of the wall time counts, too: a program may sleep."""
_TIMES_THE_CONTROL, _LEAST_KERNEL_S = 5, 0.5
"""Kernels of a try may take so many times as long as the unchanged program takes: many changes make endless loops."""
_WALL_PER_CPU_S = 8
_CHUNK = 12
_CORES = os.cpu_count() or 1
_MOST_REBUILDS = 2
_MOST_KEPT = 4
_ERROR = re.compile(r"^([^\s(:]+)[(:](\d+)\)?(?::\d+)?: error", re.MULTILINE)
# Runs the program `$0` on the input `$1` once for each number that follows.
_SCRIPT = """ulimit -t "$2"; program=$0; input=$1; shift 2
for number; do GRADER_EMULATOR_CHANGE=$number "$program" "$input" "output.$number" >/dev/null 2>&1 </dev/null; done
"""


def by_repairs(
    grading: Grading, submission: Submission, case: Case, others: Sequence[Case], known: Sequence[Finding]
) -> tuple[Finding, ...]:
    """The changes that make `case`, on which the program errs, and the `others` right, the likeliest first. `known`
    findings say where to look first. Only the emulator builds programs with changes. With GRADER_REPAIRS=0 nothing is
    tried."""
    possible = isinstance(grading.engine, EmulatorEngine) and not submission.is_python
    if not possible or os.environ.get("GRADER_REPAIRS") == "0":
        return ()
    made, built = _built(grading, submission, tuple(_lines(known)))
    if built is None or built.program is None:
        return ()
    search = _Search(grading, built.program)
    helped = search.repairing(made, case)
    ends = search.spent_s + VERIFY_CPU_S
    with ThreadPoolExecutor(_CORES) as pool:
        right = list(pool.map(lambda each: (each, search.right_on(each, others, ends)), helped))
    kept = [(each, count) for each, count in right if count is not None]
    lines = {(each.file, each.line) for each, _ in kept}
    found = tuple(_finding(each, 1 + count, alone=len(lines) == 1) for each, count in kept)
    # Where threads race, the emulator's order decides what is right.
    raced = {each.place for each in known if kind_of(each).check == "race"}
    return () if found and found[0].place in raced else found


def _lines(findings: Sequence[Finding]) -> Iterator[tuple[str, int]]:
    for finding in findings:
        for place in filter(None, (finding.place, finding.other)):
            yield place.file, place.line
        for name, value in finding.values.items():
            if name.endswith("line") and isinstance(value, int) and finding.file:
                yield finding.file, value


def _finding(each: Change, samples: int, *, alone: bool) -> Finding:
    return Finding(
        kind="repaired", certainty=0.95 if alone else 0.8, file=each.file, line=each.line,
        values={"samples": samples}, words={"how": each.kind, "old": each.old, "new": each.new},
    )  # fmt: skip


def _built(
    grading: Grading, submission: Submission, suspected: Sequence[tuple[str, int]]
) -> tuple[Schemata, Build | None]:
    """The program with its changes. Lines with changes that do not compile get none."""
    assert isinstance(grading.engine, EmulatorEngine)
    engine = replace(grading.engine, few_runs=True)
    without, empty = set[tuple[str, int]](), Schemata()
    for _ in range(_MOST_REBUILDS):
        made = asked(empty, schemata, submission.files, suspected, without, MOST_TRIES)
        if not made.tries:
            return empty, None
        texts = dict(made.files)
        files = tuple((name, texts[name].encode() if name in texts else content) for name, content in submission.files)
        built = build(submission.with_files(files), grading.assignment, engine)
        if built.program is not None:
            return made, built
        errors = {(name, int(line)) for name, line in _ERROR.findall(built.log)}
        if not errors or errors <= without:
            break
        without |= errors
    return empty, None


@dataclass
class _Search:
    grading: Grading
    program: Path
    spent_s: float = 0.0

    def repairing(self, made: Schemata, case: Case) -> list[Change]:
        """The tries that make `case` right, the likeliest first, of the first round that has any; a round keeps all
        cores busy. None if the program is right without a change: built in this way, it then errs by chance."""
        if self.run([0], case, TRY_CPU_S):
            return []
        kernel_s = max(_LEAST_KERNEL_S, _TIMES_THE_CONTROL * self.spent_s)

        def tried(chunk: Sequence[Change]) -> list[Change]:
            right = self.run([each.number for each in chunk], case, min(TRY_CPU_S, math.ceil(kernel_s)), kernel_s)
            return [each for each in chunk if each.number in right]

        chunks = [made.tries[at : at + _CHUNK] for at in range(0, len(made.tries), _CHUNK)]
        with ThreadPoolExecutor(_CORES) as pool:
            for at in range(0, len(chunks), _CORES):
                if found := [each for some in pool.map(tried, chunks[at : at + _CORES]) for each in some]:
                    return found[:_MOST_KEPT]
                if self.spent_s > SEARCH_CPU_S:
                    break
        return []

    def right_on(self, each: Change, others: Sequence[Case], ends: float) -> int | None:
        """How many of the `others` are right with a change, the smallest first, until all have spent `ends` s of
        processor time; None if one is wrong."""
        count, before = 0, self.spent_s
        for case in sorted(others, key=lambda other: other.flops):
            if 2 * self.spent_s - before > ends:  # the next takes longer than the last
                break
            before = self.spent_s
            if not self.run([each.number], case, VERIFY_CPU_S):
                return None
            count += 1
        return count

    def run(self, numbers: Sequence[int], case: Case, cpu_s: int, kernel_s: float = math.inf) -> set[int]:
        """The numbers of the changes with which `case` is right."""
        kernel_s = min(kernel_s, 0.9 * cpu_s)
        grading = self.grading
        files, rules = grading.files, grading.assignment
        with scratch_folder("repairs", linger=True) as folder:
            work, lent = folder / "run" / "work", folder / "input"
            work.mkdir(parents=True)
            shutil.copyfile(files.input(case), lent)
            outcome = sandbox.run(
                sandbox.Job(
                    command=("/bin/sh", "-c", _SCRIPT, str(self.program), str(lent), str(cpu_s), *map(str, numbers)),
                    folder=work,
                    environment={"GRADER_EMULATOR_KERNEL_SECONDS": f"{kernel_s}cpu", "GRADER_EMULATOR_THREADS": "1"},
                    readable=(self.program, lent),
                ),
                sandbox.Limits(
                    wall_s=_WALL_PER_CPU_S * min(cpu_s * len(numbers), SEARCH_CPU_S),
                    cpu_s=cpu_s * len(numbers),
                    memory_bytes=rules.limits.memory_bytes,
                    processes=rules.limits.processes,
                    folder_bytes=2 * len(numbers) * (case.output_bytes + (1 << 20)),
                    kept_output_bytes=rules.limits.stdout_bytes,
                ),
            )
            work.chmod(0o700)
            self.spent_s += max(outcome.cpu_s, outcome.wall_s / _WALL_PER_CPU_S)
            tolerance, expected = limits(case, files, rules.tolerance), files.expected(case)
            return {
                number
                for number in numbers
                if check_output(
                    case.operator, case.shape, expected, work / f"output.{number}", tolerance, files.input(case)
                ).passed
            }
