"""A class made for the site's tests: nothing ran to make its records."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

from grader.record import BaselineRecord, KernelRecord, ProfileRecord, Record
from grader.store import HandIn, Store
from grader.store.database import Points
from grader.verdict import Verdict
from tests.records import made_record, made_test

SOURCE = "\n".join(["#include <cstdio>", "__global__ void attend(float *o) { o[0] = 1; }", "int main() { return 0 }"])
LOG = "hw4.cu(3): error: expected a ';' </script><b>bold</b>\nhw4.cu(2): warning #177-D: variable was never used"
NASTY = "<script>alert('x')</script> & \"co\""


PROFILE = ProfileRecord(
    test="t23",
    achieved=0.41,
    kernels=(
        KernelRecord(
            name="attend(float*)", launches=3, profiled=3, gpu_ms=2.5, share=1.0, theoretical=0.5, limiter="registers",
            metrics={"sm_efficiency": (0.5, 0.75, 0.625)},
        ),
    ),
)  # fmt: skip


def fill(store: Store, students: int) -> None:
    """`students` students, of whom some fail, some do not compile, and the first has two attempts."""
    began = datetime(2026, 11, 20, tzinfo=UTC)
    for number in range(students):
        student = f"s{number:03}"
        record = _record(student, number)
        store.add_student(student, name=f"Student {number}", nickname=NASTY if number == 1 else f"nick{number}")
        _add(store, student, record, "a" * 60 + f"{number:04}", began + timedelta(minutes=number))
        if number == 0:
            earlier = record.model_copy(update={"created": "2026-11-19T00:00:00+00:00"})
            _add(store, student, earlier, "b" * 64, began - timedelta(days=1))
    model = _record("model:flash2", 4)
    _add(store, "model:flash2", model, "c" * 64, began)
    store.set_points("hw4", [Points("s000", "report", 8.5, "Clear & short.")])


def _add(store: Store, student: str, record: Record, sha256: str, time: datetime) -> None:
    submission = record.submission.model_copy(update={"sha256": sha256})
    number = store.add_submission(
        HandIn("hw4", student, sha256, f"class/{student}", time, files=(("hw4.cu", SOURCE.encode()),))
    )
    store.add_record(number, "c", record.model_copy(update={"submission": submission}))


def _record(student: str, number: int) -> Record:
    if number % 10 == 9:
        tests = [
            made_test(f"t{test}", Verdict.COMPILE_ERROR, reason="It does not compile: hw4.cu(3): error")
            for test in range(21, 31)
        ]
        build = {"ok": False, "log": LOG, "seconds": 1, "flags": ["-O3"], "flags_from": "us", "cached": False}
        return made_record(student, tests=tests, build=build)
    baseline = BaselineRecord(seconds=2.0, description="two seconds of it", source_sha256="0", cpu="a CPU")
    tests = []
    for test in range(21, 31):
        if number % 7 == 3 and test > 27:
            tests.append(made_test(f"t{test}", Verdict.WRONG_ANSWER, reason=f"Element {number} is {test}, not 0."))
        else:
            speedup = 20 * (1 + (number * 37 % 101) / 4) * (1 + math.sin(test) / 5)
            tests.append(made_test(f"t{test}", gpu_ms=2000 / speedup, speedup=speedup, baseline=baseline))
    build = {"ok": True, "log": LOG.split("\n")[1], "seconds": 1, "flags": ["-O3"], "flags_from": "us", "cached": False}
    return made_record(student, tests=tests, occupancy=0.1 + (number % 9) / 10, build=build, profiles=(PROFILE,))


def made_store(path: Path, students: int) -> Store:
    """An open store with such a class."""
    store = Store(path)
    fill(store, students)
    return store
