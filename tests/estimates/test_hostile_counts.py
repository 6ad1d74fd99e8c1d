"""The traces of sampled runs are written in the program's own process: whatever they say, an estimate ends soon, and
only says that it cannot be made."""

import io
import json
import mmap
import random
import time
from pathlib import Path
from typing import Any

import pytest

from grader.commands.inspection import counted_kernels
from grader.estimates import machine_code
from grader.estimates.counts import SampledRun, Samples, counted
from grader.programs.trace import Trace, read_received, reader
from grader.programs.trace.reader import MAX_COUNTER_NAMES, MAX_EXECUTED, MAX_NAMES

START = {"kind": "start", "engine": "emulator"}
LAUNCHES: dict[str, Any] = {
    "kind": "launches", "group": 1, "kernel": "k", "entry": "k", "count": 1, "streams": 1, "grid": [1, 1, 1],
    "block": [32, 1, 1], "static_shared_bytes": 0, "dynamic_shared_bytes": 0, "local_bytes": 0,
}  # fmt: skip
EXECUTED: dict[str, Any] = {
    "kind": "executed", "group": 1, "function": "k", "first": 1, "last": 9, "warps": 1, "lanes": 32,
}  # fmt: skip
ACCESS: dict[str, Any] = {
    "kind": "access", "group": 1, "kernel": "k", "file": "x.cu", "line": 1, "ptx_line": 3, "space": "global",
    "operation": "load", "bytes": 4, "stride": 4, "requests": 1, "lanes": 32, "units": 4, "excess": 0, "worst": 4,
}  # fmt: skip
REUSE: dict[str, Any] = {"kind": "reuse", "group": 1, "ptx_line": 3, "array": 4096, "array_bytes": 64, "near": [1, 2]}
NUMBERS = (0, 1, 2, 3, 33, 1000, 2**31, 2**40, 9 * 10**18)


def trace_of(*lines: dict[str, Any]) -> Trace:
    end = {"kind": "end", "dropped": 0}
    text = "".join(json.dumps(line) + "\n" for line in ({**START, "clock_ns": 1}, *lines, end))
    return read_received(io.BytesIO(text.encode()))


@pytest.mark.parametrize(
    "line",
    [
        {**EXECUTED, "last": 9 * 10**18},
        {**EXECUTED, "first": 9, "last": 1},
        {**LAUNCHES, "count": 0},
        {**LAUNCHES, "streams": 0},
        {**LAUNCHES, "grid": [0, 1, 1]},
        {**LAUNCHES, "block": [1024, 1024, 64]},
        {**ACCESS, "requests": 0},
    ],
)
def test_the_reader_refuses_what_no_sampled_run_has(line: dict[str, Any]) -> None:
    read = trace_of(LAUNCHES, line)
    assert read.malformed_lines == 1 and not read.complete


def test_the_lines_that_all_events_say_were_executed_are_limited_together() -> None:
    assert trace_of(*[{**EXECUTED, "last": MAX_EXECUTED // 4}] * 4).complete
    assert trace_of(*[{**EXECUTED, "last": MAX_EXECUTED // 4}] * 5).malformed_lines == 1


@pytest.mark.parametrize("line", [{**EXECUTED, "group": 78}, {**ACCESS, "group": 78}, {**REUSE, "group": 78}])
def test_counts_of_launches_that_are_not_named_follow_no_law(line: dict[str, Any]) -> None:
    run = SampledRun(1, 1, 2, trace_of(LAUNCHES, EXECUTED, ACCESS, line))
    with pytest.raises(machine_code.NotPredictable, match="do not fit together"):
        counted(Samples([run], [run], 1, 1))


def test_whatever_numbers_a_trace_has_they_are_counted_or_follow_no_law() -> None:
    dice = random.Random(34)
    known = 0
    for _ in range(2000):
        runs = []
        for units in (2, 1):
            lines = [dict(line) for line in (LAUNCHES, EXECUTED, ACCESS, REUSE)]
            for line in dice.sample(lines, 2):
                name = dice.choice([name for name, value in line.items() if type(value) is int])
                line[name] = dice.choice(NUMBERS)
            lines[3]["near"] = [1] * dice.choice((0, 2, 2, 64))
            runs.append([SampledRun(units, 1, 4 - units, trace_of(*lines, *dice.sample(lines, 2)))])
        try:
            known += bool(counted(Samples(runs[0], runs[1], dice.choice((1, 2, 1000)), 1)))
        except machine_code.NotPredictable:
            continue
    assert known > 100


KERNEL: dict[str, Any] = {
    "kind": "kernel", "grid": [1, 1, 1], "block": [32, 1, 1], "registers": 1, "static_shared_bytes": 0,
    "dynamic_shared_bytes": 0, "local_bytes": 0, "start_ns": 1, "end_ns": 2, "stream": 0,
    "counters": {"warp_control": 1},
}  # fmt: skip


def test_a_profile_of_many_kernels_looks_at_each_event_once(monkeypatch: pytest.MonkeyPatch) -> None:
    most = MAX_NAMES // 4
    monkeypatch.setattr(reader, "MAX_NAMES", most)
    names = [f"k{number}" for number in range(most + 1)]
    lines = [{**KERNEL, "name": name} for name in names] + [{**ACCESS, "kernel": name} for name in names * 3]
    assert trace_of(*lines[: most + 1]).malformed_lines == 1
    read = trace_of(*lines[:most], *lines[most + 1 :])
    began = time.process_time()
    profiled = counted_kernels(read, None)
    assert len(profiled) == most and all(len(kernel.accesses) == 1 for kernel in profiled)
    assert time.process_time() - began < 4  # one look at all events for each kernel takes longer


def test_counters_have_few_names_in_all_events() -> None:
    lines = [
        {**KERNEL, "name": "k", "counters": {f"c{n}": 1 for n in range(at, at + 256)}} for at in range(0, 2560, 256)
    ]
    read = trace_of(*lines)
    assert len(read.kernels) == MAX_COUNTER_NAMES // 256 and read.malformed_lines == 1


def test_marks_of_ptx_in_a_programs_own_data_are_no_units_inside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 4000
    mark = machine_code.PTX_MARK + size.to_bytes(8, "little")
    program = tmp_path / "program"
    program.write_bytes(b"x" + mark * 64 + bytes(2 * size) + mark + b"y" * size)

    def units() -> list[bytes]:
        with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return list(machine_code._carried(content))

    found = units()
    assert len(found) < 4 and sum(map(len, found)) <= program.stat().st_size and found[-1] == b"y" * size
    monkeypatch.setattr(machine_code, "MAX_PTX_BYTES", size)
    with pytest.raises(machine_code.NotPredictable, match="MiB of PTX"):
        units()


def test_whatever_numbers_a_counted_run_has_it_is_profiled() -> None:
    dice = random.Random(34)
    names = ("blocks_begun", "instructions", "thread_instructions", "bulk_loads", "bulk_stages", "branches")
    for _ in range(500):
        counters = {name: dice.choice(NUMBERS) for name in dice.sample(names, 3)}
        access = {
            **ACCESS,
            "space": dice.choice(("global", "shared", "local")),
            "operation": dice.choice(("load", "atomic")),
        }
        for name in dice.sample(("bytes", "stride", "requests", "lanes", "units", "excess", "worst"), 3):
            access[name] = dice.choice(NUMBERS)
        branch = dict(kind="branch", kernel="k", file="x", line=1, reached=0, divergent=dice.choice(NUMBERS))  # noqa: C408
        read = trace_of({**KERNEL, "name": "k", "counters": counters}, access, branch)
        if read.kernels:
            counted_kernels(read, None)
