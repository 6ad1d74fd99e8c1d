"""Attacks of `tests.redteam.judge` that cost the judge more than their sender: headers, forms and bodies of which some
parser takes quadratic time or many steps, and lists of a student who submitted for days."""

import contextlib
import itertools
import socket
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import httpx

from grader.store import HandIn, Store
from tests.support.records import made_record, made_test

if TYPE_CHECKING:
    from tests.redteam.judge import Judge

UPLOADS = 3000
"""30 an hour, which is the default, for four days."""
FOR_S = 8.0
CONNECTIONS = 6
STREAMS = 800
FORM = "multipart/form-data; boundary=x"
AGAIN = "Content-Disposition: form-data; name=f; filename=a\r\n\r\n"


def fill(store: Store, student: str) -> None:
    """Enter the uploads of four days, each with its result."""
    tests = [made_test(f"s{number:02}") for number in range(1, 31)]
    with store.transaction():
        for number in range(UPLOADS):
            files = (("hw4.cu", b"int main() {}"),)
            attempt = store.import_submission(HandIn("hw4", student, f"{number:064}", "hw4.cu", files=files))
            store.add_record(attempt, "earlier", made_record(student, tests=tests, notes=(str(number),), practice=True))
            store.execute(
                "INSERT INTO judge_uploads (id, repeat_key, assignment, student, received, stage, state, submission) "
                "VALUES (?, ?, 'hw4', ?, ?, 'verdict', 'done', ?)",
                (f"earlier{number}", f"hw4:{number}", student, time.time() - 86_400 * 5 + number, attempt),
            )


def flood(judge: Judge, *requests: Callable[[httpx.Client], httpx.Response], token: str = "") -> Counter[int]:
    """Send these requests again and again on some connections, and count the statuses of the answers."""
    headers = {"authorization": f"Bearer {token}"} if token else {"origin": judge.url}
    end, found = time.monotonic() + FOR_S, Counter[int]()

    def send(_: int) -> None:
        with httpx.Client(base_url=judge.url, headers=headers, timeout=60) as client:
            while time.monotonic() < end:
                for request in requests:
                    with contextlib.suppress(httpx.TransportError):  # a refused body may end its connection
                        found[request(client).status_code] += 1

    with ThreadPoolExecutor(CONNECTIONS) as crew:
        list(crew.map(send, range(CONNECTIONS)))
    return found


def cookies(judge: Judge) -> str:
    quoted = [f'judge="{chr(92) + "x"}"'.replace("x", "x" + chr(92) * size) for size in (4000, 15_000)]
    found = flood(judge, *(lambda client, text=text: client.get("/board", headers={"cookie": text}) for text in quoted))
    assert set(found) == {200, 431}, found
    return f"answers {dict(found)}"


def forms(judge: Judge) -> str:
    def sender(place: str, content: bytes, kind: str) -> Callable[[httpx.Client], httpx.Response]:
        return lambda client: client.post(place, content=content, headers={"content-type": kind})

    field = ("--x\r\n" + AGAIN + "a" * 293_000 + "-" + "a" * 60 + "\r\n--x--\r\n").encode()
    parameters = b'--x\r\nContent-Disposition: form-data; name="f' + b";" * 1_000_000 + b'"\r\n\r\n\r\n--x--\r\n'
    uploads = [sender("/api/v1/submissions", content, kind) for content, kind in (
        (field, f"{FORM}; charset=punycode"), (field, FORM), (parameters, FORM), (b"\r\n--x" * 500_000, FORM),
    )]  # fmt: skip
    found = flood(judge, *uploads, token=judge.tokens["mallory"])
    assert set(found) <= {400, 415, 422, 429}, found
    found += flood(judge, sender("/login", b"token=" + b"%E4" * 20_000, "application/x-www-form-urlencoded"))
    assert set(found) <= {400, 413, 415, 422, 429}, found
    return f"answers {dict(found)}"


def crumbs(judge: Judge) -> str:
    """Bodies in chunks of one byte."""
    host, port = judge.url.removeprefix("http://").split(":")
    end, found = time.monotonic() + FOR_S, Counter[bytes]()

    def send(place: str) -> None:
        head = f"POST {place} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {judge.tokens['mallory']}\r\n"
        while time.monotonic() < end:
            with socket.create_connection((host, int(port)), 30) as connection, contextlib.suppress(ConnectionError):
                connection.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 10_000)
                found[connection.recv(12)] += 1

    with ThreadPoolExecutor(CONNECTIONS) as crew:
        list(crew.map(send, ["/login", "/api/v1/submissions"] * (CONNECTIONS // 2)))
    assert set(found) == {b"HTTP/1.1 411"}, found
    return f"{found.total()} answers, all 411"


def lists(judge: Judge) -> str:
    places = ("/", "/api/v1/submissions", "/api/v1/worklog.csv")
    numbers = itertools.count(1)

    def report(client: httpx.Client) -> httpx.Response:
        return client.get(f"/submissions/earlier{next(numbers)}")  # each is drawn anew

    requests = [lambda client, place=place: client.get(place) for place in places]
    found = flood(judge, *requests, report, token=judge.tokens["mallory"])
    assert set(found) <= {200, 429}, found
    return f"answers {dict(found)}"


def behind(judge: Judge) -> str:
    """Connections without a token that send many requests behind one whose answer does not end."""
    host, port = judge.url.removeprefix("http://").split(":")
    sent = f"GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\nGET /login HTTP/1.1\r\nX: {'a' * 250_000}".encode()
    with contextlib.ExitStack() as stack:
        for _ in range(STREAMS):
            connection = stack.enter_context(socket.create_connection((host, int(port)), 30))
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                connection.send(sent)
        time.sleep(FOR_S)
    return f"{STREAMS} connections"


FLOODS = (cookies, forms, crumbs, lists, behind)
