"""The routes that need no token: the board (also for a projector), events, login, the pages' files, the judge's
health."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, StreamingResponse
from markupsafe import Markup

from grader.judge.admission import maybe_person
from grader.judge.forms import fields_of
from grader.judge.headers import COOKIE
from grader.judge.negotiation import AnswerForm, Anyone, Known, form_of, judge_of
from grader.judge.prepared import Prepared, prepared
from grader.judge.problems import Problem
from grader.site.record_page import asset

api, page = APIRouter(), APIRouter(include_in_schema=False)
_TYPES = {"css": "text/css", "js": "text/javascript"}


def _static(name: str) -> Prepared:
    ours = name.startswith("judge")
    text = (files("grader.judge") / "templates" / name).read_text("utf-8") if ours else asset(name)
    return prepared(text, _TYPES[name.rpartition(".")[2]])


_ASSETS = {name: _static(name) for name in ("style.css", "site.js", "judge.css", "judge.js")}
_COOKIE_S = 120 * 86_400


@page.get("/static/{name}")
async def static(request: Request, name: str) -> Response:
    if name not in _ASSETS:
        raise Problem(404, "There is no such file.")
    return _ASSETS[name].answer(request, "max-age=300")


@page.get("/login")
async def login_page(request: Request, who: Anyone) -> HTMLResponse:
    now = "" if who is None else who.student or "staff"
    return judge_of(request).page(request, "login.html.j2", wrong=False, now=now)


@page.post("/login")
async def login(request: Request) -> Response:
    judge, token = judge_of(request), (await fields_of(request)).get("token", "").strip()
    who = await judge.person(token)
    if who is None:
        return judge.page(request, "login.html.j2", status=401, wrong=True, now="")
    answer = RedirectResponse("/staff" if who.is_staff else "/", 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, token, max_age=_COOKIE_S, httponly=True, samesite="strict", secure=secure)
    return answer


@page.post("/logout")
async def logout() -> Response:
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE)
    return answer


@page.get("/board")
@page.get("/beamer")
@api.get("/api/v1/board")
async def board(request: Request) -> Response:
    """The board, as `grader leaderboard --format json` prints it; null while no student has a result."""
    shown, form = judge_of(request).standings.shown, form_of(request)
    if form is not AnswerForm.PAGE:
        return (shown.as_json if form is AnswerForm.JSON else shown.as_html).answer(request, "no-cache")
    template = f"{request.url.path[1:]}.html.j2"
    who = await maybe_person(request)
    return judge_of(request).page(request, template, who=who, board=Markup(shown.as_html.plain.decode()))


@api.get("/api/v1/events")
async def events(request: Request, who: Anyone) -> StreamingResponse:
    """Server-sent events: changes of the board and, with a token, of the student's own submissions and tests."""
    return StreamingResponse(
        judge_of(request).hub.watch(who), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
    )


@api.get("/api/v1/me")
async def me(who: Known) -> dict[str, str]:
    """Whose token the request carries."""
    return {"id": who.student or "staff"}


@api.get("/healthz")
async def healthz(request: Request) -> PlainTextResponse:
    """Succeed if the judge answers, can read its store, and still starts submissions."""
    judge = judge_of(request)
    await judge.ask(lambda ledger: ledger.switch("paused"))
    if not judge.foreman.is_alive():
        raise Problem(503, "The judge answers but no longer grades: its log says why. Restart it.")
    return PlainTextResponse("ok\n")
