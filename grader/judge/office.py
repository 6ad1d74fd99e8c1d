"""The judge as the routes see it: the store's thread, the foreman, the standings and the hub."""

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
from grader.classes.batch.roster import Student
from grader.classes.final_points import Line, absent, standing
from grader.course.assignment import Assignment
from grader.judge.fairness import in_order, waits
from grader.judge.foreman import Event, Foreman
from grader.judge.guard import Traffic
from grader.judge.hub import Hub
from grader.judge.lanes import Lane
from grader.judge.ledger import Files, Late, Ledger, Stage, Step, Upload
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
"""Drawn reports in memory: each may take 200 kB."""
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
        """Valid tokens' digests, whose they are, and until when that is not looked up again."""
        self._uploading: dict[str, int] = {}
        self.said: dict[str, str] = {}
        """What came of the staff's last actions: an address holds a key, so that no link can make a page say things."""
        self._line: dict[int, tuple[int, float | None]] = {}
        self._line_at = -_LINE_S
        sites = environment()
        assert sites.loader is not None
        self._pages = sites.overlay(loader=jinja2.ChoiceLoader([jinja2.PackageLoader("grader.judge"), sites.loader]))
        self._pages.filters["clock"] = lambda seconds: datetime.fromtimestamp(seconds, UTC).strftime("%m-%d %H:%M:%S")
        self._pages.filters["wait"] = ago
        self._reports: OrderedDict[object, Markup] = OrderedDict()
        self.standings = Standings(
            self._books, rules, which, self._drawn_board, lambda: self.hub.publish({"kind": "board"})
        )
        self.foreman = Foreman(
            self._books, lanes, self.roster, self.hub.publish, self.standings.look, self.standings.candidate
        )

    def open(self) -> None:
        """Start the threads; call it in the event loop."""
        self.hub.open(lambda: self.ask(lambda ledger: valid_labels(ledger.store)))
        self._books.call(_enter, self.roster, self.foreman.late)
        self.standings.start()
        self.foreman.start()

    def close(self) -> None:
        """End the threads; what runs is put back by the next start."""
        self.hub.close()
        self.foreman.stop()
        self.standings.stop()
        self.foreman.join(_LAST_S)
        self.standings.join(_LAST_S)
        self._books.close()

    async def person(self, token: str) -> Person | None:
        """Who has this token, or had it a second ago: most requests come from people who were just here."""
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
        """Take an upload, whose files `read` reads. Raises Problem when it is refused."""
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
        """Store an upload, unless it was refused since it began to arrive."""
        self._refuse(ledger, who, key)
        known = ledger.repeated(who.submits_as, key) if key else None
        if known and dict(files) != dict(ledger.files(known.number)):
            raise Problem(409, f"Submission {known.id} has this Idempotency-Key and other files: send a new key.")
        return ledger.receive(who.submits_as, files, key)

    def _refuse(self, ledger: Ledger, who: Person, key: str) -> None:
        """Raise Problem if this student's upload is not taken now. One that was taken before is found again."""
        if key and ledger.repeated(who.submits_as, key):
            return
        if ledger.switch("draining"):
            raise Problem(503, "The judge takes no submissions now: it finishes what it has.", {"retry-after": "60"})
        if ledger.switch(f"banned:{who.submits_as}"):
            raise Problem(403, "The staff has stopped your submissions: talk to them.")
        recent = [] if who.is_staff else ledger.received_since(who.submits_as, time.time() - _HOUR_S)
        most = self.rules.judge.per_hour
        if len(recent) >= most:
            wait_s = int(recent[-most] + _HOUR_S - time.time()) + 1
            said = f"You submitted {len(recent)} times within an hour, and the limit is {most}"
            raise Problem(429, f"{said}: wait {ago(wait_s)}.", {"retry-after": str(wait_s)})

    # ---- looking ----

    def line_of(self, ledger: Ledger, holds: int | None = None) -> dict[int, tuple[int, float | None]]:
        """The place in line and the predicted wait in seconds of everything that waits, by number. It is up to half a
        second old, unless it would then lack the one that it must hold."""
        if time.monotonic() - self._line_at < _LINE_S and (holds is None or holds in self._line):
            return self._line
        found: dict[int, tuple[int, float | None]] = {}
        for stage in Stage:
            places, typical = ledger.places(stage), ledger.typical_s(stage)
            predicted = waits(places, self.foreman.free_after(stage, typical), typical)
            for place, waiting in enumerate(in_order(places), start=1):
                found[waiting.number] = place, predicted.get(waiting.number)
        self._line_at, self._line = time.monotonic(), found
        return found

    def status(
        self, ledger: Ledger, upload: Upload, *, in_line: tuple[int, float | None] | None = None
    ) -> dict[str, Any]:
        """What the API says of an upload; docs/judge.md lists the keys."""
        result = ledger.results.of(upload.submission)
        if in_line is None and upload.state is Step.WAITING:
            in_line = self.line_of(ledger, upload.number).get(upload.number)
        place, wait_s = in_line or (None, None)
        live = self.foreman.live.get(upload.id)
        return {
            "id": upload.id,
            "student": upload.student,
            "received": datetime.fromtimestamp(upload.received, UTC).isoformat(timespec="seconds"),
            "stage": str(upload.stage),
            "state": str(upload.state),
            "place": place,
            "predicted_wait_s": None if wait_s is None else round(wait_s, 1),
            "note": upload.note,
            "running": None if live is None else {"stage": live.stage, "total": live.total, "tests": dict(live.tests)},
            "tests": result.tests if result else (),
            "scores": result and result.scores,
            "practice": result and result.practice,
            "url": f"/submissions/{upload.id}",
        }

    def concerns(self, ledger: Ledger) -> list[tuple[Why, list[Concern]]]:
        """Who needs the staff's attention, by reason."""
        return by_reason(needs_attention(list(self.standings.lines.values()), absent(ledger.store, self.rules.name)))

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
        """The report of an attempt as HTML, which is drawn again when `stamp` (see `Ledger.stamp`) differs. It is drawn
        outside the event loop and the store's thread, which everybody needs: students write what is in it."""
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
    """An attempt's line of the gradebook, None if it is not graded, and its files."""
    entered = ledger.store.points(ledger.assignment).get(student, {})
    attempts = ledger.store.attempts(ledger.assignment, student, only=attempt)
    return next((standing(one, entered) for one in attempts), None), ledger.store.sources(attempt)


def _enter(ledger: Ledger, roster: dict[str, Student], late: Late) -> None:
    """What a start does to the store: what ran is waiting again, the roster is known, and lateness follows it."""
    ledger.late = late
    ledger.correct_lateness()
    ledger.recover()
    for student in roster.values():
        ledger.store.add_student(
            student.id,
            name=student.name,
            nickname=student.nickname,
            section=student.section,
            email=student.email,
            enrolled=True,
        )


def ago(seconds: float) -> str:
    """A span of time in words: 40 s, 12 min, 3 h."""
    if seconds < 100:
        return f"{max(0.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"


def lane_of(lane: Lane) -> Event:
    """A lane for the staff's page and the metrics."""
    return {
        "name": lane.name,
        "stage": str(lane.stage),
        "upload": lane.upload.id if lane.upload else "",
        "student": lane.upload.student if lane.upload else "",
        "rechecking": lane.rechecking.student.id if lane.rechecking else "",
        "since": lane.began if lane.upload else None,
        "busy_s": lane.busy_s,
        "finished": lane.finished,
        "resting": lane.rests_until > time.time(),
        "last_fault": lane.last_fault,
    }
