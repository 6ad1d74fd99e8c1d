"""The routes for API clients, below /api/v1: JSON, problem+json, server-sent events, and metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from grader.classes.final_points import absent, gradebook, students_only
from grader.judge import history
from grader.judge.admission import files_of, maybe_person, person, staff
from grader.judge.answers import Queue, Status, queue_state, status_of
from grader.judge.ledger import PAGE, Ledger
from grader.judge.metrics import metrics_text
from grader.judge.office import Judge, own
from grader.judge.problems import Problem
from grader.judge.staff_actions import Action
from grader.judge.tokens import Person
from grader.report import gradebook as gradebooks

router = APIRouter()
Id = Annotated[str, Path(pattern=r"^[\w-]{6,24}$")]
Before = Annotated[str, Query(pattern=r"^([\w-]{6,24})?$")]
"""The id of a submission, to get the page of a list that follows it."""
Anyone = Annotated[Person | None, Depends(maybe_person)]
Known = Annotated[Person, Depends(person)]
Staff = Annotated[Person, Depends(staff)]
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


def statuses(ledger: Ledger, judge: Judge, entries: Iterable[history.Entry]) -> list[Status]:
    """The statuses of a page's submissions."""
    return [status_of(judge, ledger, entry.upload) for entry in entries]


def judge_of(request: Request) -> Judge:
    """The judge that answers a request."""
    return request.app.state.judge  # type: ignore[no-any-return]


@router.post("/api/v1/submissions", status_code=201, openapi_extra=_UPLOAD)
async def submit(
    request: Request,
    response: Response,
    who: Known,
    idempotency_key: Annotated[str, Header(max_length=80)] = "",
) -> Status:
    """Submit one file, a zip or several files. 201 means that the submission is on the judge's disk. Repeating a
    request with the same Idempotency-Key makes no second submission."""
    judge = judge_of(request)
    upload = await judge.receive(who, lambda: files_of(request, judge.rules), idempotency_key)
    response.headers["location"] = f"/api/v1/submissions/{upload.id}"
    return await judge.ask(lambda ledger: status_of(judge, ledger, ledger.upload(upload.id) or upload))


@router.get("/api/v1/me")
async def me(who: Known) -> dict[str, str]:
    """Whose token the request carries."""
    return {"id": who.student or "staff"}


@router.get("/api/v1/submissions")
async def submissions(
    request: Request, who: Known, limit: Annotated[int, Query(ge=1, le=PAGE)] = PAGE, before: Before = ""
) -> list[Status]:
    """Your own submissions, newest first: the latest ones, or those before the one with the id `before`."""
    judge = judge_of(request)
    page = await history.page_of(judge, who, who.submits_as, before, limit)
    return await judge.read(who, statuses, judge, page.entries)


@router.get("/api/v1/submissions/{id}")
async def submission(request: Request, id: Id, who: Known) -> Status:
    """The state of a submission: its place in the queue, its tests as they end, its scores."""
    judge = judge_of(request)
    return await judge.read(who, lambda ledger: status_of(judge, ledger, own(ledger, id, who)))


@router.delete("/api/v1/submissions/{id}")
async def withdraw(request: Request, id: Id, who: Known) -> dict[str, str]:
    """Withdraw a submission that waits, or stop one that runs."""
    return {"said": await judge_of(request).withdraw(id, who)}


@router.get("/api/v1/submissions/{id}/record")
async def record(request: Request, id: Id, who: Known) -> Response:
    """The whole record of a submission, as `grader grade --json` writes it (docs/record.md)."""

    def counting(ledger: Ledger) -> str | None:
        number = own(ledger, id, who).submission
        return None if number is None else ledger.store.text_that_counts(number)  # as stored: the store has one thread

    found = await judge_of(request).read(who, counting)
    if not found:
        raise Problem(404, "This submission has no record: it is not graded yet, or was replaced or withdrawn.")
    return Response(found, media_type="application/json")


@router.get("/api/v1/worklog.csv")
async def work_log(request: Request, who: Known) -> Response:
    """The student's own submissions with their results, as CSV."""
    text = await history.work_log(judge_of(request), who)
    return Response(text, media_type="text/csv", headers={"content-disposition": "attachment; filename=worklog.csv"})


@router.get("/api/v1/board")
async def board(request: Request) -> Response:
    """The board, as `grader leaderboard --format json` prints it; null while no student has a result."""
    return judge_of(request).standings.shown.as_json.answer(request, "no-cache")


@router.get("/api/v1/events")
async def events(request: Request, who: Anyone) -> StreamingResponse:
    """Server-sent events: changes of the board and, with a token, of the student's own submissions and tests."""
    return StreamingResponse(
        judge_of(request).hub.watch(who), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
    )


@router.get("/api/v1/staff/queue")
async def queue(request: Request, who: Staff) -> Queue:
    """The waiting and the running submissions, the lanes, and any problems."""
    judge = judge_of(request)

    def found(ledger: Ledger) -> Queue:
        return Queue(
            **queue_state(judge, ledger),
            uploads=[status_of(judge, ledger, upload) for upload in ledger.unsettled()],
            failed=[status_of(judge, ledger, upload) for upload in ledger.failed()],
            attention={why: [one.student.id for one in group] for why, group in judge.concerns(ledger)},
        )

    return await judge.read(who, found)


@router.get("/api/v1/staff/students/{student}")
async def student(request: Request, student: str, who: Staff, before: Before = "") -> dict[str, Any]:
    """A page of a student's submissions, newest first, and every number of its latest result traced back to its
    inputs."""
    judge = judge_of(request)
    page, explained = await history.explained(judge, who, student, before)
    return {"submissions": await judge.read(who, statuses, judge, page.entries), "explained": explained}


@router.post("/api/v1/staff/actions")
async def action(request: Request, asked: Action, who: Staff) -> dict[str, str]:
    """Do an action: pause, resume, drain, accept, regrade, rerun, priority, withdraw, ban or unban."""
    return {"said": await judge_of(request).do(asked)}


@router.get("/api/v1/staff/gradebook.csv")
async def gradebook_csv(request: Request, who: Staff) -> Response:
    """The gradebook, as `grader gradebook --partial` prints it."""
    judge = judge_of(request)

    def text(ledger: Ledger) -> str:
        lines = students_only(gradebook(ledger.store, judge.rules.name, judge.which))
        missing = absent(ledger.store, judge.rules.name)
        return gradebooks.render(lines, "csv", title=judge.rules.title, columns=(), partial=True, absent=missing)

    return Response(await judge.read(who, text), media_type="text/csv")


@router.get("/metrics")
async def metrics(request: Request, who: Staff) -> PlainTextResponse:
    """Metrics for Prometheus; the request must carry the staff's token."""
    judge = judge_of(request)
    return PlainTextResponse(await judge.read(who, lambda ledger: metrics_text(judge, ledger)))


@router.get("/healthz")
async def healthz(request: Request) -> PlainTextResponse:
    """Succeed if the judge answers, can read its store, and still starts submissions."""
    judge = judge_of(request)
    await judge.ask(lambda ledger: ledger.switch("paused"))
    if not judge.foreman.is_alive():
        raise Problem(503, "The judge answers but no longer grades: its log says why. Restart it.")
    return PlainTextResponse("ok\n")
