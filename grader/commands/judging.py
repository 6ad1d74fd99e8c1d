"""The commands of the live judge: `serve`, `tokens` and, for students, `submit`."""

from __future__ import annotations

import io
import json
import os
import random
import secrets
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from grader.base.csv_table import csv_text
from grader.base.errors import MachineFault, UsageError
from grader.base.names import student_id
from grader.base.paths import shown

_POLL_S = 1.0
_ANSWER_S = 60.0
_AGAIN_FOR_S = 120.0
"""How long `submit` goes on asking a judge that does not answer: it may be restarting."""
_SKIPPED = {".git", ".venv", "__pycache__"}


@dataclass(frozen=True)
class ServeOptions:
    """The options of `grader serve`."""

    store: Path | None = None
    roster: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    engine: str = "auto"
    jobs: int | None = None
    best: bool = False
    cluster: str | None = None


def serve(assignment: str | None, options: ServeOptions) -> None:
    """Serve a judge until a signal ends it."""
    try:
        from grader.judge.server import serve as serve_judge
    except ImportError as error:
        raise UsageError(f"`grader serve` needs {error.name}: pip install 'cuda-homework-grader[judge]'.") from error
    from grader.base.progress import shown_progress
    from grader.classes.batch import Which
    from grader.classes.batch.roster import read_roster
    from grader.course.assignment import chosen_assignment
    from grader.judge.lanes import cluster_lanes, lanes_for, prepare
    from grader.judge.office import Judge
    from grader.judge.tokens import STAFF, have_tokens, make_token
    from grader.sandbox import memory_share
    from grader.store import default_store, open_store

    rules = chosen_assignment(assignment)
    roster = read_roster(options.roster) if options.roster else {}
    if options.cluster not in (None, "slurm"):
        raise UsageError(f"There is no cluster {options.cluster!r}: --cluster takes slurm.")
    lanes = (cluster_lanes if options.cluster else lanes_for)(rules, options.engine, options.jobs)
    path = options.store or default_store(rules.name)
    with open_store(path, create=True) as store, store.one_grader():
        address = f"http://{options.host}:{options.port}"
        if STAFF not in have_tokens(store):
            link = f"{address}/login#{make_token(store, STAFF)}"
            print(f"The staff's link, shown once (`grader tokens --rotate staff` makes another): {link}", flush=True)
        with shown_progress() as progress:
            prepare(rules, lanes, progress)
        which = Which.BEST if options.best else Which.LATEST
        judge = Judge(path, rules, lanes, roster=roster, which=which)
        print(f"{rules.title}: {address}, with {', '.join(lane.name for lane in lanes)}; Ctrl-C ends it.", flush=True)
        with memory_share.announced(1 if options.cluster else len(lanes), 0):
            serve_judge(judge, options.host, options.port)


def tokens(
    roster: Path | None, store: Path | None, assignment: str | None, *, rotate: Sequence[str], revoke: Sequence[str]
) -> str:
    """Make the tokens that are missing, and return the new ones as CSV. `rotate` and `revoke` name students, or
    `staff`."""
    from grader.classes.batch.roster import read_roster
    from grader.course.assignment import chosen_assignment
    from grader.judge.tokens import STAFF, have_tokens, make_token, revoke_token
    from grader.store import default_store, open_store

    path = store or default_store(chosen_assignment(assignment).name)
    students = read_roster(roster) if roster else {}
    with open_store(path, create=True) as opened:
        for one in students.values():
            opened.add_student(
                one.id, name=one.name, nickname=one.nickname, section=one.section, email=one.email, enrolled=True
            )
        known, have = opened.students(), have_tokens(opened)
        asked = [STAFF if word == "staff" else student_id(word) for word in (*rotate, *revoke)]
        if unknown := sorted(set(asked) - known - {STAFF}):
            raise UsageError(f"There is no student {', '.join(unknown)} in {shown(path)}: name them in the --roster.")
        for who in asked[len(rotate) :]:
            revoke_token(opened, who)
        new = [*asked[: len(rotate)]] if asked else [one for one in (STAFF, *students) if one not in have]
        rows = [("id", "name", "email", "token")]
        for who in dict.fromkeys(new):
            student = students.get(who)
            words = (student.name, student.email) if student else ("", "")
            rows.append((who or "staff", *words, make_token(opened, who)))
    return csv_text(rows)


# ---- handing in --------------------------------------------------------------------------------------------------


def submit(path: Path, server: str, token: str | None, *, wait: bool) -> bool:
    """Hand in to a judge, and with `wait` print each test as it ends. Return whether nothing failed."""
    token = token or os.environ.get("GRADER_TOKEN", "")
    if not token:
        raise UsageError("A token is needed: give --token, or put it into the environment variable GRADER_TOKEN.")
    if urlsplit(server).scheme not in ("http", "https"):
        raise UsageError(f"--server {server!r} is not an address: give one such as https://judge.example.org.")
    client = _Client(server.rstrip("/"), token)
    name, content = _packed(path)
    # The key makes it safe to send again after an answer that was lost.
    status = client.ask(
        f"/api/v1/submissions?{urlencode({'name': name})}", content, {"Idempotency-Key": secrets.token_hex(12)}
    )
    print(f"{client.server}{status['url']}: {_words(status)}", flush=True)
    if not wait:
        return True
    said = set[str]()
    while status["state"] in ("waiting", "running"):
        for test, ended in ((status["running"] or {}).get("tests") or {}).items():
            if test not in said:
                print(f"{test} {ended}", flush=True)
                said.add(test)
        time.sleep(_POLL_S)
        status = client.ask(f"/api/v1/submissions/{status['id']}")
    for test in status["tests"]:
        words = f"{test['name']} {test['verdict'].replace('_', ' ')}{': ' + test['reason'] if test['reason'] else ''}"
        print(
            words if test["reason"] or test["name"] not in said else "",
            end="\n" if test["reason"] or test["name"] not in said else "",
        )
    print(_words(status))
    return status["state"] == "done" and all(test["verdict"] == "passed" for test in status["tests"])


def _words(status: dict[str, Any]) -> str:
    if status["state"] == "waiting":
        wait_s = status["predicted_wait_s"]
        return f"place {status['place']} in the queue" + (f", about {wait_s:.0f} s" if wait_s is not None else "")
    passed = sum(test["verdict"] == "passed" for test in status["tests"])
    result = f", {passed} of {len(status['tests'])} tests passed" if status["tests"] else ""
    return f"{status['state']}{result}{'. ' + status['note'] if status['note'] else ''}"


def _packed(path: Path) -> tuple[str, bytes]:
    """The name and the content to send: a folder is packed."""
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


@dataclass(frozen=True)
class _Client:
    server: str
    token: str

    def ask(self, place: str, content: bytes | None = None, headers: dict[str, str] | None = None) -> dict[str, Any]:
        """Ask the judge; while it does not answer, ask again for a while."""
        all_headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/octet-stream"} | (
            headers or {}
        )
        request = urllib.request.Request(self.server + place, content, all_headers)
        until = time.monotonic() + _AGAIN_FOR_S
        while True:
            try:
                with urllib.request.urlopen(request, timeout=_ANSWER_S) as answer:
                    return json.load(answer)  # type: ignore[no-any-return]
            except urllib.error.HTTPError as error:
                soon_s = int(error.headers.get("Retry-After", _AGAIN_FOR_S + 1))
                if error.code in (429, 503) and time.monotonic() + soon_s < until:
                    time.sleep(soon_s)
                    continue
                raise UsageError(f"The judge refused ({error.code}): {_detail(error)}") from error
            except (OSError, ValueError) as error:
                if time.monotonic() > until:
                    raise MachineFault(f"{self.server} does not answer: {error}.") from error
                print(f"grader: {self.server} does not answer, asking again ...", file=sys.stderr)
                time.sleep(_POLL_S * random.uniform(0.5, 1.5))  # not all at the same moment after a restart


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(10_000))["detail"])
    except (ValueError, KeyError, OSError):
        return error.reason
