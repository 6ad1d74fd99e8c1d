"""A deadline hour of the live judge: 200 students submit 1,200 times while 200 boards are open, and the judge or one of
its workers is killed with SIGKILL ten times each. A stand-in takes the place of grading (tests/support): each stage of a
submission takes a known time, and its result is written in the source. Time is compressed: with --speed 12 the hour
takes five minutes, and every duration is a twelfth; requests and pages are not compressed.

    python benchmarks/judge.py OUT [--students 200] [--each 6] [--boards 200] [--kills 10] [--speed 12] [--seed 1]

A second, undisturbed run of the same submissions follows; both stores must hold the same records. It prints the
measurements, and exits 1 if a requirement does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))

from grader.course.assignment import load_assignment  # noqa: E402
from grader.course.catalogue import TestcaseFiles  # noqa: E402
from grader.course.testcase import load_suite  # noqa: E402
from grader.grading.setup import Setup  # noqa: E402
from grader.judge.ledger import Stage  # noqa: E402
from grader.judge.negotiation import AnswerForm  # noqa: E402
from grader.judge.office import Judge  # noqa: E402
from grader.judge.server import reserve, serve  # noqa: E402
from grader.judge.tokens import make_token  # noqa: E402
from grader.store import check_store, open_store  # noqa: E402
from tests.support.batch_engine import PlainC  # noqa: E402
from tests.support.judge_stand_in import stand_in_lanes  # noqa: E402

HOUR_S = 3600.0
LANES = 3
"""Of each stage. A stage takes 4 to 8 s, so 1,200 submissions keep the lanes busy for two thirds of the hour."""
POLL_S = 1.0
"""The interval at which a student's page looks for news, in real seconds."""


def of_this_checkout(course: Path) -> dict[str, str]:
    """The environment in which this checkout's grader uses a course. Modules on PYTHONPATH stay importable."""
    paths = [str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "GRADER_ROOT": str(course), "PYTHONPATH": os.pathsep.join(paths)}


def serve_stand_in(store: Path, port: int, speed: float) -> None:
    """The judge's process."""
    rules = load_assignment("hw4")
    rules = rules.model_copy(update={"judge": rules.judge.model_copy(update={"per_hour": 10_000})})
    suite = load_suite(rules.testcases_file)
    setup = Setup(rules, suite, TestcaseFiles.beside(suite), suite.select("s01"), PlainC())
    lanes = stand_in_lanes(setup, tuple(Stage), LANES, speed)
    for lane in lanes:
        lane.recheck = None  # the records of two runs are compared
    serve(Judge(store, rules, lanes), reserve("127.0.0.1", port))


@dataclass
class Hour:
    """One run and its observations."""

    port: int
    speed: float
    tokens: dict[str, str]
    latencies: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    acknowledged: dict[str, float | None] = field(default_factory=dict)
    """The ids that were answered with 201, and the wait that was predicted then."""
    down: list[tuple[float, float]] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None
    peak_bytes: int = 0
    over: bool = False

    async def ask(
        self, kind: str, method: str, place: str, student: str = "", body: bytes = b"", **headers: str
    ) -> tuple[int, bytes]:
        """A request, repeated while the judge is down; only answered ones count in the latencies."""
        lines = {"Host": "judge", "Connection": "close", "Content-Length": str(len(body))} | headers
        if student:
            lines["Authorization"] = f"Bearer {self.tokens[student]}"
        head = f"{method} {place} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "\r\n"
        while True:
            began = time.monotonic()
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(head.encode() + body)
                answer = await reader.read(-1)
                writer.close()
                status = int(answer.split(b" ", 2)[1])
                if status == 429:  # after a restart, all clients come at once
                    await asyncio.sleep(1 + random.random())
                    continue
                self.latencies[kind].append(time.monotonic() - began)
                return status, answer.partition(b"\r\n\r\n")[2]
            except (OSError, IndexError):  # killed: before, or in the middle of, the answer
                await asyncio.sleep(random.uniform(0.5, 1.5))  # as `grader submit` does

    # ---- who is there ----

    async def student(self, name: str, moments: Sequence[float], sources: Sequence[bytes]) -> None:
        """Submit at these moments, or when the submission before is done."""
        began = time.monotonic()
        for number, (moment, source) in enumerate(zip(moments, sources, strict=True)):
            await asyncio.sleep(max(0.0, began + moment / self.speed - time.monotonic()))
            key = {"Idempotency-Key": f"{name}-{number}"}
            status, content = await self.ask("submit", "POST", "/api/v1/submissions", name, source, **key)
            assert status == 201, content
            found = json.loads(content)
            self.acknowledged[found["id"]] = found["predicted_wait_s"]
            await self.ask("page", "GET", "/", name)
            while found["state"] in ("waiting", "running"):
                await asyncio.sleep(POLL_S)
                found = json.loads((await self.ask("status", "GET", f"/api/v1/submissions/{found['id']}", name))[1])
            await self.ask("page", "GET", found["url"], name)

    async def board(self) -> None:
        """An open board: it hears that something moved, waits a little by chance, and asks for the new board."""
        retry_s = 2.0
        while not self.over:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(b"GET /api/v1/events HTTP/1.1\r\nHost: judge\r\n\r\n")
                while line := await reader.readline():
                    if line.startswith(b"retry:"):
                        retry_s = int(line[6:]) / 1000
                    if line.startswith(b"data:"):
                        await asyncio.sleep(0.7 + random.random() * 1.5)
                        await self.ask("board", "GET", "/board", Accept=AnswerForm.PART.value)
                        while getattr(
                            reader, "_buffer", b""
                        ):  # this answer also covers submissions that came meanwhile
                            await reader.readline()
            await asyncio.sleep(retry_s)  # as browsers do

    async def killer(self, store: Path, kills: int, chosen: random.Random) -> None:
        """SIGKILL for the judge, and in between for one of its workers, until the hour is over."""
        for _ in range(kills):
            await asyncio.sleep(chosen.uniform(0.5, 1.4) * HOUR_S / self.speed / (kills + 1))
            workers = await asyncio.to_thread(children, self.pid)
            if workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chosen.choice(workers), signal.SIGKILL)
            await asyncio.sleep(1)
            began = time.time()
            os.kill(self.pid, signal.SIGKILL)
            await asyncio.to_thread(self.start, store)
            self.down.append((began, time.time()))

    async def watch_memory(self) -> None:
        while not self.over:
            self.peak_bytes = max(self.peak_bytes, resident_bytes(self.pid))
            await asyncio.sleep(0.5)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self, store: Path) -> None:
        """Start the judge, and wait until it answers."""
        if self.process is not None:
            self.process.wait()
        command = [sys.executable, __file__, str(store), "--serve", str(self.port), "--speed", str(self.speed)]
        self.process = subprocess.Popen(command)
        while self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.1)
        raise SystemExit("the judge did not start")


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line.split()[0]) for line in found.stdout.splitlines() if "grader.base.remote" in line]


def resident_bytes(pid: int) -> int:
    with contextlib.suppress(OSError, StopIteration):
        text = Path(f"/proc/{pid}/status").read_text()
        return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) * 1024
    return 0


async def run_hour(
    hour: Hour, store: Path, plan: dict[str, tuple[list[float], list[bytes]]], boards: int, kills: int, seed: int
) -> None:
    """Everybody at once."""
    others = [asyncio.create_task(hour.board()) for _ in range(boards)]
    others.append(asyncio.create_task(hour.watch_memory()))
    killer = asyncio.create_task(hour.killer(store, kills, random.Random(seed)))
    await asyncio.gather(*(hour.student(name, *planned) for name, planned in plan.items()))
    await killer
    hour.over = True
    for task in others:
        task.cancel()


def planned(students: int, each: int, seed: int) -> dict[str, tuple[list[float], list[bytes]]]:
    """The plan of when each student submits what: more and more often towards the end of the hour. Every tenth student
    submits twice as much as planned, early on."""
    chosen, plan = random.Random(seed), {}
    for number in range(students):
        moments = sorted(HOUR_S * chosen.random() ** 0.6 for _ in range(each))
        if number % 10 == 0:
            moments = sorted(chosen.uniform(0, HOUR_S / 4) for _ in range(each))
        sources = [
            f"// seconds: {chosen.uniform(4, 8):.2f}\n// speedup: {chosen.uniform(2, 900):.1f}\n// fails: "
            f"{chosen.choice(['none', 's02', 'none'])}\nint main() {{}} // {number} {attempt}\n".encode()
            for attempt in range(each)
        ]
        plan[f"s{number:03}"] = (moments, sources)
    return plan


def records_in(store: Path) -> dict[tuple[str, str, str], list[str]]:
    """The digests of all records, by student, content and conditions."""
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    with contextlib.closing(sqlite3.connect(store)) as db:
        query = (
            "SELECT student, sha256, conditions, digest FROM records JOIN submissions ON submissions.id = submission"
        )
        for student, sha256, conditions, digest in db.execute(query):
            found[student, sha256, conditions].append(digest)
    return found


def waits_in(store: Path, hour: Hour) -> dict[str, Any]:
    """The times that submissions waited for their verdicts, compared with the prediction and with a fair round."""
    with contextlib.closing(sqlite3.connect(store)) as db:
        rows = db.execute("SELECT id, student, received, first_at, verdict_s FROM judge_uploads").fetchall()
    mean_s = statistics.fmean(row[4] for row in rows)
    errors, shares = [], []
    starts = sorted(first_at - verdict_s for *_, first_at, verdict_s in rows)
    # After a restart the lanes are back when the first of them takes a submission.
    down = [(began, next((start for start in starts if start >= end), end)) for began, end in hour.down]
    for id, _student, received, first_at, verdict_s in rows:
        if any(received <= end and began < first_at for began, end in down):
            continue  # the judge was down meanwhile, which no prediction covers
        predicted = hour.acknowledged.get(id)
        if predicted is not None:
            errors.append(abs(predicted - (first_at - received)) / (first_at - received))
        began = first_at - verdict_s
        others = {other[1] for other in rows if other[2] < began and other[3] > received}
        shares.append((began - received) / (mean_s * len(others) / LANES + mean_s))
    waited = sorted(row[3] - row[2] for row in rows)
    return {
        "prediction_error_median": statistics.median(errors),
        "longest_wait_over_fair_share": max(shares),
        "counted": len(shares),
        "wait_median_s": waited[len(waited) // 2] * hour.speed,
        "wait_longest_s": waited[-1] * hour.speed,
    }


def one_run(
    store: Path,
    arguments: argparse.Namespace,
    plan: dict[str, tuple[list[float], list[bytes]]],
    *,
    boards: int,
    kills: int,
    speed: float,
) -> Hour:
    with open_store(store, create=True) as opened:
        for name in plan:
            opened.add_student(name, nickname=f"nick {name}", enrolled=True)
        tokens = {name: make_token(opened, name) for name in plan}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    hour = Hour(port, speed, tokens)
    asked = time.time()
    hour.start(store)
    hour.down.append((asked, time.time()))
    began = time.monotonic()
    try:
        asyncio.run(run_hour(hour, store, plan, boards, kills, arguments.seed))
    finally:
        hour.process.terminate()  # type: ignore[union-attr]
        hour.process.wait()  # type: ignore[union-attr]
    print(f"{store.name}: {len(hour.acknowledged)} submissions in {time.monotonic() - began:.0f} s", flush=True)
    return hour


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    for name, default in (("students", 200), ("each", 6), ("boards", 200), ("kills", 10), ("seed", 1), ("serve", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--speed", type=float, default=12.0)
    arguments = parser.parse_args()
    if arguments.serve:
        serve_stand_in(arguments.out, arguments.serve, arguments.speed)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unwinds, and so ends the judge
    arguments.out.mkdir(parents=True)
    plan = planned(arguments.students, arguments.each, arguments.seed)
    killed, calm = arguments.out / "killed.sqlite", arguments.out / "calm.sqlite"
    hour = one_run(killed, arguments, plan, boards=arguments.boards, kills=arguments.kills, speed=arguments.speed)
    one_run(calm, arguments, plan, boards=0, kills=0, speed=6 * arguments.speed)
    seen, must = report(hour, killed, calm, arguments)
    print(json.dumps(seen, indent=2))
    for sentence, holds in must.items():
        print(f"{'ok ' if holds else 'NOT'} {sentence}")
    sys.exit(0 if all(must.values()) else 1)


def report(
    hour: Hour, killed: Path, calm: Path, arguments: argparse.Namespace
) -> tuple[dict[str, Any], dict[str, bool]]:
    """Return the measurements, and the requirements with whether they hold."""
    seen = waits_in(killed, hour)
    for kind, values in hour.latencies.items():
        ordered = sorted(values)
        seen[f"{kind}_ms"] = {
            "requests": len(ordered),
            **{f"p{share}": round(1000 * ordered[int(len(ordered) * share / 100)], 1) for share in (50, 90, 99)},
        }
    everything = sorted(value for values in hour.latencies.values() for value in values)
    seen["p99_ms"] = round(1000 * everything[int(len(everything) * 0.99)], 1)
    seen["server_peak_mb"] = round(hour.peak_bytes / 1e6)
    seen["down_s"] = [round(end - began, 1) for began, end in hour.down]
    with contextlib.closing(sqlite3.connect(killed)) as db:
        states = dict(db.execute("SELECT id, state FROM judge_uploads"))
    with open_store(killed) as store:
        problems = check_store(store)
    one, other = records_in(killed), records_in(calm)
    return seen, {
        f"every one of {arguments.students * arguments.each} submissions was acknowledged": len(hour.acknowledged)
        == arguments.students * arguments.each,
        "nothing acknowledged is lost, and everything is done": all(
            states.get(id) == "done" for id in hour.acknowledged
        )
        and len(states) == len(hour.acknowledged),
        "no submission has two results of one stage": all(len(digests) == 1 for digests in one.values()),
        "the store has the records of an undisturbed run": one == other,
        "the store is sound": not problems,
        "predicted waits are within 25 % (median)": seen["prediction_error_median"] <= 0.25,
        "nobody waited more than twice the fair share": seen["longest_wait_over_fair_share"] <= 2,
        "p99 of pages and API is at most 200 ms": seen["p99_ms"] <= 200,
    }


if __name__ == "__main__":
    main()
