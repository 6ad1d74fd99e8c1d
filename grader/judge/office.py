"""The object that the judge's routes call: it owns the store's thread, the foreman, the standings and the hub."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
from fastapi import Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from grader.classes.attention import Concern, Why, by_reason, needs_attention
from grader.classes.batch.policy import Which
from grader.classes.batch.roster import Student, enter_roster
from grader.classes.batch.view import duration
from grader.classes.comparable import mixed
from grader.classes.final_points import Line, absent, days_words, standing
from grader.course.assignment import Assignment
from grader.judge.fairness import in_order, waits
from grader.judge.foreman import Foreman
from grader.judge.guard import Traffic
from grader.judge.hub import Hub
from grader.judge.lanes import Lane
from grader.judge.ledger import Files, Late, Ledger, Stage, Upload
from grader.judge.problems import Problem
from grader.judge.standings import Standings
from grader.judge.store_thread import StoreThread
from grader.judge.tokens import Person, person_of, valid_labels
from grader.report.leaderboard import Board
from grader.site.class_site import shown_board
from grader.site.record_page import environment, report_of

_HOUR_S = 3600.0
_LAST_S = 15.0
_LINE_S = 0.5
_KNOWN_S = 1.0
_REPORTS = 100
"""The number of rendered reports kept in memory; each may take 200 kB."""
_UPLOADS_AT_ONCE, _OF_ONE_STUDENT = 32, 2


class Judge:
    """Everything behind the routes of one judge."""

    def __init__(
        self,
        store: Path,
        rules: Assignment,
        lanes: Sequence[Lane],
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
        sites = environment()
        assert sites.loader is not None
        self._pages = sites.overlay(loader=jinja2.ChoiceLoader([jinja2.PackageLoader("grader.judge"), sites.loader]))
        self._pages.filters["clock"] = lambda seconds: datetime.fromtimestamp(seconds, UTC).strftime("%m-%d %H:%M:%S")
        self._pages.filters["wait"], self._pages.filters["days"] = duration, days_words
        self._reports: OrderedDict[object, Markup] = OrderedDict()
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
        upload = await self.ask(self._take, who, files, key)
        self.foreman.ring()
        self.hub.publish(
            {"kind": "upload", "id": upload.id, "student": student, "state": "waiting", "stage": "verdict"}
        )
        return upload

    def _take(self, ledger: Ledger, who: Person, files: Files, key: str) -> Upload:
        """Store an upload. It can still be refused here, since a ban may have come while its files arrived."""
        self._refuse(ledger, who, key)
        known = ledger.repeated(who.submits_as, key) if key else None
        if known and dict(files) != dict(ledger.files(known.number)):
            raise Problem(409, f"Submission {known.id} has this Idempotency-Key and other files: send a new key.")
        return ledger.receive(who.submits_as, files, key)

    def _refuse(self, ledger: Ledger, who: Person, key: str) -> None:
        """Raise Problem if the student may not submit now. A repeated upload (a known key) is always accepted."""
        if key and ledger.repeated(who.submits_as, key):
            return
        if ledger.switch("draining"):
            raise Problem(503, "The judge takes no submissions now: try again later.", {"retry-after": "60"})
        if ledger.switch(f"banned:{who.submits_as}"):
            raise Problem(403, "The staff has stopped your submissions: talk to them.")
        recent = [] if who.is_staff else ledger.received_within(who.submits_as, _HOUR_S)
        most = self.rules.judge.per_hour
        if len(recent) >= most:
            wait_s = int(recent[-most] + _HOUR_S - time.time()) + 1
            said = f"You submitted {len(recent)} times within an hour, and the limit is {most}"
            raise Problem(429, f"{said}: wait {duration(wait_s)}.", {"retry-after": str(wait_s)})

    # ---- reading ----

    def line_of(self, ledger: Ledger, including: int | None = None) -> dict[int, tuple[int, float | None]]:
        """The place in the queue and the predicted wait in seconds of every waiting upload, by number. An answer
        is reused for half a second, unless upload number `including` is missing from it."""
        if time.monotonic() - self._line_at < _LINE_S and (including is None or including in self._line):
            return self._line
        found: dict[int, tuple[int, float | None]] = {}
        for stage in Stage:
            places, typical = ledger.places(stage), ledger.typical_s(stage)
            lanes = [] if ledger.switch("paused") else self.foreman.free_after(stage, typical)
            predicted = waits(places, lanes, typical)
            for place, waiting in enumerate(in_order(places), start=1):
                found[waiting.number] = place, predicted.get(waiting.number)
        self._line_at, self._line = time.monotonic(), found
        return found

    def concerns(self, ledger: Ledger) -> list[tuple[Why, list[Concern]]]:
        """The students who need the staff's attention, by reason."""
        return by_reason(needs_attention(list(self.standings.lines.values()), absent(ledger.store, self.rules.name)))

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
        """A page from a template."""
        return HTMLResponse(self._drawn(template, status=status, **values), status, headers)

    async def report(self, student: str, attempt: int, stamp: object) -> Markup:
        """The report of an attempt as HTML, rendered again when `stamp` (see `Ledger.stamp`) changes. Rendering has its
        own thread: content that takes long would otherwise block the event loop or the store for everybody."""
        key = attempt, stamp
        if (kept := self._reports.get(key)) is not None:
            return kept
        line, sources = await self.ask(_graded, student, attempt)
        drawn = self._reports[key] = await asyncio.to_thread(self._drawn_report, line, sources)
        while len(self._reports) > _REPORTS:
            self._reports.popitem(last=False)
        return drawn

    def _drawn_report(self, line: Line | None, sources: Files) -> Markup:
        if line is None:
            return Markup()
        return Markup(self._drawn("report.part.j2", report=report_of(line.attempt.record, sources, line)))

    def _drawn_board(self, board: Board | None, why_empty: str) -> str:
        return self._drawn("board.part.j2", board=shown_board(board), why_empty=why_empty)

    def _drawn(self, template: str, **values: Any) -> str:
        return self._pages.get_template(template).render(
            root="/static", title=self.rules.title, main=self.rules.submission.main, **values
        )


def _graded(ledger: Ledger, student: str, attempt: int) -> tuple[Line | None, Files]:
    """An attempt's line of the gradebook (None if it is not graded) and its files."""
    entered = ledger.store.points(ledger.assignment).get(student, {})
    attempts = ledger.store.attempts(ledger.assignment, student, only=attempt)
    return next((standing(one, entered) for one in attempts), None), ledger.store.sources(attempt)


def _enter(ledger: Ledger, roster: dict[str, Student], late: Late) -> None:
    """Prepare the store at the start: put running submissions back into their queue, enter the roster, and update
    lateness."""
    ledger.late = late
    ledger.correct_lateness()
    ledger.recover()
    enter_roster(ledger.store, roster)
