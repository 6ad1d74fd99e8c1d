"""A changed rubric over a class of 200 stored results: new points in seconds, without running anything.

    python benchmarks/rescoring.py [--students 200] [--most 5]

Grades one wrong program on the emulator, stores its result for every student, each with a file of her own, changes the
points for a failed test in the rules, and times `grader grade CLASS` on that. Then it grades the program again under the
new rules, to compare the points. Exits 1 if they differ, if something was run, or if it takes more processor time than
`--most` seconds. (Wall time depends on the disk and on what else the machine does; it is printed.) It needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))

from grader.course.assignment import load_assignment  # noqa: E402
from grader.programs.submission import read_submission  # noqa: E402
from grader.records.conditions import conditions_of  # noqa: E402
from grader.records.record import Record, read_record  # noqa: E402
from grader.store import HandIn, open_store  # noqa: E402

BEFORE, AFTER = "per_failure: 3", "per_failure: 5"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=200)
    parser.add_argument("--most", type=float, default=5.0, help="seconds of processor time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        course = out / "course"
        for name in ("assignment", "testcases", "reference"):
            shutil.copytree(CHECKOUT / name, course / name, ignore=shutil.ignore_patterns("*.in", "*.out"))
        program = (CHECKOUT / "reference/hw4/naive.cu").read_text().replace("sum * scale", "sum")
        first = graded(out, course, program)
        store, folder = out / "class.sqlite", out / "class"
        for number in range(options.students):
            student = folder / f"s{number:03}"
            student.mkdir(parents=True)
            (student / "hw4.cu").write_text(f"{program}// {number}\n")
        fill(store, folder, first)
        rules = course / "assignment/hw4/assignment.yaml"
        text = rules.read_text()
        assert text.count(BEFORE) == 1, f"hw4 has other rules: {BEFORE} is not there once"
        rules.write_text(text.replace(BEFORE, AFTER))
        before, began = children_s(), time.monotonic()
        command = ["grade", folder, "--class", "--engine", "emulator", "--store", store, "--json", out / "after.json"]
        said = grader(course, *command)
        wall_s, cpu_s = time.monotonic() - began, children_s() - before
        rescored: list[dict[str, Any]] = json.loads((out / "after.json").read_text())
        fresh = graded(out, course, program)
    equal = all(one["parts"] == fresh.model_dump(mode="json")["parts"] for one in rescored)
    ran = f"{options.students} with new points" not in said
    print("\n".join(said.splitlines()[-3:]))
    print(f"{len(rescored)} results: {cpu_s:.2f} s of processor time, {wall_s:.2f} s; points ", end="")
    print("equal to a fresh grading's" if equal else "DIFFER from a fresh grading's")
    return int(not equal or ran or cpu_s > options.most or len(rescored) != options.students)


def graded(out: Path, course: Path, program: str) -> Record:
    (out / "one").mkdir(exist_ok=True)
    (out / "one/hw4.cu").write_text(program)
    grader(course, "grade", out / "one/hw4.cu", "--engine", "emulator", "--json", out / "one.json")
    return read_record(out / "one.json")


def fill(path: Path, folder: Path, record: Record) -> None:
    """Store `record` for every student of the class."""
    rules = load_assignment("hw4")
    with open_store(path, create=True) as store:
        for place in sorted(folder.iterdir()):
            read = read_submission(place, rules)
            own = record.submission.model_copy(update={"id": place.name, "path": str(place), "sha256": read.sha256})
            number = store.add_submission(HandIn("hw4", place.name, read.sha256, str(place), files=read.files))
            store.add_record(number, conditions_of(record), record.model_copy(update={"submission": own}))


def grader(course: Path, *words: object) -> str:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "GRADER_ROOT": str(course)}
    command = [sys.executable, "-m", "grader", *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"grader {words[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
