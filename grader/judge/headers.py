"""What the headers of a request may say. `guard` reads them before anything else does: each has a limit, and the time
is linear in their bytes. Python's own parsers of cookies and parameters take quadratic time for some."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from grader.judge.problems import Problem

HEADER_BYTES = 16 << 10
"""The limit on all headers of a request."""
MAX_HEADERS, _MAX_FIELDS = 100, 30
"""Limits on the headers of a request and on the fields of its query: each costs more than its bytes."""
_ONE_HEADER_BYTES = 4 << 10
_LONGEST_NUMBER = 15
COOKIE = "judge"
_TOKEN = re.compile(rf"(?:^|;) ?{COOKIE}=([\w.-]{{1,200}})(?=;|$)", re.ASCII)
_UTF_8 = r"; *charset=\"?utf-8\"?"
_FORM = re.compile(
    rf"multipart/form-data(?:{_UTF_8})?; *boundary=(\"?)([\w'()+,./:=?-]{{1,70}})\1(?:{_UTF_8})?",
    re.ASCII | re.IGNORECASE,
)
_OTHER = re.compile(
    rf"(?:application/(?:x-www-form-urlencoded|json)(?:{_UTF_8})?|application/octet-stream|)", re.ASCII | re.IGNORECASE
)
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def read_headers(raw: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers by name in small letters; of several with one name the first. Raises Problem if they are too
    large."""
    if sum(len(name) + len(value) for name, value in raw) > HEADER_BYTES:
        raise Problem(431, f"The headers of this request are more than {HEADER_BYTES:,} bytes.")
    if any(len(value) > _ONE_HEADER_BYTES for _, value in raw):
        raise Problem(431, f"A header of this request is more than {_ONE_HEADER_BYTES:,} bytes: delete old cookies.")
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(raw)}


def refuse_long_queries(query: bytes) -> None:
    """Refuse a query with more fields than any page has."""
    if query.count(b"&") + query.count(b";") >= _MAX_FIELDS:
        raise Problem(400, f"The address has more than {_MAX_FIELDS} fields.")


def cookie_token(headers: dict[str, str]) -> str:
    """The token in the cookie; '' if there is none."""
    found = _TOKEN.search(headers.get("cookie", ""))
    return found[1] if found else ""


def boundary_of(content_type: str) -> str:
    """The boundary of a form with files; '' for another type."""
    found = _FORM.fullmatch(content_type)
    return found[2] if found else ""


def refuse_bodies(method: str, headers: dict[str, str], most: int) -> None:
    """Refuse a body whose length is not known before it comes (its pieces could be of one byte each), one that is too
    large, and one of a type that the judge does not read."""
    if "transfer-encoding" in headers:
        raise Problem(411, "The length of this body is not known before it comes: send Content-Length, not in chunks.")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > _LONGEST_NUMBER or int(length) > most:
        raise too_large(most)
    kind = headers.get("content-type", "")
    if method not in _SAFE and not (_FORM.fullmatch(kind) or _OTHER.fullmatch(kind)):
        raise Problem(
            415,
            "The judge does not read a body of this Content-Type: send multipart/form-data with a boundary (in UTF-8), "
            "application/x-www-form-urlencoded, application/json or application/octet-stream.",
        )


def too_large(most: int) -> Problem:
    """The refusal of a body of more than `most` bytes."""
    return Problem(
        413,
        f"The request has more than the {most:,} bytes that the judge takes: submit source code only.",
        {"connection": "close"},
    )


def refuse_other_sites(method: str, headers: dict[str, str]) -> None:
    """Refuse a change that a page of another site requests: a browser could send our cookie with it. A request with a
    token in `Authorization` passes, since a browser never adds that header by itself."""
    if method in _SAFE or "authorization" in headers:
        return
    site, origin = headers.get("sec-fetch-site"), headers.get("origin", "")
    try:
        netloc = urlsplit(origin).netloc
    except ValueError:
        raise Problem(400, "The header Origin of this request is no address.") from None
    # Newer browsers send Sec-Fetch-Site. Older ones send Origin, which may be "null" and is then refused.
    if site != "same-origin" and not (site is None and netloc == headers.get("host")):
        raise Problem(
            403,
            "This request came from another site: use the judge's own pages, or send a token as Authorization: Bearer.",
        )
