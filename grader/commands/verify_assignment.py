"""`grader assignments verify`: builds and runs everything of an assignment, and refuses one that is easy to fool.

Easy to fool means: an output that nobody computed passes all public testcases (zeros, a copy of the input, the mean,
only the first tile right, half precision), a wrong solution passes them, or the hidden testcases have a kind of shape
that no public one has. Where that cannot be helped, `exceptions` in assignment.yaml says why, and the report shows it.
What explains mistakes is tried, too: the operator's alternates, and what a wrong solution expects its tests to say.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.paths import course_root, shown
from grader.base.progress import shown_progress
from grader.base.verdict import Verdict
from grader.checking.check import check_output
from grader.commands.choice import Choice
from grader.commands.submissions import grade_paths
from grader.course.assignment import Assignment, assignment_names, load_assignment
from grader.course.catalogue import TestcaseFiles, limits, verify
from grader.course.coherence import suite_of
from grader.course.testcase import Case, Suite
from grader.operators import Alternate, Operator, Shape, line_at_fault
from grader.operators.base import Tensors
from grader.operators.returned import mistaken_rows
from grader.programs.engine import select_engine
from grader.programs.engine.plan_program import NEEDS_TRITON
from grader.programs.oracle import ensure
from grader.records.record import Record
from grader.sandbox.scratch import scratch_folder
from grader.timing.baseline import baseline_of
from grader.timing.sequential import computed

_SEQUENTIAL_S = 60
_TILE = 32
_BLOCK = 1024
"""The most threads of a block: what is larger needs a second block, or a loop."""
Values = NDArray[Any]
EXPECTATION = re.compile(r"(?://|#) expect: (\w+) on [^:]+: (.+)")
"""The second line of a wrong solution: the verdict, where, words in the reason; other words follow " | "."""
NO_CAUSE = "no cause is named"
"""The words of a wrong solution whose mistake the grader does not recognise: it must say nothing rather than guess."""


@dataclass(frozen=True)
class Tried:
    """One thing that was tried. `problem` is '' if the assignment stood the test; `key` names an exception. `untried`:
    why this machine cannot try it."""

    what: str
    problem: str = ""
    key: str = ""
    untried: str = ""

    def line(self, rules: Assignment) -> str:
        if self.untried:
            return f"untried  {self.what}: {self.untried}"
        if not self.problem:
            return f"ok       {self.what}"
        if (why := rules.exceptions.get(self.key)) is not None:
            return f"accepted {self.what}: {self.problem} ({why})"
        return f"REFUSED  {self.what}: {self.problem}"

    def refuses(self, rules: Assignment) -> bool:
        return bool(self.problem) and self.key not in rules.exceptions


def verify_assignment(name: str, engine: str) -> tuple[str, bool]:
    """The report on an assignment, and whether it may be given out. Raises UsageError for files that contradict each
    other."""
    os.environ.setdefault("GRADER_REPAIRS", "0")  # how many are tried in time differs from run to run
    began = time.monotonic()
    rules = load_assignment(name)
    suite = suite_of(rules)
    found = [
        *_files(rules, suite),
        *unseen_shapes(suite),
        *refused_outputs(rules, suite),
        *alternates(rules, suite),
        *_programs(rules, suite, engine),
    ]
    refused = sum(finding.refuses(rules) for finding in found)
    tried = sum(not finding.untried for finding in found)
    verdict = f"{refused} of {tried} refused" if refused else f"all {tried} stand"
    if tried < len(found):
        verdict += f", {len(found) - tried} untried"
    seconds = f"{time.monotonic() - began:.0f} s on the {select_engine(engine, rules.build.emulator_target).name}"
    return "\n".join((*(finding.line(rules) for finding in found), f"{name}: {verdict} ({seconds})")), not refused


# ---- files ----------------------------------------------------------------------------------------------------------


def _public(suite: Suite) -> tuple[Case, ...]:
    return tuple(case for case in suite.cases.values() if not case.hidden)


def _ready(suite: Suite) -> TestcaseFiles:
    """The files of the public testcases."""
    files = TestcaseFiles.beside(suite)
    with shown_progress() as progress:
        ensure(_public(suite), suite, files, progress)
    return files


def _files(rules: Assignment, suite: Suite) -> Iterator[Tried]:
    files = _ready(suite)
    for case in _public(suite):
        found = verify(case, files, suite.seed(case), full=True)
        yield Tried(f"{case.name} agrees with the oracle", "; ".join(found.problems))
    for case in _public(suite):
        yield Tried(
            f"the sequential program's output for {case.name}", _of_sequential(rules, case, files), "sequential"
        )
    smallest = min(_public(suite), key=lambda case: case.flops)
    yield Tried(f"the sequential program takes {baseline_of(rules, smallest).seconds:.2g} s for {smallest.name}")


def _of_sequential(rules: Assignment, case: Case, files: TestcaseFiles) -> str:
    """What is wrong with the output of the program that speedups are measured against; '' if it is right."""
    source, given = rules.reference_folder / rules.baseline.source, files.input(case)
    try:
        with computed(source, rules.baseline.flags, given, _SEQUENTIAL_S) as output:
            tolerance = limits(case, files, rules.tolerance)
            return check_output(case.operator, case.shape, files.expected(case), output, tolerance, given).reason
    except GraderFault as fault:
        return str(fault)


# ---- shapes ---------------------------------------------------------------------------------------------------------


def unseen_shapes(suite: Suite) -> Iterator[Tried]:
    """The kinds of shapes that the graded testcases have, and whether a public one has them, too."""
    public = [_kinds(suite.operator, case.shape) for case in _public(suite)]
    for kind in sorted({kind for case in suite.graded for kind in _kinds(suite.operator, case.shape)}):
        some = any(kind in kinds for kinds in public)
        yield Tried(f"shapes with {kind}", "" if some else "graded testcases have them, no public one has", kind)


def _kinds(operator: Operator, shape: Shape) -> set[str]:
    """The kinds of shapes in which typical mistakes show."""
    kinds = set()
    for number, (dimension, size) in enumerate(zip(operator.dimensions, shape, strict=True)):
        if not _is_size(operator, shape, number):
            continue
        if size > _BLOCK:
            kinds.add(f"{dimension.name} over {_BLOCK}")
        if size > _TILE and size % _TILE:
            kinds.add(f"{dimension.name} not a multiple of {_TILE}")
    for tensor in (*operator.inputs(shape), *operator.outputs(shape)):
        if not tensor.is_vector and min(tensor.rows, tensor.columns) > 1 and tensor.rows != tensor.columns:
            kinds.add(f"{tensor.name} {'taller than wide' if tensor.rows > tensor.columns else 'wider than tall'}")
    return kinds


def _is_size(operator: Operator, shape: Shape, number: int) -> bool:
    """Whether the files are larger if this dimension is, as they are not for a scale."""
    if operator.dimensions[number].real:
        return False
    larger = (*shape[:number], shape[number] + 32, *shape[number + 1 :])
    try:
        return operator.input_bytes(larger) != operator.input_bytes(shape)
    except (IndexError, KeyError):  # a number that chooses among a few things, such as a type
        return False


# ---- outputs that nobody computed -----------------------------------------------------------------------------------

Fake = Callable[[Tensors, Values, int], Values]
"""From the input tensors of a unit, one right output tensor and its number."""


def _first_tile(inputs: Tensors, right: Values, number: int) -> Values:
    kept = np.zeros_like(right)
    kept[:_TILE, :_TILE] = right[:_TILE, :_TILE]
    return kept


FAKES: dict[str, Fake] = {
    "zeros": lambda inputs, right, _: np.zeros_like(right),
    "a copy of the input": lambda inputs, right, _: np.resize(inputs[0], right.shape),
    "the mean": lambda inputs, right, _: np.full_like(right, right.mean()),
    "the first tile": _first_tile,
    "half precision": lambda inputs, right, _: right.astype(np.float16).astype(right.dtype),
}


def refused_outputs(rules: Assignment, suite: Suite) -> Iterator[Tried]:
    """What became of outputs that nobody computed."""
    files, operator = _ready(suite), suite.operator
    kinds = {tensor.type.name for case in _public(suite) for tensor in operator.outputs(case.shape)}
    for name, fake in FAKES.items():
        if name == "half precision" and (not kinds & {"f32", "f64"} or rules.floor.units != ("fp32",)):
            continue  # the rules allow it
        outcomes = [_try_fake(case, files, fake, rules) for case in _public(suite)]
        fooled = "passes" in outcomes and "fails" not in outcomes
        yield Tried(f"an output that is {name}", "it passes all public testcases" if fooled else "", name)


def _try_fake(case: Case, files: TestcaseFiles, fake: Fake, rules: Assignment) -> Literal["passes", "fails", "right"]:
    """What becomes of a faked output; `right` if it is no fake at all, such as the mean of one value."""
    operator, shape, different = case.operator, case.shape, False
    source, expected = files.input(case), files.expected(case)
    with scratch_folder("fake") as folder, source.open("rb") as given, expected.open("rb") as kept:
        output = folder / "output"
        output.touch()
        os.truncate(output, case.output_bytes)
        with output.open("r+b") as file:
            for unit in range(operator.units(shape)):
                inputs = operator.read_unit(given, shape, unit)
                layouts = zip(operator.output_layouts(shape), operator.expected_layouts(shape), strict=True)
                for number, (layout, known) in enumerate(layouts):
                    right = known.read(kept.fileno(), unit)
                    assert right is not None, "verified before"
                    with np.errstate(over="ignore", invalid="ignore"):
                        values = fake(inputs, right, number)
                        layout.write(file.fileno(), unit, values)
                    different = different or not np.array_equal(values, right)
        if not different:
            return "right"
        tolerance = limits(case, files, rules.tolerance)
        return "passes" if check_output(operator, shape, expected, output, tolerance, source).passed else "fails"


def alternates(rules: Assignment, suite: Suite) -> Iterator[Tried]:
    """Whether the operator's wrong ways to compute its output can be computed, and differ from the right one."""
    files, operator = _ready(suite), suite.operator
    for alternate in operator.alternates():
        what, key, outcomes, problem = f"the alternate {alternate.name}", alternate.name, [], ""
        try:
            for case in (case for case in _public(suite) if not alternate.unless(case.shape)):
                outcomes.append(_try_fake(case, files, partial(_mistaken, operator, alternate, case.shape), rules))
        except Exception as error:  # code of the course
            problem = f"it fails: {error} {line_at_fault(error)}".strip()
        if outcomes and not problem and {"fails", "passes" if alternate.rounding else "fails"}.isdisjoint(outcomes):
            problem = "what it computes is right on every public testcase"
        untried = "" if outcomes or problem else "no public testcase has a shape for it"
        yield Tried(what, problem, key, untried)


def _mistaken(
    operator: Operator, alternate: Alternate, shape: Shape, inputs: Tensors, right: Values, number: int
) -> Values:
    """The output of an alternate. Raises UsageError if it is another where it is asked for some rows only."""
    if number != alternate.tensor:
        return right
    whole = mistaken_rows(operator, alternate, shape, inputs)
    rows = np.arange(len(whole) - 1, -1, -2)[::-1]
    if not np.allclose(
        mistaken_rows(operator, alternate, shape, inputs, rows), whole[rows], 0.01, 0.01, equal_nan=True
    ):
        raise UsageError("asked for some rows, it computes other values for them than among all rows;")
    return whole


# ---- programs -------------------------------------------------------------------------------------------------------


def _programs(rules: Assignment, suite: Suite, engine: str) -> Iterator[Tried]:
    good, bad = models(rules), _sources(rules, rules.reference_folder / "wrong")
    template = course_root() / "student_template" / rules.name
    starts = [template / main for main in rules.submission.mains]
    for number, path in enumerate((*good, *starts, *bad), start=1):
        with shown_progress() as progress:
            progress.line(f"program {number} of {len(good) + len(starts) + len(bad)}: {shown(path)}")
        kind = "model solution" if path in good else "template" if path in starts else "wrong solution"
        what = f"the {kind} {path.name}"
        try:
            record = _graded(path, rules, engine, "public")
        except MachineFault as fault:
            if NEEDS_TRITON not in str(fault):
                raise
            yield Tried(what, untried=NEEDS_TRITON)
            continue
        passed = [test.name for test in record.tests if test.verdict is Verdict.PASSED]
        if path in good:
            look = record.closer_look.cause if record.closer_look is not None else ""
            reasons = [test.reason for test in record.tests if test.verdict is not Verdict.PASSED]
            yield Tried(what, next(iter((*reasons, look)), ""))
            if record.engine.name == "cuda":
                yield _whole(path, rules, engine)
        elif path in starts:
            yield Tried(what, "it does not compile" if not record.build.ok else f"{passed[0]} passes" if passed else "")
        else:
            problem = "" if _is_refused(record) else "it passes all public testcases"
            on_gpu = record.engine.name == "cuda"
            if on_gpu and not _is_refused(_graded(path, rules, engine, "all")):
                problem = " and ".join(filter(None, (problem, "it passes all graded testcases")))
            if on_gpu and problem and _is_refused(_graded(path, rules, "emulator", "public")):
                what, problem = f"{what}, by the emulator's checks: on this GPU {problem}", ""
            yield Tried(what, problem, path.name)
            if (said := unexpected(path, record)) is not None:
                yield Tried(f"the expectation of {path.name}", said)


def _is_refused(record: Record) -> bool:
    """Whether a test failed, or a closer look found the mistake where luck let all tests pass."""
    look = record.closer_look
    return any(test.verdict is not Verdict.PASSED for test in record.tests) or bool(look is not None and look.cause)


def unexpected(path: Path, record: Record) -> str | None:
    """How the failed tests differ from what a wrong solution's second line expects of most of them; None if it expects
    nothing, or if no test failed."""
    second = "".join(path.read_text(encoding="utf-8").splitlines()[1:2])
    failed = [test for test in record.tests if test.verdict is not Verdict.PASSED]
    if "expect" not in second or not failed:
        return None
    if (expected := EXPECTATION.fullmatch(second)) is None:
        return f"line 2 must be `// expect: VERDICT on WHERE: WORDS`, found {second!r}"
    words, look = expected[2].split(" | "), record.closer_look.cause if record.closer_look is not None else ""
    found = [
        test.verdict == expected[1] and (any(w in test.reason for w in words) or (NO_CAUSE in words and not test.cause))
        for test in failed
    ]
    if 2 * sum(found) >= len(failed) or any(word in look for word in words):
        return ""
    other = failed[found.index(False)]
    return f"expected {expected[1]}: {expected[2]}; {other.name} found {other.verdict}: {other.reason}"


def _whole(path: Path, rules: Assignment, engine: str) -> Tried:
    """What a whole grading of a model solution costs on a GPU."""
    record = _graded(path, rules, engine, "all")
    failed = [test.name for test in record.tests if test.verdict is not Verdict.PASSED or test.timing_refused]
    runs = [run.gpu_ms for test in record.tests if test.timing is not None for run in test.timing.runs]
    spent = sum(runs) + sum(test.gpu_ms or 0.0 for test in record.tests)
    return Tried(f"{path.name} on all graded testcases: {spent / 1e3:.2g} s of GPU time", ", ".join(failed))


def models(rules: Assignment) -> Sequence[Path]:
    """The model solutions of an assignment. Those of `A_B` may lie next to the programs of the assignment `A` that they
    include, as A/B_*.cu: a submission brings only its own folder."""
    name, names = rules.name, assignment_names()
    other, _, rest = name.rpartition("_")
    own = [p for p in _sources(rules, rules.reference_folder) if f"{name}_{p.stem.partition('_')[0]}" not in names]
    theirs = _sources(rules, course_root() / "reference" / other) if other in names else ()
    return (*own, *(path for path in theirs if path.stem.startswith(f"{rest}_")))


def _sources(rules: Assignment, folder: Path) -> Sequence[Path]:
    suffixes = {Path(name).suffix for name in rules.submission.mains}
    return sorted(path for path in folder.glob("*") if path.suffix in suffixes)


def _graded(path: Path, rules: Assignment, engine: str, tests: str) -> Record:
    quick = tests == "public"
    return grade_paths([path], Choice(rules.name, tests, engine), quick=quick)[0]
