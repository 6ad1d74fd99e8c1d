"""The routes of a person's submissions: the list, one of them, its record, and what changed since another one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import RedirectResponse

from grader.classes.batch.late import due_of
from grader.classes.batch.roster import Student
from grader.judge import history, predictions
from grader.judge.admission import files_of
from grader.judge.answers import Status, status_of
from grader.judge.ledger import PAGE, Ledger, Upload
from grader.judge.negotiation import AnswerForm, Before, Id, Known, drawn, form_of, judge_of
from grader.judge.office import own
from grader.judge.problems import Problem

api, page = APIRouter(), APIRouter(include_in_schema=False)
_FILE = {"type": "string", "format": "binary"}
_UPLOAD = {
    "parameters": [
        {
            "name": "name",
            "in": "query",
            "schema": {"type": "string"},
            "description": "The file's name, if the body is the file itself.",
        }
    ],
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {"type": "object", "properties": {"file": {"type": "array", "items": _FILE}}}
            },
            "application/octet-stream": {"schema": _FILE},
        },
    },
}


@page.post("/submissions", status_code=201)
@api.post("/api/v1/submissions", status_code=201, openapi_extra=_UPLOAD, response_model=Status)
async def submit(
    request: Request,
    response: Response,
    who: Known,
    idempotency_key: Annotated[str, Header(max_length=80)] = "",
) -> Any:
    """Submit one file, a zip or several files. 201 means that the submission is on the judge's disk. Repeating a
    request with the same Idempotency-Key makes no second submission."""
    judge = judge_of(request)
    upload = await judge.receive(who, lambda: files_of(request, judge.rules), idempotency_key)
    if form_of(request) is not AnswerForm.JSON:
        return RedirectResponse(f"/submissions/{upload.id}", 303)
    response.headers["location"] = f"/api/v1/submissions/{upload.id}"
    return await judge.ask(lambda ledger: status_of(judge, ledger, ledger.upload(upload.id) or upload))


@page.get("/")
@api.get("/api/v1/submissions", response_model=list[Status])
async def submissions(
    request: Request, who: Known, limit: Annotated[int, Query(ge=1, le=PAGE)] = PAGE, before: Before = ""
) -> Any:
    """Your own submissions, newest first: the latest ones, or those before the one with the id `before`."""
    judge = judge_of(request)
    page = await history.page_of(judge, who, who.submits_as, before, limit)

    def found(ledger: Ledger) -> dict[str, Any]:
        return {
            "line": judge.line_of(ledger),
            "draining": bool(ledger.switch("draining")),
            "paused": bool(ledger.switch("paused")),
        }

    if form_of(request) is AnswerForm.JSON:
        return await judge.read(who, history.statuses, judge, page)
    deadline = due_of(judge.rules.deadline, judge.roster.get(who.student) or Student(who.student))
    shown = {"live": judge.foreman.live, "deadline": deadline, "most_bytes": judge.rules.judge.max_upload_bytes}
    return drawn(request, "home", who=who, page=page, before=before, **shown, **await judge.read(who, found))


@page.get("/submissions/{id}")
@api.get("/api/v1/submissions/{id}", response_model=Status)
async def submission(request: Request, id: Id, who: Known) -> Any:
    """The state of a submission: its place in the queue, its tests as they end, its scores."""
    judge = judge_of(request)
    if form_of(request) is AnswerForm.JSON:
        return await judge.read(who, lambda ledger: status_of(judge, ledger, own(ledger, id, who)))

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
    return drawn(request, "submission", live=live, who=who, report=report, **shown)


@page.post("/submissions/{id}/withdraw")
@api.delete("/api/v1/submissions/{id}", response_model=dict[str, str])
async def withdraw(request: Request, id: Id, who: Known) -> Any:
    """Withdraw a submission that waits, or stop one that runs."""
    said = await judge_of(request).withdraw(id, who)
    return {"said": said} if form_of(request) is AnswerForm.JSON else RedirectResponse(f"/submissions/{id}", 303)


@api.get("/api/v1/submissions/{id}/record")
async def record(request: Request, id: Id, who: Known) -> Response:
    """The whole record of a submission, as `grader grade --json` writes it (docs/record.md)."""

    def counting(ledger: Ledger) -> str | None:
        number = own(ledger, id, who).submission
        return None if number is None else ledger.store.text_that_counts(number)  # as stored: the store has one thread

    found = await judge_of(request).read(who, counting)
    if not found:
        raise Problem(404, "This submission has no record: it is not graded yet, or was replaced or withdrawn.")
    return Response(found, media_type="application/json")


@page.get("/submissions/{id}/since/{before}")
async def difference(request: Request, id: Id, before: Id, who: Known) -> Response:
    """The differences between two submissions, in their sources and in the numbers of their records."""
    judge = judge_of(request)

    def found(ledger: Ledger) -> tuple[Upload, Upload]:
        old, new = own(ledger, before, who), own(ledger, id, who)
        if new.student != old.student:
            raise Problem(404, "These submissions belong to two students: choose two of the same student.")
        return old, new

    old, new = await judge.read(who, found)
    changes = await judge.difference(who, old, new)
    return judge.page(request, "difference.html.j2", old=old, new=new, who=who, drawn=changes)


@api.get("/api/v1/worklog.csv")
async def work_log(request: Request, who: Known) -> Response:
    """The student's own submissions with their results, as CSV."""
    text = await history.work_log(judge_of(request), who)
    return Response(text, media_type="text/csv", headers={"content-disposition": "attachment; filename=worklog.csv"})
