"""Forty students and the real emulator: the same programs, once as a class for `grader grade` and once submitted to the
judge at the same moment. Every submission must be graded, with the verdicts of the batch.

    python benchmarks/judge_emulator.py OUT [--students 40] [--jobs N]

The programs are the reference solutions of hw4, its wrong solutions, the honest but unusual programs of tests/honest, and
a few that do not compile or crash. They run on the small course of tests/course. Exits 1 if anything differs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from judge import CHECKOUT, Hour, of_this_checkout

from grader.judge.tokens import make_token
from grader.store import open_store

BROKEN = (
    "int main( {\n",
    "int main() { return 0; }\n",
    "int main() { __builtin_trap(); }\n",
    "#include <cublas_v2.h>\nint main() {}\n",
)
Verdicts = dict[str, list[tuple[str, str]]]


def programs(count: int) -> dict[str, str]:
    """Sources by student."""
    reference, honest = CHECKOUT / "reference/hw4", CHECKOUT / "tests/honest/programs"
    paths = [reference / f"{name}.cu" for name in ("naive", "tiled", "flash2")]
    for folder in (reference / "wrong", honest):
        paths += sorted(folder.glob("*.cu"))[: (count - len(paths)) // 2 + 1]
    sources = [*BROKEN, *(path.read_text() for path in paths)]
    for header in (honest / "honest.h", reference / "whole_program.cuh"):
        sources = [source.replace(f'#include "{header.name}"', header.read_text()) for source in sources]
    return {f"s{number:02}": sources[number % len(sources)] + f"// {number}\n" for number in range(count)}


def batch(out: Path, jobs: int, environment: dict[str, str]) -> Verdicts:
    """The verdicts of `grader grade` over a folder."""
    command = [sys.executable, "-m", "grader", "grade", str(out / "class"), "--class", "--tests", "public"]
    command += ["--engine", "emulator", "--jobs", str(jobs), "--store", str(out / "batch.sqlite")]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    with open_store(out / "batch.sqlite") as store:
        return {
            one.student.id: [(test.name, test.verdict.value) for test in one.record.tests]
            for one in store.attempts("attention")
        }


async def student(hour: Hour, name: str, source: str) -> list[tuple[str, str]]:
    """Submit, and wait for the verdicts."""
    status, content = await hour.ask("submit", "POST", "/api/v1/submissions?name=hw4.cu", name, source.encode())
    assert status == 201, content
    found = json.loads(content)
    while found["state"] in ("waiting", "running"):
        await asyncio.sleep(0.5)
        found = json.loads((await hour.ask("status", "GET", f"/api/v1/submissions/{found['id']}", name))[1])
    return [(test["name"], test["verdict"]) for test in found["tests"]]


async def evening(hour: Hour, sources: dict[str, str]) -> Verdicts:
    """Everybody submits at once."""
    found = await asyncio.gather(*(student(hour, name, source) for name, source in sources.items()))
    return dict(zip(sources, found, strict=True))


def judged(out: Path, jobs: int, environment: dict[str, str], sources: dict[str, str]) -> Verdicts:
    """The verdicts of `grader serve`."""
    with open_store(out / "judge.sqlite", create=True) as store:
        for name in sources:
            store.add_student(name, enrolled=True)
        tokens = {name: make_token(store, name) for name in sources}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "grader",
        "serve",
        "--engine",
        "emulator",
        "--jobs",
        str(jobs),
        "--port",
        str(port),
    ]
    judge = subprocess.Popen(
        [*command, "--store", str(out / "judge.sqlite")], env=environment, stdout=subprocess.DEVNULL
    )
    try:
        while True:
            assert judge.poll() is None, "the judge ended"
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        return asyncio.run(evening(Hour(port, 1.0, tokens), sources))
    finally:
        judge.terminate()
        judge.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--students", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=max(1, len(os.sched_getaffinity(0)) // 2))
    arguments = parser.parse_args()
    out, sources = arguments.out, programs(arguments.students)
    shutil.copytree(CHECKOUT / "tests/course", out / "course")
    for name, source in sources.items():
        (out / "class" / name).mkdir(parents=True)
        (out / "class" / name / "hw4.cu").write_text(source)
    environment = of_this_checkout(out / "course")
    began = time.monotonic()
    live = judged(out, arguments.jobs, environment, sources)
    between = time.monotonic()
    by_batch = batch(out, arguments.jobs, environment)
    print(f"the judge {between - began:.0f} s, the batch after it {time.monotonic() - between:.0f} s")
    for name in sources:
        if live[name] != by_batch.get(name):
            print(f"{name}: the judge {live[name]}, the batch {by_batch.get(name)}")
    kinds = sorted({verdict for tests in live.values() for _, verdict in tests})
    must = {
        f"all {len(sources)} submissions are graded ({', '.join(kinds)})": all(live.values()),
        "the verdicts are those of a batch": live == by_batch,
    }
    for sentence, holds in must.items():
        print(f"{'ok ' if holds else 'NOT'} {sentence}")
    sys.exit(0 if all(must.values()) else 1)


if __name__ == "__main__":
    main()
