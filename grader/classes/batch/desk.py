"""The desk where hand-ins are registered and their records kept: the same whether they are graded by this
machine's workers or by a cluster's jobs. It is the only writer to the store in a run."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field

from grader.base.errors import MachineFault
from grader.base.names import printable_name
from grader.base.verdict import Fault
from grader.classes.batch.handins import Found
from grader.classes.batch.late import lateness
from grader.classes.batch.policy import Policy
from grader.classes.batch.roster import Student
from grader.classes.batch.setup import Setup
from grader.classes.batch.view import Tally, View
from grader.programs.submission import Submission
from grader.records.record import Record
from grader.store import HandIn, Store


@dataclass(eq=False)
class Desk:
    """A run's books."""

    setup: Setup
    store: Store
    policy: Policy
    roster: dict[str, Student]
    view: View
    tally: Tally = field(default_factory=Tally)
    faulted: dict[str, str] = field(default_factory=dict)
    later: list[str] = field(default_factory=list)
    """Who has a larger penalty now than before, without a roster."""

    @property
    def conditions(self) -> str:
        return self.setup.conditions

    def open(self, found: Sequence[Found]) -> list[Found]:
        """Enter the roster; the hand-ins that are to be looked at."""
        for student in self.roster.values():
            self.store.add_student(
                student.id,
                name=student.name,
                nickname=student.nickname,
                section=student.section,
                email=student.email,
                enrolled=True,
            )
        chosen = self.policy.chosen(found)
        self.tally.total = len(chosen)
        return chosen

    def register(self, found: Found, submission: Submission) -> int:
        """Enter the attempt and how late it is into the store; its number there."""
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

    def wants(self, number: int) -> bool:
        """Whether an attempt is to be graded now. If not, its record under these conditions counts from now on."""
        if self.policy.wants(self.store.state(number, self.conditions)):
            return True
        self.store.bring_forward(number, self.conditions)
        self.tally.kept += 1
        self.view.kept(self.tally)
        return False

    def keep(self, number: int, record: Record) -> None:
        """Store a record. Raises MachineFault, with a place where the record is, when the store has no room."""
        try:
            self.store.add_record(number, self.conditions, record)
        except MachineFault as fault:
            raise MachineFault(f"{fault} {_rescue(record)}") from fault

    def finish(self, student: str, record: Record, where: str, seconds: float) -> None:
        """Count and show a hand-in that needs no further try."""
        self.tally.count(record)
        if record.infrastructure_failed:
            self.faulted[student] = first_fault(record)
        else:
            self.faulted.pop(student, None)
        self.view.finished(self.tally, record, where, seconds)

    def notes(self, found: Sequence[Found]) -> list[str]:
        """What a person should know about the class as a whole."""
        notes = []
        handed_in = [one.student for one in found]
        several = sorted({student for student in handed_in if handed_in.count(student) > 1})
        if several:
            listed = ", ".join(several[:10]) + (" and others" if len(several) > 10 else "")
            notes.append(
                f"Several hand-ins of one student ({len(several)}: {listed}) are attempts, and the {self.policy.which} "
                "counts."
            )
        if self.later:
            listed = ", ".join(sorted(self.later)[:10]) + (" and others" if len(self.later) > 10 else "")
            notes.append(
                f"{len(self.later)} lose more for lateness than when they were graded before ({listed}): if a roster "
                "gave them more time, give the same command with that --roster."
            )
        if self.roster:
            silent = sorted(set(self.roster) - set(handed_in))
            if silent:
                notes.append(f"{len(silent)} of the roster handed in nothing: {', '.join(silent)}.")
        return notes


def first_fault(record: Record) -> str:
    """The first reason that is the grader's or the machine's."""
    return next(test.reason for test in record.tests if test.fault in (Fault.GRADER, Fault.MACHINE))


def _rescue(record: Record) -> str:
    """A place for a record that the store has no room for."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="grader-rescued-", suffix=".json", delete=False) as file:
            file.write(record.model_dump_json(by_alias=True))
        return f"The result in hand is in {file.name}: `grader store import` takes it."
    except OSError:
        return f"The result of {record.submission.id} could not be kept and will be made again."
