"""The judge's uploads and their results, in tables of the class's store.

Every change of a submission's state is one transaction (docs/judge.md has the state machine). So a judge killed at any
moment leaves each submission in a definite state; `recover` then returns running submissions to their queues. A record
is stored in the transaction that ends the state `running`, so one run never stores two results.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from statistics import fmean
from typing import Any

from pydantic import ValidationError

from grader.base.errors import UsageError
from grader.judge.fairness import Place, next_place
from grader.judge.results import Results
from grader.records.record import Record, TestRecord
from grader.store import Compressed, HandIn, Store

_MEASURED = 40
"""The duration of a stage is predicted from the mean of this many recent ones."""
_GUESS_S = {"verdict": 10.0, "timing": 60.0}
"""The predicted duration of a stage when none was measured yet."""
PREDICTED = "predicted 1"
"""Stands for the conditions of a predicted test (see `predictions`); 1 is the form of its record."""


Late = Callable[[str, float], tuple[int, float]]
"""Maps a student and the time at which a submission was received to its days late and its penalty."""


def digest_of(files: Sequence[tuple[str, bytes]]) -> str:
    """The SHA-256 of files and their names."""
    each = [(name, hashlib.sha256(content).hexdigest()) for name, content in sorted(files)]
    return hashlib.sha256(repr(each).encode()).hexdigest()


class Stage(StrEnum):
    """A stage of grading a submission: verdicts first, times later."""

    VERDICT = "verdict"
    TIMING = "timing"


class Step(StrEnum):
    """The state of a submission within its stage; docs/judge.md has a diagram."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    REPLACED = "replaced"
    WITHDRAWN = "withdrawn"
    FAILED = "failed"


@dataclass(frozen=True)
class Upload:
    """A row of the ledger. Times are seconds since 1970."""

    number: int
    id: str
    student: str
    received: float
    stage: Stage
    state: Step
    priority: int
    again: bool
    tries: int
    began: float | None
    verdict_s: float | None
    timing_s: float | None
    first_at: float | None
    submission: int | None
    note: str
    digest: str
    """The SHA-256 of the files as received (see `digest_of`); '' for uploads to older judges."""
    days_late: int
    record: int | None
    """The number of its attempt's newest record; None if it has none yet."""

    @property
    def settled(self) -> bool:
        """Whether the submission neither waits nor runs."""
        return self.state not in (Step.WAITING, Step.RUNNING)


_JOINED = ("days_late", "record")
_COLUMNS = [field.name for field in fields(Upload) if field.name not in _JOINED]
_SELECT = (
    f"SELECT {', '.join(_COLUMNS)}, (SELECT days_late FROM submissions AS s WHERE s.id = submission), "
    "(SELECT max(r.id) FROM records AS r WHERE r.submission = judge_uploads.submission)"
)
PAGE = 50
"""The most uploads of a list."""


class Ledger:
    """The judge's tables of an open store, for one thread."""

    def __init__(self, store: Store, assignment: str) -> None:
        self.store, self.assignment = store, assignment
        self.results = Results(store)
        self.late: Late = lambda student, received: (0, 0.0)

    def _rows(self, rest: str, *parameters: object) -> list[Upload]:
        query = f"{_SELECT} FROM judge_uploads WHERE assignment = ? AND {rest}"
        return [self._upload(row) for row in self.store.execute(query, (self.assignment, *parameters)).fetchall()]

    def _upload(self, row: Sequence[Any]) -> Upload:
        values = dict(zip([*_COLUMNS, *_JOINED], row, strict=True))
        values |= {"stage": Stage(values["stage"]), "state": Step(values["state"])}
        if values["days_late"] is None:  # not graded yet; an attempt is as late as the first upload of its files
            values["days_late"], _ = self.late(values["student"], values["received"])
        return Upload(**values)

    # ---- receiving ----

    def receive(self, student: str, files: Compressed, digest: str, repeat_key: str = "") -> Upload:
        """Store an upload and put it into the verdict queue, where it replaces the student's waiting submission. If
        there is an upload with the same `repeat_key`, return that one: clients repeat requests whose answer was
        lost."""
        with self.store.transaction():
            if known := self.repeated(student, repeat_key):
                return known
            self.store.add_student(student)
            id, key, tag = secrets.token_hex(8), self._key(repeat_key), self._next_tag(student, Stage.VERDICT)
            (number,) = self.store.execute(
                "INSERT INTO judge_uploads (id, repeat_key, assignment, student, received, stage, state, verdict_tag, "
                "digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
                (id, key, self.assignment, student, time.time(), Stage.VERDICT, Step.WAITING, tag, digest),
            ).fetchone()
            for file in files:
                self.store.execute("INSERT INTO judge_files VALUES (?, ?, ?)", (number, *file))
            self._keep_the_newest(student, Stage.VERDICT)
        return self._rows("number = ?", number)[0]

    def repeated(self, student: str, repeat_key: str) -> Upload | None:
        """The upload that a student made with this key, if any."""
        return next(iter(self._rows("student = ? AND repeat_key = ?", student, self._key(repeat_key))), None)

    def _key(self, repeat_key: str) -> str:
        """The stored form of a key: the assignment is part of it. Without `repeat_key`, a random key."""
        return f"{self.assignment}:{repeat_key or secrets.token_hex(8)}"

    def _keep_the_newest(self, student: str, stage: Stage) -> None:
        """Replace a student's older waiting submissions by newer ones, which take their places in the queue. A newer
        submission with a larger penalty for lateness replaces none, so that the last one before the deadline is graded.
        A submission that the staff runs again always stays. (A higher number means newer, since clocks can be set
        back.)"""
        waiting = self._rows(
            "student = ? AND stage = ? AND state = 'waiting' AND NOT again ORDER BY number DESC", student, stage
        )
        penalties = [self.late(student, one.received)[1] for one in waiting]
        for place, old in enumerate(waiting):
            newer = next((waiting[other] for other in range(place) if penalties[other] <= penalties[place]), None)
            if newer is not None:
                self.store.execute(
                    f"UPDATE judge_uploads AS newer SET {stage}_tag = min(newer.{stage}_tag, old.{stage}_tag), "
                    "priority = iif(newer.priority, newer.priority, old.priority) FROM judge_uploads AS old "
                    "WHERE newer.number = ? AND old.number = ?",
                    (newer.number, old.number),
                )
                self._set(old.number, state=Step.REPLACED, note="A newer submission took its place in the queue.")

    def received_within(self, student: str, seconds: float) -> list[float]:
        """The times of the student's uploads in the last `seconds`, oldest first. Times in the future, from a wrong
        clock, are left out."""
        now = time.time()
        rows = self._rows("student = ? AND received BETWEEN ? AND ?", student, now - seconds, now)
        return sorted(row.received for row in rows)

    def _next_tag(self, student: str, stage: Stage) -> float:
        """The tag of a student's next submission in the fair order (see `fairness`)."""
        expected = self.typical_s(stage)
        (last,) = self.store.execute(
            f"SELECT max({stage}_tag + coalesce({stage}_s, ?)) FROM judge_uploads "
            f"WHERE student = ? AND ({stage}_s IS NOT NULL OR (stage = ? AND state = 'running'))",
            (expected, student, stage),
        ).fetchone()
        return max(self.switch(f"clock:{stage}"), last or 0.0)

    # ---- running ----

    def recover(self) -> int:
        """Put submissions that were running when the last judge ended back into their queues. Return their number."""
        with self.store.transaction():
            ran = self._rows("state = 'running'")
            for one in ran:
                self._set(one.number, state=Step.WAITING, began=None, tries=max(0, one.tries - 1))
                self._keep_the_newest(one.student, one.stage)
        return len(ran)

    def correct_lateness(self) -> None:
        """Compute every attempt's lateness and penalty again from its first upload, since the roster or the deadline
        may have changed."""
        query = (
            "SELECT submission, student, min(received) FROM judge_uploads WHERE assignment = ? AND submission IS NOT "
            "NULL GROUP BY submission"
        )
        with self.store.transaction():
            for submission, student, received in self.store.execute(query, (self.assignment,)).fetchall():
                self.store.execute(
                    "UPDATE submissions SET days_late = ?, penalty = ? WHERE id = ?",
                    (*self.late(student, received), submission),
                )

    def places(self, stage: Stage) -> list[Place]:
        """All submissions that wait for a stage, except those of banned students."""
        query = (
            f"SELECT number, student, priority, {stage}_tag FROM judge_uploads WHERE assignment = ? AND stage = ? "
            "AND state = 'waiting' AND student NOT IN (SELECT substr(name, 8) FROM judge_switches WHERE name LIKE "
            "'banned:%')"
        )
        return [Place(*row) for row in self.store.execute(query, (self.assignment, stage))]

    def running(self, stage: Stage) -> list[Upload]:
        """The running submissions of a stage."""
        return self._rows("stage = ? AND state = 'running'", stage)

    def claim(self, stage: Stage) -> Upload | None:
        """Take the next submission of a stage and mark it as running; None if nothing may run."""
        if not self.places(stage):
            return None
        with self.store.transaction():
            if self.switch("paused"):
                return None
            chosen = next_place(self.places(stage), frozenset(one.student for one in self.running(stage)))
            if chosen is None:
                return None
            self.store.execute(
                "UPDATE judge_uploads SET state = ?, began = ?, tries = tries + 1 WHERE number = ?",
                (Step.RUNNING, time.time(), chosen.number),
            )
            if chosen.tag > self.switch(f"clock:{stage}"):
                self.set_switch(f"clock:{stage}", chosen.tag)
        return self._rows("number = ?", chosen.number)[0]

    def files(self, upload: Upload) -> Compressed:
        """The files of an upload: as received or, once they were read, as the attempt has them."""
        query = "SELECT name, content FROM judge_files WHERE upload = ? ORDER BY name"
        received: Compressed = tuple(self.store.execute(query, (upload.number,)).fetchall())
        if received or upload.submission is None:
            return received
        return self.store.compressed_sources(upload.submission)

    def judged_before(self, student: str, conditions: str) -> frozenset[str]:
        """The SHA-256 of each of the student's submissions that has a record under these conditions (rules, testcases,
        engine) without a fault of the grader or the machine."""
        query = (
            "SELECT sha256 FROM submissions AS s JOIN records AS r ON r.submission = s.id WHERE s.assignment = ? AND "
            "s.student = ? AND r.conditions = ? AND NOT r.faulted"
        )
        return frozenset(row[0] for row in self.store.execute(query, (self.assignment, student, conditions)))

    def keep_test(self, upload: Upload, conditions: str, test: TestRecord) -> None:
        """Store a test of a running submission, which need not run again if the judge is killed."""
        with self.store.transaction():
            if self._rows("number = ? AND state = 'running'", upload.number):
                values = (upload.number, conditions, test.name, test.model_dump_json())
                self.store.execute("INSERT OR REPLACE INTO judge_tests VALUES (?, ?, ?, ?)", values)

    def ended_tests(self, upload: Upload, conditions: str) -> tuple[TestRecord, ...]:
        """The tests that an interrupted run of a submission has ended under these conditions."""
        query = "SELECT record FROM judge_tests WHERE upload = ? AND conditions = ?"
        with contextlib.suppress(ValidationError):  # another grader's form; the conditions name this one
            kept = self.store.execute(query, (upload.number, conditions)).fetchall()
            return tuple(TestRecord.model_validate_json(row[0]) for row in kept)
        return ()

    def requeue(self, upload: Upload, note: str) -> None:
        """Return a running submission to its old place in the queue, after a fault of the grader or the machine."""
        with self.store.transaction():
            if self._rows("number = ? AND state = 'running'", upload.number):
                self._set(upload.number, state=Step.WAITING, began=None, note=note)
                self._keep_the_newest(upload.student, upload.stage)

    def finish(
        self,
        upload: Upload,
        hand_in: HandIn | None,
        result: tuple[str, Record] | None,
        *,
        seconds: float,
        state: Step = Step.DONE,
        then_timing: bool = False,
        note: str = "",
    ) -> None:
        """End the current stage of a running submission; the stage took `seconds`. In one transaction, store the
        attempt and `result` (the conditions and the record) and, with `then_timing`, queue the timing stage. Do nothing
        if the submission is not running."""
        with self.store.transaction():
            if not self._rows("number = ? AND state = 'running'", upload.number):
                return
            changes: dict[str, object] = {"note": note, "began": None, f"{upload.stage}_s": seconds}
            if hand_in is not None:
                changes["submission"] = self.store.import_submission(hand_in)
                if hand_in.compressed:  # the attempt has the files from now on
                    self.store.execute("DELETE FROM judge_files WHERE upload = ?", (upload.number,))
                if result is not None:
                    self.store.add_record(int(str(changes["submission"])), *result)
            if upload.stage is Stage.VERDICT:
                changes["first_at"] = time.time()
            if then_timing:
                changes |= {"stage": Stage.TIMING, "state": Step.WAITING, "tries": 0}
                changes["timing_tag"] = self._next_tag(upload.student, Stage.TIMING)
            else:
                changes |= {"state": state, "again": 0}
            self._set(upload.number, **changes)
            self._keep_the_newest(upload.student, Stage.TIMING)

    def _set(self, number: int, **changes: object) -> None:
        if "again" in changes:  # it is settled, or the staff wants it graded anew
            self.store.execute("DELETE FROM judge_tests WHERE upload = ? AND conditions <> ?", (number, PREDICTED))
        names = ", ".join(f"{name} = ?" for name in changes)
        self.store.execute(f"UPDATE judge_uploads SET {names} WHERE number = ?", (*changes.values(), number))

    # ---- reading ----

    def upload(self, id: str) -> Upload | None:
        """The upload with this id, which appears in URLs."""
        return next(iter(self._rows("id = ?", id)), None)

    def latest_of(self, submission: int) -> Upload | None:
        """The latest upload of an attempt's files; None if they were not uploaded to the judge."""
        return next(iter(self._rows("submission = ? ORDER BY number DESC", submission)), None)

    def of_student(self, student: str, before: int | None = None, most: int = PAGE) -> list[Upload]:
        """A student's latest uploads, newest first: those before upload number `before` if it is given."""
        given, rest = (student,) if before is None else (student, before), "" if before is None else " AND number < ?"
        return self._rows(f"student = ?{rest} ORDER BY number DESC LIMIT {most}", *given)

    def previous(self, upload: Upload) -> Upload | None:
        """The student's upload before this one that became an attempt."""
        rest = "student = ? AND number < ? AND submission IS NOT NULL ORDER BY number DESC LIMIT 1"
        return next(iter(self._rows(rest, upload.student, upload.number)), None)

    def stamp(self, upload: Upload) -> object:
        """A value that changes whenever the report on an upload's page changes."""
        query = (
            "SELECT penalty, days_late, (SELECT max(r.id) FROM records AS r JOIN submissions AS s ON submission = s.id "
            "WHERE s.assignment = ?1 AND s.student = ?2), (SELECT group_concat(json_array(part, points, comment)) FROM "
            "manual_points WHERE assignment = ?1 AND student = ?2) FROM submissions WHERE id = ?3"
        )
        return self.store.execute(query, (self.assignment, upload.student, upload.submission)).fetchone()

    def unsettled(self) -> list[Upload]:
        """The waiting and the running submissions, oldest first."""
        return self._rows("state IN ('waiting', 'running') ORDER BY number")

    def failed(self) -> list[Upload]:
        """The submissions that could not be judged because of the grader or the machine; the oldest ones if there are
        many."""
        return self._rows(f"state = 'failed' ORDER BY number LIMIT {PAGE}")

    def names(self) -> dict[str, str]:
        """The names of the students that the roster gives, by id."""
        return dict(self.store.execute("SELECT student, name FROM students WHERE name <> ''").fetchall())

    def counts(self) -> dict[tuple[str, str], int]:
        """The number of uploads by stage and state."""
        query = "SELECT stage, state, count(*) FROM judge_uploads WHERE assignment = ? GROUP BY 1, 2"
        return {(row[0], row[1]): row[2] for row in self.store.execute(query, (self.assignment,))}

    def typical_s(self, stage: Stage) -> float:
        """The typical duration of a stage: the mean of the latest ones, or a guess if there are none."""
        measured = self.measured_s(stage)
        return fmean(measured) if measured else _GUESS_S[stage]

    def measured_s(self, stage: Stage) -> list[float]:
        """The durations of the latest runs of a stage that were not stopped."""
        query = (
            f"SELECT {stage}_s FROM judge_uploads WHERE {stage}_s > 0 AND state <> 'withdrawn' ORDER BY number DESC "
            f"LIMIT {_MEASURED}"
        )
        return [row[0] for row in self.store.execute(query)]

    # ---- actions of the staff ----

    def switch(self, name: str) -> float:
        """A switch's value; 0 if it was never set."""
        row = self.store.execute("SELECT value FROM judge_switches WHERE name = ?", (name,)).fetchone()
        return float(row[0]) if row else 0.0

    def set_switch(self, name: str, value: float) -> None:
        """Set a switch: `paused`, `draining`, `banned:ID`, or `clock:STAGE`, the clock of a queue."""
        with self.store.transaction():
            self.store.execute("INSERT OR REPLACE INTO judge_switches VALUES (?, ?)", (name, value))
            if not value:
                self.store.execute("DELETE FROM judge_switches WHERE name = ?", (name,))

    def banned(self) -> list[str]:
        """Students whose submissions are refused."""
        query = "SELECT substr(name, 8) FROM judge_switches WHERE name LIKE 'banned:%' ORDER BY 1"
        return [row[0] for row in self.store.execute(query)]

    def rerun(self, upload: Upload) -> None:
        """Queue a settled submission again, even if the same files were judged before. Raises UsageError if it is not
        settled."""
        if not upload.settled:
            raise UsageError(f"{upload.id} is {upload.state} already: wait until it is done.")
        with self.store.transaction():
            tag = self._next_tag(upload.student, Stage.VERDICT)
            self._set(
                upload.number, stage=Stage.VERDICT, state=Step.WAITING, again=1, tries=0, note="", verdict_tag=tag
            )

    def prioritise(self, upload: Upload, priority: int) -> None:
        """Move a submission ahead of all others (above 0) or behind them (below 0). The default is 0."""
        with self.store.transaction():
            self._set(upload.number, priority=priority)

    def withdraw(self, upload: Upload) -> None:
        """Remove a submission from its queue or, if it runs, from its lane: neither a result nor a restart brings it
        back. Raises UsageError if it is settled."""
        with self.store.transaction():
            now = next(iter(self._rows("number = ? AND state IN ('waiting', 'running')", upload.number)), None)
            if now is None:
                raise UsageError(f"{upload.id} is settled: only a submission that waits or runs can be stopped.")
            note = "Stopped while it ran." if now.state is Step.RUNNING else "Withdrawn."
            self._set(upload.number, state=Step.WITHDRAWN, began=None, again=0, note=note)

    def count_stopped(self, upload: Upload, seconds: float) -> None:
        """Count the seconds that a stopped submission ran for its student's fair share."""
        with self.store.transaction():
            self._set(upload.number, **{f"{upload.stage}_s": seconds})
