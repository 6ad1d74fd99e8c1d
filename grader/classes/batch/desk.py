"""The desk of a class's run registers submissions and stores their records, in the same way for workers on this machine
and jobs on a cluster. During the run, only the desk writes to the store."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from grader.base.errors import MachineFault
from grader.base.machine import cpu_model
from grader.base.names import printable_name
from grader.classes.batch.class_folder import Found, listed
from grader.classes.batch.late import lateness
from grader.classes.batch.policy import Policy
from grader.classes.batch.roster import Student, enter_roster
from grader.classes.batch.view import Tally, View
from grader.course.testcase import Case
from grader.grading.setup import Setup
from grader.programs.submission import Submission
from grader.records.conditions import Conditions, conditions_of
from grader.records.record import Record
from grader.records.rescore import rescored, unmeasured, with_tests
from grader.store import HandIn, Store
from grader.store.rows import Kept
from grader.store.sqlite_errors import translate_sqlite_errors


@dataclass(eq=False)
class Desk:
    """The bookkeeping of one grading of a class: what it enters into the store, and what it counts."""

    setup: Setup
    store: Store
    policy: Policy
    roster: dict[str, Student]
    view: View
    tally: Tally = field(default_factory=Tally)
    faulted: dict[str, str] = field(default_factory=dict)
    later: list[str] = field(default_factory=list)
    """Students whose penalty is larger than in an earlier grading. Collected only if the run has no roster."""
    older: list[tuple[str, str]] = field(default_factory=list)
    """Students whose stored result stands although another grader made it, and that grader."""
    _partial: dict[int, Record] = field(default_factory=dict)
    """The stored records of attempts of which this run grades some tests."""

    def open(self, found: Sequence[Found]) -> list[Found]:
        """Enter the roster into the store. Return the submissions that this run considers, each with a name to show:
        the roster's, the folder's, or else the id."""
        enter_roster(self.store, self.roster)
        chosen = self.policy.chosen(found)
        self.tally.total = len(chosen)
        return [
            replace(one, name=(self.roster.get(one.student) or one).name or one.name or one.student) for one in chosen
        ]

    def take(self, found: Found, submission: Submission) -> tuple[int, tuple[Case, ...]]:
        """Enter the attempt and its lateness into the store. Return its number there, and the cases to run it on."""
        with translate_sqlite_errors(self.store.path), self.store.transaction():  # one wait for the disk, not two
            if found.name != found.student and found.student not in self.roster:
                self.store.add_student(found.student, name=found.name)
            number = self._register(found, submission)
            return number, self._cases_to_run(number)

    def _register(self, found: Found, submission: Submission) -> int:
        student = self.roster.get(found.student) or Student(found.student)
        handed_in = student.handed_in or found.handed_in
        days, penalty = lateness(handed_in, self.setup.assignment.deadline, student)
        hand_in = HandIn(
            assignment=self.setup.assignment.name,
            student=found.student,
            sha256=submission.sha256,
            path=printable_name(str(found.path)),
            handed_in=handed_in,
            days_late=days,
            penalty=penalty,
            files=submission.files,
        )
        before = self.store.penalty_of(hand_in)
        if not self.roster and before is not None and penalty > before:
            self.later.append(found.student)
        return self.store.add_submission(hand_in)

    def plan(self, found: Sequence[Found]) -> str:
        """What this run does with the results that the store has, before it reads any submission; '' if nothing about
        them is unusual."""
        if self.policy.rerun is not None:
            return ""
        conditions, other, only_points, needing = self.setup.conditions, 0, 0, Counter[str]()
        students = {one.student for one in found}
        for student, number in self.store.newest_attempts(self.setup.assignment.name):
            if student not in students or self.store.kept(number, conditions.rules) is not None:
                continue
            if (kept := self.store.kept(number, conditions.measured)) is None:
                other += 1
            else:
                only_points += 1
                needing.update(self._to_measure(kept))
        said = []
        if only_points:
            tests = ", ".join(f"{name} for {count}" for name, count in sorted(needing.items()))
            said.append(
                f"Only points changed in the rules since {_results(only_points)}: they get points again, and "
                f"{f'only what they lack runs ({tests})' if tests else 'nothing runs for them'}."
            )
        if other:
            why = "the rules, the testcases or the engine were others"
            said.append(f"{_results(other).capitalize()} cannot be used, because {why}: these submissions run again.")
        return " ".join(said)

    def _cases_to_run(self, number: int) -> tuple[Case, ...]:
        """The cases that this run grades an attempt on: all, none, or those that new points need and that the stored
        record lacks. If none, the stored record becomes the one that counts, with points by the current rules."""
        conditions = self.setup.conditions
        kept = self.store.kept(number, conditions.rules) or self.store.kept(number, conditions.measured)
        if kept is None:
            return self.setup.cases
        older = Conditions(kept.conditions).grader != conditions.grader
        if self.policy.wants(kept.state, older=older):
            return self.setup.cases
        if Conditions(kept.conditions).rules == conditions.rules:
            self.store.bring_forward(kept)
            self.tally.kept += 1
        elif missing := self._to_measure(kept):
            if not self._on_this_machine(kept.record):
                return self.setup.cases
            self._partial[number] = kept.record
            return tuple(case for case in self.setup.cases if case.name in missing)
        else:
            self._store(number, self._rescored(kept.record))
            self.tally.rescored += 1
        if older:
            self.older.append((kept.record.submission.id, str(kept.record.grader)))
        self.view.kept(self.tally)
        return ()

    def _to_measure(self, kept: Kept) -> tuple[str, ...]:
        setup = self.setup
        return unmeasured(kept.record, setup.assignment, setup.suite, measures_time=setup.engine.measures_time)

    def _on_this_machine(self, record: Record) -> bool:
        """Whether times of this run may stand in a record next to those that it has."""
        return (record.engine.device, record.machine.cpu) == (self.setup.engine.device, cpu_model())

    def _rescored(self, record: Record, ran: Sequence[str] = ()) -> Record:
        setup = self.setup
        return rescored(record, setup.assignment, setup.suite, measures_time=setup.engine.measures_time, ran=ran)

    def keep(self, number: int, record: Record) -> Record:
        """Store a record, together with what an earlier one has of tests that did not run, and return it. If the store
        cannot be written, save the record to a file, and raise MachineFault with the file's path."""
        if (earlier := self._partial.get(number)) is not None:
            record = self._rescored(with_tests(earlier, record), [test.name for test in record.tests])
        self._store(number, record)
        return record

    def _store(self, number: int, record: Record) -> None:
        try:
            self.store.add_record(number, conditions_of(record), record)
        except MachineFault as fault:
            raise MachineFault(f"{fault} {_rescue(record)}") from fault

    def finish(self, found: Found, record: Record, where: str, seconds: float) -> None:
        """Count and show a submission that needs no further try."""
        self.tally.count(record)
        if record.infrastructure_failed:
            self.faulted[found.student] = record.first_fault
        else:
            self.faulted.pop(found.student, None)
        self.view.finished(self.tally, found.name, record, where, seconds)

    def notes(self, found: Sequence[Found]) -> list[str]:
        """Notes on the class as a whole, for the end of a run."""
        notes = []
        handed_in = [one.student for one in found]
        several = sorted({student for student in handed_in if handed_in.count(student) > 1})
        if several:
            notes.append(
                f"Students with several submissions ({listed(several)}): these are attempts, and the "
                f"{self.policy.which} counts."
            )
        if self.later:
            notes.append(
                f"Larger penalties for lateness than in an earlier grading ({listed(sorted(self.later))}): if a roster "
                "gave these students more time, repeat the command with that --roster."
            )
        if self.older:
            graders = "; ".join(sorted({grader for _, grader in self.older}))
            were = "was" if len(self.older) == 1 else "were"
            notes.append(f"{len(self.older)} {were} graded by an older grader ({graders}): --rerun older.")
        if self.roster:
            silent = sorted(set(self.roster) - set(handed_in))
            if silent:
                notes.append(f"On the roster without a submission ({len(silent)}): {', '.join(silent)}.")
        return notes


def _results(count: int) -> str:
    return f"{count} stored result{'s were' if count != 1 else ' was'} made"


def _rescue(record: Record) -> str:
    """Save a record that the store could not take, and return a sentence that says where it is."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="grader-rescued-", suffix=".json", delete=False) as file:
            file.write(record.model_dump_json(by_alias=True))
        return f"The unsaved result is in {file.name}: import it with `grader store import`."
    except OSError:
        return f"The result of {record.submission.id} could not be saved; the next run grades it again."
