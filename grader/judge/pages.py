"""The pages: login, a student's submissions, the board (also for a projector), the staff's page. Each live part of a
page has its own address, ending in /part, which the page's script requests again after an event."""

from __future__ import annotations

import secrets
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup
from pydantic import ValidationError

from grader.classes.batch.late import due_of
from grader.classes.batch.roster import Student
from grader.judge import history, predictions
from grader.judge.admission import files_of
from grader.judge.answers import queue_state
from grader.judge.api import Anyone, Before, Id, Known, Staff, judge_of
from grader.judge.forms import fields_of
from grader.judge.headers import COOKIE
from grader.judge.ledger import Ledger, Upload
from grader.judge.office import Judge, own
from grader.judge.prepared import Prepared, prepared
from grader.judge.problems import Problem
from grader.judge.staff_actions import Action
from grader.judge.tokens import Person
from grader.site.record_page import asset

router = APIRouter(include_in_schema=False)
_TYPES = {"css": "text/css", "js": "text/javascript"}


def _static(name: str) -> Prepared:
    ours = name.startswith("judge")
    text = (files("grader.judge") / "templates" / name).read_text("utf-8") if ours else asset(name)
    return prepared(text, _TYPES[name.rpartition(".")[2]])


_ASSETS = {name: _static(name) for name in ("style.css", "site.js", "judge.css", "judge.js")}
_COOKIE_S = 120 * 86_400
_SAID = 100


@router.get("/static/{name}")
async def static(request: Request, name: str) -> Response:
    if name not in _ASSETS:
        raise Problem(404, "There is no such file.")
    return _ASSETS[name].answer(request, "max-age=300")


# ---- login ----


@router.get("/login")
async def login_page(request: Request, who: Anyone) -> HTMLResponse:
    now = "" if who is None else who.student or "staff"
    return judge_of(request).page(request, "login.html.j2", wrong=False, now=now)


@router.post("/login")
async def login(request: Request) -> Response:
    judge, token = judge_of(request), (await fields_of(request)).get("token", "").strip()
    who = await judge.person(token)
    if who is None:
        return judge.page(request, "login.html.j2", status=401, wrong=True, now="")
    answer = RedirectResponse("/staff" if who.is_staff else "/", 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, token, max_age=_COOKIE_S, httponly=True, samesite="strict", secure=secure)
    return answer


@router.post("/logout")
async def logout() -> Response:
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE)
    return answer


# ---- a student ----


@router.get("/")
async def home(request: Request, who: Anyone, before: Before = "") -> Response:
    if who is None:
        return RedirectResponse("/login", 303)
    return judge_of(request).page(request, "home.html.j2", **await _uploads(request, who, before))


@router.get("/uploads/part")
async def home_part(request: Request, who: Known, before: Before = "") -> Response:
    return judge_of(request).page(request, "uploads.part.j2", **await _uploads(request, who, before))


async def _uploads(request: Request, who: Person, before: str) -> dict[str, Any]:
    judge = judge_of(request)
    page = await history.page_of(judge, who, who.submits_as, before)

    def found(ledger: Ledger) -> dict[str, Any]:
        return {
            "who": who,
            "page": page,
            "before": before,
            "line": judge.line_of(ledger),
            "live": judge.foreman.live,
            "deadline": due_of(judge.rules.deadline, judge.roster.get(who.student) or Student(who.student)),
            "draining": bool(ledger.switch("draining")),
            "paused": bool(ledger.switch("paused")),
            "most_bytes": judge.rules.judge.max_upload_bytes,
        }

    return await judge.read(who, found)


@router.post("/submissions")
async def submit(request: Request, who: Known) -> Response:
    judge = judge_of(request)
    upload = await judge.receive(who, lambda: files_of(request, judge.rules), "")
    return RedirectResponse(f"/submissions/{upload.id}", 303)


@router.get("/submissions/{id}")
async def submission(request: Request, id: Id, who: Known) -> Response:
    return await _submission(request, "submission.html.j2", id, who)


@router.post("/submissions/{id}/withdraw")
async def withdraw(request: Request, id: Id, who: Known) -> Response:
    await judge_of(request).withdraw(id, who)
    return RedirectResponse(f"/submissions/{id}", 303)


@router.get("/submissions/{id}/part")
async def submission_part(request: Request, id: Id, who: Known) -> Response:
    return await _submission(request, "submission.part.j2", id, who)


async def _submission(request: Request, template: str, id: str, who: Person) -> Response:
    judge = judge_of(request)

    def found(ledger: Ledger) -> dict[str, Any]:
        upload = own(ledger, id, who)
        return {
            "upload": upload,
            "before": ledger.previous(upload),
            "place": judge.line_of(ledger).get(upload.number),
            "stamp": ledger.stamp(upload),
            "predicted": predictions.shown(ledger, upload),
        }

    shown = await judge.read(who, found)
    upload, stamp = shown["upload"], shown.pop("stamp")
    report = await judge.report(who, upload, stamp) if upload.submission is not None else ""
    live = judge.foreman.live.get(upload.id)
    return judge.page(request, template, live=live, who=who, report=report, **shown)


@router.get("/submissions/{id}/since/{before}")
async def difference(request: Request, id: Id, before: Id, who: Known) -> Response:
    """The differences between two submissions, in their sources and in the numbers of their records."""
    judge = judge_of(request)

    def found(ledger: Ledger) -> tuple[Upload, Upload]:
        old, new = own(ledger, before, who), own(ledger, id, who)
        if new.student != old.student:
            raise Problem(404, "These submissions belong to two students: choose two of the same student.")
        return old, new

    old, new = await judge.read(who, found)
    drawn = await judge.difference(who, old, new)
    return judge.page(request, "difference.html.j2", old=old, new=new, who=who, drawn=drawn)


# ---- the board ----


@router.get("/board")
async def board(request: Request, who: Anyone) -> Response:
    return _board(request, "board.html.j2", who)


@router.get("/beamer")
async def beamer(request: Request, who: Anyone) -> Response:
    return _board(request, "beamer.html.j2", who)


@router.get("/board/part")
async def board_part(request: Request) -> Response:
    return judge_of(request).standings.shown.as_html.answer(request, "no-cache")


def _board(request: Request, template: str, who: Person | None) -> HTMLResponse:
    judge = judge_of(request)
    return judge.page(request, template, who=who, board=Markup(judge.standings.shown.as_html.plain.decode()))


# ---- the staff ----


@router.get("/staff")
async def staff_page(request: Request, who: Staff, said: str = "") -> Response:
    judge = judge_of(request)
    return judge.page(request, "staff.html.j2", said=judge.said.get(said, ""), **await _staff(judge, who))


@router.get("/staff/part")
async def staff_part(request: Request, who: Staff) -> Response:
    return judge_of(request).page(request, "staff.part.j2", **await _staff(judge_of(request), who))


async def _staff(judge: Judge, who: Person) -> dict[str, Any]:
    def found(ledger: Ledger) -> dict[str, Any]:
        return {
            "who": who,
            "names": ledger.names(),
            "live": judge.foreman.live,
            "uploads": ledger.unsettled(),
            "failed": ledger.failed(),
            "line": judge.line_of(ledger),
            "concerns": judge.concerns(ledger),
            "outdated": judge.outdated(),
            **queue_state(judge, ledger),
        }

    return await judge.read(who, found)


@router.post("/staff/actions")
async def staff_action(request: Request, who: Staff) -> Response:
    try:
        asked = Action.model_validate(await fields_of(request))
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error
    key, said = secrets.token_urlsafe(6), judge_of(request).said
    said[key] = await judge_of(request).do(asked)
    if len(said) > _SAID:
        del said[next(iter(said))]
    return RedirectResponse(f"/staff?said={key}", 303)


@router.get("/staff/students/{student}")
async def complaint(request: Request, student: str, who: Staff, before: Before = "") -> Response:
    """A page of a student's uploads, and every number of its latest record traced back to its inputs."""
    judge = judge_of(request)
    page, explained = await history.explained(judge, who, student, before)
    name = (await judge.read(who, Ledger.names)).get(student, "")
    return judge.page(
        request, "student_of_staff.html.j2", student=student, name=name, who=who, page=page, explained=explained
    )
