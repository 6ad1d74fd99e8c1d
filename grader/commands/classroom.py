"""Grades a class into its store: `grader grade FOLDER`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.paths import shown
from grader.base.progress import shown_progress
from grader.base.workers import cores
from grader.classes import attention
from grader.classes.batch import Found, Outcome, Policy, Which, find_class, grade_class, is_class, view
from grader.classes.batch.class_folder import describe, refuse_strangers
from grader.classes.batch.late import lateness
from grader.classes.batch.roster import Student, read_roster
from grader.classes.comparable import mixed
from grader.classes.executors.elsewhere import engine_of_jobs
from grader.classes.final_points import MODEL_PREFIX, Line, absent, gradebook
from grader.commands import report_files
from grader.commands.choice import Choice
from grader.course.assignment import Assignment, load_assignment
from grader.course.catalogue import TestcaseFiles
from grader.course.coherence import suite_of
from grader.grading.setup import Setup
from grader.programs.engine import Engine
from grader.programs.oracle import ensure
from grader.records.conditions import conditions_of
from grader.records.record import Record, write_records
from grader.store import HandIn, Store, default_store, open_store


@dataclass(frozen=True)
class ClassOptions:
    """The options of `grade` that concern classes."""

    store: Path | None = None
    roster: Path | None = None
    rerun: str | None = None
    best: bool | None = None
    as_class: bool = False
    jobs: int | None = None
    cluster: str | None = None

    def policy(self, rules: Assignment) -> Policy:
        """Which attempts count, and which are graded again."""
        return Policy(Which.chosen(rules.name, self.best), self.rerun)


def wanted(paths: Sequence[Path], choice: Choice, options: ClassOptions) -> bool:
    """Whether `grade PATH...` grades a class. Raises UsageError if it does not and `options` are for a class."""
    rules = choice.rules(paths[0])
    if options.as_class or any(is_class(path, rules) for path in paths):
        return True
    if options.roster is not None or options.rerun is not None or options.cluster is not None:
        raise UsageError(
            f"--roster, --rerun and --cluster are for classes, and {shown(paths[0])} is one submission: give the "
            "folder that holds them all, or add --class."
        )
    return False


def hand_ins(paths: Sequence[Path], rules: Assignment, options: ClassOptions) -> tuple[list[Found], list[str]]:
    """Return all submissions below `paths`, and notes on files that were left out."""
    found: list[Found] = []
    notes: list[str] = []
    for path in paths:
        if path.is_dir() and (options.as_class or is_class(path, rules)):
            members, aside = find_class(path, rules)
            is_reference = path.resolve() == rules.reference_folder.resolve()
            found += [one for one in members if one.path.is_file() or not is_reference]  # wrong/ holds no solutions
            notes += aside
        elif path.exists():
            found.append(describe(path, rules))
        else:
            raise UsageError(f"{shown(path)} does not exist: give a submission, or the folder of a class.")
    references = rules.reference_folder.resolve()
    marked = [
        replace(one, student=MODEL_PREFIX + one.student) if one.path.resolve().is_relative_to(references) else one
        for one in found
    ]
    return marked, notes


def grade(
    paths: Sequence[Path],
    choice: Choice,
    options: ClassOptions,
    *,
    json: Path | None = None,
    junit: Path | None = None,
) -> tuple[str, bool]:
    """Grade a class into its store, and write the records that count to `json` and `junit`. Return a summary, and
    whether everything could be judged."""
    if options.cluster not in (None, "slurm"):
        raise UsageError(f"There is no cluster {options.cluster!r}: --cluster takes slurm.")
    rules = choice.rules(paths[0])
    found, notes = hand_ins(paths, rules, options)
    roster = read_roster(options.roster) if options.roster else {}
    policy = options.policy(rules)
    if missing := policy.unknown(found):
        raise UsageError(
            f"--rerun: no student here has the id {', '.join(sorted(missing))}; give ids as in the roster."
        )
    suite = suite_of(rules)
    on_cluster = options.cluster is not None
    engines: Sequence[Engine] = (engine_of_jobs(choice.engine_name),) if on_cluster else choice.engines(rules)
    if not on_cluster and len(engines) == 1 and not engines[0].measures_time:
        engines = tuple(engines) * (options.jobs or max(1, cores() // 2))
    elif options.jobs is not None:
        raise UsageError("--jobs is for the emulator: a GPU always runs one submission at a time.")
    cases = choice.cases(suite, engines[0])
    files = TestcaseFiles.beside(suite)
    path = options.store or default_store(rules.name)
    with open_store(path, create=True) as store, store.one_grader():
        if not options.as_class:
            refuse_strangers(paths, rules, store)
        with shown_progress() as progress:
            ensure(cases, suite, files, progress)
        setup = Setup(rules, suite, files, cases, engines[0])
        with view.shown() as seen:
            lanes = () if on_cluster else engines
            outcome = grade_class(setup, lanes, found, store, policy=policy, roster=roster, view=seen)
        lines = gradebook(store, rules.name, policy.which)
        unjudged = _unjudged(outcome, lines, store, setup.conditions.rules)
        notes += mixed(lines, rules.rules_sha256)
        concerns = attention.needs_attention(lines, absent(store, rules.name), unjudged)
        counting = [line.attempt.record for line in lines]
        if json is not None:
            write_records(counting, json)
        report_files.write_reports(counting, None, junit)
    return summary(outcome, path, notes, concerns), not unjudged


def _unjudged(outcome: Outcome, lines: Sequence[Line], store: Store, conditions: str) -> dict[str, str]:
    """For each student whose attempt that counts could not be judged under these conditions, the first fault. It comes
    from this run or, if this run did not grade the attempt (--rerun ID), from an earlier one."""
    found = dict(outcome.faulted)
    for line in lines:
        kept = store.kept(line.attempt.submission, conditions)
        if kept is not None and kept.record.infrastructure_failed:
            found.setdefault(line.attempt.student.id, kept.record.first_fault)
    return found


def keep(records: Sequence[Record], path: Path) -> None:
    """Put records of single submissions into a store. Lateness comes from the files' mtimes, except for attempts that
    the store already has: their lateness, which may come from the roster, stays."""
    with open_store(path, create=True) as store:
        for record in records:
            number = store.import_submission(_handed_in(record))
            store.add_record(number, conditions_of(record), record)


def _handed_in(record: Record) -> HandIn:
    graded, rules, place = record.submission, load_assignment(record.assignment), Path(record.submission.path)
    hand_in = HandIn(record.assignment, graded.id, graded.sha256, graded.path)
    if not place.exists():
        return hand_in
    handed_in = describe(place, rules).handed_in
    days, penalty = lateness(handed_in, rules.deadline, Student(graded.id))
    return replace(hand_in, handed_in=handed_in, days_late=days, penalty=penalty)


def summary(outcome: Outcome, store: Path, notes: Sequence[str], concerns: Sequence[attention.Concern]) -> str:
    """A summary of a class's run, for people."""
    tally = outcome.tally
    counts = ", ".join(f"{count} {what}" for what, count in tally.outcomes.most_common())
    graded = f"{tally.graded} graded now{f' ({counts})' if counts else ''}"
    lines = [f"{tally.total} submission{'s' * (tally.total != 1)}: {graded}{tally.graded_before}."]
    lines += [f"note: {note}" for note in (*notes, *outcome.notes)]
    lines += [attention.render(concerns), f"Everything is in {shown(store)}."]
    return "\n".join(line for line in lines if line)
