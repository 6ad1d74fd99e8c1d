"""The desk registers submissions and keeps their records, in the same way for this machine's workers and for a
cluster's jobs. It is the only writer to the store during a run."""

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
    """The books of one run."""

    setup: Setup
    store: Store
    policy: Policy
    roster: dict[str, Student]
    view: View
    tally: Tally = field(default_factory=Tally)
    faulted: dict[str, str] = field(default_factory=dict)
    later: list[str] = field(default_factory=list)
    """Students whose penalty is larger than before, in a run without a roster."""

    @property
    def conditions(self) -> str:
        return self.setup.conditions

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
        """Whether an attempt is graded now. If not, its record under these conditions becomes the one that counts."""
        if self.policy.wants(self.store.state(number, self.conditions)):
            return True
        self.store.bring_forward(number, self.conditions)
        self.tally.kept += 1
        self.view.kept(self.tally)
        return False

    def keep(self, number: int, record: Record) -> None:
        """Store a record. Raises MachineFault if the store has no room, with the path at which the record was saved
        instead."""
        try:
            self.store.add_record(number, self.conditions, record)
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
        """Notes about the class as a whole."""
        notes = []
        handed_in = [one.student for one in found]
        several = sorted({student for student in handed_in if handed_in.count(student) > 1})
        if several:
            listed = ", ".join(several[:10]) + (" and others" if len(several) > 10 else "")
            notes.append(
                f"Several submissions of one student ({len(several)}: {listed}) are attempts, and the "
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
    """The reason for the first failure that is the grader's or the machine's fault."""
    return next(test.reason for test in record.tests if test.fault in (Fault.GRADER, Fault.MACHINE))


def _rescue(record: Record) -> str:
    """Save a record for which the store has no room, and say where it is."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="grader-rescued-", suffix=".json", delete=False) as file:
            file.write(record.model_dump_json(by_alias=True))
        return f"The unsaved result is in {file.name}: import it with `grader store import`."
    except OSError:
        return f"The result of {record.submission.id} could not be saved; the next run grades it again."
