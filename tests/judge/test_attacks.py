"""Attacks on a judge: requests over a real connection, lanes in processes of their own, and a second student who is
served as before. `python -m tests.redteam.judge` measures the same attacks against a whole `grader serve`."""

import contextlib
import logging
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from uvicorn.server import ServerState

from grader.base.errors import GraderFault
from grader.grading.session import Grading
from grader.grading.setup import Setup
from grader.judge import budget, foreman
from grader.judge.headers import HEADER_BYTES
from grader.judge.lanes import lanes_for
from grader.judge.ledger import Ledger, Stage, Step
from grader.judge.office import Judge
from grader.judge.server import _Impatient, config_of
from grader.store import compressed, open_store
from tests.judge.conftest import Served, eventually
from tests.support.judge_stand_in import stand_in_lanes


def first_line(address: tuple[str, int], content: bytes) -> bytes:
    with socket.create_connection(address, 30) as connection:
        connection.sendall(content)
        return connection.recv(65536).partition(b"\r\n")[0]


MALFORMED = {
    "an origin that is no address": b"Origin: http://[",
    "an origin of another kind": b"Origin: \xff\xfe",
    "a host that is no address": b"Host: [",
    "a length of a hundred digits": b"Content-Length: " + b"9" * 100,
    "a cookie that is none": b"Cookie: judge=\x01;;=;\xff",
    "a form of an unknown character set": b"Content-Type: multipart/form-data; charset=nonsense; boundary=\xff",
    "an authorization without a scheme": b"Authorization:  ",
    "a forwarded scheme that is none": b"X-Forwarded-Proto: [\xff",
}


@pytest.mark.parametrize("header", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("place", ["POST /login", "POST /api/v1/submissions", "GET /", "POST /logout"])
def test_a_malformed_header_is_refused_in_a_line(
    address: tuple[str, int], header: bytes, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        status = first_line(address, place.encode() + b" HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n\r\n")
    assert status.startswith((b"HTTP/1.1 2", b"HTTP/1.1 3", b"HTTP/1.1 4")), status
    assert all(len(record.getMessage()) < 300 and not record.exc_info for record in caplog.records)


def test_a_page_of_two_megabytes_of_line_ends_is_small_and_slow_readers_hold_little(
    served: Served, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = served.judge.rules
    bigger = rules.model_copy(update={"judge": rules.judge.model_copy(update={"runs": None})})
    monkeypatch.setattr(served.judge, "rules", bigger)
    lines = "int main() {}" + "\n" * 60_000
    status = served.settled("mallory", served.hand_in("mallory", lines)["id"])
    page = served.ask("mallory", "GET", status["url"])
    assert page.status_code == 200 and len(page.content) < 2 << 20
    assert "bytes that this page does not show" in page.text
    request = f"GET {status['url']} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.tokens['mallory']}\r\n\r\n"
    with contextlib.ExitStack() as stack:
        for _ in range(12):
            slow = stack.enter_context(socket.create_connection(address, 30))
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.sendall(request.encode())
        assert served.ask("alice", "GET", "/").status_code == 200
    assert served.ask("mallory", "GET", status["url"]).status_code == 200


def test_many_differences_of_one_student_leave_the_store_to_the_others(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each asks for another pair; the second student's pages wait for none of them."""
    monkeypatch.setattr(budget, "_BUDGET_S", 0.2)
    monkeypatch.setattr(served.judge.budgets, "_left", {})
    ids = []
    for number in range(4):
        text = "".join(f"{(line * 7919 + number) % 10007}\n" for line in range(8000))
        ids.append(served.settled("carol", served.hand_in("carol", f"// {number}\n{text}")["id"])["id"])
    pairs = [(new, old) for new in ids for old in ids if new != old] * 8
    answers = [served.ask("carol", "GET", f"/submissions/{new}/since/{old}") for new, old in pairs]
    assert {answer.status_code for answer in answers} <= {200, 429}
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused and int(refused[0].headers["retry-after"]) > 0
    assert served.ask("alice", "GET", "/").status_code == 200


def test_a_running_submission_is_stopped_by_its_student_and_stays_so_after_a_restart(served: Served) -> None:
    def state() -> Any:
        return served.ask("bob", "GET", f"/api/v1/submissions/{endless['id']}").json()

    endless = served.hand_in("bob", "// seconds: 600\nint main() {}")
    running = eventually(lambda: (now := state())["running"] and now)  # its lane reports a moment after it begins
    assert running["running"]["elapsed_s"] >= 0
    assert served.ask("mallory", "DELETE", f"/api/v1/submissions/{endless['id']}").status_code == 404
    assert served.ask("bob", "DELETE", f"/api/v1/submissions/{endless['id']}").status_code == 200
    assert state()["state"] == "withdrawn" and "Stopped" in state()["note"]
    next_one = served.hand_in("alice", "int main() {} // behind it")
    assert served.settled("alice", next_one["id"])["state"] == "done"
    assert served.client.portal.call(served.judge.ask, Ledger.recover) == 0  # type: ignore[union-attr]
    assert state()["state"] == "withdrawn"


def test_the_staff_stops_a_running_submission(served: Served) -> None:
    endless = served.hand_in("bob", "// seconds: 600\nint main() { return 2; }")
    eventually(lambda: served.ask("bob", "GET", f"/api/v1/submissions/{endless['id']}").json()["state"] == "running")
    assert ">Stop<" in served.ask("staff", "GET", "/staff").text
    asked = {"action": "withdraw", "target": endless["id"]}
    assert served.ask("staff", "POST", "/api/v1/staff/actions", json=asked).status_code == 200
    assert served.settled("bob", endless["id"])["state"] == "withdrawn"


def test_others_overtake_a_slow_submission_which_goes_on_aside(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreman, "_SLOW_S", 0.2)
    monkeypatch.setattr(foreman, "_TICK_S", 0.2)
    lane = stand_in_lanes(setup, (Stage.VERDICT,))[0]
    aside = replace(lane, name="aside", device="aside", aside=True)
    store = tmp_path / "class.sqlite"
    with open_store(store, create=True) as opened:
        ledger = Ledger(opened, "hw4")
        for student, seconds in (("mallory", 600), ("alice", 0), ("bob", 0)):
            source = f"// seconds: {seconds}\nint main() {{}}".encode()
            ledger.receive(student, compressed([("hw4.cu", source)]), "")
    judge = Judge(store, setup.assignment, [lane, aside])
    judge.foreman.start()

    def states() -> list[str]:
        return [upload.state for upload in judge._books.call(lambda it: it._rows("number > 0 ORDER BY number"))]

    try:
        eventually(lambda: states() == [Step.RUNNING, Step.DONE, Step.DONE])
        assert aside.upload is not None and aside.upload.student == "mallory" and lane.upload is None
        assert judge.foreman.free_after(Stage.VERDICT, [], 10.0) == [0.0], "what runs aside keeps nobody waiting"
    finally:
        judge.foreman.stop()
        judge.foreman.join(30)
        judge._books.close()


def test_no_lane_is_without_a_limit(setup: Setup) -> None:
    limits = setup.assignment.limits
    runs_s = len(setup.cases) * max(limits.emulator_wall_s, *(limit.seconds for limit in limits.wall_s))
    for lane in lanes_for(setup.assignment, "emulator", 2):
        assert runs_s < lane.longest_s < 6 * 3600


class FaultyTask:
    """Stands for a submission that makes the grader blame itself each time."""

    def __call__(self, grading: Grading) -> object:
        raise GraderFault("A crash line that the submission forged.")


def test_a_submission_that_makes_the_grader_blame_itself_fails_and_no_lane_rests(setup: Setup, tmp_path: Path) -> None:
    lane = stand_in_lanes(setup, (Stage.VERDICT,))[0]
    lane.make_task = lambda upload, files, known, ended: FaultyTask()
    store = tmp_path / "class.sqlite"
    with open_store(store, create=True) as opened:
        ledger = Ledger(opened, "hw4")
        for student in ("mallory", "mallory2", "mallory3"):
            ledger.receive(student, compressed([("hw4.cu", b"int main() {}")]), "")
    judge = Judge(store, setup.assignment, [lane])
    judge.foreman.start()

    def uploads() -> Any:
        return judge._books.call(lambda it: it._rows("number > 0"))

    try:
        eventually(lambda: [upload.state for upload in uploads()] == [Step.FAILED] * 3)
        assert {(upload.tries, upload.note) for upload in uploads()} == {
            (2, "A crash line that the submission forged.")
        }
        assert lane.rests_until < 0 and lane.broken_in_a_row == 0
    finally:
        judge.foreman.stop()
        judge.foreman.join(30)
        judge._books.close()


def test_no_socket_that_a_submission_could_name_takes_reports(served: Served) -> None:
    named = {line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines()[1:] if "/" in line}
    assert not [name for name in named if "judge" in name or "report" in name]


def test_a_request_of_many_headers_or_fields_is_refused(address: tuple[str, int]) -> None:
    few, many = (b"".join(b"a%d: b\r\n" % number for number in range(count)) for count in (40, 3000))
    assert first_line(address, b"GET /login HTTP/1.1\r\nHost: x\r\n" + few + b"\r\n") == b"HTTP/1.1 200 OK"
    assert first_line(address, b"GET /login HTTP/1.1\r\nHost: x\r\n" + many + b"\r\n").startswith(b"HTTP/1.1 400")
    fields = b"&".join(b"a=%41" for _ in range(600))
    assert first_line(address, b"GET /login?" + fields + b" HTTP/1.1\r\nHost: x\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_what_comes_behind_a_request_waits_outside_of_the_judge(served: Served) -> None:
    config = config_of(served.client.app)  # type: ignore[arg-type]
    config.load()
    transport, loop = Mock(max_size=256 << 10), Mock()
    _Impatient(config, ServerState(), {}, _loop=loop).connection_made(transport)
    assert transport.max_size == HEADER_BYTES
