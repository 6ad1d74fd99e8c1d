"""The commands that talk to a live judge: `submit` for students, `judge` for the staff."""

from __future__ import annotations

import io
import json
import os
import random
import secrets
import shutil
import sys
import textwrap
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from tabulate import tabulate

from grader.base.errors import MachineFault, UsageError
from grader.base.names import say
from grader.base.paths import shown
from grader.classes.final_points import days_words

_POLL_S = 1.0
_ANSWER_S = 60.0
_AGAIN_FOR_S = 120.0
"""If the judge does not answer, a request is repeated for this long: the judge may be restarting."""
_SKIPPED = {".git", ".venv", "__pycache__"}


def submit(path: Path, server: str, token: str | None, *, wait: bool) -> bool:
    """Submit to a judge, and with `wait` print each test as it ends. Return whether nothing failed."""
    client = _client(server, token)
    name, content = _packed(path)
    key = {"Idempotency-Key": secrets.token_hex(12)}  # makes it safe to send the submission again
    status = client.ask(f"/api/v1/submissions?{urlencode({'name': name})}", content, key)
    say(f"{client.server}{status['url']}: {_words(status)}", flush=True)
    if not wait:
        return True
    said = set[str]()
    while status["state"] in ("waiting", "running"):
        for test, ended in ((status["running"] or {}).get("tests") or {}).items():
            if test not in said:
                say(f"{test} {ended}", flush=True)
                said.add(test)
        time.sleep(_POLL_S)
        status = client.ask(f"/api/v1/submissions/{status['id']}")
    verdicts: dict[str, list[str]] = {}
    for test in status["tests"]:
        verdicts.setdefault(test["verdict"].replace("_", " "), []).append(test["name"])
    for verdict, names in verdicts.items():
        say(f"{', '.join(names)} {verdict}")
    if failed := next((test for test in status["tests"] if test["verdict"] != "passed" and test["reason"]), None):
        width = min(shutil.get_terminal_size().columns, 120)
        say(textwrap.fill(f"{failed['name']}: {failed['reason']}", width, subsequent_indent="  "))
        say(f"The whole report: {client.server}{status['url']}")
    say(_words(status))
    return status["state"] == "done" and all(test["verdict"] == "passed" for test in status["tests"])


def _words(status: dict[str, Any]) -> str:
    if status["state"] == "waiting":
        place, wait_s = status["place"], status["predicted_wait_s"]
        in_line = f"place {place} in the queue" if place is not None else "on hold, not in the queue"
        return in_line + (f", about {wait_s:.0f} s" if wait_s is not None else "")
    late = f", {days_words(days)}" if (days := status.get("days_late")) else ""
    passed = sum(test["verdict"] == "passed" for test in status["tests"])
    result = f", {passed} of {len(status['tests'])} tests passed" if status["tests"] else ""
    return f"{status['state']}{result}{late}{'. ' + status['note'] if status['note'] else ''}"


def _packed(path: Path) -> tuple[str, bytes]:
    """The name and the content to send; a folder is packed into a zip."""
    try:
        if path.is_file():
            return path.name, path.read_bytes()
        files = [one for one in sorted(path.rglob("*")) if one.is_file() and not _SKIPPED & set(one.parts)]
        if not path.is_dir() or not files:
            raise UsageError(f"{shown(path)} is neither a file nor a folder with files: give your program.")
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
            for one in files:
                packed.write(one, one.relative_to(path).as_posix())
        return f"{path.resolve().name}.zip", out.getvalue()
    except OSError as error:
        raise UsageError(f"{shown(path)} cannot be read: {error.strerror}.") from error


# ---- the staff ---------------------------------------------------------------------------------------------------

_API = "/api/v1/staff"
ON_A_SUBMISSION, ON_A_STUDENT = ("rerun", "priority", "withdraw"), ("ban", "unban")
ON_THE_JUDGE = ("pause", "resume", "drain", "accept", "regrade")


def staff(words: str, target: str, server: str, token: str | None, value: int) -> str:
    """Do an action of the staff's page, and return the text to print."""
    client = _client(server, token)
    needed = "a submission" if words in ON_A_SUBMISSION else "a student" if words in (*ON_A_STUDENT, "show") else ""
    if bool(target) != bool(needed):
        raise UsageError(f"`grader judge {words}` takes {needed or 'nothing'} as its argument, found {target!r}.")
    if words in _LOOKS:
        return _LOOKS[words](client, target)
    if words not in ON_A_SUBMISSION + ON_A_STUDENT + ON_THE_JUDGE:
        known = ", ".join((*_LOOKS, *ON_THE_JUDGE, *ON_A_SUBMISSION, *ON_A_STUDENT))
        raise UsageError(f"There is no action {words!r}: choose one of {known}.")
    asked = json.dumps({"action": words, "target": target, "value": value}).encode()
    return f"{client.ask(f'{_API}/actions', asked, {'Content-Type': 'application/json'})['said']}\n"


def _queue(client: _Client, _: str) -> str:
    found = client.ask(f"{_API}/queue")
    lines = [f"Nothing is started: {found['problem']}"] if found["problem"] else []
    switches = (("paused", "The queue is paused."), ("draining", "Submissions are refused."))
    lines += [words for key, words in switches if found[key]]
    rows = [(one["id"], one["student"], one["received"], _words(one)) for one in found["uploads"]]
    lines.append(tabulate(rows, ("submission", "student", "received", "state")) if rows else "The queue is empty.")
    lanes = [(lane["name"], lane["stage"], _lane(lane), lane["finished"]) for lane in found["lanes"]]
    lines += ["", tabulate(lanes, ("lane", "for", "now", "finished"))]
    attention = [*(f"{one['student']}, {one['id']}: could not be judged: {one['note']}" for one in found["failed"])]
    attention += [f"{student} is banned." for student in found["banned"]]
    attention += [f"{why}: {', '.join(students)}" for why, students in found["attention"].items()]
    attention += found["notes"]
    return "\n".join([*lines, "", "Needs attention:", *(attention or ["Nobody."])]) + "\n"


def _lane(lane: dict[str, Any]) -> str:
    if lane["resting"]:
        return f"rests, its control failed: {lane['last_fault']}"
    return lane["student"] or (f"rechecks {lane['rechecking']}" if lane["rechecking"] else "idle")


def _show(client: _Client, student: str) -> str:
    found = client.ask(f"{_API}/students/{quote(student, safe='')}")
    rows = [(one["id"], one["received"], _words(one)) for one in found["submissions"]]
    return tabulate(rows, ("submission", "received", "state")) + f"\n\n{found['explained']}\n"


_LOOKS: dict[str, Callable[[_Client, str], str]] = {
    "queue": _queue,
    "show": _show,
    "gradebook": lambda client, _: client.text(f"{_API}/gradebook.csv"),
    "metrics": lambda client, _: client.text("/metrics"),
}


# ---- the connection ----------------------------------------------------------------------------------------------


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Follow no redirect: urllib would send the token to any address."""


_OPENER = urllib.request.build_opener(_Stay)


def _client(server: str, token: str | None) -> _Client:
    """Connect to a judge. Raises UsageError without a token or a proper address."""
    token = token or os.environ.get("GRADER_TOKEN", "")
    if not token:
        raise UsageError("A token is needed: give --token, or put it into the environment variable GRADER_TOKEN.")
    if urlsplit(server).scheme not in ("http", "https"):
        raise UsageError(f"--server {server!r} is not an address: give one such as https://judge.example.org.")
    return _Client(server.rstrip("/"), token)


@dataclass(frozen=True)
class _Client:
    server: str
    token: str

    def ask(self, place: str, content: bytes | None = None, headers: dict[str, str] | None = None) -> dict[str, Any]:
        """Send a request, and return the JSON object that the judge answers with."""
        return json.loads(self.text(place, content, headers))  # type: ignore[no-any-return]

    def text(self, place: str, content: bytes | None = None, headers: dict[str, str] | None = None) -> str:
        """Send a request, and return the answer. If the judge does not answer, repeat the request for a while."""
        own = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/octet-stream"}
        request = urllib.request.Request(self.server + place, content, own | (headers or {}))
        until = time.monotonic() + _AGAIN_FOR_S
        while True:
            try:
                with _OPENER.open(request, timeout=_ANSWER_S) as answer:
                    return str(answer.read().decode())
            except urllib.error.HTTPError as error:
                why, soon_s = _detail(error), _soon_s(error)
                if soon_s is None or time.monotonic() + soon_s > until:
                    raise UsageError(f"The judge refused ({error.code}): {why}") from error
            except (OSError, ValueError) as error:
                if time.monotonic() > until:
                    raise MachineFault(f"{self.server} does not answer: {error}.") from error
                why, soon_s = f"{self.server} does not answer.", _a_moment_s()
            say(f"grader: {why} Asking again ...", file=sys.stderr)
            time.sleep(soon_s)


def _a_moment_s() -> float:
    return _POLL_S * random.uniform(0.5, 1.5)  # random, so that clients do not return all at once


def _soon_s(error: urllib.error.HTTPError) -> float | None:
    """The seconds after which to repeat a refused request; None if that is useless."""
    if error.code in (502, 504):  # a proxy answers so while the judge restarts
        return _a_moment_s()
    after = error.headers.get("Retry-After", "")
    return float(after) if error.code in (429, 503) and after.isdecimal() else None


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(10_000))["detail"])
    except (ValueError, KeyError, OSError):
        return f"{error.reason}."
