"""Hostile requests and clients: none gets what it wants, and everybody else is served as before."""

import contextlib
import io
import socket
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from grader.base.errors import UsageError
from grader.classes.batch.roster import Student
from grader.commands import judge_client
from grader.course.assignment import Deadline
from grader.grading.session import open_grading
from grader.judge import guard, server
from grader.judge.hub import Hub
from grader.judge.problems import Problem
from grader.judge.tokens import Person
from grader.store import compressed
from tests.judge.conftest import PART, Served, eventually, listening
from tests.support.command_line import Said, grader

SECRET = "int main() { /* alice's own */ }"
SCRIPT = "<script>alert(1)</script>"
LIE = "The judge has moved"


@dataclass(frozen=True)
class Request:
    """What mallory sends, with these tokens and headers, and with what the judge must answer."""

    says: str
    method: str
    place: str
    status: int
    who: str | None = "mallory"
    options: dict[str, Any] = field(default_factory=dict)


def upload(says: str, status: int, *files: tuple[str, bytes], **options: Any) -> Request:
    parts = [("file", file) for file in files]
    return Request(says, "POST", "/api/v1/submissions", status, options={"files": parts, **options})


def raw(says: str, status: int, content: bytes, query: str = "", **headers: str) -> Request:
    return Request(
        says, "POST", f"/api/v1/submissions{query}", status, options={"content": content, "headers": headers}
    )


def post(says: str, place: str, status: int, who: str | None = None, cookie: str = "", **headers: str) -> Request:
    given = {"origin": "http://testserver"} | headers
    if cookie:
        given["cookie"] = f"judge={{{cookie}}}"
    return Request(
        says,
        "POST",
        place,
        status,
        who,
        {"headers": {k: v for k, v in given.items() if v}, "data": {"action": "pause"}},
    )


FORM, FIELDS = "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"
OWN = {"origin": "http://testserver"}


def part(parameters: str) -> bytes:
    """A form with one part of these parameters."""
    disposition = f'Content-Disposition: form-data; name="file"{parameters}'
    return f"--x\r\n{disposition}\r\n\r\nint main() {{}}\r\n--x--\r\n".encode()


REQUESTS = [
    Request("no token", "GET", "/api/v1/submissions", 401, None),
    Request(
        "a forged token", "GET", "/api/v1/submissions", 401, None, {"headers": {"authorization": "Bearer {alice}x"}}
    ),
    Request(
        "alice's label, another secret", "GET", "/", 303, None, {"headers": {"cookie": "judge={alice_label}.AAAA"}}
    ),
    Request("a token of kilobytes", "GET", "/", 431, None, {"headers": {"cookie": "judge=" + "A" * 9000}}),
    Request("a quoted token", "GET", "/", 303, None, {"headers": {"cookie": 'judge="{alice}"'}}),
    Request(
        "a token of another scheme",
        "GET",
        "/api/v1/submissions",
        401,
        None,
        {"headers": {"authorization": "Basic {alice}"}},
    ),
    Request("a token in the address", "GET", "/api/v1/submissions?token={alice}", 401, None),
    Request("alice's submission", "GET", "/api/v1/submissions/{id}", 404),
    Request("alice's page", "GET", "/submissions/{id}", 404),
    Request("the part of alice's page that moves", "GET", "/submissions/{id}", 404, options={"headers": PART}),
    Request("alice's record", "GET", "/api/v1/submissions/{id}/record", 404),
    Request("alice's sources by a difference", "GET", "/submissions/{own}/since/{id}", 404),
    Request("alice's sources by the other difference", "GET", "/submissions/{id}/since/{own}", 404),
    Request("the withdrawal of alice's submission", "DELETE", "/api/v1/submissions/{id}", 404),
    Request("the staff's page", "GET", "/staff", 403),
    Request("the staff's queue", "GET", "/api/v1/staff/queue", 403),
    Request("a student as the staff sees them", "GET", "/staff/students/alice", 403),
    Request("the gradebook", "GET", "/api/v1/staff/gradebook.csv", 403),
    Request("the metrics", "GET", "/metrics", 403),
    Request(
        "priority for oneself",
        "POST",
        "/api/v1/staff/actions",
        403,
        options={"json": {"action": "priority", "target": "x"}},
    ),
    Request("a staff's action by a form", "POST", "/staff/actions", 403, options={"data": {"action": "pause"}}),
    Request("an action that there is not", "POST", "/staff/actions", 422, "staff", {"data": {"action": "nonsense"}}),
    post(
        "the staff's browser, from another site", "/staff/actions", 403, cookie="staff", origin="https://evil.example"
    ),
    post("the same without an origin", "/staff/actions", 403, cookie="staff", origin=""),
    post("the same from a sandboxed frame", "/staff/actions", 403, cookie="staff", origin="null"),
    post("the same from a neighbour", "/staff/actions", 403, cookie="staff", **{"sec-fetch-site": "same-site"}),
    post("a hand-in from another site", "/submissions", 403, cookie="alice", origin="http://testserver.evil.example"),
    upload("nothing", 422, ("hw4.cu", b"")),
    upload("a file outside the folder", 422, ("../../etc/cron.d/x.cu", b"int main() {}")),
    upload("an absolute name", 422, ("/etc/passwd.cu", b"int main() {}")),
    raw("a name with a newline", 422, b"x", "?name=a%0Ab.cu"),
    upload("a name of a thousand characters", 422, ("a" * 1000 + ".cu", b"x")),
    upload("a name that no file system takes", 422, ("é" * 120 + ".cu", b"x")),
    upload("two files of one name", 422, ("hw4.cu", b"x"), ("HW4.cu", b"y")),
    upload("a file that is also a folder", 422, ("a.cu", b"x"), ("a.cu/b.cu", b"y")),
    upload("no program", 422, ("notes.txt", b"x")),
    upload("a thousand files", 400, *[(f"{number}.cu", b"x") for number in range(200)]),
    raw("more than may be", 413, b"x" * (200 << 10)),
    raw("a length that is no number", 413, b"x", **{"content-length": "9" * 30}),
    raw("a form that is none", 422, b"--x\r\nnonsense", **{"content-type": "multipart/form-data; boundary=x"}),
    raw("a form without a boundary", 415, b"x", **{"content-type": "multipart/form-data"}),
    raw("a form in another character set", 415, b"x", **{"content-type": f"{FORM}; charset=punycode"}),
    raw("a character set before the boundary", 415, b"x", **{"content-type": FORM.replace("; ", "; charset=idna; ")}),
    raw("fields in another character set", 415, b"x", **{"content-type": f"{FIELDS}; charset=utf-7"}),
    raw("a parameter that no form has", 415, b"x", **{"content-type": f"{FORM}; a*0*=punycode''b"}),
    raw("a boundary of kilobytes", 415, b"x", **{"content-type": FORM + "x" * 4000}),
    raw("a part in another character set", 422, part("; filename*=punycode''a.cu"), **{"content-type": FORM}),
    raw("a part of a thousand parameters", 422, part("; a=b" * 1000), **{"content-type": FORM}),
    raw("a part without an end", 422, part("")[:-6], **{"content-type": FORM}),
    Request("a login of kilobytes", "POST", "/login", 413, None, {"data": {"token": "x" * 5000}, "headers": OWN}),
    Request(
        "a login of many fields", "POST", "/login", 422, None, {"data": dict.fromkeys("abcdefghi", "x"), "headers": OWN}
    ),
    raw("a key of a megabyte", 422, b"int main() {}", **{"idempotency-key": "k" * 4000}),
    Request("JSON of megabytes", "POST", "/api/v1/staff/actions", 413, "staff", {"content": b"[" * (1 << 20)}),
    Request(
        "JSON nested deeply",
        "POST",
        "/api/v1/staff/actions",
        400,
        "staff",
        {"content": b"[" * 4_000, "headers": {"content-type": "application/json"}},
    ),
    Request("a file of the judge", "GET", "/static/..%2f..%2foffice.py", 404),
    Request("a template", "GET", "/static/staff.html.j2", 404),
    Request("a page that there is not", "GET", "/.git/config", 404),
    Request("a method that there is not", "TRACE", "/", 405),
    Request("an id of SQL", "GET", "/api/v1/submissions/' OR 1=1 --", 422),
    Request("a student of SQL", "GET", "/staff/students/' OR '1'='1", 404, "staff"),
    Request("script in an address", "GET", f"/staff?said={SCRIPT}", 200, "staff"),
    Request("words in an address", "GET", f"/staff?said={LIE}", 200, "staff"),
]


@pytest.fixture(scope="module")
def world(served: Served) -> dict[str, str]:
    """What mallory may know of, and what is to be kept from mallory."""
    alice = served.hand_in("alice", SECRET)
    own = served.hand_in("mallory", "int main() {}")
    for who, upload in (("alice", alice), ("mallory", own)):
        served.settled(who, upload["id"])
    return {
        "id": alice["id"],
        "own": own["id"],
        "alice_label": served.tokens["alice"].partition(".")[0],
        **served.tokens,
    }


def filled(value: Any, world: dict[str, str]) -> Any:
    """`value` with tokens and ids in place of their names in braces."""
    if isinstance(value, dict):
        return {name: filled(inner, world) for name, inner in value.items()}
    if isinstance(value, str) and "{" in value:
        for name, inner in world.items():
            value = value.replace(f"{{{name}}}", inner)
    return value


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.says)
def test_a_hostile_request_gets_nothing(served: Served, world: dict[str, str], request_: Request) -> None:
    options, place = filled(request_.options, world), filled(request_.place, world)
    if request_.who is None:
        answer = served.client.request(request_.method, place, **options)
    else:
        answer = served.ask(request_.who, request_.method, place, **options)
    assert answer.status_code == request_.status, answer.text
    for kept in ("alice's own", SCRIPT, LIE, "Traceback"):
        assert kept not in answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        detail = answer.json()["detail"]
        assert len(detail.split()) > 3 and detail.endswith("."), "a sentence"
    assert served.ask("alice", "GET", f"/api/v1/submissions/{world['id']}").json()["state"] == "done"
    assert not served.ask("staff", "GET", "/api/v1/staff/queue").json()["paused"]


def test_script_in_names_sources_and_notes_is_text(served: Served) -> None:
    status = served.hand_in("carol", f"// fails: s01\n// {SCRIPT}\n", name=f"{SCRIPT.replace('/', '')}.cu")
    other = served.hand_in("carol", "int main() {}")
    for id in (status["id"], other["id"]):
        served.settled("carol", id)
    places = ("/", f"/submissions/{status['id']}", f"/submissions/{other['id']}/since/{status['id']}")
    for place in places:
        assert "<script>alert" not in served.ask("carol", "GET", place).text
    assert "<script>alert" not in served.ask("staff", "GET", "/staff/students/carol").text


def test_a_student_hands_in_only_so_often(served: Served) -> None:
    codes = [served.ask("mallory", "POST", "/api/v1/submissions", content=b"int main() {}") for _ in range(30)]
    refused = [answer for answer in codes if answer.status_code == 429]
    assert refused and int(refused[0].headers["retry-after"]) > 0
    assert served.hand_in("alice", "int main() {}")["id"]


def test_an_answer_that_got_lost_is_found_again_when_nothing_new_is_taken(served: Served) -> None:
    def send(source: bytes) -> Any:
        return served.ask(
            "alice", "POST", "/api/v1/submissions", content=source, headers={"idempotency-key": "the answer got lost"}
        )

    first = send(b"int main() {}")
    served.ask("staff", "POST", "/api/v1/staff/actions", json={"action": "drain"})
    assert send(b"int main() {}").json()["id"] == first.json()["id"]
    assert served.ask("alice", "POST", "/api/v1/submissions", content=b"int main() {}").status_code == 503
    served.ask("staff", "POST", "/api/v1/staff/actions", json={"action": "accept"})
    assert send(b"int main() { return 1; }").status_code == 409


@pytest.mark.parametrize(("who", "place", "status"), [(None, "/staff", 401), ("alice", "/staff", 403)])
def test_a_browser_gets_the_sentence_as_a_page(served: Served, who: str | None, place: str, status: int) -> None:
    token = {"authorization": f"Bearer {served.tokens[who]}"} if who else {}
    answer = served.client.get(place, headers={"accept": "text/html"} | token)
    assert answer.status_code == status and 'role="alert"' in answer.text
    assert ("log in</a>" in answer.text) == (status == 401)


def test_a_student_sees_the_deadline_with_their_own_extension(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    deadline = Deadline(due=datetime(2026, 12, 1, 12, tzinfo=UTC))
    monkeypatch.setattr(served.judge, "rules", served.judge.rules.model_copy(update={"deadline": deadline}))
    monkeypatch.setitem(served.judge.roster, "alice", Student("alice", extension_days=2))
    assert "Deadline 2026-12-03 12:00 UTC" in served.ask("alice", "GET", "/").text
    assert "Deadline 2026-12-01 12:00 UTC" in served.ask("bob", "GET", "/").text


def test_the_description_says_which_routes_need_a_token_and_how_errors_look(served: Served) -> None:
    for place, methods in served.client.get("/api/openapi.json").json()["paths"].items():
        for method, described in methods.items():
            assert "application/problem+json" in described["responses"]["default"]["content"]
            if "security" in described and place != "/api/v1/events":
                answer = served.client.request(method, place.replace("{id}", "abcdef").replace("{student}", "alice"))
                assert answer.status_code in (401, 403), place
            else:
                assert place in ("/api/v1/board", "/api/v1/events", "/healthz")


def test_what_a_monitor_asks_with_head_is_answered_as_get_without_the_content(served: Served) -> None:
    for place in ("/healthz", "/board", "/api/v1/board", "/static/judge.js"):
        answer = served.client.head(place)
        assert (answer.status_code, answer.text) == (200, ""), place
    endless = served.client.head("/api/v1/events")
    assert endless.status_code == 405 and endless.headers["allow"] == "GET"
    assert served.ask("alice", "PUT", "/api/v1/submissions").headers["allow"] == "GET, POST"


def test_streams_are_limited_and_one_that_is_not_read_ends() -> None:
    hub, mallory = Hub(), Person("mallory", "label")
    with contextlib.suppress(Problem):
        for _ in range(100):
            hub.watch(mallory)
    assert len(hub) < 100
    for _ in range(200):
        hub._deliver({"kind": "board"})
    assert all(watcher.lost and watcher.queue.qsize() < 100 for watcher in hub._watchers)


def test_boards_that_anybody_opens_leave_room_for_students_and_a_revoked_token_ends_its_streams() -> None:
    hub, alice, mallory = Hub(), Person("alice", "label"), Person("mallory", "revoked")
    with pytest.raises(Problem):
        for _ in range(10_000):
            hub.watch(None)
    for person in (alice, mallory):
        hub.watch(person)
    hub.look_after({"label"})
    assert [watcher.lost for watcher in hub._watchers if watcher.person == mallory] == [True]
    assert not any(watcher.lost for watcher in hub._watchers if watcher.person != mallory)


# ---- over a real connection ----


@pytest.fixture(scope="module")
def address(served: Served) -> Iterator[tuple[str, int]]:
    """The same judge, behind uvicorn with limits that a test need not wait for."""
    patch = pytest.MonkeyPatch()
    patch.setattr(server, "HEADERS_S", 0.2)
    patch.setattr(guard, "BODY_S", 0.2)
    with listening(served) as found:
        yield found
    patch.undo()


def answer_to(address: tuple[str, int], content: bytes) -> bytes:
    """What the judge says to bytes after which nothing comes, until it closes the connection."""
    with socket.create_connection(address, 30) as connection:
        connection.sendall(content)
        found = b""
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(65536):
                found += part
        return found


HAND_IN = b"POST /api/v1/submissions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {alice}\r\n"


@pytest.mark.parametrize(
    ("content", "begins"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\nHost: x\r\n", b""),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 60_000 + b"\r\n\r\n", b"HTTP/1.1 400"),
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400"),
        (HAND_IN + b"Content-Length: 100\r\n\r\nint", b"HTTP/1.1 408"),
        (HAND_IN + b"Transfer-Encoding: chunked\r\n\r\n30000\r\n" + b"x" * 0x30000, b"HTTP/1.1 411"),
        (HAND_IN + b"Content-Length: 8000000\r\n\r\n" + b"x" * 8_000_000, b"HTTP/1.1 413"),
        (b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\ntoken", b"HTTP/1.1 400"),
    ],
    ids=[
        "silent",
        "slow headers",
        "huge headers",
        "nonsense",
        "no host",
        "slow body",
        "body in chunks",
        "huge body",
        "two lengths",
    ],
)
def test_a_hostile_client_is_shown_the_door(
    served: Served, address: tuple[str, int], content: bytes, begins: bytes
) -> None:
    found = answer_to(address, content.replace(b"{alice}", served.tokens["alice"].encode()))
    assert found.startswith(begins) and (begins or not found)
    assert served.client.get("/healthz").status_code == 200


def test_a_connection_that_breaks_during_an_upload_costs_nothing(served: Served, address: tuple[str, int]) -> None:
    begun = HAND_IN.replace(b"{alice}", served.tokens["alice"].encode()) + b"Content-Length: 1000\r\n\r\nint"
    before = len(served.ask("alice", "GET", "/api/v1/submissions").json())
    for _ in range(5):  # more than a student may have open at once
        with socket.create_connection(address, 30) as connection:
            connection.sendall(begun)
    eventually(lambda: not served.judge._uploading)
    assert len(served.ask("alice", "GET", "/api/v1/submissions").json()) == before
    assert served.hand_in("alice", SECRET)["id"]


def test_submit_waits_for_the_result_and_exits_with_it(
    served: Served, address: tuple[str, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, url = tmp_path_factory.mktemp("bob"), "http://{}:{}".format(*address)
    (folder / "hw4.cu").write_text("// fails: s02\nint main() {}")
    common = ("--server", url, "--token", served.tokens["bob"])
    said = grader("submit", folder / "hw4.cu", *common, "--wait")
    assert said.code == 1 and "s02 wrong answer" in said.out and "s02: It failed" in said.out
    (folder / "hw4.cu").write_text("int main() {} // from a folder")
    assert grader("submit", folder, *common, "--wait").code == 0
    refused = grader("submit", folder / "hw4.cu", "--server", url, "--token", "x.y")
    assert refused.code == 2 and "does not know this token" in refused.err
    with pytest.raises(UsageError, match="303"):  # the token is sent to no other address
        judge_client._client(url, "x.y").text("/logout", b"")


def test_a_port_that_is_taken_is_named_before_anything_is_made(
    address: tuple[str, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = tmp_path_factory.mktemp("taken") / "class.sqlite"
    refused = grader("serve", "--port", str(address[1]), "--store", store)
    assert refused.code == 2 and f"port {address[1]}: Address already in use" in refused.err
    assert not store.exists()


def test_a_judge_for_a_cluster_does_not_start_without_slurm(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("no-slurm")
    monkeypatch.setenv("PATH", str(folder))
    refused = grader(
        "serve", "--assignment", "hw4", "--cluster", "slurm", "--port", "18473", "--store", folder / "s.sqlite"
    )
    assert refused.code == 2 and "--cluster slurm needs" in refused.err
    assert not (folder / "s.sqlite").exists()


def test_the_command_line_does_what_the_staffs_page_does(served: Served, address: tuple[str, int]) -> None:
    def judge(*words: str, who: str = "staff") -> Said:
        return grader("judge", *words, "--server", "http://{}:{}".format(*address), "--token", served.tokens[who])

    assert "Nothing new is started" in judge("pause").out
    waiting = served.hand_in("bob", "int main() {} // waits")
    queue = judge("queue").out
    assert "The queue is paused." in queue and waiting["id"] in queue and "Needs attention" in queue
    assert "priority 7" in judge("priority", waiting["id"], "--value", "7").out
    assert "withdrawn" in judge("withdraw", waiting["id"]).out
    assert "banned" in judge("ban", "bob").out and "bob is banned." in judge("queue").out
    assert judge("unban", "bob").code == judge("resume").code == 0
    shown = judge("show", "bob").out
    assert waiting["id"] in shown and "GPU time" in shown
    assert judge("gradebook").out.startswith("id,") and "judge_uploads" in judge("metrics").out
    for words, reason in (
        (("pause",), "This is for the staff."),
        (("ban",), "takes a student as its argument"),
        (("sudo",), "choose one of"),
        (("ban", "nobody"), "no student"),
    ):
        refused = judge(*words, who="bob" if words == ("pause",) else "staff")
        assert refused.code == 2 and reason in refused.err


BOMBS = {
    "zip": lambda: _zip({"hw4.cu": b"\0" * (64 << 20)}),
    "outside": lambda: _zip({"../../x.cu": b"int main() {}"}),
    "a link": lambda: _linked(),
    "no archive": lambda: b"PK nonsense",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_an_archive_is_opened_within_limits(bomb: Any, setup: Any) -> None:
    """What reads it is a worker's task; here it runs in this process."""
    from grader.judge.stage_task import StageTask

    name = "x.tar.gz" if bomb is BOMBS["a link"] else "x.zip"
    with open_grading(setup) as grading:
        judged = StageTask("mallory", compressed([(name, bomb())]))(grading)
    assert judged.record is not None and not judged.record.build.ok
    assert judged.record.tests[0].verdict == "compile_error"
    assert "/tmp" not in judged.record.tests[0].reason


def _zip(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def _linked() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        link = tarfile.TarInfo("hw4.cu")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return out.getvalue()
