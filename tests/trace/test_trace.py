import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.findings import Finding, Place
from grader.programs.trace import ApiError, KernelSummary, Trace, TracerError, read_received, read_trace
from grader.programs.trace import reader as reader_module
from grader.programs.trace.reader import MAX_COUNTERS, MAX_FINDINGS, MAX_TEXT_IN_ALL

Read = Callable[..., Trace]

START = {"kind": "start", "engine": "cuda", "clock_ns": 900}
END = {"kind": "end", "dropped": 0}


def kernel(
    start_ns: float, end_ns: float, name: str | None = "attention(float*)", stream: int = 7, **other: object
) -> dict[str, object]:
    return {
        "kind": "kernel", "name": name, "grid": [128, 1, 1], "block": [32, 32, 1], "registers": 56,
        "static_shared_bytes": 16640, "dynamic_shared_bytes": 0, "local_bytes": 0, "start_ns": start_ns,
        "end_ns": end_ns, "stream": stream, "counters": {},
    } | other  # fmt: skip


def memcpy(start_ns: int, end_ns: int, direction: str = "HtoD") -> dict[str, object]:
    copy = {"kind": "memcpy", "direction": direction, "bytes": 4096}
    return copy | {"start_ns": start_ns, "end_ns": end_ns, "stream": 7}


def memset(start_ns: int, end_ns: int) -> dict[str, object]:
    return {"kind": "memset", "bytes": 512, "start_ns": start_ns, "end_ns": end_ns, "stream": 7}


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes entries (objects, or raw lines) to a file and reads it as a trace."""

    def write_and_read(*entries: object, **options: int) -> Trace:
        file = tmp_path / "trace.jsonl"
        lines = [e if isinstance(e, bytes) else json.dumps(e).encode() + b"\n" for e in entries]
        file.write_bytes(b"".join(lines))
        return read_trace(file, **options)

    return write_and_read


def test_a_whole_trace_is_read_with_every_field(read: Read) -> None:
    trace = read(
        START, memcpy(1000, 1100), kernel(1200, 1500, counters={"global_bytes": 64}), memcpy(1600, 1650, "DtoH"), END
    )
    assert trace.complete
    assert (trace.engine, trace.clock_ns) == ("cuda", 900)
    (only,) = trace.kernels
    assert (only.name, only.grid, only.block) == ("attention(float*)", (128, 1, 1), (32, 32, 1))
    assert (only.registers, only.static_shared_bytes, only.counters) == (56, 16640, {"global_bytes": 64})
    assert [(copy.direction, copy.bytes) for copy in trace.memcpys] == [("HtoD", 4096), ("DtoH", 4096)]
    assert (trace.gpu_ns, trace.copy_ns, trace.idle_ns) == (300, 150, 200)
    assert trace.malformed_lines == trace.unknown_lines == trace.dropped == 0


@pytest.mark.parametrize(
    ("end", "computed"), [({}, None), ({"computed_floats": 0}, False), ({"computed_floats": 1}, True)]
)
def test_only_the_emulator_says_whether_kernels_computed(
    read: Read, end: dict[str, int], computed: bool | None
) -> None:
    assert read(START, kernel(100, 200), END | end).computed_floats is computed


def test_kernels_that_overlap_on_two_streams_count_once(read: Read) -> None:
    trace = read(
        START, kernel(100, 200), kernel(150, 260, stream=13), kernel(160, 170, stream=14), kernel(300, 310), END
    )
    assert trace.gpu_ns == 160 + 10
    assert trace.idle_ns == 40


def test_memsets_and_copies_within_the_device_are_gpu_time_and_other_copies_are_not(read: Read) -> None:
    trace = read(START, memset(0, 10), kernel(5, 20), memcpy(15, 50), memcpy(50, 70, "DtoD"), END)
    assert trace.gpu_ns == 40
    assert trace.copy_ns == 35
    assert trace.idle_ns == 0


def test_events_may_come_in_any_order(read: Read) -> None:
    assert read(START, kernel(500, 600), kernel(100, 200), END).gpu_ns == 200


def test_kernels_are_summed_up_by_name_longest_first(read: Read) -> None:
    trace = read(START, kernel(0, 10, "init"), kernel(10, 30, "main"), kernel(30, 100, "main"), END)
    assert trace.kernel_summaries() == (KernelSummary("main", 2, 90, 0.9), KernelSummary("init", 1, 10, 0.1))


def test_a_trace_without_events_has_no_time(read: Read) -> None:
    trace = read(START, END)
    assert trace.complete
    assert trace.gpu_ns == trace.copy_ns == trace.idle_ns == 0
    assert trace.kernel_summaries() == ()


@pytest.mark.parametrize(
    "entries", [(START,), (END,), (), (START, START, END)], ids=["cut", "headless", "empty", "second process cut"]
)
def test_a_trace_is_complete_only_when_every_start_has_its_end(read: Read, entries) -> None:
    assert not read(*entries).complete


@pytest.mark.parametrize(
    "flaw",
    [
        END | {"dropped": 1},
        {"kind": "tracer_error", "call": "cuptiActivityEnable(kernel)", "message": "CUPTI_ERROR_UNKNOWN"},
    ],
    ids=["dropped", "refused"],
)
def test_a_trace_that_may_lack_events_is_not_complete(read: Read, flaw: dict[str, object]) -> None:
    trace = read(START, flaw, *([] if flaw["kind"] == "end" else [END]))
    assert (trace.starts, trace.ends, trace.complete) == (1, 1, False)


def test_errors_and_findings_are_read(read: Read) -> None:
    finding = {
        "kind": "finding",
        "is": "past_the_end",
        "kernel": "attention",
        "block": [1, 0, 0],
        "thread": [31, 2, 0],
        "file": "/tmp/x/source/hw4.cu",
        "line": 40,
        "facts": {"bytes": 4, "did": "write", "allocated_file": "/tmp/x/source/hw4.cu", "allocated_line": 7},
    }
    error = {"kind": "api_error", "function": "cudaMalloc", "code": 2, "name": "cudaErrorMemoryAllocation"}
    refused = {"kind": "tracer_error", "call": "cuptiSubscribe", "message": "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS"}
    bare: dict[str, Any] = {"kind": "finding", "is": "uninitialised", "file": None, "line": None, "facts": {}}
    newer = {**bare, "is": "a_kind_of_tomorrow"}
    trace = read(START, finding, error, bare, newer, refused, END)
    assert trace.findings[0] == Finding(
        kind="past_the_end",
        kernel="attention",
        block=(1, 0, 0),
        thread=(31, 2, 0),
        file="hw4.cu",
        line=40,
        allocated=Place(file="hw4.cu", line=7),
        values={"bytes": 4},
        words={"did": "write"},
    )
    assert trace.findings[1:] == (Finding(kind="uninitialised"),)
    assert trace.unknown_lines == 1
    assert trace.api_errors == (ApiError("cudaMalloc", 2, "cudaErrorMemoryAllocation"),)
    assert trace.tracer_errors == (TracerError("cuptiSubscribe", "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS"),)


@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b"[1, 2]\n",
        b"{}\n",
        b'{"kind": 3}\n',
        b"\xff\xfe\n",
        b"[" * 20000 + b"\n",
        b'{"kind": "end"}\n',
        kernel(200, 100),
        kernel(-5, 100),
        kernel(1, 100, grid=[1, 2]),
        kernel(1, 100, grid=None),
        kernel(1, 100, registers="64"),
        kernel(1, 100, registers=True),
        kernel(1, 100, name=None),
        kernel(1, 2**63),
        kernel(1.0, 2.0),
        kernel(1, 100, counters={"flops": float("nan")}),
        kernel(1, 100, counters={"flops": 10**400}),
        kernel(1, 100, counters=[1]),
        memcpy(1, 2, "sideways"),
        kernel(1, 100, counters={"flops": -1}),
        kernel(1, 100, counters={"flops": 1e300}),
        *(kernel(1, 100, grid=grid) for grid in ([0, 0, 0], [1, 0, 1], [2**31, 1, 1], [1, 65536, 1])),
        *(kernel(1, 100, block=block) for block in ([0, 1, 1], [64, 64, 1])),
        {"kind": "finding", "is": "race", "facts": {"does": "read", "bytes": {}}},
        {"kind": "finding", "is": "race", "facts": {"x": []}},
        {"kind": "finding", "is": [], "facts": {}},
        {"kind": "finding", "facts": {}},
        {"kind": []},
        {"kind": "start", "engine": "cuda"},
    ],
    ids=lambda value: str(value)[:40],
)
def test_reading_stops_at_a_line_that_no_tracer_writes(read: Read, line) -> None:
    trace = read(START, kernel(5, 15), line, kernel(10, 20), END)
    assert trace.malformed_lines == 1 and trace.truncated
    assert [each.times.tolist() for each in trace.kernels] == [[[5, 15]]]
    assert not trace.complete


def test_reading_stops_at_a_line_longer_than_any_event(read: Read) -> None:
    endless = json.dumps(kernel(1, 2, name="x" * 300_000)).encode() + b"\n"
    trace = read(START, endless, kernel(10, 20), END)
    assert trace.malformed_lines == 1
    assert not trace.kernels and not trace.complete


ANYTHING: tuple[object, ...] = (
    None, True, -1, 0, 2**64, 1e308, "", "race", "\ud800", [], {}, [[]], [0, 0, 0], {"x": []}
)  # fmt: skip


def test_no_value_of_any_field_raises_an_error() -> None:
    finding = {"kind": "finding", "is": "race", "kernel": "k", "file": "a.cu", "line": 1}
    finding["facts"] = {"allocated_file": "a"}
    error = {"kind": "api_error", "call": "cudaMalloc", "code": 2, "message": "m"}
    for line in (START, END, kernel(1, 2), memcpy(1, 2), memset(1, 2), finding, error):
        for name in line:
            for value in ANYTHING:
                text = json.dumps(START) + "\n" + json.dumps(line | {name: value}) + "\n"
                assert read_received(io.BytesIO(text.encode())).starts <= 2


def test_no_more_findings_are_kept_than_are_ever_used(read: Read) -> None:
    many = [{"kind": "finding", "is": "race", "file": "a.cu", "line": n, "facts": {}} for n in range(1, 1001)]
    trace = read(START, *many, END)
    assert (len(trace.findings), trace.unknown_lines) == (MAX_FINDINGS, 1000 - MAX_FINDINGS)


def test_a_finding_after_too_many_events_is_kept(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "MAX_LINES", 3)
    last = {"kind": "finding", "is": "launches_endless", "line": 9, "file": "a.cu", "facts": {}}
    trace = read(START, kernel(1, 2), kernel(3, 4), kernel(5, 6), last)
    assert ([each.line for each in trace.findings], len(trace.kernels), trace.truncated) == ([9], 2, True)


def test_equal_launches_are_one_line_with_the_times_of_each(read: Read) -> None:
    trace = read(START, kernel(100, 200, more=[150, 20, 0, 5]), kernel(300, 310), END)
    assert [each.times.tolist() for each in trace.kernels] == [[[100, 200], [250, 270], [250, 255]], [[300, 310]]]
    assert (trace.launch_count, trace.gpu_ns, trace.complete) == (4, 130, True)


@pytest.mark.parametrize("more", [[1], [-1, 2], [1, 2.0], [True, 2], [2**63 - 1, 2**63 - 1], "12", [[1, 2]]])
def test_times_that_no_launch_has_are_malformed(read: Read, more: object) -> None:
    assert read(START, kernel(1, 2, more=more), END).malformed_lines == 1


def test_a_long_run_of_a_naive_program_is_read_whole() -> None:
    start, end = (json.dumps(event).encode() + b"\n" for event in (START, END))
    lines = b"".join(
        json.dumps(kernel(10 * n, 10 * n + 5), separators=(",", ":")).encode() + b"\n" for n in range(1, 12_801)
    )
    trace = read_received(io.BytesIO(start + lines + end))
    assert trace.complete and len(trace.kernels) == 12_800


def test_a_last_line_without_its_end_is_malformed(read: Read) -> None:
    trace = read(START, kernel(10, 20), b'{"kind": "end", "dropped": 0}')
    assert trace.malformed_lines == 1 and not trace.complete


def test_an_event_of_a_later_version_is_not_malformed(read: Read) -> None:
    trace = read(START, {"kind": "cooling"}, END)
    assert (trace.unknown_lines, trace.malformed_lines, trace.complete) == (1, 0, True)


def test_reading_stops_at_the_size_limit_and_says_so(read: Read) -> None:
    whole = [START, *(kernel(n, n + 1) for n in range(100)), END]
    size = sum(len(json.dumps(entry)) + 1 for entry in whole)
    assert read(*whole, max_bytes=size).complete
    cut = read(*whole, max_bytes=size // 2)
    assert cut.truncated and not cut.complete
    assert 0 < len(cut.kernels) < 100


def test_reading_stops_at_the_limit_of_events(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "MAX_EVENTS", 10)
    trace = read(START, *(kernel(n, n + 1) for n in range(100)), END)
    assert trace.truncated and len(trace.kernels) == 9


def test_control_characters_of_a_name_do_not_reach_the_terminal(read: Read) -> None:
    trace = read(START, kernel(1, 2, name="\x1b[31mred\ud800"), END)
    assert trace.kernels[0].name == r"\x1b[31mred\ud800"


def test_a_missing_file_a_link_a_fifo_and_a_folder_are_empty_traces(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.write_text(json.dumps(START) + "\n" + json.dumps(END) + "\n")
    (tmp_path / "link").symlink_to(real)
    os.mkfifo(tmp_path / "fifo")
    assert read_trace(real).complete
    for name in ("missing", "link", "fifo", "."):
        assert read_trace(tmp_path / name) == Trace()


def kernel_line(counters: dict[str, object]) -> bytes:
    return json.dumps(kernel(1, 2, counters=counters)).encode() + b"\n"


def test_a_flood_of_lines_that_are_none_is_not_read_to_its_end() -> None:
    file = io.BytesIO(b"\n" * (1 << 20))
    trace = read_received(file)
    assert trace.truncated and not trace.complete
    assert file.tell() < 1 << 16


def test_counters_are_bounded_in_all_events_and_have_plain_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 256_000 < MAX_COUNTERS < 10_000_000
    monkeypatch.setattr(reader_module, "MAX_COUNTERS", 256_000)
    many: dict[str, object] = {f"c{number}": number for number in range(256)}
    flood = kernel_line(many) * 2000
    assert len(read_received(io.BytesIO(flood)).kernels) == 1000
    for name, value in (("\x1b[2J", 1), ("a" * 100, 1), ("a", 10**400)):
        odd = read_received(io.BytesIO(kernel_line({name: value})))
        assert (odd.kernels, odd.malformed_lines) == ((), 1)


def test_names_and_messages_are_bounded_in_all_events() -> None:
    message = "\U0001f600" * 4000
    errors = json.dumps({"kind": "api_error", "function": message, "code": 1, "name": "x"}, ensure_ascii=False).encode()
    trace = read_received(io.BytesIO((errors + b"\n") * 10_000))
    assert 0 < len(trace.api_errors) <= MAX_TEXT_IN_ALL // len(errors)
