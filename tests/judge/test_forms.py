"""Forms as browsers and curl send them are read; what a general parser would read beside them is not."""

import subprocess
from pathlib import Path

import h11
import pytest

from grader.judge.forms import files_in
from grader.judge.headers import boundary_of, cookie_token
from grader.judge.problems import Problem
from grader.judge.server import HEADER_BYTES, _Whole
from tests.judge.conftest import Served

FILE = b"int main() {}\r\n--\r\n--almost the boundary\r\n\r\n"
BROWSERS = {
    "Chromium": ("multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW", b"application/octet-stream"),
    "Firefox": (
        "multipart/form-data; boundary=---------------------------974767299852498929531610575",
        b"application/octet-stream",
    ),
    "curl": ("multipart/form-data; boundary=------------------------d74496d66958873e", b"text/plain"),
}


@pytest.mark.parametrize(("kind", "of_file"), BROWSERS.values(), ids=BROWSERS)
def test_the_files_of_a_form_are_those_that_a_browser_sent(kind: str, of_file: bytes) -> None:
    mark = b"--" + boundary_of(kind).encode()
    head = b'Content-Disposition: form-data; name="file"; filename="a/h\xc3\xa9.cu"\r\nContent-Type: ' + of_file
    field = mark + b'\r\nContent-Disposition: form-data; name="note"\r\n\r\nx\r\n'
    none_chosen = mark + b'\r\nContent-Disposition: form-data; name="f"; filename=""\r\n\r\n\r\n'
    body = field + mark + b"\r\n" + head + b"\r\n\r\n" + FILE + b"\r\n" + none_chosen + mark + b"--\r\n"
    assert files_in(body, boundary_of(kind), 3) == [("a/hé.cu", FILE)]
    with pytest.raises(Problem, match="more than 2 parts"):
        files_in(body, boundary_of(kind), 2)
    for cut in range(0, len(body) - 4, 7):
        with pytest.raises(Problem):
            files_in(body[:cut], boundary_of(kind), 3)


@pytest.mark.parametrize(
    ("cookie", "token"),
    [
        ("judge=0123456789ab.A-z_9", "0123456789ab.A-z_9"),
        ("other=1; judge=a.b; more=2", "a.b"),
        ("notjudge=a.b", ""),
        ('judge="a.b"', ""),
        ("judge=a.b\\", ""),
        ("judge=" + "a" * 201, ""),
    ],
)
def test_a_cookie_is_the_token_or_nothing(cookie: str, token: str) -> None:
    assert cookie_token({"cookie": cookie}) == token


@pytest.mark.parametrize("place", ["/board", "/", "/api/v1/me", "/nowhere"])
def test_no_cookie_reaches_a_parser(served: Served, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    def seen(text: str) -> dict[str, str]:
        raise AssertionError(text)

    monkeypatch.setattr("starlette.requests.cookie_parser", seen)
    cookie = 'x="' + "\\" * 2000 + f'"; judge={served.tokens["alice"]}'
    status = served.client.get(place, headers={"cookie": cookie}).status_code
    assert status == (404 if place == "/nowhere" else 200)


def test_the_pieces_of_a_body_in_chunks_are_not_parsed() -> None:
    connection = _Whole(h11.SERVER, HEADER_BYTES)
    head = b"POST /login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection.receive_data(head + b"1\r\nx\r\n" * 10_000)
    assert isinstance(connection.next_event(), h11.Request)
    assert [connection.next_event() for _ in range(3)] == [h11.PAUSED] * 3


def test_curl_of_the_documentation_sends_what_the_judge_takes(
    served: Served, address: tuple[str, int], tmp_path: Path
) -> None:
    (tmp_path / "hw4.cu").write_text("int main() {} // curl\n")
    token, url = f"Authorization: Bearer {served.tokens['bob']}", "http://{}:{}/api/v1/submissions".format(*address)
    for options in (("-F", "file=@hw4.cu"), ("--data-binary", "@hw4.cu"), ("-T", "hw4.cu", "-X", "POST")):
        command = ["curl", "-sS", "-o", "answer", "-w", "%{http_code}", "-H", token, *options, url]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=30)
        assert said.stdout == "201", said.stderr + (tmp_path / "answer").read_text()
    chunked = ["curl", "-sS", "-H", "Transfer-Encoding: chunked", "-H", token, "-F", "file=@hw4.cu", url]
    said = subprocess.run(chunked, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=30)
    assert '"status":411' in said.stdout and "Content-Length" in said.stdout, said
