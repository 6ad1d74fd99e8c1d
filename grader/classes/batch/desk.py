"""The desk of a class's run registers submissions and stores their records, in the same way for workers on this machine
and jobs on a cluster. During the run, only the desk writes to the store."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field

from grader.base.errors import MachineFault
from grader.base.names import printable_name
from grader.base.verdict import Fault
from grader.classes.batch.class_folder import Found
from grader.classes.batch.late import lateness
from grader.classes.batch.policy import Policy
from grader.classes.batch.roster import Student, enter_roster
from grader.classes.batch.view import Tally, View
from grader.grading.setup import Setup
from grader.programs.submission import Submission
from grader.records.record import Record
from grader.store import HandIn, Store


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

    def open(self, found: Sequence[Found]) -> list[Found]:
        """Enter the roster into the store, and return the submissions that this run considers."""
        enter_roster(self.store, self.roster)
        chosen = self.policy.chosen(found)
        self.tally.total = len(chosen)
        return chosen

    def register(self, found: Found, submission: Submission) -> int:
        """Enter the attempt and its lateness into the store, and return its number there."""
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
        """Whether this run grades an attempt. If not, the record that the store has for it under this run's
        conditions becomes the one that counts."""
        if self.policy.wants(self.store.state(number, self.setup.conditions)):
            return True
        self.store.bring_forward(number, self.setup.conditions)
        self.tally.kept += 1
        self.view.kept(self.tally)
        return False

    def keep(self, number: int, record: Record) -> None:
        """Store a record. If the store cannot be written, save the record to a file, and raise MachineFault with the
        file's path."""
        try:
            self.store.add_record(number, self.setup.conditions, record)
        except MachineFault as fault:
            raise MachineFault(f"{fault} {_rescue(record)}") from fault

    def finish(self, student: str, record: Record, where: str, seconds: float) -> None:
        """Count and show a submission that needs no further try."""
        self.tally.count(record)
        if record.infrastructure_failed:
            self.faulted[student] = first_fault(record)
        else:
            self.faulted.pop(student, None)
        self.view.finished(self.tally, record, where, seconds)

    def notes(self, found: Sequence[Found]) -> list[str]:
        """Notes on the class as a whole, for the end of a run."""
        notes = []
        handed_in = [one.student for one in found]
        several = sorted({student for student in handed_in if handed_in.count(student) > 1})
        if several:
            listed = ", ".join(several[:10]) + (" and others" if len(several) > 10 else "")
            notes.append(
                f"Students with several submissions ({len(several)}: {listed}): these are attempts, and the "
                f"{self.policy.which} counts."
            )
        if self.later:
            listed = ", ".join(sorted(self.later)[:10]) + (" and others" if len(self.later) > 10 else "")
            notes.append(
                f"Larger penalties for lateness than in an earlier grading ({len(self.later)}: {listed}): if a roster "
                "gave these students more time, repeat the command with that --roster."
            )
        if self.roster:
            silent = sorted(set(self.roster) - set(handed_in))
            if silent:
                notes.append(f"On the roster without a submission ({len(silent)}): {', '.join(silent)}.")
        return notes


def first_fault(record: Record) -> str:
    """The reason of the first test that failed through a fault of the grader or the machine."""
    return next(test.reason for test in record.tests if test.fault in (Fault.GRADER, Fault.MACHINE))


def _rescue(record: Record) -> str:
    """Save a record that the store could not take, and return a sentence that says where it is."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="grader-rescued-", suffix=".json", delete=False) as file:
            file.write(record.model_dump_json(by_alias=True))
        return f"The unsaved result is in {file.name}: import it with `grader store import`."
    except OSError:
        return f"The result of {record.submission.id} could not be saved; the next run grades it again."
