"""A class of 200 made of model solutions, wrong ones, and hand-ins that are broken, hang or are huge; graded in one
run, then again in a run that is killed with SIGKILL at random moments and resumed. Both must end with the same store.

    python benchmarks/synthetic_class.py OUT [--students 200] [--kills 5] [--tests s01] [--programs 12] [--seed 1]

It prints what it measured: seconds, records, and the peak memory of the grader's processes together (the coordinator
and its workers, sampled ten times a second, proportional set size; what they run, compilers and hand-ins, is not the
grader's). Exits 1 if a requirement does not hold. It needs no GPU, and some minutes. The limit of a run is set to 5 s,
so that the hanging ones do not take a minute each.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))

from grader.records.record import Record  # noqa: E402
from grader.store import check_store, open_store  # noqa: E402

ODD = {
    "hanging": b"int main() { for (;;); }\n",
    "does not compile": b"int main( {\n",
    "empty": b"",
    "huge": b"//" + b"x" * (3 << 20),
    "silent": b"int main() { return 0; }\n",
    "crashing": b"int main() { return *(volatile int *)0; }\n",
}


def make_class(folder: Path, students: int, programs: int, chosen: random.Random) -> Counter[str]:
    """Make a folder per student; return the number of submissions of each kind."""
    reference = CHECKOUT / "reference/hw4"
    wrong = sorted((reference / "wrong").glob("*.cu"))
    models = [reference / "flash2.cu", reference / "tiled.cu"]
    kinds: dict[str, list[tuple[str, bytes]]] = {name: [("hw4.cu", text)] for name, text in ODD.items()}
    for path in [*models, *chosen.sample(wrong, max(0, min(len(wrong), programs - len(models))))]:
        headers = [*path.parent.glob("*.cuh"), *path.parent.parent.glob("*.cuh")]
        used = [(header.name, header.read_bytes()) for header in headers]
        kinds[path.stem] = [("hw4.cu", path.read_bytes()), *dict(used).items()]
    kinds["nothing"] = []
    kinds["ten thousand files"] = [(f"file{number}.cu", b"") for number in range(10_000)]
    made: Counter[str] = Counter()
    names = list(kinds)
    for number in range(students):
        kind = names[number % len(names)]
        if kind == "ten thousand files" and made[kind]:
            kind = "flash2"
        made[kind] += 1
        student = folder / f"student {number:03} {'🦊' if number % 17 == 0 else ''}".strip()
        student.mkdir(parents=True)
        for name, content in kinds[kind]:
            (student / name).write_bytes(content)
    return made


class Memory(threading.Thread):
    """Samples the proportional set size of the grader's own processes below `root`."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.root, self.peak_bytes, self.stop = root, 0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self.stop.wait(0.1):
            self.peak_bytes = max(self.peak_bytes, sum(_pss(pid) for pid in _graders(self.root)))


def _graders(root: int) -> list[int]:
    children = Path(f"/proc/{root}/task/{root}/children")
    try:
        below = [int(pid) for pid in children.read_text().split()]
    except OSError:
        return []
    found = [root]
    for pid in below:
        try:
            if b"grader.base.remote" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def _pss(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 0


def make_course(folder: Path) -> None:
    """This checkout's course with a shorter limit."""
    for name in ("assignment", "reference", "testcases"):
        shutil.copytree(CHECKOUT / name, folder / name)
    rules = folder / "assignment/hw4/assignment.yaml"
    text = rules.read_text()
    assert "emulator_wall_s: 60" in text
    rules.write_text(text.replace("emulator_wall_s: 60", "emulator_wall_s: 5"))
    os.environ["GRADER_ROOT"] = str(folder.resolve())


def grade(folder: Path, store: Path, tests: str, log: Path) -> subprocess.Popen[bytes]:
    """Start grading the class."""
    command = [sys.executable, "-m", "grader", "grade", str(folder), "--class", "--tests", tests]
    command += ["--engine", "emulator", "--store", str(store)]
    return subprocess.Popen(command, cwd=CHECKOUT, stdout=log.open("ab"), stderr=subprocess.STDOUT)


def essence(store: Path) -> dict[str, object]:
    """The results that no interruption may change: by student, verdicts and scores."""
    with open_store(store) as opened:
        assert check_store(opened) == [], check_store(opened)
        return {attempt.student.id: _essence(attempt.record) for attempt in opened.attempts("hw4")}


def _essence(record: Record) -> object:
    return record.submission.sha256, [test.verdict for test in record.tests], record.scores.model_dump()


def grade_in_one_run(folder: Path, store: Path, tests: str, log: Path) -> tuple[float, int]:
    """Grade the class; return the seconds and the peak memory of the grader's processes in bytes."""
    began = time.monotonic()
    grader = grade(folder, store, tests, log)
    memory = Memory(grader.pid)
    code = grader.wait()
    memory.stop.set()
    seconds = time.monotonic() - began
    print(f"In one run: {seconds:.0f} s, exit code {code}, peak memory {memory.peak_bytes / 1e6:.0f} MB.", flush=True)
    return seconds, memory.peak_bytes


def grade_with_kills(folder: Path, store: Path, tests: str, log: Path, pauses_s: Sequence[float]) -> int:
    """Grade the class with a SIGKILL after each of `pauses_s`, then to the end, and return the number of stored
    records."""
    kept = []
    for pause_s in pauses_s:
        grader = grade(folder, store, tests, log)
        try:
            grader.wait(timeout=pause_s)
        except subprocess.TimeoutExpired:
            grader.send_signal(signal.SIGKILL)
            grader.wait()
        with open_store(store, create=True) as opened:
            kept.append(opened.counts()["records"])
    code = grade(folder, store, tests, log).wait()
    print(f"Killed {len(kept)} times, with {', '.join(map(str, kept))} records stored; then exit code {code}.")
    with open_store(store) as opened:
        return opened.counts()["records"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--students", type=int, default=200)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--tests", default="s01")
    parser.add_argument("--programs", type=int, default=12, help="different CUDA programs among them")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    asked.out = asked.out.resolve()
    chosen = random.Random(asked.seed)
    shutil.rmtree(asked.out, ignore_errors=True)
    folder = asked.out / "class"
    make_course(asked.out / "course")
    made = make_class(folder, asked.students, asked.programs, chosen)
    print(f"{asked.students} hand-ins: {', '.join(f'{count} {kind}' for kind, count in made.most_common())}.")

    whole, killed, log = (asked.out / name for name in ("whole.sqlite", "killed.sqlite", "log"))
    seconds, peak_bytes = grade_in_one_run(folder, whole, asked.tests, log)
    pauses_s = [chosen.uniform(2, max(3.0, seconds / 3)) for _ in range(asked.kills)]
    records = grade_with_kills(folder, killed, asked.tests, log, pauses_s)

    one, other = essence(whole), essence(killed)
    problems = []
    if one != other:
        different = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
        problems.append(f"the stores differ for {', '.join(different[:10])}")
    if len(one) != asked.students or records != asked.students:
        problems.append(f"{len(one)} students and {records} records, expected {asked.students} of both")
    if peak_bytes > 500e6:
        problems.append("the grader took more than 500 MB")
    print("MUST HOLD: " + ("; ".join(problems) if problems else "the same store, no record lost, none double."))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
