"""A student's evening and an assistant's, as the API and the pages give them."""

import csv
import io
import json
import re
import time
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.message import Message
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from starlette.testclient import TestClient

from grader.classes.batch import find_class, grade_class
from grader.commands import judge_client
from grader.course.assignment import Deadline
from grader.grading.setup import Setup
from grader.judge import foreman
from grader.judge.lanes import StageLane
from grader.judge.ledger import Stage
from grader.judge.office import Judge
from grader.judge.server import application
from grader.judge.tokens import make_token
from grader.store import check_store, open_store
from tests.judge.conftest import PART, PATIENCE_S, Served, eventually
from tests.support.batch_engine import PlainC
from tests.support.command_line import grader
from tests.support.executors import Here
from tests.support.sequential import right_program

GOOD, BAD = "// speedup: 40\nint main() {}\n", "// fails: s02\nint main() { return 0; }\n"


def test_verdicts_then_times_then_the_board_and_what_changed(served: Served) -> None:
    bad = served.settled("alice", served.hand_in("alice", BAD)["id"])
    assert [test["verdict"] for test in bad["tests"]] == ["passed", "wrong_answer", "passed"]
    good = served.settled("alice", served.hand_in("alice", GOOD)["id"])
    assert good["state"] == "done" and good["stage"] == "timing" and good["practice"] is False
    assert {test["speedup"] for test in good["tests"]} == {40.0}
    page = served.ask("alice", "GET", good["url"]).text
    assert "All 3 tests passed" in page
    changed = served.ask("alice", "GET", f"/submissions/{good['id']}/since/{bad['id']}").text
    assert '<span class="add">+// speedup: 40</span>' in changed and "-// fails: s02" in changed
    log = list(csv.DictReader(io.StringIO(served.ask("alice", "GET", "/api/v1/worklog.csv").text)))
    assert [row["passed"] for row in log[-2:]] == ["2", "3"]
    board = eventually(lambda: "alice the" in (text := served.client.get("/board", headers=PART).text) and text)
    assert "alice the &lt;b&gt;bold&lt;/b&gt;" in board and "<b>bold" not in board

    def unchanged() -> bool:
        etag = served.client.get("/board", headers=PART).headers["etag"]
        return bool(served.client.get("/board", headers=PART | {"if-none-match": etag}).status_code == 304)

    assert eventually(unchanged)  # the board may change once more between two requests
    assert served.client.get("/beamer").status_code == 200
    assert served.client.get("/api/v1/board").json()["rows"]


def test_a_zip_is_taken_and_the_same_request_again_is_the_same_submission(served: Served) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("hw4.cu", GOOD)
    options = {"content": packed.getvalue(), "headers": {"idempotency-key": "k"}}
    answers = [served.ask("bob", "POST", "/api/v1/submissions?name=bob.zip", **options) for _ in range(2)]
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1


def test_a_fault_of_the_machine_or_a_dying_worker_costs_a_try_and_no_submission(served: Served) -> None:
    ids = [
        (who, served.hand_in(who, f"// {how}\n{GOOD}")["id"])
        for who, how in (("bob", "machine fails"), ("carol", "dies"))
    ]
    assert [served.settled(who, id)["state"] for who, id in ids] == ["done", "done"]


def test_the_staff_sees_the_queue_and_moves_it_and_the_same_can_be_done_by_curl(served: Served) -> None:
    def act(**asked: object) -> int:
        return served.ask("staff", "POST", "/api/v1/staff/actions", json=asked).status_code

    assert act(action="pause") == 200
    waiting = served.hand_in("carol", BAD)
    queue = served.ask("staff", "GET", "/api/v1/staff/queue").json()
    assert queue["paused"] and [upload["id"] for upload in queue["uploads"]] == [waiting["id"]]
    assert waiting["place"] == 1
    page = served.ask("staff", "GET", "/staff").text
    assert "Resume the queue" in page and "carol" in page
    assert act(action="priority", target=waiting["id"], value=3) == 200
    assert act(action="ban", target="carol") == 200
    assert served.ask("carol", "POST", "/api/v1/submissions", content=b"int main() {}").status_code == 403
    assert act(action="unban", target="carol") == act(action="resume") == 200
    assert served.settled("carol", waiting["id"])["state"] == "done"
    assert act(action="withdraw", target=waiting["id"]) == 409
    assert act(action="pause") == act(action="rerun", target=waiting["id"]) == 200
    withdrawn = served.ask("carol", "DELETE", f"/api/v1/submissions/{waiting['id']}")
    assert withdrawn.status_code == 409 and "only they" in withdrawn.json()["detail"]
    assert act(action="resume") == 200
    served.settled("carol", waiting["id"])
    notes = eventually(lambda: served.ask("staff", "GET", "/api/v1/staff/queue").json()["notes"])
    assert "different rules" in notes[0], "the stand-in's records know no rules of hw4"
    assert act(action="regrade") == 200
    served.settled("carol", waiting["id"])
    assert act(action="drain") == 200
    refused = served.ask("bob", "POST", "/api/v1/submissions", content=b"int main() {}")
    assert (refused.status_code, refused.headers["content-type"]) == (503, "application/problem+json")
    assert act(action="accept") == 200 and act(action="nonsense") == 422
    explained = served.ask("staff", "GET", "/staff/students/carol").text
    assert "Where the numbers come from" in explained
    assert "carol" in served.ask("staff", "GET", "/api/v1/staff/gradebook.csv").text
    metrics = served.ask("staff", "GET", "/metrics").text
    assert 'judge_uploads{stage="timing",state="done"}' in metrics and "carol" not in metrics


FORMS = ("application/json", PART["accept"], "text/html,*/*;q=0.8")


def test_one_handler_answers_with_a_page_its_live_part_or_json(served: Served) -> None:
    id = served.settled("alice", served.hand_in("alice", GOOD)["id"])["id"]
    for who, page, api in (
        ("alice", f"/submissions/{id}", f"/api/v1/submissions/{id}"),
        ("alice", "/", "/api/v1/submissions"),
        ("staff", "/staff", "/api/v1/staff/queue"),
        ("staff", "/board", "/api/v1/board"),
    ):
        ask = partial(served.ask, who, "GET")

        def agree(ask: Any = ask, page: str = page, api: str = api) -> bool:
            as_json, part, whole = (ask(page, headers={"accept": form}).text for form in FORMS)
            assert "<html" in whole and "<html" not in part
            return bool(part in whole and as_json == ask(api, headers={"accept": "text/html"}).text)

        assert eventually(agree)  # the board or a lane may change once more between two requests
    assert served.client.get("/", headers=PART).status_code == 401  # no page to log in within a page


def test_events_tell_a_student_of_their_own_and_everybody_of_the_board(served: Served) -> None:
    hub, seen = served.judge.hub, {}
    for who in ("alice", "staff", ""):
        person = served.client.portal.call(served.judge.person, served.tokens.get(who, ""))  # type: ignore[union-attr]
        watcher = hub.watch(person)
        seen[who] = (watcher, served.client.portal.call(watcher.__anext__))  # type: ignore[union-attr]
    for event in (
        {"kind": "upload", "student": "bob", "id": "x"},
        {"kind": "upload", "student": "alice", "id": "y"},
        {"kind": "board"},
    ):
        hub.publish(dict[str, object](event))

    def first_of_these(who: str) -> Any:  # a submission of another test may still run
        while True:
            text = served.client.portal.call(seen[who][0].__anext__)  # type: ignore[union-attr]
            event = json.loads(text.removeprefix("data: "))
            if event.get("id") in ("x", "y") or not who:
                return event

    assert {who: first_of_these(who) for who in seen} == {
        "alice": {"kind": "upload", "id": "y"},
        "staff": {"kind": "upload", "id": "x"},
        "": {"kind": "board"},
    }
    for watcher, _ in seen.values():
        served.client.portal.call(watcher.aclose)  # type: ignore[attr-defined, call-arg, union-attr]
    assert len(hub) == 0


def test_when_nobody_waits_results_are_rechecked_and_get_the_ranks_that_the_command_gives(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def board_once(holds: Callable[[Any], bool]) -> Any:
        def look() -> Any:
            served.judge.foreman.ring()
            board = served.client.get("/api/v1/board").json()
            return holds(board) and board

        return eventually(look)

    served.settled("alice", served.hand_in("alice", GOOD)["id"])
    unranked = board_once(lambda board: board and board["metric"] == "speedup")
    assert {row["rank"] for row in unranked["rows"]} == {None}, "times have no rank before a recheck"
    monkeypatch.setattr(foreman, "IDLE_S", 0.0)
    board_once(lambda board: all(row["rank"] for row in board["rows"] if not row["mark"]))
    for _ in range(5):  # each ring would begin another recheck
        served.judge.foreman.ring()
        eventually(lambda: not any(lane.rechecking for lane in served.judge.foreman.lanes))
    with open_store(served.store) as store:
        rechecked = "SELECT count(*) FROM records WHERE json LIKE '%fresh 0123456789abcdef%' GROUP BY submission"
        assert set(store.execute(rechecked)) == {(1,)}, "each result is rechecked once"
    monkeypatch.undo()
    served.settled("alice", served.hand_in("alice", f"{GOOD}// again")["id"])  # a lane that rechecked grades as before
    by_command = json.loads(grader("leaderboard", "--store", served.store, "--format", "json").out)
    board_once(lambda board: board == by_command)


def test_after_a_start_without_a_gpu_the_staff_reads_who_waits_for_one(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def act(action: str) -> None:
        served.ask("staff", "POST", "/api/v1/staff/actions", json={"action": action})

    act("pause")
    waiting = served.hand_in("carol", f"{GOOD}// for its times")
    change = lambda ledger: ledger._set(ledger.upload(waiting["id"]).number, stage=Stage.TIMING)  # noqa: E731
    served.client.portal.call(served.judge.ask, change)  # type: ignore[union-attr]
    monkeypatch.setattr(served.judge.foreman, "has_timing", False)
    notes = served.ask("staff", "GET", "/api/v1/staff/queue").json()["notes"]
    assert "wait for a GPU: 1." in notes[-1]
    act("resume")
    assert served.settled("carol", waiting["id"])["state"] == "done"


def test_a_clock_that_jumps_while_a_submission_runs_changes_no_predicted_wait(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = served.hand_in("bob", f"// seconds: 0.3\n{GOOD}// the clock jumps")
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now + 86_400)
    assert served.settled("bob", running["id"])["state"] == "done"
    seconds = re.findall(r"judge_run_seconds{.*} (\S+)", served.ask("staff", "GET", "/metrics").text)
    assert max(map(float, seconds)) < PATIENCE_S


def test_the_board_follows_what_other_commands_write_and_a_late_submission_says_so(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.settled("alice", served.hand_in("alice", GOOD)["id"])
    with open_store(served.store) as store:
        store.add_student("alice", nickname="a name of today")
    served.judge.standings.look()
    eventually(lambda: "a name of today" in served.client.get("/board", headers=PART).text)
    rules = served.judge.rules.model_copy(update={"deadline": Deadline(due=datetime.now(UTC) - timedelta(hours=30))})
    monkeypatch.setattr(served.judge.foreman, "_rules", rules)
    late = served.settled("alice", served.hand_in("alice", f"{GOOD}// late")["id"])
    assert late["days_late"] == 2 and "done, 2 days late" in served.ask("alice", "GET", "/").text


def test_a_full_disk_refuses_new_submissions_loses_none_and_goes_on_when_there_is_room(served: Served) -> None:
    def room(pages: int) -> None:  # SQLite's own way to be full
        async def limit() -> None:
            await served.judge.ask(lambda ledger: ledger.store.execute(f"PRAGMA max_page_count = {pages}"))

        served.client.portal.call(limit)  # type: ignore[union-attr]

    taken = served.hand_in("bob", f"// seconds: 0.2\n{GOOD}// taken")
    room(1)
    big = GOOD + "".join(f"// {number * number}\n" for number in range(4000))
    refused = served.ask("carol", "POST", "/api/v1/submissions", content=big.encode())
    assert refused.status_code == 507 and "try again in a few minutes" in refused.json()["detail"]
    assert str(served.store) not in refused.text and int(refused.headers["retry-after"]) > 0
    assert "is full" in eventually(lambda: served.ask("staff", "GET", "/api/v1/staff/queue").json()["problem"])
    assert served.ask("bob", "GET", f"/api/v1/submissions/{taken['id']}").json()["state"] in ("waiting", "running")
    room(2**30)
    assert served.settled("bob", taken["id"])["state"] == "done"
    assert served.ask("carol", "POST", "/api/v1/submissions", content=big.encode()).status_code == 201


@pytest.mark.parametrize(
    ("code", "after", "asks_again"), [(502, "", True), (503, "2", True), (503, "soon", False), (413, "2", False)]
)
def test_a_client_asks_again_where_that_helps(code: int, after: str, asks_again: bool) -> None:
    headers = Message()
    headers["Retry-After"] = after
    refused = HTTPError("http://judge.example.org", code, "No", headers, None)
    assert (judge_client._soon_s(refused) is not None) == asks_again


def test_the_store_is_sound_after_the_evening_and_a_batch_would_go_on_with_it(served: Served) -> None:
    with open_store(served.store) as store:
        assert check_store(store) == []
        for attempt in store.attempts("hw4", "alice"):
            assert dict(store.sources(attempt.submission)).keys() == {"hw4.cu"}


def test_a_lane_grades_as_a_batch_does(setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same programs, once handed in to lanes that run them and once in a folder: the same verdicts."""
    monkeypatch.setattr("grader.classes.schedule.LocalExecutor", Here)  # the batch's; a lane has a process of its own
    right = right_program()
    programs = {"alice": right, "bob": "int main( {", "carol": "int main() { return 0; }"}
    for student, source in programs.items():
        (tmp_path / "class" / student).mkdir(parents=True)
        (tmp_path / "class" / student / "hw4.cu").write_text(source)
    with open_store(tmp_path / "batch.sqlite", create=True) as store:
        grade_class(setup, [PlainC()], find_class(tmp_path / "class", setup.assignment)[0], store, helpers=1)
        batch = {attempt.student.id: attempt for attempt in store.attempts("hw4")}
    store_path = tmp_path / "judge.sqlite"
    with open_store(store_path, create=True) as store:
        tokens = {}
        for student in programs:
            store.add_student(student)
            tokens[student] = make_token(store, student)
    judge = Judge(store_path, setup.assignment, [StageLane("lane", "lane", setup, stage=Stage.VERDICT)])
    with TestClient(application(judge)) as client:
        served = Served(client, store_path, tokens, judge)
        ids = {student: served.hand_in(student, source)["id"] for student, source in programs.items()}
        found = {student: served.settled(student, id) for student, id in ids.items()}
    for student, status in found.items():
        tests = batch[student].record.tests
        assert [(test["name"], test["verdict"], test["reason"]) for test in status["tests"]] == [
            (test.name, test.verdict, test.reason) for test in tests
        ]
    with open_store(store_path) as store:
        digests = {attempt.student.id: attempt.sha256 for attempt in store.attempts("hw4")}
    assert digests == {student: attempt.sha256 for student, attempt in batch.items()}
