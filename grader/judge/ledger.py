"""What the judge received and what became of it, in tables of the class's store.

Every step of a submission is one transaction (docs/judge.md has the state machine). A judge killed at any moment thus
leaves each submission in one state; what was running then is waiting again after `recover`. A record is stored in the
transaction that takes its submission out of `running`, so no submission gets two results from one run.
"""

from __future__ import annotations

import secrets
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from grader.base.errors import UsageError
from grader.judge.fairness import Place, next_place, typical_s
from grader.judge.results import Results
from grader.records.record import Record
from grader.store import HandIn, Store

MAX_TRIES = 2
"""How often a submission is run before a fault of the machine is reported."""
_MEASURED = 40
"""The mean of so many runs is what the next one is expected to take."""
_GUESS_S = {"verdict": 10.0, "timing": 60.0}
"""What a run is expected to take before any was measured."""


Files = tuple[tuple[str, bytes], ...]
"""Names and contents."""
Late = Callable[[str, float], tuple[int, float]]
"""How many days late a student's submission is that was received at a time, and its penalty."""


class Stage(StrEnum):
    """What is done with a submission: verdicts first, times later."""

    VERDICT = "verdict"
    TIMING = "timing"


class Step(StrEnum):
    """The state of a submission within its stage; `docs/judge.md` has the picture."""

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

    @property
    def settled(self) -> bool:
        """Whether nothing more happens to it by itself."""
        return self.state not in (Step.WAITING, Step.RUNNING)


_COLUMNS = (
    "number, id, student, received, stage, state, priority, again, tries, began, verdict_s, timing_s, first_at, "
    "submission, note"
)


def _upload(row: Sequence[Any]) -> Upload:
    values = dict(zip(_COLUMNS.split(", "), row, strict=True))
    return Upload(**values | {"stage": Stage(values["stage"]), "state": Step(values["state"])})


class Ledger:
    """The judge's tables of an open store, for one thread."""

    def __init__(self, store: Store, assignment: str) -> None:
        self.store, self.assignment = store, assignment
        self.results = Results(store)
        self.late: Late = lambda student, received: (0, 0.0)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self.store.transaction():
            yield

    def _rows(self, rest: str, *parameters: object) -> list[Upload]:
        query = f"SELECT {_COLUMNS} FROM judge_uploads WHERE assignment = ? AND {rest}"
        rows = self.store.execute(query, (self.assignment, *parameters)).fetchall()
        return [_upload(row) for row in rows]

    # ---- receiving ----

    def receive(self, student: str, files: Sequence[tuple[str, bytes]], repeat_key: str = "") -> Upload:
        """Keep an upload, and put it into the verdict queue; it replaces the student's submission that waits there.
        The same `repeat_key` again finds the upload that it made before: a client may ask again after a lost answer."""
        with self._writing():
            if known := self.repeated(student, repeat_key):
                return known
            self.store.add_student(student)
            now, tag = time.time(), self._next_tag(student, Stage.VERDICT)
            for old in self._replaced_by(student, now, Stage.VERDICT, sys.maxsize):
                (tag,) = self.store.execute(
                    "SELECT verdict_tag FROM judge_uploads WHERE number = ?", (old.number,)
                ).fetchone()
                self._set(old.number, state=Step.REPLACED, note="A newer submission took its place in the queue.")
            (number,) = self.store.execute(
                "INSERT INTO judge_uploads (id, repeat_key, assignment, student, received, stage, state, verdict_tag) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
                (secrets.token_hex(8), self._key(repeat_key), self.assignment, student, now, "verdict", "waiting", tag),
            ).fetchone()
            for name, content in files:
                row = (number, name, zlib.compress(content))
                self.store.execute("INSERT INTO judge_files VALUES (?, ?, ?)", row)
        return self._rows("number = ?", number)[0]

    def repeated(self, student: str, repeat_key: str) -> Upload | None:
        """The upload that a student made with this key, if any."""
        return next(iter(self._rows("student = ? AND repeat_key = ?", student, self._key(repeat_key))), None)

    def _key(self, repeat_key: str) -> str:
        """A key as it is stored: it stands for one upload of one assignment."""
        return f"{self.assignment}:{repeat_key or secrets.token_hex(8)}"

    def _replaced_by(self, student: str, received: float, stage: Stage, number: int) -> list[Upload]:
        """What waits of a student and gives way to the submission of this number, received then: what came before it
        (clocks may be set back, numbers are not), and costs no less for being late, or the last one before the deadline
        would never be graded."""
        (_, penalty), earlier = self.late(student, received), "student = ? AND state = 'waiting' AND number < ?"
        waiting = self._rows(f"{earlier} AND stage = ?", student, number, stage)
        return [old for old in waiting if self.late(student, old.received)[1] >= penalty]

    def received_since(self, student: str, moment: float) -> list[float]:
        """When the student's uploads since `moment` were received, oldest first."""
        return sorted(row.received for row in self._rows("student = ? AND received > ?", student, moment))

    def _next_tag(self, student: str, stage: Stage) -> float:
        """The fair tag of a student's next submission: see `fairness`."""
        expected = self.typical_s(stage)
        (last,) = self.store.execute(
            f"SELECT max({stage}_tag + coalesce({stage}_s, ?)) FROM judge_uploads "
            f"WHERE student = ? AND ({stage}_s IS NOT NULL OR (stage = ? AND state = 'running'))",
            (expected, student, stage),
        ).fetchone()
        return max(self.switch(f"clock:{stage}"), last or 0.0)

    # ---- running ----

    def recover(self) -> int:
        """Put what ran when the last judge ended back into its queue. Return how many there were."""
        with self._writing():
            return self.store.execute(
                "UPDATE judge_uploads SET state = 'waiting', began = NULL, tries = max(0, tries - 1) "
                "WHERE assignment = ? AND state = 'running'",
                (self.assignment,),
            ).rowcount

    def correct_lateness(self) -> None:
        """Give every attempt the days late and the penalty of its first time: the roster or the deadline may have
        changed since."""
        query = (
            "SELECT submission, student, min(received) FROM judge_uploads WHERE assignment = ? AND submission IS NOT "
            "NULL GROUP BY submission"
        )
        with self._writing():
            for submission, student, received in self.store.execute(query, (self.assignment,)).fetchall():
                self.store.execute(
                    "UPDATE submissions SET days_late = ?, penalty = ? WHERE id = ?",
                    (*self.late(student, received), submission),
                )

    def places(self, stage: Stage) -> list[Place]:
        """All who wait for a stage, banned students left out."""
        query = (
            f"SELECT number, student, priority, {stage}_tag FROM judge_uploads WHERE assignment = ? AND stage = ? "
            "AND state = 'waiting' AND student NOT IN (SELECT substr(name, 8) FROM judge_switches WHERE name LIKE "
            "'banned:%')"
        )
        return [Place(*row) for row in self.store.execute(query, (self.assignment, stage))]

    def running(self, stage: Stage) -> list[Upload]:
        """What runs now."""
        return self._rows("stage = ? AND state = 'running'", stage)

    def claim(self, stage: Stage) -> Upload | None:
        """Take the next submission of a stage, which is running from now on; None where nothing may run."""
        if not self.places(stage):
            return None
        with self._writing():
            if self.switch("paused"):
                return None
            chosen = next_place(self.places(stage), frozenset(one.student for one in self.running(stage)))
            if chosen is None:
                return None
            (tries,) = self.store.execute(
                "SELECT tries FROM judge_uploads WHERE number = ?", (chosen.number,)
            ).fetchone()
            self._set(chosen.number, state=Step.RUNNING, began=time.time(), tries=tries + 1)
            if chosen.tag > self.switch(f"clock:{stage}"):
                self.set_switch(f"clock:{stage}", chosen.tag)
        return self._rows("number = ?", chosen.number)[0]

    def files(self, number: int) -> Files:
        """The files of an upload, as they came."""
        query = "SELECT name, content FROM judge_files WHERE upload = ? ORDER BY name"
        return tuple((row[0], zlib.decompress(row[1])) for row in self.store.execute(query, (number,)))

    def judged_before(self, student: str, conditions: str) -> frozenset[str]:
        """The SHA-256 of a student's submissions that have a record without a fault under these conditions."""
        query = (
            "SELECT sha256 FROM submissions AS s JOIN records AS r ON r.submission = s.id WHERE s.assignment = ? AND "
            "s.student = ? AND r.conditions = ? AND NOT r.faulted"
        )
        return frozenset(row[0] for row in self.store.execute(query, (self.assignment, student, conditions)))

    def requeue(self, upload: Upload, note: str) -> None:
        """Give a submission that a fault of the machine spoilt another try, at its old place."""
        with self._writing():
            self._set(upload.number, state=Step.WAITING, began=None, note=note)

    def finish(
        self,
        upload: Upload,
        hand_in: HandIn | None,
        result: tuple[str, Record] | None,
        *,
        state: Step = Step.DONE,
        then_timing: bool = False,
        note: str = "",
    ) -> None:
        """End a running submission's stage: store the attempt and its record (with its conditions), and move on, all in
        one transaction. A submission that is not running any more stays as it is."""
        now = time.time()
        with self._writing():
            if not self._rows("number = ? AND state = 'running'", upload.number):
                return
            changes: dict[str, object] = {"note": note, "began": None, f"{upload.stage}_s": now - (upload.began or now)}
            if hand_in is not None:
                changes["submission"] = self.store.import_submission(hand_in)
                if result is not None:
                    self.store.add_record(int(str(changes["submission"])), *result)
            if upload.stage is Stage.VERDICT:
                changes["first_at"] = now
            if then_timing:
                for old in self._replaced_by(upload.student, upload.received, Stage.TIMING, upload.number):
                    self._set(old.number, state=Step.REPLACED, note="A newer submission is timed in its place.")
                changes |= {"stage": Stage.TIMING, "state": Step.WAITING, "tries": 0}
                changes["timing_tag"] = self._next_tag(upload.student, Stage.TIMING)
            else:
                changes |= {"state": state, "again": 0}
            self._set(upload.number, **changes)

    def _set(self, number: int, **changes: object) -> None:
        names = ", ".join(f"{name} = ?" for name in changes)
        self.store.execute(f"UPDATE judge_uploads SET {names} WHERE number = ?", (*changes.values(), number))

    # ---- looking ----

    def upload(self, id: str) -> Upload | None:
        """The upload that has this id in URLs."""
        return next(iter(self._rows("id = ?", id)), None)

    def of_student(self, student: str) -> list[Upload]:
        """A student's uploads, newest first."""
        return self._rows("student = ? ORDER BY number DESC", student)

    def stamp(self, upload: Upload) -> object:
        """A value that is another one after every change to what the page of an upload's attempt shows."""
        query = (
            "SELECT penalty, days_late, (SELECT max(r.id) FROM records AS r JOIN submissions AS s ON submission = s.id "
            "WHERE s.assignment = ?1 AND s.student = ?2), (SELECT group_concat(json_array(part, points, comment)) FROM "
            "manual_points WHERE assignment = ?1 AND student = ?2) FROM submissions WHERE id = ?3"
        )
        return self.store.execute(query, (self.assignment, upload.student, upload.submission)).fetchone()

    def unsettled(self) -> list[Upload]:
        """What waits or runs, oldest first."""
        return self._rows("state IN ('waiting', 'running') ORDER BY number")

    def failed(self) -> list[Upload]:
        """What no lane could judge."""
        return self._rows("state = 'failed' ORDER BY number")

    def counts(self) -> dict[tuple[str, str], int]:
        """How many uploads there are, by stage and state."""
        query = "SELECT stage, state, count(*) FROM judge_uploads WHERE assignment = ? GROUP BY 1, 2"
        return {(row[0], row[1]): row[2] for row in self.store.execute(query, (self.assignment,))}

    def typical_s(self, stage: Stage) -> float:
        """What a run of a stage takes, by the latest ones."""
        query = f"SELECT {stage}_s FROM judge_uploads WHERE {stage}_s > 0 ORDER BY number DESC LIMIT {_MEASURED}"
        return typical_s([row[0] for row in self.store.execute(query)], _GUESS_S[stage])

    # ---- the staff's hand ----

    def switch(self, name: str) -> float:
        """A switch's value; 0 where it was never set."""
        row = self.store.execute("SELECT value FROM judge_switches WHERE name = ?", (name,)).fetchone()
        return float(row[0]) if row else 0.0

    def set_switch(self, name: str, value: float) -> None:
        """Set `paused`, `draining` or a `banned:ID`."""
        with self._writing():
            self.store.execute("INSERT OR REPLACE INTO judge_switches VALUES (?, ?)", (name, value))
            if not value:
                self.store.execute("DELETE FROM judge_switches WHERE name = ?", (name,))

    def banned(self) -> list[str]:
        """Students whose submissions are refused."""
        query = "SELECT substr(name, 8) FROM judge_switches WHERE name LIKE 'banned:%' ORDER BY 1"
        return [row[0] for row in self.store.execute(query)]

    def rerun(self, upload: Upload) -> None:
        """Queue a settled submission again, even if the same files were judged before. Raises UsageError."""
        if not upload.settled:
            raise UsageError(f"{upload.id} waits or runs already: wait until it is done.")
        with self._writing():
            tag = self._next_tag(upload.student, Stage.VERDICT)
            self._set(
                upload.number, stage=Stage.VERDICT, state=Step.WAITING, again=1, tries=0, note="", verdict_tag=tag
            )

    def prioritise(self, upload: Upload, priority: int) -> None:
        """Move a submission before (above 0) or behind (below 0) all others."""
        with self._writing():
            self._set(upload.number, priority=priority)

    def withdraw(self, upload: Upload) -> None:
        """Take a submission out of the queue. Raises UsageError for one that does not wait."""
        with self._writing():
            if not self._rows("number = ? AND state = 'waiting'", upload.number):
                raise UsageError(f"{upload.id} is {upload.state}: only a submission that waits can be withdrawn.")
            self._set(upload.number, state=Step.WITHDRAWN, note="Withdrawn.")
