"""What a request asks for: a thing as JSON, as a page, or as the live part of a page, which the page's script requests
again after an event. Each thing has one handler. Below /api/v1 it answers with JSON, whatever a client accepts."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from grader.judge.admission import maybe_person, person, staff
from grader.judge.office import Judge
from grader.judge.problems import Problem, problem_response
from grader.judge.tokens import Person

Id = Annotated[str, Path(pattern=r"^[\w-]{6,24}$")]
Before = Annotated[str, Query(pattern=r"^([\w-]{6,24})?$")]
"""The id of a submission, to get the page of a list that follows it."""
Anyone = Annotated[Person | None, Depends(maybe_person)]
Known = Annotated[Person, Depends(person)]
Staff = Annotated[Person, Depends(staff)]


class AnswerForm(Enum):
    """A form of an answer."""

    PART = "text/html;part=live"
    PAGE = "text/html"
    JSON = "application/json"


def form_of(request: Request) -> AnswerForm:
    """The form in which a request wants its answer; a page if it does not say."""
    accepted = request.headers.get("accept", "")
    if request.url.path.startswith("/api/"):
        return AnswerForm.JSON
    return next((form for form in AnswerForm if form.value in accepted), AnswerForm.PAGE)


def judge_of(request: Request) -> Judge:
    """The judge that answers a request."""
    return request.app.state.judge  # type: ignore[no-any-return]


def drawn(request: Request, name: str, **values: Any) -> HTMLResponse:
    """A page or, if that is asked for, its live part."""
    kind = "part" if form_of(request) is AnswerForm.PART else "html"
    return judge_of(request).page(request, f"{name}.{kind}.j2", **values)


async def show_problem(request: Request, error: Exception) -> Response:
    """FastAPI's handler of `Problem`; a browser that asked for a page gets a page with the sentence."""
    assert isinstance(error, Problem)
    accepted = request.headers.get("accept", "")
    if error.status == 401 and request.url.path == "/" and form_of(request) is AnswerForm.PAGE:
        return RedirectResponse("/login", 303)
    if AnswerForm.PAGE.value in accepted and AnswerForm.PART.value not in accepted:
        judge = judge_of(request)
        return judge.page(request, "problem.html.j2", status=error.status, detail=error.detail, headers=error.headers)
    return problem_response(error.status, error.detail, error.headers)
