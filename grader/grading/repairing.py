"""Looks for the single change of a wrong program that makes every sample right (see checking/repairs).

The tries run in the sandbox, several in one job, since a try takes less time than a sandbox.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from grader import sandbox
from grader.checking.check import check_output
from grader.checking.repairs.schemata import Change, Schemata, schemata
from grader.course.assignment import Assignment
from grader.course.catalogue import limits
from grader.course.testcase import Case
from grader.cpp.reading import asked
from grader.findings import Finding, kind_of, names_its_line
from grader.grading.session import Grading
from grader.programs.build import build
from grader.programs.engine import Engine
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.submission import Submission
from grader.sandbox.scratch import scratch_folder

SEARCH_CPU_S, VERIFY_CPU_S, TRY_CPU_S = 5.0, 2, 2
"""Limits of processor time: for all tries together, for trying on the other samples what helped, for one try. An
eighth of the wall time counts, too: a program may sleep. The 18 repairs of three blind sets were found after 0.1 to
4.0 s (2026-11-27)."""
_TIMES_THE_CONTROL, _LEAST_KERNEL_S = 5, 0.25
"""Kernels of a try may take so many times as long as the unchanged program takes: many changes make endless loops."""
_WALL_PER_CPU_S, _MOST_GROWTH = 8, 4
"""Larger samples are taken to need at most so many times as long as those before them: small ones only start."""
_CHUNK = 12
_CORES = os.cpu_count() or 1
_SUSPECTED = 2.0
"""How much likelier a change is in a line of which something is known."""
_MOST_KEPT = 4
Changed = tuple[Sequence[Change], Path | None]
_ERROR = re.compile(r"^([^\s(:]+)[(:](\d+)\)?(?::\d+)?: error", re.MULTILINE)
# Runs the program `$0` on the input `$1` once for each number that follows.
_SCRIPT = """ulimit -t "$2"; program=$0; input=$1; shift 2
for number; do GRADER_EMULATOR_CHANGE=$number "$program" "$input" "output.$number" >/dev/null 2>&1 </dev/null; done
"""


def with_changes(
    engine: Engine, assignment: Assignment, submission: Submission, without: Collection[tuple[str, int]] = ()
) -> Changed:
    """The changes of a program, and the program that has them all. Only the emulator builds such programs, and
    GRADER_REPAIRS=0 forbids it. Lines with changes that do not compile get none: they are `without`."""
    if not isinstance(engine, EmulatorEngine) or submission.is_python or os.environ.get("GRADER_REPAIRS") == "0":
        return (), None
    made = asked(Schemata(), schemata, submission.files, without)
    if not (texts := dict(made.files)):
        return (), None
    files = tuple((name, texts[name].encode() if name in texts else content) for name, content in submission.files)
    built = build(submission.with_files(files), assignment, replace(engine, few_runs=True))
    errors = {(name, int(line)) for name, line in _ERROR.findall(built.log)}
    if built.program is None and errors and not without:
        return with_changes(engine, assignment, submission, errors)
    return made.tries, built.program


def by_repairs(
    grading: Grading, changing: Future[Changed], case: Case, others: Sequence[Case], known: Sequence[Finding]
) -> tuple[Finding, ...]:
    """The changes that make `case`, on which the program errs, and the `others` right, the likeliest first. `known`
    findings say where to look first."""
    tries, program = changing.result()
    if program is None:
        return ()
    search = _Search(grading, program)
    kept, samples = search.right_on(search.repairing(likeliest_first(tries, known), case), case, others)
    lines = {(each.file, each.line) for each in kept}
    found = tuple(_finding(each, samples, alone=len(lines) == 1) for each in kept)
    # Where threads race, the emulator's order decides what is right.
    raced = {each.place for each in known if kind_of(each).check == "race"}
    return () if found and found[0].place in raced else found


def likeliest_first(tries: Sequence[Change], known: Sequence[Finding]) -> list[Change]:
    suspected = set(_lines(known))
    if names_its_line(known):  # another number there may be right by chance: any maximum of a row does
        tries = [each for each in tries if each.kind not in ("name", "factor")]
    return sorted(tries, key=lambda each: -each.likely * (_SUSPECTED if (each.file, each.line) in suspected else 1))


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


@dataclass
class _Search:
    grading: Grading
    program: Path
    spent_s: float = 0.0
    control_s: float = 0.0

    def repairing(self, tries: Sequence[Change], case: Case) -> list[Change]:
        """Those of the `tries` that make `case` right, of the first round that has any; a round keeps all cores busy.
        None if the program is right without a change: built in this way, it then errs by chance."""
        if self.run([0], case, TRY_CPU_S):
            return []
        self.control_s = self.spent_s
        kernel_s = max(_LEAST_KERNEL_S, _TIMES_THE_CONTROL * self.control_s)

        def tried(chunk: Sequence[Change]) -> list[Change]:
            right = self.run([each.number for each in chunk], case, min(TRY_CPU_S, math.ceil(kernel_s)), kernel_s)
            return [each for each in chunk if each.number in right]

        chunks = [tries[at : at + _CHUNK] for at in range(0, len(tries), _CHUNK)]
        with ThreadPoolExecutor(_CORES) as pool:
            for at in range(0, len(chunks), _CORES):
                if found := [each for some in pool.map(tried, chunks[at : at + _CORES]) for each in some]:
                    return found[:_MOST_KEPT]
                if self.spent_s > SEARCH_CPU_S:
                    break
        return []

    def right_on(self, left: list[Change], case: Case, others: Sequence[Case]) -> tuple[list[Change], int]:
        """The changes with which `case` and the `others` are right, and how many samples these are: as many of the
        smallest as VERIFY_CPU_S allows."""
        cases, ends, samples = sorted(others, key=lambda other: other.flops), self.spent_s + VERIFY_CPU_S, 1
        last_s, last_size = self.control_s, case.flops
        with ThreadPoolExecutor(_CORES) as pool:
            for at in range(0, len(cases), _CORES):
                some, numbers, before = cases[at : at + _CORES], [each.number for each in left], self.spent_s
                size = len(left) * sum(other.flops for other in some)
                if not left or before + last_s * min(_MOST_GROWTH, size / last_size) > ends:
                    break
                right = list(pool.map(lambda other, numbers=numbers: self.run(numbers, other, VERIFY_CPU_S), some))
                if self.spent_s > ends:  # a run that its limit ended is not wrong
                    break
                left = [each for each in left if all(each.number in numbers for numbers in right)]
                last_s, last_size, samples = self.spent_s - before, size, samples + len(some)
        return left, samples

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
