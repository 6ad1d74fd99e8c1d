"""The leaderboard: ranks students by one metric, and renders a terminal table, Markdown, CSV, JSON or LaTeX.

Entries whose intervals overlap share a rank, and so do all entries linked by such overlaps: values that the measurement
cannot distinguish get the same rank. A value without an interval overlaps any interval that contains it.

A GPU time counts only if a clock outside the program confirms it (`records.measured_times.why_no_place`), so rankings
by times use the tests whose runs were repeated. A result with GPU times gets a place only after a recheck on a second
draw (see `grader.classes.recheck`). Until then, it is listed by its value but has no rank; a result that did not pass
its recheck, or whose times nothing confirms, is listed separately.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from statistics import geometric_mean

from tabulate import tabulate

from grader.base.csv_table import csv_text
from grader.base.errors import UsageError
from grader.base.verdict import STUDENT_VERDICTS
from grader.classes.final_points import MODEL_PREFIX, Line
from grader.classes.recheck import Recheck, rests_on, state_of
from grader.records import measured_times as timing
from grader.records.measured_times import Measured
from grader.records.record import Record, TestRecord

FORMATS = ("terminal", "markdown", "csv", "json", "latex")


class Names(StrEnum):
    """The names that students get: their nickname if the roster has one, a made-up name, or their id."""

    NICKNAME = "nickname"
    ANONYMOUS = "anonymous"
    ID = "id"


@dataclass(frozen=True)
class Row:
    """A row of the board. `mark` is '' for a student, else "model solution" or "CPU baseline".

    `rank` is None for marked rows, which do not compete, and for results that wait for a recheck. `floor` says how near
    the time is to the GPU's floor, as a share from 0 to 1.
    """

    rank: int | None
    name: str
    mark: str
    measured: Measured
    device: str
    driver: str
    date: str
    floor: float | None
    language: str = ""
    id: str = ""
    recheck: Recheck = Recheck.NOT_NEEDED


@dataclass(frozen=True)
class Board:
    """A leaderboard of `metric` over `tests`, best first. `unranked` counts students without a value; `refused` has the
    name and the reason of each student whose recheck did not pass or whose times nothing confirms."""

    assignment: str
    metric: str
    unit: str
    tests: tuple[str, ...]
    rows: tuple[Row, ...]
    unranked: int
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def unchecked(self) -> int:
        """The number of rows that wait for a recheck."""
        return sum(row.recheck is Recheck.MISSING for row in self.rows)

    @property
    def title(self) -> str:
        return f"{self.assignment}: {self.subject}"

    @property
    def subject(self) -> str:
        """The metric and the tests, in words."""
        where = ", ".join(_spans(self.tests))
        kind = {"speedup": "speedup over sequential C", "gpu_ms": "GPU time", "wall_s": "wall time"}
        mean = "geometric-mean " if len(self.tests) > 1 and self.metric in kind else ""
        return f"{mean}{kind.get(self.metric, self.metric)}{f' on {where}' if where else ''}"


_PER_TEST: dict[str, tuple[Callable[[TestRecord], Measured | None], str, bool]] = {
    "speedup": (timing.speedup, "x", True),
    "gpu_ms": (timing.gpu_ms, "ms", False),
    "wall_s": (timing.wall_s, "s", False),
}
"""Metrics of single tests: the function that reads a value, the unit, and whether more is better."""

_GPU_TIMES = ("speedup", "gpu_ms")
_ADVICE = " Rank by something else, such as --metric correctness."
_TIMED_PARTS = ("log_speedup", "reference_ratio", "speed_of_light")


def _spans(names: Sequence[str]) -> list[str]:
    """t21, t22, t23, t25 → t21..t23, t25: a span contains all testcases between its ends."""
    spans: list[list[str]] = []
    for name in names:
        if spans and _number_of(name) == _number_of(spans[-1][-1], following=1):
            spans[-1].append(name)
        else:
            spans.append([name])
    return [f"{span[0]}..{span[-1]}" if len(span) > 1 else span[0] for span in spans]


def _number_of(name: str, *, following: int = 0) -> tuple[str, int] | None:
    """The letters and the number of a testcase's name, with `following` added; None for names of another form."""
    form = re.fullmatch(r"(\D+)(\d+)", name)
    return (form[1], int(form[2]) + following) if form else None


def metrics_of(lines: Sequence[Line]) -> tuple[str, ...]:
    """The metrics by which these records can be ranked."""
    parts = (part.part for line in lines for part in line.attempt.record.parts)
    return tuple(dict.fromkeys([*_PER_TEST, "occupancy", "total", *parts]))


def leaderboard(
    lines: Sequence[Line],
    *,
    metric: str = "speedup",
    tests: Sequence[str] = (),
    names: Names = Names.NICKNAME,
    top: int | None = None,
    mix_devices: bool = False,
) -> Board:
    """Rank `lines` by `metric`, over the named tests or, without names, over all tests that every ranked record has; of
    these, GPU times use the tests whose runs are repeated. `top` limits the number of students' rows, including those
    that wait for a recheck.

    Raises UsageError for an unknown metric, when no student has a value, and when values of several GPU models would
    be compared without `mix_devices`.
    """
    if not lines:
        raise UsageError("There is nothing to rank: the store holds no graded submission of this assignment.")
    known = metrics_of(lines)
    if metric not in known:
        raise UsageError(f"There is no metric {metric!r}; there are {', '.join(known)}.")
    per_test = metric in _PER_TEST
    more_is_better = not per_test or _PER_TEST[metric][2]
    chosen, valued = values_of(lines, metric, tests)
    claims = {id(line): why for line, _ in valued if not line.is_model and (why := _unconfirmed(line, metric, chosen))}
    if not valued or claims.keys() == {id(line) for line, _ in valued}:
        on = f" on {chosen[0]}" if len(chosen) == 1 else ""
        why = next(iter(claims.values()), "It was not measured.")
        raise UsageError(f"No student has a {metric}{on}: {why}{_ADVICE}")
    _refuse_mixed([line.attempt.record for line, _ in valued], metric, chosen, mix_devices)
    students = [(line, value) for line, value in valued if not line.is_model]
    students.sort(key=lambda pair: (-pair[1].value if more_is_better else pair[1].value, pair[0].attempt.student.id))
    states = {id(line): state_of(line.attempt.record, chosen) for line, _ in students}
    refused = [line for line, _ in students if states[id(line)] is Recheck.FAILED or id(line) in claims]
    placed = [
        (line, value)
        for line, value in students
        if states[id(line)] in (Recheck.PASSED, Recheck.NOT_NEEDED) and line not in refused
    ]
    ranks = dict(zip((id(line) for line, _ in placed), _ranks([value for _, value in placed]), strict=True))
    rows = [
        replace(_row(line, value, ranks.get(id(line)), chosen, names), recheck=states[id(line)])
        for line, value in students
        if line not in refused
    ][: top or None]
    rows += [_row(line, value, None, chosen, names) for line, value in valued if line.is_model]
    rows += _baseline_rows([line.attempt.record for line, _ in valued], metric, chosen)
    rows.sort(key=lambda row: -row.measured.value if more_is_better else row.measured.value)
    return Board(
        assignment=lines[0].attempt.record.assignment,
        metric=metric,
        unit=_PER_TEST[metric][1] if per_test else "",
        tests=chosen,
        rows=tuple(rows),
        unranked=sum(not line.is_model for line in lines) - len(students),
        refused=tuple((display_name(line, names), claims.get(id(line)) or _why_refused(line)) for line in refused),
    )


def default_board(
    lines: Sequence[Line], *, names: Names = Names.NICKNAME, top: int | None = None, mix_devices: bool = False
) -> tuple[Board, str]:
    """The leaderboard by speedup or, if there is none, by the points for correct results, as (board, the reason why it
    is not by speedup). Raises UsageError as `leaderboard` does."""
    try:
        return leaderboard(lines, names=names, top=top, mix_devices=mix_devices), ""
    except UsageError as error:
        parts = [part for line in lines for part in line.attempt.record.parts]
        points = next((part.part for part in parts if part.kind == "failed_tests"), "correctness")
        if points not in {part.part for part in parts}:
            raise
        return leaderboard(lines, metric=points, names=names, top=top, mix_devices=mix_devices), str(
            error
        ).removesuffix(_ADVICE)


def _unconfirmed(line: Line, metric: str, tests: Sequence[str]) -> str:
    """A sentence on the GPU times on which the line's value rests and that nothing outside the program confirms; '' if
    there are none."""
    record = line.attempt.record
    by_times = metric in (*_GPU_TIMES, "total") or any(
        part.part == metric and part.kind in _TIMED_PARTS for part in record.parts
    )
    if not by_times or (metric in _PER_TEST and metric not in _GPU_TIMES):
        return ""
    resting = rests_on(record, tests)
    doubted = [(test.name, why) for test in record.tests if test.name in resting and (why := timing.why_no_place(test))]
    return f"{', '.join(name for name, _ in doubted)}: {doubted[0][1]}." if doubted else ""


def values_of(
    lines: Sequence[Line], metric: str, tests: Sequence[str] = ()
) -> tuple[tuple[str, ...], list[tuple[Line, Measured]]]:
    """Return the tests that count, and (line, value) of every line that has a value. Without `tests`, all common tests
    count."""
    chosen = tuple(tests) if tests or metric not in _PER_TEST else _common_tests(lines, metric)
    return chosen, [(line, value) for line in lines if (value := _value(line, metric, chosen)) is not None]


def _why_refused(line: Line) -> str:
    found = line.attempt.record.recheck
    return found.reason if found is not None else ""


def _common_tests(lines: Sequence[Line], metric: str) -> tuple[str, ...]:
    """The tests that all records with any value contain, in order; for GPU times, only tests whose runs are repeated.
    `_value` decides what a failed test counts as."""
    read = _PER_TEST[metric][0]
    records = [line.attempt.record for line in lines]
    repeated = {test.name for record in records for test in record.tests if test.timing is not None}
    timed = [record for record in records if any(read(test) is not None for test in record.tests)]
    if not timed:
        return ()
    shared = set.intersection(*({test.name for test in record.tests} for record in timed))
    if metric in _GPU_TIMES:
        shared &= repeated
    return tuple(test.name for test in timed[0].tests if test.name in shared)


def _value(line: Line, metric: str, tests: Sequence[str]) -> Measured | None:
    record = line.attempt.record
    if metric == "total":
        return None if line.total is None else Measured(line.total)
    if metric not in _PER_TEST and record.infrastructure_failed:
        return None
    if metric == "occupancy":
        return None if record.occupancy is None else Measured(record.occupancy)
    if metric not in _PER_TEST:
        points = line.parts.get(metric)
        return None if points is None else Measured(points)
    read = _PER_TEST[metric][0]
    by_name = {test.name: test for test in record.tests}
    values = []
    for name in tests:
        test = by_name.get(name)
        value = read(test) if test is not None else None
        lost = test is not None and (test.verdict in STUDENT_VERDICTS or timing.refused(test))
        if metric == "speedup" and len(tests) > 1 and (lost or (value is not None and value.value < 1)):
            value = Measured(1.0, 1.0, 1.0)  # as in the rubric: failed, refused and slow tests are not accelerated
        if value is None or value.value <= 0:
            return None
        values.append(value)
    if not values or (metric == "speedup" and all(read(by_name[name]) is None for name in tests)):
        return None
    known = all(value.low is not None and value.high is not None for value in values)
    return Measured(
        geometric_mean([value.value for value in values]),
        geometric_mean([value.low or math.nan for value in values]) if known else None,
        geometric_mean([value.high or math.nan for value in values]) if known else None,
    )


def _refuse_mixed(records: Sequence[Record], metric: str, tests: Sequence[str], mix: bool) -> None:
    devices = sorted({record.engine.device for record in records})
    if metric in _PER_TEST and len(devices) > 1 and not mix:
        raise UsageError(
            f"These {metric} values come from different GPU models ({', '.join(devices)}) and cannot be compared: "
            "grade all on one model, or add --mix-gpus."
        )
    used = [test.baseline for record in records for test in record.tests if test.baseline and test.name in tests]
    cpus = sorted({baseline.cpu for baseline in used})
    programs = {baseline.source_sha256 for baseline in used}
    if metric == "speedup" and (len(cpus) > 1 or len(programs) > 1) and not mix:
        what = f"on different CPUs ({', '.join(cpus)})" if len(cpus) > 1 else "with different sequential programs"
        raise UsageError(
            f"These speedups come from baselines timed {what} and cannot be compared: rank by --metric gpu_ms, grade "
            "all on one model, or add --mix-gpus."
        )


def _ranks(values: Sequence[Measured]) -> list[int]:
    """Rank `values`, which are sorted from best to worst. All values in a chain of overlaps share a rank; the next rank
    counts all values before it.

    If a value overlaps an earlier one, both and all values between them share a rank, since each of those overlaps one
    of the two.
    """
    ranks: list[int] = []
    for place, value in enumerate(values):
        first = next((other for other in range(place) if value.overlaps(values[other])), place)
        shared = ranks[first] if first < place else place + 1
        ranks[first:] = [shared] * (place - first)
        ranks.append(shared)
    return ranks


def _row(line: Line, value: Measured, rank: int | None, tests: Sequence[str], names: Names) -> Row:
    record = line.attempt.record
    shares = [timing.floor_share(test) for test in record.tests if test.name in tests]
    known = [share for share in shares if share]
    return Row(
        rank=rank,
        name=display_name(line, names),
        mark="model solution" if line.is_model else "",
        measured=value,
        device=record.engine.device,
        driver=record.engine.facts.get("driver", ""),
        date=record.created[:10],
        floor=geometric_mean(known) if known and len(known) == len(shares) else None,
        language=record.submission.language,
        id=line.attempt.student.id,
    )


def display_name(line: Line, names: Names) -> str:
    """The name of a student in public."""
    student = line.attempt.student
    if line.is_model:
        return student.id.removeprefix(MODEL_PREFIX)
    if names is Names.ID:
        return student.id
    if names is Names.NICKNAME and student.nickname:
        return student.nickname
    return f"student {hashlib.sha256(f'name {student.page}'.encode()).hexdigest()[:6]}"


def _baseline_rows(records: Sequence[Record], metric: str, tests: Sequence[str]) -> list[Row]:
    """A row for the sequential program, with its time from these records."""
    if metric not in ("speedup", "gpu_ms", "wall_s") or not tests:
        return []
    for record in records:
        found = [test.baseline for test in record.tests if test.name in tests and test.baseline is not None]
        if len(found) == len(tests):
            seconds = geometric_mean([baseline.seconds for baseline in found])
            value = {"speedup": 1.0, "gpu_ms": seconds * 1e3, "wall_s": seconds}[metric]
            date = datetime.fromisoformat(record.created).date().isoformat()
            return [Row(None, "sequential C", "CPU baseline", Measured(value), found[0].cpu, "", date, None)]
    return []


def render(board: Board, form: str = "terminal") -> str:
    """Render the board as text."""
    if form not in FORMATS:
        raise UsageError(f"There is no format {form!r}: choose one of {', '.join(FORMATS)}.")
    if form == "json":
        return _as_json(board)
    header, rows = table(board)
    if form == "csv":
        return csv_text([header, *rows]).rstrip("\n")
    styles = {"terminal": "simple", "markdown": "github", "latex": "latex_booktabs"}
    right = [name in ("rank", _value_header(board), "interval", "of floor") for name in header]
    text = tabulate(
        [[_escaped(cell, form) for cell in row] for row in rows],
        headers=header,
        tablefmt=styles[form],
        colalign=["right" if numeric else "left" for numeric in right],
        disable_numparse=True,
    )
    if form == "latex":
        return text
    closing = "\n".join(_closing(board, form))
    return f"{'## ' if form == 'markdown' else ''}{board.title}\n\n{text}" + (f"\n\n{closing}" if closing else "")


def _closing(board: Board, form: str) -> Iterator[str]:
    """The notes below a table. The reason why a recheck failed is only for the staff, so published forms leave it
    out."""
    if board.unranked:
        yield f"{board.unranked} not ranked: a test failed, was not measured or could not be judged."
    if form != "terminal":
        return
    if board.unchecked:
        yield (
            f"{board.unchecked} without a place, because they have not been rechecked on a second draw. Repeat the "
            "command with --recheck."
        )
    for name, why in board.refused:
        yield f"{name} has no place: {why} Look at the code; `grader grade … --rerun ID` grades it again."


def table(board: Board) -> tuple[list[str], list[list[str]]]:
    """The headers and the cells, without empty columns, and without the language if all rows share it."""
    languages = [row.language for row in board.rows]
    columns: dict[str, list[str]] = {
        "rank": [str(row.rank) if row.rank is not None else "" for row in board.rows],
        "name": [_called(row) for row in board.rows],
        _value_header(board): [number(row.measured.value) for row in board.rows],
        "interval": [interval(row.measured) for row in board.rows],
        "of floor": ["" if row.floor is None else f"{row.floor:.0%}" for row in board.rows],
        "language": languages if len({*languages} - {""}) > 1 else [""] * len(languages),
        "device": [row.device for row in board.rows],
        "driver": [row.driver for row in board.rows],
        "date": [row.date for row in board.rows],
    }
    kept = {name: cells for name, cells in columns.items() if any(cells) or name in ("rank", "name")}
    return list(kept), [list(cells) for cells in zip(*kept.values(), strict=True)]


def _called(row: Row) -> str:
    aside = row.mark or ("not rechecked" if row.recheck is Recheck.MISSING else "")
    return f"{row.name} ({aside})" if aside else row.name


def _value_header(board: Board) -> str:
    return {"gpu_ms": "GPU ms", "wall_s": "wall s"}.get(board.metric, board.metric)


def number(value: float) -> str:
    """Format with four significant digits and without an exponent."""
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{min(digits, 6)}f}"


def interval(measured: Measured) -> str:
    """Format an interval as `low–high`; '' without one."""
    if measured.low is None or measured.high is None:
        return ""
    return f"{number(measured.low)}–{number(measured.high)}"


def _escaped(cell: str, form: str) -> str:
    """Escape a cell: students choose their nicknames, which must not become Markdown markup. For LaTeX, tabulate
    escapes them."""
    if form != "markdown":
        return cell
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#~" else char for char in cell)


def _as_json(board: Board) -> str:
    rows = [
        {
            "rank": row.rank,
            "name": row.name,
            "mark": row.mark or None,
            "value": row.measured.value,
            "low": row.measured.low,
            "high": row.measured.high,
            "language": row.language or None,
            "device": row.device,
            "driver": row.driver or None,
            "date": row.date,
            "floor_share": row.floor,
            "recheck": None if row.mark else row.recheck,
        }
        for row in board.rows
    ]
    whole = {
        "assignment": board.assignment,
        "metric": board.metric,
        "unit": board.unit or None,
        "tests": board.tests,
        "rows": rows,
        "unranked": board.unranked,
        "refused": [{"name": name, "reason": reason} for name, reason in board.refused],
    }
    return json.dumps(whole, indent=2, ensure_ascii=False)
