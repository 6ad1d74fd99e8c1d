"""The judge on a GPU next to `grader grade`: the time to the first verdict on an idle machine, scores and verdicts of the
same programs, and the rank that a result gets by a recheck while nobody waits.

    python benchmarks/judge_gpu.py [OUT]

It grades on tests/course with hw4's sequential program and shapes for which times are well above the launch overhead.
Exits 1 if a requirement does not hold.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from judge import CHECKOUT, of_this_checkout

from grader.judge.tokens import make_token
from grader.store import open_store

PROGRAMS = ("naive", "tiled")
SHAPES = {"t01": "[64, 128, 32]", "t02": "[40, 512, 64]", "t03": "[40, 1024, 64]", "t04": "[20, 2048, 32]"}
GRADER = (sys.executable, "-m", "grader")
FIRST_S, SCORES, RANKED_S = 15.0, 0.005, 90.0
"""The longest time to the first verdict, the largest difference of a score, and how long a recheck may take."""


def course(out: Path) -> dict[str, str]:
    """Lay out the course; the environment in which the grader uses it."""
    shutil.copytree(CHECKOUT / "tests/course", out / "course")
    baseline = CHECKOUT / "reference/hw4/seq_flash_attention.c"
    shutil.copy(baseline, out / "course/reference/attention/sequential.c")
    shutil.copy(CHECKOUT / "reference/sequential.h", out / "course/reference")
    cases = out / "course/testcases/attention.yaml"
    text = cases.read_text()
    for name, shape in SHAPES.items():
        text = re.sub(rf"{name}: .*", f"{name}: {shape}", text)
    cases.write_text(text)
    return of_this_checkout(out / "course")


def by_hand(out: Path, name: str, source: Path, environment: dict[str, str]) -> dict[str, Any]:
    """The record of `grader grade`."""
    path = out / f"{name}.json"
    command = (*GRADER, "grade", str(source), "--engine", "cuda", "--json", str(path))
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def ask(port: int, token: str, place: str, content: bytes | None = None) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1{place}", content, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def judged(port: int, token: str, source: Path) -> tuple[float, dict[str, Any]]:
    """Submit; the seconds to the first test's verdict, and the record."""
    began, first = time.monotonic(), None
    status = ask(port, token, "/submissions?name=hw4.cu", source.read_bytes() + b"// to the judge\n")
    while status["state"] in ("waiting", "running"):
        time.sleep(0.05)
        status = ask(port, token, f"/submissions/{status['id']}")
        if first is None and ((status["running"] or {}).get("tests") or status["tests"]):
            first = time.monotonic() - began
    print(f"{source.name}: {status['state']} {status['note']} after {time.monotonic() - began:.1f} s", flush=True)
    return first or time.monotonic() - began, ask(port, token, f"/submissions/{status['id']}/record")


def ranked(port: int, token: str) -> bool:
    """Whether all students have a rank on the board before long."""
    until = time.monotonic() + RANKED_S
    while time.monotonic() < until:
        board = ask(port, token, "/board")
        ranks = [row["rank"] for row in board["rows"] if row["mark"] is None] if board else [None]
        if all(ranks):
            return True
        time.sleep(1)
    print(board)
    return False


def difference(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest relative difference of a score; infinite where only one of them has it."""
    largest = 0.0
    for part, value in one["scores"].items():
        against = other["scores"][part]
        if (value is None) != (against is None):
            return float("inf")
        if value is not None and value != against:
            largest = max(largest, abs(value - against) / max(abs(value), abs(against)))
    return largest


def holds(sentence: str, is_so: bool) -> bool:
    """Print at once whether a requirement holds, since later measurements may exceed the time limit."""
    print(f"{'ok ' if is_so else 'NOT'} {sentence}", flush=True)
    return is_so


def agree(found: dict[str, tuple[float, dict[str, Any]]], hand: dict[str, dict[str, Any]]) -> list[bool]:
    """The requirements on the judge's records compared with those of `grader grade`."""
    for name, (_, record) in found.items():
        times = [(test["name"], test["verdict"], test["gpu_ms"]) for test in record["tests"]]
        print(f"{name} by the judge: {record['scores']}\n  {times}\n  {[t['gpu_ms'] for t in hand[name]['tests']]}")
    firsts = [first for first, _ in found.values()]
    largest = max(difference(record, hand[name]) for name, (_, record) in found.items())
    verdicts = [
        [[test["verdict"] for test in one["tests"]] for one in (record, hand[name])]
        for name, (_, record) in found.items()
    ]
    seconds = ", ".join(f"{first:.1f} s" for first in firsts)
    return [
        holds(f"the first verdict is there within 15 s: {seconds}", max(firsts) <= FIRST_S),
        holds(f"scores agree within 0.5 %: {100 * largest:.2f} % apart at most", largest <= SCORES),
        holds("verdicts are equal", all(one == other for one, other in verdicts)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?", help="a new folder; by default a temporary one")
    out: Path = parser.parse_args().out or Path(tempfile.mkdtemp()) / "judge"
    out.mkdir(parents=True)
    environment = course(out)
    sources = {name: CHECKOUT / f"reference/hw4/{name}.cu" for name in PROGRAMS}
    hand = {}
    for name, source in sources.items():
        shutil.copy(source, out / "hw4.cu")
        hand[name] = by_hand(out, name, out / "hw4.cu", environment)
        print(f"{name} by hand: {hand[name]['scores']}", flush=True)
    with open_store(out / "judge.sqlite", create=True) as store:
        for name in sources:
            store.add_student(name, nickname=name, enrolled=True)
        tokens = {name: make_token(store, name) for name in sources}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = (*GRADER, "serve", "--port", str(port), "--store", str(out / "judge.sqlite"))
    judge = subprocess.Popen(command, env=environment)
    try:
        while True:
            assert judge.poll() is None, "the judge ended"
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        time.sleep(5)  # idle
        found = {name: judged(port, tokens[name], source) for name, source in sources.items()}
        held = agree(found, hand)
        has_ranks = ranked(port, tokens[PROGRAMS[0]])
        held.append(holds("results get a rank by a recheck while nobody waits", has_ranks))
    finally:
        judge.terminate()
        judge.wait()
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
