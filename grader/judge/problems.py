"""Errors as clients receive them: `application/problem+json` (RFC 9457) with a sentence that says what to do."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import Response
from fastapi.responses import JSONResponse

_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem (RFC 9457); `detail` says in a sentence what to do",
        "content": {
            "application/problem+json": {
                "schema": {
                    "type": "object",
                    "properties": {"type": _TEXT, "title": _TEXT, "status": _NUMBER, "detail": _TEXT},
                }
            }
        },
    }
}
"""The description of error answers for OpenAPI."""


class Problem(Exception):
    """Ends a request with this status; `detail` is a sentence for a person."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}


def problem_content(status: int, detail: str) -> dict[str, object]:
    """The JSON of a problem."""
    return {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}


def problem_response(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """The response for a problem."""
    return JSONResponse(problem_content(status, detail), status, headers, media_type="application/problem+json")
