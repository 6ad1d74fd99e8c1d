"""Attacks a whole judge (`grader serve` on the emulator, on this machine's loopback) while a second student works:

    python -m tests.redteam.judge [--landlock]

Prints, for each attack, what became of it, the second student's slowest answers and the judge's memory. Exits 1 if an
attack works, her 99th percentile reaches 300 ms or the judge 300 MB. Take the figures on a machine that is idle
otherwise; the counts of requests are small, so that it is no load test. `--landlock`: as where bubblewrap cannot run.
"""

import argparse
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from grader.judge.negotiation import AnswerForm
from grader.judge.tokens import STAFF, make_token
from grader.store import open_store
from tests.redteam.judge_floods import FLOODS, fill

MOST_P99_S, MOST_BYTES = 0.3, 300 << 20
PATIENCE_S = 300.0
MOST_LONGER_S = 45.0
"""What a submission behind an endless one may take: 15 s until that goes aside, and its own build and runs."""
MEASURED = 200
"""The least number of her requests during an attack."""
PROGRAM = "int main() { return 0; }\n"
ENDLESS = "int main() { volatile int x = 1; while (x) {} }\n"
LACKING = 'extern "C" int cudaNotAFunction(); int main() { return cudaNotAFunction(); }\n'
DATAGRAMS = r"""
#include <cstdio>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
int main() {  // sends a report that no JSON reader takes to every socket with a name
  FILE* sockets = fopen("/proc/net/unix", "r");
  char line[512];
  int from = socket(AF_UNIX, SOCK_DGRAM, 0);
  while (sockets && fgets(line, sizeof line, sockets)) {
    char* name = strchr(line, '/');
    if (!name) continue;
    name[strcspn(name, "\n")] = 0;
    sockaddr_un to = {AF_UNIX, ""};
    strncpy(to.sun_path, name, sizeof to.sun_path - 1);
    sendto(from, "{\"upload\": []", 13, 0, (sockaddr*)&to, sizeof to);
  }
}
"""


@dataclass
class Judge:
    """A served judge and its people; `waits` are the seconds of the second student's requests."""

    url: str
    process: subprocess.Popen[bytes]
    tokens: dict[str, str]
    waits: list[float] = field(default_factory=list)

    def ask(self, who: str, method: str, place: str, **options: Any) -> httpx.Response:
        """A request with somebody's token."""
        headers = {"authorization": f"Bearer {self.tokens[who]}"} | options.pop("headers", {})
        return httpx.request(method, self.url + place, headers=headers, timeout=60, **options)

    def submit(self, who: str, source: str | bytes) -> str:
        """Submit, and return the id."""
        answer = self.ask(who, "POST", "/api/v1/submissions", content=source)
        answer.raise_for_status()
        return str(answer.json()["id"])

    def until(self, who: str, id: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The state of a submission as soon as this holds for it."""
        end = time.monotonic() + PATIENCE_S
        while not holds(status := self.ask(who, "GET", f"/api/v1/submissions/{id}").json()):
            assert time.monotonic() < end, f"still {status['state']}"
            time.sleep(0.2)
        return dict(status)

    def settled(self, who: str, id: str) -> dict[str, Any]:
        """The state of a submission that neither waits nor runs."""
        return self.until(who, id, lambda status: status["state"] not in ("waiting", "running"))

    def peak_bytes(self) -> int:
        """The largest memory of the judge's process so far."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def line_ends(judge: Judge) -> str:
    id = judge.submit("mallory", PROGRAM + "\n" * 2_000_000)
    judge.settled("mallory", id)
    place, token = f"/submissions/{id}", judge.tokens["mallory"]
    page = judge.ask("mallory", "GET", place)
    assert page.status_code == 200 and len(page.content) < 2 << 20, f"a page of {len(page.content):,} bytes"
    host, port = judge.url.removeprefix("http://").split(":")
    with contextlib.ExitStack() as stack:
        for _ in range(12):
            slow = stack.enter_context(socket.create_connection((host, int(port)), 30))
            slow.sendall(f"GET {place} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        time.sleep(10)
    return f"a page of {len(page.content):,} bytes"


def differences(judge: Judge) -> str:
    ids = []
    for number in range(2):
        content = PROGRAM.encode() + os.urandom(3_000_000).hex().encode()[: (4 << 20) - 200] + b"%d" % number
        ids.append(judge.submit("mallory", b"//" + content))
        judge.settled("mallory", ids[-1])
    place = f"/submissions/{ids[1]}/since/{ids[0]}"
    with ThreadPoolExecutor(10) as crew:
        codes = [answer.status_code for answer in crew.map(lambda _: judge.ask("mallory", "GET", place), range(100))]
    assert set(codes) <= {200, 429}, codes
    return f"100 differences: {codes.count(200)} answered, {codes.count(429)} refused"


def datagrams(judge: Judge) -> str:
    judge.settled("mallory", judge.submit("mallory", DATAGRAMS))
    assert judge.ask("alice", "GET", "/healthz").status_code == 200, "the foreman ended"
    return "the foreman goes on"


def faults(judge: Judge) -> str:
    for number in range(3):
        judge.settled("mallory", judge.submit("mallory", LACKING + "//" * number))
    lanes = judge.ask("staff", "GET", "/api/v1/staff/queue").json()["lanes"]
    assert not any(lane["resting"] for lane in lanes), lanes
    id = judge.submit("alice", PROGRAM + "// after three faults\n")
    judge.settled("alice", id)
    return "no lane rests"


def malformed(judge: Judge) -> str:
    host, port = judge.url.removeprefix("http://").split(":")
    for _ in range(50):
        with socket.create_connection((host, int(port)), 30) as connection:
            connection.sendall(b"POST /login HTTP/1.1\r\nHost: x\r\nOrigin: http://[\r\n\r\n")
            answer = connection.recv(100)
            assert answer.startswith(b"HTTP/1.1 400"), answer
    return "400"


def endless(judge: Judge) -> str:
    id = judge.submit("mallory", ENDLESS)
    judge.until("mallory", id, lambda status: bool((status["running"] or {}).get("total")))
    behind = judge.submit("alice", PROGRAM + "// behind an endless one\n")
    began = time.monotonic()
    judge.settled("alice", behind)
    waited_s = time.monotonic() - began
    running = judge.ask("mallory", "GET", f"/api/v1/submissions/{id}").json()["state"] == "running"
    assert waited_s < MOST_LONGER_S, f"the next one waited {waited_s:.0f} s"
    judge.ask("mallory", "DELETE", f"/api/v1/submissions/{id}")
    state = judge.settled("mallory", id)["state"]
    assert state == "withdrawn" or not running, state
    return f"the next one done after {waited_s:.0f} s, while it {'ran' if running else 'had ended'}; then {state}"


ATTACKS = (malformed, *FLOODS, faults, datagrams, endless, line_ends, differences)


@contextlib.contextmanager
def served(folder: Path, landlock: bool) -> Iterator[Judge]:
    """A judge of hw4 on the emulator, with one lane."""
    environment = dict(os.environ)
    if landlock:
        (folder / "bwrap").write_text("#!/bin/sh\nexit 1\n")
        (folder / "bwrap").chmod(0o755)
        environment["PATH"] = f"{folder}{os.pathsep}{environment['PATH']}"
    store = folder / "class.sqlite"
    with open_store(store, create=True) as opened:
        for student in ("alice", "mallory"):
            opened.add_student(student, enrolled=True)
        tokens = {who or "staff": make_token(opened, who) for who in (STAFF, "alice", "mallory")}
        fill(opened, "mallory")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["serve", "--assignment", "hw4", "--engine", "emulator", "--jobs", "1", "--port", str(port)]
    with open(folder / "log", "wb") as log:  # noqa: PTH123
        words = [sys.executable, "-m", "grader", *command, "--store", str(store)]
        process = subprocess.Popen(words, stderr=log, env=environment)
    judge = Judge(f"http://127.0.0.1:{port}", process, tokens)
    try:
        end = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(httpx.TransportError):
                if judge.ask("alice", "GET", "/healthz").status_code == 200:
                    break
            assert time.monotonic() < end and process.poll() is None, (folder / "log").read_text()
            time.sleep(0.5)
        yield judge
        said = (folder / "log").read_text()
        assert "Traceback" not in said, said[-2000:]
    finally:
        process.terminate()
        process.wait(60)


def work(judge: Judge, ended: threading.Event) -> None:
    """What the second student's browser asks for, again and again."""
    headers = {"authorization": f"Bearer {judge.tokens['alice']}", "accept": AnswerForm.PART.value}
    with httpx.Client(base_url=judge.url, headers=headers, timeout=60) as client:
        while not ended.wait(0.05):
            for place in ("/", "/api/v1/submissions", "/board"):
                began = time.monotonic()
                client.get(place)
                judge.waits.append(time.monotonic() - began)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.redteam.judge")
    parser.add_argument("--landlock", action="store_true", help="as on a machine where bubblewrap cannot run")
    landlock, failed = parser.parse_args().landlock, 0
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), landlock) as judge:
        judge.settled("alice", judge.submit("alice", PROGRAM))
        ended = threading.Event()
        student = threading.Thread(target=work, args=(judge, ended))
        student.start()
        for attack in ATTACKS:
            judge.waits.clear()
            try:
                said, works = attack(judge), False
            except AssertionError as error:
                said, works = f"WORKS: {error}", True
            while len(judge.waits) < MEASURED:
                time.sleep(0.1)
            waits = sorted(judge.waits)
            p99_s, peak = waits[len(waits) * 99 // 100], judge.peak_bytes()
            failed += works or p99_s >= MOST_P99_S or peak >= MOST_BYTES
            print(
                f"{attack.__name__:12} {len(waits):5} requests of hers, p99 {p99_s * 1e3:4.0f} ms, slowest "
                f"{waits[-1] * 1e3:5.0f} ms; judge {peak / 1e6:4.0f} MB at most; {said}",
                flush=True,
            )
        ended.set()
        student.join()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
