"""The object that the judge's routes call: it owns the store's thread, the foreman, the standings and the hub."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from grader.classes.attention import Concern, Why, by_reason, needs_attention
from grader.classes.batch.policy import Which
from grader.classes.batch.roster import Student, enter_roster
from grader.classes.batch.view import duration
from grader.classes.comparable import mixed
from grader.classes.final_points import Line, absent, standing
from grader.course.assignment import Assignment
from grader.judge.budget import Budgets, Drawings
from grader.judge.drawing import drawn_difference, drawn_report, pages
from grader.judge.fairness import in_order, waits
from grader.judge.foreman import Foreman
from grader.judge.guard import Traffic
from grader.judge.hub import Hub
from grader.judge.lanes import StageLane
from grader.judge.ledger import Late, Ledger, Stage, Upload, digest_of
from grader.judge.predictions import far_off
from grader.judge.problems import Problem
from grader.judge.staff_actions import Action, act
from grader.judge.standings import Standings
from grader.judge.store_thread import StoreThread
from grader.judge.tokens import Person, person_of, valid_labels
from grader.records.record import Record
from grader.report.leaderboard import Board
from grader.site.class_site import shown_board
from grader.store import Compressed, Files, compressed

_LAST_S = 15.0
_LINE_S = 0.5
_KNOWN_S = 1.0
_UPLOADS_AT_ONCE, _OF_ONE_STUDENT = 32, 2


class Judge:
    """Everything behind the routes of one judge."""

    def __init__(
        self,
        store: Path,
        rules: Assignment,
        lanes: Sequence[StageLane],
        *,
        roster: dict[str, Student] | None = None,
        which: Which = Which.LATEST,
    ) -> None:
        self.rules, self.roster, self.which = rules, roster or {}, which
        self.hub, self.traffic = Hub(), Traffic()
        self._books = StoreThread(store, rules.name)
        self.ask = self._books.ask
        self._known: dict[bytes, tuple[Person, float]] = {}
        """By the digest of each valid token: its person, and the time until which the store need not be asked again."""
        self._uploading: dict[str, int] = {}
        self.said: dict[str, str] = {}
        """The results of the staff's last actions, by key. A page's address holds only the key, so that a forged
        link cannot put a sentence on a page."""
        self._line: dict[int, tuple[int, float | None]] = {}
        self._line_at = -_LINE_S
        self.budgets = Budgets(self._books)
        self.read = self.budgets.read
        self.drawings = Drawings(self.budgets)
        self.standings = Standings(
            self._books, rules, which, self._drawn_board, lambda: self.hub.publish({"kind": "board"})
        )
        self.foreman = Foreman(
            self._books, lanes, self.roster, self.hub.publish, self.standings.look, self.standings.next_due
        )

    def open(self) -> None:
        """Start the threads; call it in the event loop."""
        self.hub.open(lambda: self.ask(lambda ledger: valid_labels(ledger.store)))
        self._books.call(_enter, self.roster, self.foreman.late)
        self.standings.start()
        self.foreman.start()

    def close(self) -> None:
        """End the threads; the next start puts running submissions back into their queue."""
        self.hub.close()
        self.foreman.stop()
        self.standings.stop()
        self.foreman.join(_LAST_S)
        self.standings.join(_LAST_S)
        self._books.close()

    async def person(self, token: str) -> Person | None:
        """The person to whom this token belongs, or None. A person is remembered for a second, since requests of
        one person often follow each other closely."""
        digest, now = hashlib.sha256(token.encode(errors="replace")).digest(), time.monotonic()
        person, until = self._known.get(digest, (None, 0.0))
        if now < until:
            return person
        person = await self.ask(lambda ledger: person_of(ledger.store, token))
        if person is not None:
            self._known[digest] = person, now + _KNOWN_S
        else:
            self._known.pop(digest, None)
        return person

    # ---- receiving ----

    async def receive(self, who: Person, read: Callable[[], Any], repeat_key: str) -> Upload:
        """Receive an upload; `read` returns its files. Raises Problem if it is refused."""
        student = who.submits_as
        key = f"{who.label}:{repeat_key}" if repeat_key else ""
        await self.ask(self._refuse, who, key)
        if sum(self._uploading.values()) >= _UPLOADS_AT_ONCE or self._uploading.get(student, 0) >= _OF_ONE_STUDENT:
            raise Problem(429, "Too many uploads at once: try again in a moment.", {"retry-after": "2"})
        self._uploading[student] = self._uploading.get(student, 0) + 1
        try:
            files = await read()
        finally:
            self._uploading[student] -= 1
            if not self._uploading[student]:
                del self._uploading[student]
        upload = await self.ask(self._take, who, *await asyncio.to_thread(_compressed, files), key)
        self.foreman.ring()
        self.hub.publish(
            {"kind": "upload", "id": upload.id, "student": student, "state": "waiting", "stage": "verdict"}
        )
        return upload

    def _take(self, ledger: Ledger, who: Person, files: Compressed, digest: str, key: str) -> Upload:
        """Store an upload. It can still be refused here, since a ban may have come while its files arrived."""
        self._refuse(ledger, who, key)
        known = ledger.repeated(who.submits_as, key) if key else None
        if known and known.digest not in ("", digest):
            raise Problem(409, f"Submission {known.id} has this Idempotency-Key and other files: send a new key.")
        return ledger.receive(who.submits_as, files, digest, key)

    def _refuse(self, ledger: Ledger, who: Person, key: str) -> None:
        """Raise Problem if the student may not submit now. A repeated upload (a known key) is always accepted."""
        if key and ledger.repeated(who.submits_as, key):
            return
        if ledger.switch("draining"):
            raise Problem(503, "The judge takes no submissions now: try again later.", {"retry-after": "60"})
        if ledger.switch(f"banned:{who.submits_as}"):
            raise Problem(403, "The staff has stopped your submissions: talk to them.")
        most, window_s = self.rules.judge.runs, 3600 * self.rules.judge.window_hours
        recent = [] if who.is_staff else ledger.received_within(who.submits_as, window_s)
        if most is not None and len(recent) >= most:
            wait_s = int(recent[-most] + window_s - time.time()) + 1
            said = f"You submitted {len(recent)} times within {duration(window_s)}, and the limit is {most}"
            raise Problem(429, f"{said}: wait {duration(wait_s)}.", {"retry-after": str(wait_s)})

    async def do(self, asked: Action) -> str:
        """Do an action of the staff, or a student's withdrawal, and return what was done. Raises Problem."""
        said = await self.ask(act, asked, self.outdated())
        if asked.action == "withdraw":
            self.foreman.withdrawn(asked.target)
        self.foreman.ring()
        self.hub.publish({"kind": "queue"})
        return said

    async def withdraw(self, id: str, who: Person) -> str:
        """Withdraw or stop a submission of `who`, and return what was done. Raises Problem."""

        def allowed(ledger: Ledger) -> Upload:
            upload = own(ledger, id, who)
            if upload.again and not who.is_staff:
                raise Problem(409, "The staff runs this submission again: only they can withdraw it.")
            return upload

        upload = await self.ask(allowed)
        said = await self.do(Action(action="withdraw", target=upload.id))
        self.hub.publish({"kind": "upload", "id": upload.id, "student": upload.student, "state": "withdrawn"})
        return said

    # ---- reading ----

    def line_of(self, ledger: Ledger, including: int | None = None) -> dict[int, tuple[int, float | None]]:
        """The place in the queue and the predicted wait in seconds of every waiting upload, by number. An answer
        is reused for half a second, unless upload number `including` is missing from it."""
        if time.monotonic() - self._line_at < _LINE_S and (including is None or including in self._line):
            return self._line
        found: dict[int, tuple[int, float | None]] = {}
        for stage in Stage:
            places, typical, measured = ledger.places(stage), ledger.typical_s(stage), ledger.measured_s(stage)
            lanes = [] if ledger.switch("paused") else self.foreman.free_after(stage, measured, typical)
            predicted = waits(places, lanes, typical)
            for place, waiting in enumerate(in_order(places), start=1):
                found[waiting.number] = place, predicted.get(waiting.number)
        self._line_at, self._line = time.monotonic(), found
        return found

    def concerns(self, ledger: Ledger) -> list[tuple[Why, list[Concern]]]:
        """The students who need the staff's attention, by reason."""
        lines = list(self.standings.lines.values())
        return by_reason(needs_attention(lines, absent(ledger.store, self.rules.name)) + far_off(ledger, lines))

    def notes(self) -> list[str]:
        """Reasons why results of the class cannot be compared, such as a changed rubric or another GPU."""
        return mixed(list(self.standings.lines.values()), self.rules.rules_sha256, "grade the others again")

    def outdated(self) -> list[int]:
        """The attempts that count but were graded under other rules than the current ones, by number in the store."""
        attempts = [line.attempt for line in self.standings.lines.values()]
        return [one.submission for one in attempts if one.record.assignment_sha256 != self.rules.rules_sha256]

    # ---- pages ----

    def page(
        self,
        request: Request,
        template: str,
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
        **values: Any,
    ) -> HTMLResponse:
        """A page from a template, drawn from the budget of the person who asked."""
        began = time.thread_time()
        answer = HTMLResponse(self._drawn(template, status=status, **values), status, headers)
        if person := getattr(request.state, "person", None):
            self.budgets.spend(person, time.thread_time() - began)
        return answer

    async def report(self, who: Person, upload: Upload, stamp: object) -> Markup:
        """The report of an upload's attempt as HTML, drawn again when `stamp` (see `Ledger.stamp`) changes."""

        async def drawn() -> Markup:
            line, sources = await self.ask(_graded, upload)
            if line is None:
                return Markup()
            return await self.drawings.apart(drawn_report, self.rules.submission.main, line, sources)

        return await self.drawings.get(who, ("report", upload.submission, stamp), drawn)

    async def difference(self, who: Person, old: Upload, new: Upload) -> Markup:
        """The changes between two uploads of a student as HTML."""

        def stamps(ledger: Ledger) -> tuple[object, object]:
            return ledger.stamp(old), ledger.stamp(new)

        async def drawn() -> Markup:
            return await self.drawings.apart(drawn_difference, *await self.ask(_two_sides, old, new))

        return await self.drawings.get(who, ("difference", old.id, new.id, *await self.ask(stamps)), drawn)

    def _drawn_board(self, board: Board | None, why_empty: str) -> str:
        return self._drawn("board.part.j2", board=shown_board(board), why_empty=why_empty)

    def _drawn(self, template: str, **values: Any) -> str:
        return (
            pages()
            .get_template(template)
            .render(root="/static", title=self.rules.title, main=self.rules.submission.main, **values)
        )


def own(ledger: Ledger, id: str, who: Person) -> Upload:
    """An upload that this person may see. Raises Problem 404, also for an upload of someone else."""
    upload = ledger.upload(id)
    if upload is None or not (who.is_staff or upload.student == who.submits_as):
        raise Problem(404, "You have no submission with this id.")
    return upload


def _compressed(files: Files) -> tuple[Compressed, str]:
    return compressed(files), digest_of(files)


def _graded(ledger: Ledger, upload: Upload) -> tuple[Line | None, Compressed]:
    """The line of an upload's attempt in the gradebook (None if it is not graded), and its files."""
    entered = ledger.store.points(ledger.assignment).get(upload.student, {})
    attempts = ledger.store.attempts(ledger.assignment, upload.student, only=upload.submission)
    return next((standing(one, entered) for one in attempts), None), ledger.files(upload)


def _two_sides(ledger: Ledger, old: Upload, new: Upload) -> tuple[Compressed, Compressed, list[Record]]:
    """The files of two uploads, and the records that count for them."""
    records = [ledger.store.record_that_counts(one.submission) for one in (old, new) if one.submission is not None]
    return ledger.files(old), ledger.files(new), [record for record in records if record is not None]


def _enter(ledger: Ledger, roster: dict[str, Student], late: Late) -> None:
    """Prepare the store at the start: put running submissions back into their queue, enter the roster, and update
    lateness."""
    ledger.late = late
    ledger.correct_lateness()
    ledger.recover()
    enter_roster(ledger.store, roster)
