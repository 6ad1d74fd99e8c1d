"""Measures the cost of one request to the live judge: the CPU time of its process, all threads together, and the time
that a client waits for its answer. CPU depends little on what else the machine does, so it can be compared between
runs.

    python benchmarks/judge_requests.py OUT [--students 200] [--each 3] [--requests 300]

Before anything is measured the store holds `students` times `each` submissions, graded by the stand-in of
benchmarks/judge.py. The cost of a submission includes both stages of its grading and the board that follows.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from judge import Hour

from grader.judge.negotiation import AnswerForm
from grader.judge.tokens import STAFF, make_token
from grader.store import open_store

STREAMS = 200
"""Open boards while an event is measured."""
KEPT = 20
"""Students whose pages are asked for again and again: what is kept in memory for them is used."""


def cpu_ms(pid: int) -> float:
    """The CPU time of a process, all its threads together. Threads that have ended are no longer counted."""
    return sum(int(one.read_text().split()[0]) for one in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e6


async def settle(hour: Hour, ids: dict[str, str]) -> None:
    """Wait until these submissions, each with its student, are done."""
    for id, student in ids.items():
        while json.loads((await hour.ask("wait", "GET", f"/api/v1/submissions/{id}", student))[1])["state"] != "done":
            await asyncio.sleep(0.05)


async def submit(hour: Hour, student: str, number: object) -> dict[str, str]:
    source = (
        f"// speedup: {random.uniform(2, 900):.1f}\n// fails: s0{random.randint(1, 9)}\nint main() {{}} // {number}\n"
    )
    status, content = await hour.ask("submit", "POST", "/api/v1/submissions", student, source.encode())
    assert status == 201, content
    return {json.loads(content)["id"]: student}


async def measured(hour: Hour, kind: str, count: int, once: Callable[[int], Awaitable[object]]) -> None:
    """Print the mean CPU of `count` calls of `once`, which are made one after another."""
    began, used = time.monotonic(), cpu_ms(hour.pid)
    for number in range(count):
        await once(number)
    used, took = cpu_ms(hour.pid) - used, time.monotonic() - began
    print(f"{kind:28} {used / count:7.2f} ms of CPU {1000 * took / count:8.2f} ms", flush=True)


async def requests(hour: Hour, students: list[str], each: int, count: int) -> None:
    for attempt in range(each):
        waiting: dict[str, str] = {}
        for student in students:
            waiting |= await submit(hour, student, attempt)
        await settle(hour, waiting)
    newest = {student: id for id, student in waiting.items()}
    await asyncio.sleep(3)  # the board is up to date then
    for kind, place, who in (
        ("nothing (healthz)", "/healthz", ""),
        ("status of a submission", "/api/v1/submissions/{id}", "student"),
        ("a student's page", "/", "student"),
        ("its moving part", "/", "student"),
        ("page of a submission", "/submissions/{id}", "student"),
        ("its moving part", "/submissions/{id}", "student"),
        ("board's moving part", "/board", ""),
        ("board's page", "/board", ""),
        ("board as JSON", "/api/v1/board", ""),
        ("style sheet", "/static/style.css", ""),
        ("staff's moving part", "/staff", "staff"),
    ):

        async def once(number: int, kind: str = kind, place: str = place, who: str = who) -> None:
            student = "staff" if who == "staff" else students[number % len(students)]
            id = newest[student] if who == "student" else ""
            accept = AnswerForm.PART.value if "moving part" in kind else AnswerForm.PAGE.value
            status, content = await hour.ask(kind, "GET", place.format(id=id), student if who else "", Accept=accept)
            assert status == 200, content

        if who == "student":
            await measured(hour, f"{kind}, first", len(students), once)
        await measured(hour, kind, count, lambda number, once=once: once(number % KEPT))  # type: ignore[misc]

    async def graded(number: int) -> None:
        await settle(hour, await submit(hour, students[number % len(students)], f"again {number}"))

    await measured(hour, "submission, graded", count // 3, graded)
    streams = [await asyncio.open_connection("127.0.0.1", hour.port) for _ in range(STREAMS)]
    for reader, writer in streams:
        writer.write(b"GET /api/v1/events HTTP/1.1\r\nHost: judge\r\n\r\n")
        await reader.readuntil(b"retry")

    async def event(number: int) -> None:
        await graded(number + count)
        await streams[-1][0].readuntil(b"data:")

    await measured(hour, f"the same with {STREAMS} boards", count // 30, event)
    for _, writer in streams:
        writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    for name, default in (("students", 200), ("each", 3), ("requests", 300)):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    students = [f"s{number:03}" for number in range(arguments.students)]
    with open_store(arguments.out, create=True) as store:
        for student in students:
            store.add_student(student, nickname=f"nick {student}", enrolled=True)
        tokens = {student: make_token(store, student) for student in students} | {"staff": make_token(store, STAFF)}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    hour = Hour(port, 1000.0, tokens)
    hour.start(arguments.out)
    try:
        asyncio.run(requests(hour, students, arguments.each, arguments.requests))
    finally:
        with contextlib.suppress(ProcessLookupError):
            hour.process.terminate()  # type: ignore[union-attr]
        hour.process.wait()  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
