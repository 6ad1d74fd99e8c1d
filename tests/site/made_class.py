"""A class made for the site's tests: nothing ran to make its records."""

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

from grader.base.verdict import Verdict
from grader.gpu.facts import GpuFacts, SmLimits, known_limits
from grader.grading.bench import floor_record
from grader.operators import load_operator
from grader.records.record import BaselineRecord, KernelRecord, ProfileRecord, Record, TestRecord
from grader.store import HandIn, Store
from grader.store.rows import Points
from grader.timing.floors import least_time
from tests.support.records import made_record, made_test, repeated

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


SHAPES = {
    "t21": (500, 2048, 32), "t22": (500, 2048, 64), "t23": (100, 4096, 32), "t24": (100, 4096, 64),
    "t25": (30, 8192, 32), "t26": (10, 8192, 64), "t27": (10, 16384, 32), "t28": (4, 16384, 64),
    "t29": (4, 32768, 32), "t30": (2, 32768, 64),
}  # fmt: skip
H200 = GpuFacts(132, 1980.0, 3201.0, 6144, 60 << 20, cast(SmLimits, known_limits((9, 0))))
BASELINE_FLOPS = 5e9
"""What a sequential program does in a second, about."""


def timed_test(name: str, shape: tuple[int, int, int], *, slowness: float) -> TestRecord:
    """A passed test that took `slowness` times the floor of an H200."""
    floor = least_time(load_operator("attention_forward"), shape, H200, ("fp32", "fp16"))
    assert floor is not None
    gpu_ms = floor.ms * slowness
    baseline = BaselineRecord(
        seconds=floor.flops / BASELINE_FLOPS, description="two seconds of it", source_sha256="0", cpu="a CPU"
    )
    timing = repeated(gpu_ms, low_ms=gpu_ms * 0.98, high_ms=gpu_ms * 1.02, rule="made", confidence=0.95)
    return made_test(
        name, shape=shape, gpu_ms=gpu_ms, speedup=baseline.seconds * 1e3 / gpu_ms, baseline=baseline, timing=timing,
        floor=floor_record(floor, gpu_ms), reference_ms=floor.ms * 9 if name == "t23" else None,
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
    tests = []
    for place, (name, shape) in enumerate(SHAPES.items()):
        if number % 7 == 3 and place > 6:
            tests.append(made_test(name, Verdict.WRONG_ANSWER, reason=f"Element {number} is {place}, not 0."))
        else:
            tests.append(
                timed_test(name, shape, slowness=12 * (1 + (number * 37 % 101) / 4) * (1 + math.sin(place) / 5))
            )
    build = {"ok": True, "log": LOG.split("\n")[1], "seconds": 1, "flags": ["-O3"], "flags_from": "us", "cached": False}
    return made_record(student, tests=tests, occupancy=0.1 + (number % 9) / 10, build=build, profiles=(PROFILE,))


def made_store(path: Path, students: int) -> Store:
    """An open store with such a class."""
    store = Store(path)
    fill(store, students)
    return store
