"""Reads what a request carries: the token of the person who sent it, and the files of an upload."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from grader.course.assignment import Assignment
from grader.judge.forms import files_in
from grader.judge.headers import boundary_of
from grader.judge.problems import Problem
from grader.judge.tokens import Person
from grader.programs.compiler_calls import SOURCES
from grader.sandbox import archive
from grader.sandbox.quarantine import Refused

_Bearer = Annotated[
    object, Depends(HTTPBearer(auto_error=False, description="The token of a student or of the staff."))
]
"""Marks a route in the OpenAPI description as one that needs a token. `token_of` reads the token itself."""
_OTHER_FILES = 16
"""The number of files, such as Makefiles, that a form may contain besides `submission.max_files` source files."""


def token_of(request: Request) -> str:
    """The token that a request carries; '' if it has none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme:
        return token.strip() if scheme.lower() == "bearer" else ""
    return str(request.state.token)  # of the cookie, which `guard` has read


async def maybe_person(request: Request) -> Person | None:
    """The person who sent the request; None without a valid token."""
    token = token_of(request)
    found: Person | None = await request.app.state.judge.person(token) if token else None
    request.state.person = found.submits_as if found is not None else None  # whose answer it is, for `guard`
    return found


async def person(request: Request, _: _Bearer = None) -> Person:
    """The person who sent the request. Raises Problem 401."""
    found = await maybe_person(request)
    if found is None:
        raise Problem(
            401, "The judge does not know this token: check it, or ask for a new one.", {"www-authenticate": "Bearer"}
        )
    return found


async def staff(request: Request, _: _Bearer = None) -> Person:
    """The person who sent the request, if it is the staff. Raises Problem 401 or 403."""
    found = await person(request)
    if not found.is_staff:
        raise Problem(403, "This is for the staff.")
    return found


async def files_of(request: Request, rules: Assignment) -> list[tuple[str, bytes]]:
    """The files of an upload: those of a form, or else the body as one file, named by `?name=`. Raises Problem."""
    body, boundary = await request.body(), boundary_of(request.headers.get("content-type", ""))
    if boundary:
        found = await asyncio.to_thread(files_in, body, boundary, rules.submission.max_files + _OTHER_FILES)
    else:
        found = [(request.query_params.get("name", rules.submission.main), body)]
    return accepted(found, rules)


def accepted(files: list[tuple[str, bytes]], rules: Assignment) -> list[tuple[str, bytes]]:
    """The files, under names that are safe to create in a folder. Raises Problem if the upload cannot be accepted."""
    main, taken = rules.submission.main, dict[str, tuple[str, bytes]]()
    for name, content in files:
        try:
            safe = archive.safe_name(name)
        except Refused as refused:
            raise Problem(422, f"The upload {refused}.") from refused
        if safe in ("", ".") or safe.casefold() in taken:
            raise Problem(422, f"Two files have the name {name!r}, or a file has no name: give each file its own name.")
        taken[safe.casefold()] = (safe, content)
    names = [name for name, _ in taken.values()]
    if any(other.startswith(f"{name}/") for name in map(str.casefold, names) for other in map(str.casefold, names)):
        raise Problem(422, "A file and a folder of the upload have the same name: rename one.")
    if not any(content for _, content in taken.values()):
        raise Problem(422, f"The upload is empty: submit {main}, a zip or a folder.")
    if not any(name.endswith(tuple(SOURCES)) or archive.is_archive(name) for name in names):
        raise Problem(422, f"The upload contains no program: expected {main}, or a zip or a folder that contains it.")
    return list(taken.values())
