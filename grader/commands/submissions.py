"""The commands for single submissions: each function returns the text or the records of one command."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from grader import sandbox
from grader.base.attempted import Failed, attempted
from grader.base.errors import UsageError
from grader.base.names import say, student_id
from grader.base.paths import shown
from grader.base.progress import Progress, shown_progress
from grader.base.verdict import Fault
from grader.commands import durations
from grader.commands.choice import Choice
from grader.course.assignment import Assignment
from grader.findings import Finding, kind_of, without_echoes
from grader.grading.pipeline import grade
from grader.grading.session import Grading, open_grading
from grader.programs import run as running
from grader.programs.build import build, failed_build
from grader.programs.engine import Engine
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.one_of_several import read_one_of_several
from grader.programs.oracle import ensure
from grader.programs.python_main import SUFFIX
from grader.programs.submission import Submission, read_python, read_submission, unreadable
from grader.records import points
from grader.records.record import Record, read_record, read_records, write_records
from grader.report import explain as explanation
from grader.sanitizers import Check, parse_checks, said_of


def grade_paths(
    paths: Sequence[Path],
    choice: Choice,
    *,
    json: Path | None = None,
    require_sandbox: bool = False,
    show: int = 0,
    quick: bool = False,
) -> list[Record]:
    """Grade every submission in `paths`. All records so far are written to `json` after each submission, so that a
    later failure loses none; points that a person entered into records in `json` are kept. The records contain the
    first `show` rows and columns of every output tensor. `quick`: see `Setup`."""
    if require_sandbox:
        sandbox.require()
    rules = choice.rules(paths[0])
    folders = Counter(path.parent for path in paths)
    submissions = [_read(path, rules, shared=folders[path.parent] > 1, alone=len(paths) == 1) for path in paths]
    setup = choice.setup(paths[0], show=show, quick=quick)
    records: list[Record] = []
    entered = read_records(json) if json is not None and json.is_file() and json.stat().st_size else ()
    with shown_progress() as progress, open_grading(setup) as grading:
        began = time.monotonic()
        ensure(setup.cases, setup.suite, setup.files, progress)
        grading = replace(grading, prepared_s=time.monotonic() - began)
        for submission, failed in submissions:
            if failed is None:
                record = _graded(grading, submission, progress, alone=len(paths) == 1)
            else:
                record = grade(grading, submission, progress, failed_build(failed.whose, failed.problem))
            durations.keep(record, setup.suite.graded)
            records.append(points.keep(entered, record))
            if json is not None:
                write_records(records, json)
    return records


def _graded(grading: Grading, submission: Submission, progress: Progress, *, alone: bool) -> Record:
    """Grade a submission. If there are others, what went wrong becomes a record, and the others are graded."""
    if alone:
        return grade(grading, submission, progress)
    record = attempted(grade, grading, submission, progress)
    if isinstance(record, Failed):
        whose = Fault.GRADER if record.whose is Fault.GRADER else Fault.MACHINE
        return grade(grading, submission, progress, failed_build(whose, record.problem))
    return record


def _read(path: Path, rules: Assignment, *, shared: bool, alone: bool) -> tuple[Submission, Failed | None]:
    """Read a submission. If one of several cannot be read, the others are graded, so return the reason. Raises
    UsageError if there are no others, or if there is no such file."""
    if alone or not path.exists():
        return read_submission(path, rules, shared_folder=shared), None
    reading = attempted(read_one_of_several, "", path, rules, shared_folder=shared)
    if isinstance(reading, Failed):
        return unreadable(student_id(path.stem), path, reading.problem), reading
    if reading.problem:
        return replace(reading.submission, id=student_id(path.stem)), Failed(reading.problem, Fault.STUDENT)
    return reading.submission, None


def enter_points(path: Path, given: Sequence[str], note: str) -> Record:
    """Enter points, given as `PART=POINTS`, into the record at `path`. Raises UsageError if one has another form."""
    wanted: dict[str, float] = {}
    for word in given:
        part, _, number = word.partition("=")
        try:
            wanted[part] = float(number)
        except ValueError as error:
            raise UsageError(f"{word!r}: write PART=POINTS, for example report=8.5.") from error
    record = points.enter(read_record(path), wanted, note)
    write_records([record], path)
    return record


def explain_records(path: Path, other: Path | None) -> str:
    """Explain where the numbers of the records in `path` come from; with `other`, compare the first record of each."""
    records = read_records(path)
    if other is None:
        return f"\n\n{'=' * explanation.WIDTH}\n".join(explanation.explain(record) for record in records)
    return explanation.compare(records[0], read_records(other)[0], headings=(path.stem, other.stem))


def run_program(
    program: Path,
    arguments: Sequence[str],
    choice: Choice,
    *,
    sanitize: str = "",
) -> int:
    """Build any CUDA program and run it with its own output and exit code. `sanitize` lists the faults to look for, as
    --sanitize does; findings go to standard error."""
    rules = choice.rules(program)
    if program.suffix == SUFFIX and program.is_file():  # also if the assignment accepts no Python
        submission = read_python(program, (), program, rules)
    else:
        submission = read_submission(program, rules, any_name=True)
    chosen = choice.engines(rules)[0]
    if sanitize:
        chosen = _looking_for(parse_checks(sanitize), chosen)
    if submission.is_python:
        file = program if program.is_file() else program / submission.sources[0]
        return _told(*running.pass_through(chosen, file, arguments, ""), submission)
    free = rules.build.model_copy(update={"dynamic_parallelism": True})
    contract = "either" if rules.contract == "function" else rules.contract  # a program of one's own has a main
    built = build(submission, rules.model_copy(update={"build": free, "contract": contract}), chosen)
    if built.program is None:
        quoted = built.reason.rpartition(": ")[2] in built.log
        why = "" if quoted and built.log else f" {built.reason}"
        raise UsageError("\n".join((f"{shown(program)} was not built.{why}", *submission.notes, built.log)))
    if not built.cached:
        for note in submission.notes:
            say(f"grader: {note}", file=sys.stderr)
    folder = program if program.is_dir() else program.parent
    called = f"{folder}/{Path(submission.sources[0]).stem}"  # as if it were compiled next to its source
    return _told(*running.pass_through(chosen, built.program, arguments, called), submission)


def _told(code: int, findings: Sequence[Finding], submission: Submission) -> int:
    """The exit code `code`, after the findings are printed to standard error."""
    for finding in without_echoes(findings):
        say(f"{kind_of(finding).severity}: {said_of(finding, submission.files)}", file=sys.stderr)
    return code


def _looking_for(checks: Sequence[Check], engine: Engine) -> Engine:
    """The engine with these checks. Raises UsageError for an engine without checks of its own."""
    if not isinstance(engine, EmulatorEngine):
        raise UsageError(
            "`grader run --sanitize` looks for faults on the emulator: add --engine emulator, or run the program under "
            "compute-sanitizer."
        )
    return replace(engine, sanitize=frozenset(checks), leaks="memory" in checks)
