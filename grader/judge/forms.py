"""Reads forms as browsers, curl and HTTP libraries send them, in time that is linear in their bytes. (General parsers
also take quoting and character sets that a client chooses, and need quadratic time for some.)"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from fastapi import Request

from grader.judge.problems import Problem

_FIELDS = 8
_HEAD_BYTES = 2 << 10
"""The limit on the headers of a part."""
_DISPOSITION = re.compile(
    r'content-disposition: ?form-data; ?name="[^"\r\n]{0,99}"(?:; ?filename="([^"\r\n]*)")?', re.IGNORECASE
)


async def fields_of(request: Request) -> dict[str, str]:
    """The fields of a form without files. Raises Problem."""
    try:
        return dict(parse_qsl((await request.body()).decode(errors="replace"), max_num_fields=_FIELDS))
    except ValueError:
        raise Problem(422, f"The form has more than {_FIELDS} fields: use the judge's own pages.") from None


def files_in(body: bytes, boundary: str, most: int) -> list[tuple[str, bytes]]:
    """The files of a form, `most` at most, with their names as sent. Raises Problem."""
    before, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary.encode(), most + 1)
    if len(parts) > most and not parts[-1].startswith(b"--"):
        raise Problem(400, f"The form has more than {most} parts: submit the files of one program, or a zip.")
    if before or not parts or not parts.pop().startswith(b"--"):
        raise Problem(422, "The form is not complete: it has to begin and end with the boundary of its Content-Type.")
    found = []
    for part in parts:
        head, gap, content = part.partition(b"\r\n\r\n")
        lines = head.decode(errors="replace").split("\r\n") if gap and len(head) <= _HEAD_BYTES else []
        said = next((match for line in lines if (match := _DISPOSITION.fullmatch(line))), None)
        if said is None or lines[0]:
            raise Problem(422, 'A part of the form does not say form-data; name="…"; filename="…" as browsers do.')
        if said[1] is not None and (said[1] or content):  # a browser sends an empty part if no file was chosen
            found.append((said[1], content))
    return found
