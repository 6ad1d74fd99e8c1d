"""The routes of the staff: the queue, a student, actions, the gradebook, metrics."""

from __future__ import annotations

import secrets
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, RedirectResponse
from pydantic import ValidationError

from grader.classes.final_points import absent, gradebook, students_only
from grader.judge import history
from grader.judge.answers import Queue, queue_state, status_of
from grader.judge.forms import fields_of
from grader.judge.ledger import Ledger
from grader.judge.metrics import metrics_text
from grader.judge.negotiation import AnswerForm, Before, Staff, drawn, form_of, judge_of
from grader.judge.staff_actions import Action
from grader.report import gradebook as gradebooks

api, page = APIRouter(), APIRouter(include_in_schema=False)
_SAID = 100


@page.get("/staff")
@api.get("/api/v1/staff/queue", response_model=Queue)
async def queue(request: Request, who: Staff, said: str = "") -> Any:
    """The waiting and the running submissions, the lanes, and any problems."""
    judge = judge_of(request)
    as_json = form_of(request) is AnswerForm.JSON

    def found(ledger: Ledger) -> dict[str, Any]:
        uploads, failed, concerns = ledger.unsettled(), ledger.failed(), judge.concerns(ledger)
        state = queue_state(judge, ledger)
        if as_json:
            return {
                **state,
                "uploads": [status_of(judge, ledger, upload) for upload in uploads],
                "failed": [status_of(judge, ledger, upload) for upload in failed],
                "attention": {why: [one.student.id for one in group] for why, group in concerns},
            }
        return {
            **state,
            "uploads": uploads,
            "failed": failed,
            "concerns": concerns,
            "names": ledger.names(),
            "line": judge.line_of(ledger),
        }

    state = await judge.read(who, found)
    if as_json:
        return state
    shown = {"said": judge.said.get(said, ""), "live": judge.foreman.live, "outdated": judge.outdated()}
    return drawn(request, "staff", who=who, **shown, **state)


@page.get("/staff/students/{student}")
@api.get("/api/v1/staff/students/{student}", response_model=dict[str, Any])
async def student(request: Request, student: str, who: Staff, before: Before = "") -> Any:
    """A page of a student's submissions, newest first, and every number of its latest result traced back to its
    inputs."""
    judge = judge_of(request)
    page, explained = await history.explained(judge, who, student, before)
    if form_of(request) is AnswerForm.JSON:
        return {"submissions": await judge.read(who, history.statuses, judge, page), "explained": explained}
    name = (await judge.read(who, Ledger.names)).get(student, "")
    return judge.page(
        request, "student_of_staff.html.j2", student=student, name=name, who=who, page=page, explained=explained
    )


@api.post("/api/v1/staff/actions")
async def action(request: Request, asked: Action, who: Staff) -> dict[str, str]:
    """Do an action: pause, resume, drain, accept, regrade, rerun, priority, withdraw, ban or unban."""
    return {"said": await judge_of(request).do(asked)}


@page.post("/staff/actions")
async def action_of_form(request: Request, who: Staff) -> Response:
    """The same, from the form of a page: browsers' forms send no JSON."""
    try:
        asked = Action.model_validate(await fields_of(request))
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error
    key, said = secrets.token_urlsafe(6), judge_of(request).said
    said[key] = await judge_of(request).do(asked)
    if len(said) > _SAID:
        del said[next(iter(said))]
    return RedirectResponse(f"/staff?said={key}", 303)


@api.get("/api/v1/staff/gradebook.csv")
async def gradebook_csv(request: Request, who: Staff) -> Response:
    """The gradebook, as `grader gradebook --partial` prints it."""
    judge = judge_of(request)

    def text(ledger: Ledger) -> str:
        lines = students_only(gradebook(ledger.store, judge.rules.name, judge.which))
        missing = absent(ledger.store, judge.rules.name)
        return gradebooks.render(lines, "csv", title=judge.rules.title, columns=(), partial=True, absent=missing)

    return Response(await judge.read(who, text), media_type="text/csv")


@api.get("/metrics")
async def metrics(request: Request, who: Staff) -> PlainTextResponse:
    """Metrics for Prometheus; the request must carry the staff's token."""
    judge = judge_of(request)
    return PlainTextResponse(await judge.read(who, lambda ledger: metrics_text(judge, ledger)))
