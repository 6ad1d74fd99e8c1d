"""Runs a program with a wrong answer on the probes of its operator, and reads the mistake off the outputs.

It needs no build with checks, and works on every engine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from grader.base.progress import Progress
from grader.checking.probes.reading import examine, outputs_of, read_probe, write_probe
from grader.checking.probes.smallest import FEWEST_VALUES, MOST_VALUES, smallest_input
from grader.course.catalogue import limits
from grader.course.testcase import Case
from grader.cpp.reading import asked
from grader.cpp.solve import Way, left_out, main_line
from grader.findings import Finding, claimed, kind_of
from grader.grading.session import Grading
from grader.operators import Operator, Shape
from grader.operators.base import Tensors
from grader.operators.probes import Probe
from grader.programs.build import Build, build
from grader.programs.run import Run, run_program
from grader.programs.submission import Submission
from grader.sandbox.budget import Budget
from grader.sandbox.scratch import scratch_folder

_RESCALED = {"not_rescaled", "rescaled_wrongly"}
"""One mistake: a factor that is always 1 looks like none."""
PROBE_LIMIT_S, WALL_PER_CPU_S = 5.0, 8
EXPERIMENTS_S, EXPERIMENTS_ON_A_GPU_S = 5.0, 10.0
"""The limits of one run, and of the search for the smallest input. On the emulator they are processor time, so that a
loaded machine sees what an idle one sees; the wall limits are then nets, for programs that sleep and for what the
grader does after each run, such as reading its trace. On a GPU they are wall time: four searches took 19 to 28 runs and
4.9 to 8.2 s there (one H200, idle, 2026-11-27)."""


def by_probes(
    grading: Grading,
    submission: Submission,
    built: Build,
    wrong: Sequence[Case],
    known: Sequence[Finding],
    progress: Progress,
) -> tuple[Finding, ...]:
    """What experiments show, the likeliest first, with a line that `known` findings or the source give: probes, or
    else, unless a cause is known, the smallest input. A Python program is built for each shape, so only in a student's
    own check."""
    case = min(wrong, key=lambda each: each.flops)
    if submission.is_python and not grading.quick:
        return ()
    probes, bench = case.operator.probes(case.shape), grading.bench
    programs, found = _programs(grading, submission, built, case, probes), tuple[Finding, ...]()
    if probes or claimed([known]) is None:
        with bench.to_ourselves(progress) if bench is not None else contextlib.nullcontext():
            if probes:
                found = examine(_shown(grading, programs.get(each.shape), case.operator, each) for each in probes)
            else:
                found = _by_the_smallest_input(grading, built, wrong)
    patterns = [each for each in known if kind_of(each).check == "probe"]
    return tuple(_with_line(_placed(each, known, case), case, submission) for each in (*found, *patterns))


def _placed(finding: Finding, known: Sequence[Finding], case: Case) -> Finding:
    """The finding with the line where the watch saw a wrong value of the same array, unless it is about one that is
    read."""
    if finding.kind == "smallest_input" and _wanted(finding, case) != finding.array:
        return finding
    of_all = finding.kind in ("inputs_exchanged", "transposed")
    for each in known if finding.place is None else ():
        same = of_all or each.kind == finding.kind or {each.kind, finding.kind} <= _RESCALED
        place = each.place if same else each.other or each.place
        about = of_all or each.array in (finding.array or "").split(" and ")
        if about and kind_of(each).check == "watch" and place is not None:
            return finding.model_copy(update={"file": place.file, "line": place.line})
    return finding


def _wanted(finding: Finding, case: Case) -> str | None:
    """The array whose line is wanted: the input that is read or, where it arrives in part or everything is wrong, the
    output."""
    read, how = finding.words.get("tensor") or finding.array, finding.words.get("how")
    written = finding.array or case.operator.outputs(case.shape)[0].name
    inputs = {tensor.name for tensor in case.operator.inputs(case.shape)}
    return read if read in inputs and how not in ("value", "infinite", "missing_in_part", "scaled") else written


def _with_line(finding: Finding, case: Case, submission: Submission) -> Finding:
    """With the line of `solve`'s kernels that reads the value, or that computes the result."""
    inputs = [tensor.name for tensor in case.operator.inputs(case.shape)]
    names = inputs + [tensor.name for tensor in case.operator.outputs(case.shape)]
    wanted, how = _wanted(finding, case), finding.words.get("how")
    if how in ("missing", "missing_in_part") and (kernel := asked(None, left_out, submission.files)) is not None:
        words, numbers = {"left_out": kernel.name}, {"left_line": kernel.line}
        given = {"words": {**finding.words, **words}, "values": {**finding.values, **numbers}}
        finding = finding.model_copy(update=given)
    if finding.place is not None or wanted not in names:
        return finding
    way: Way = "writes" if wanted not in inputs else "astray" if how in ("moved", "extra") else "reads"
    line = asked(None, main_line, submission.files, names.index(wanted), way)
    return finding.model_copy(update={"file": line.file, "line": line.line}) if line is not None else finding


def _programs(
    grading: Grading, submission: Submission, built: Build, case: Case, probes: Sequence[Probe]
) -> dict[Shape, Path | None]:
    """The program for each shape of the probes. They are built before the GPU is taken."""
    shapes = dict.fromkeys(probe.shape for probe in probes if not case.operator.problem(probe.shape))
    if not submission.is_python:
        return dict.fromkeys(shapes, built.program)
    cases = {shape: (replace(case, shape=shape),) for shape in shapes}
    return {shape: build(submission, grading.assignment, grading.engine, one).program for shape, one in cases.items()}


def _shown(grading: Grading, program: Path | None, operator: Operator, probe: Probe) -> list[Finding]:
    if program is None:
        return []
    with _run_of(grading, program, operator, probe) as run:
        return read_probe(operator, probe, run.output)


@contextlib.contextmanager
def _run_of(grading: Grading, program: Path, operator: Operator, probe: Probe) -> Iterator[Run]:
    engine = grading.engine
    with scratch_folder("probe") as folder:
        write_probe(operator, probe, folder / "input")
        with run_program(
            engine,
            program,
            folder / "input",
            output_bytes=operator.output_bytes(probe.shape),
            wall_s=PROBE_LIMIT_S * (1 if engine.measures_time else WALL_PER_CPU_S),
            cpu_s=None if engine.measures_time else PROBE_LIMIT_S,
            limits=grading.assignment.limits,
        ) as run:
            yield run


def _by_the_smallest_input(grading: Grading, built: Build, wrong: Sequence[Case]) -> tuple[Finding, ...]:
    operator, program = wrong[0].operator, built.program
    fit = [c for c in wrong if operator.units(c.shape) == 1 and operator.unit_input_values(c.shape) <= MOST_VALUES]
    if not fit or program is None or operator.has_check:
        return ()
    large = [case for case in fit if operator.unit_input_values(case.shape) >= FEWEST_VALUES]
    case = min(large, key=lambda each: each.flops) if large else max(fit, key=lambda each: each.flops)
    measures = grading.engine.measures_time
    budget = Budget(EXPERIMENTS_ON_A_GPU_S if measures else EXPERIMENTS_S, "It")

    def outputs(tensors: Tensors) -> Tensors | None:
        if budget.problem:
            return None
        probe = Probe(case.shape, [tensors], ())
        with _run_of(grading, program, operator, probe) as run:
            budget.spend(run.outcome.wall_s if measures else run.outcome.cpu_s)
            found, _ = outputs_of(operator, probe, run.output)
        return [tensor[0] for tensor in found] or None

    with grading.files.input(case).open("rb") as file:
        tensors = operator.read_unit(file, case.shape, 0)
    found = smallest_input(
        operator, case.shape, limits(case, grading.files, grading.assignment.tolerance), tensors, outputs
    )
    return (found,) if found is not None else ()
