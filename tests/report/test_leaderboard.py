"""The leaderboard, drawn from records made for these tests."""

import csv
import io
import json
import math
import random
from dataclasses import replace
from typing import Any

import pytest

from grader.base.errors import UsageError
from grader.base.verdict import Verdict
from grader.classes.final_points import Line
from grader.records import measured_times as timing
from grader.records.measured_times import Measured
from grader.records.record import BaselineRecord, FloorRecord, TestRecord
from grader.report import leaderboard as board_module
from grader.report.leaderboard import Names, default_board, display_name, leaderboard, render
from tests.support.records import line_of, made_record, made_test, repeated


def named(*speedups: tuple[str, list[float]]) -> list[Line]:
    return [line_of(made_record(name, speedups=values), nickname=name) for name, values in speedups]


def ranking(lines: list[Line], **options: object) -> list[tuple[int | None, str]]:
    return [(row.rank, row.name) for row in leaderboard(lines, **options).rows]  # type: ignore[arg-type]


def test_the_geometric_mean_decides() -> None:
    lines = named(("steady", [100, 100]), ("uneven", [10, 500]), ("slow", [2, 2]))
    board = leaderboard(lines)
    assert [(row.rank, row.name) for row in board.rows] == [(1, "steady"), (2, "uneven"), (3, "slow")]
    assert board.rows[1].measured.value == pytest.approx(5000**0.5)
    assert board.title == "hw4: geometric-mean speedup over sequential C on t21..t22"


def test_one_testcase_can_be_ranked_alone_and_less_time_is_better() -> None:
    lines = named(("steady", [100, 100]), ("uneven", [10, 500]))
    assert ranking(lines, tests=["t22"]) == [(1, "uneven"), (2, "steady")]
    assert ranking(lines, tests=["t21"], metric="gpu_ms") == [(1, "steady"), (2, "uneven")]


@pytest.mark.parametrize(
    "odd",
    [
        {"gpu_ms": -1.0},
        {"gpu_ms": 5e-324},
        {"gpu_ms": 1e308},
        {"speedup": -1.0},
        {"speedup": 1e308},
        {"timing": repeated(1.0, low_ms=-1.0, high_ms=1.0)},
        {"timing": repeated(1.0, low_ms=5e-324, high_ms=1e308)},
        {"floor": FloorRecord(ms=1, refuse_below_ms=1, limit="", terms=(), share=-1.0)},
    ],
)
def test_numbers_that_no_grading_measures_harm_no_board(odd: dict[str, Any]) -> None:
    """They can be in a record from elsewhere."""
    test = made_test("t21", gpu_ms=1.0, speedup=400.0).model_copy(update=odd)
    lines = [*named(("alice", [10])), line_of(made_record("bob", tests=[test]))]
    for metric in ("speedup", "gpu_ms"):
        assert "alice" in render(leaderboard(lines, metric=metric), "terminal")


def test_a_failed_test_counts_as_no_speedup() -> None:
    record = made_record(
        "bob", tests=[made_test("t21", gpu_ms=1.0, speedup=400.0), made_test("t22", Verdict.TIME_LIMIT)]
    )
    board = leaderboard([*named(("alice", [10, 10])), line_of(record, "bob")])
    assert [row.name for row in board.rows] == ["bob", "alice"]
    assert [row.measured.value for row in board.rows] == pytest.approx([20, 10])


def test_overlapping_intervals_share_a_rank_and_the_next_rank_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_interval(test):
        return Measured(test.speedup, test.speedup * 0.97, test.speedup * 1.03)

    monkeypatch.setitem(board_module._PER_TEST, "speedup", (with_interval, "x", True))
    lines = named(("a", [100.0]), ("b", [98.0]), ("c", [94.0]), ("d", [50.0]))
    assert ranking(lines) == [(1, "a"), (1, "b"), (1, "c"), (4, "d")], "c is linked to a through b"
    assert "97.00–103.0" in render(leaderboard(lines))


def test_without_intervals_only_equal_values_share_a_rank_and_no_interval_is_shown() -> None:
    lines = named(("a", [100.0]), ("b", [100.0]), ("c", [99.999]))
    assert ranking(lines) == [(1, "a"), (1, "b"), (3, "c")]
    assert "interval" not in render(leaderboard(lines))


def test_intervals_that_touch_overlap() -> None:
    assert Measured(2, 1, 3).overlaps(Measured(4, 3, 5))
    assert not Measured(2, 1, 2.9).overlaps(Measured(4, 3, 5))
    assert Measured(2, 1, 3).overlaps(Measured(2.5)), "nothing says that they differ"
    assert not Measured(2, 1, 3).overlaps(Measured(3.5))


def test_gpu_models_are_not_mixed_unless_told_to() -> None:
    lines = [
        line_of(made_record("a", speedups=[100]), "a"),
        line_of(made_record("b", speedups=[90], device="NVIDIA A100"), "b"),
    ]
    with pytest.raises(UsageError, match=r"NVIDIA A100, NVIDIA H200.*--mix-gpus"):
        leaderboard(lines)
    assert ranking(lines, mix_devices=True) == [(1, "a"), (2, "b")]
    assert ranking(lines, metric="correctness") == [(1, "a"), (1, "b")], "points do not depend on the GPU"


def test_model_solutions_and_the_baseline_are_marked_and_take_no_rank() -> None:
    baseline = BaselineRecord(seconds=2.0, description="all of it", source_sha256="0", cpu="a fast CPU")
    test = made_test("t21", gpu_ms=20.0, speedup=100.0, baseline=baseline)
    lines = [line_of(made_record("model:flash2", tests=[test])), *named(("alice", [50.0]), ("bob", [200.0]))]
    assert ranking(lines) == [(1, "bob"), (None, "flash2"), (2, "alice"), (None, "sequential C")]
    text = render(leaderboard(lines))
    assert "flash2 (model solution)" in text
    assert "sequential C (CPU baseline)" in text
    assert leaderboard(lines, metric="gpu_ms").rows[-1].measured.value == 2000.0


def test_what_was_not_measured_is_not_ranked() -> None:
    lines = [*named(("a", [100.0])), line_of(made_record("b"), "b")]
    board = leaderboard(lines)
    assert [row.name for row in board.rows] == ["a"]
    assert board.unranked == 1
    with pytest.raises(UsageError, match="No student has a speedup"):
        leaderboard(lines[1:])


def test_students_are_called_by_nickname_or_by_a_name_that_tells_nothing() -> None:
    known, unknown = line_of(made_record("s123"), "fox"), line_of(made_record("s124"))
    assert display_name(known, Names.NICKNAME) == "fox"
    assert display_name(known, Names.ID) == "s123"
    hidden = display_name(unknown, Names.NICKNAME)
    assert hidden.startswith("student ")
    assert "s124" not in hidden
    assert display_name(known, Names.ANONYMOUS) != hidden


def test_top_shows_that_many_students_and_still_the_marked_rows() -> None:
    lines = [line_of(made_record("model:naive", speedups=[5.0])), *named(("a", [3.0]), ("b", [2.0]), ("c", [1.0]))]
    assert ranking(lines, top=2) == [(None, "naive"), (1, "a"), (2, "b")]


def test_each_format_is_what_its_readers_expect() -> None:
    lines = [line_of(made_record("a", speedups=[123.4]), "Robert'); DROP | *TABLE*"), *named(("b", [2.0]))]
    board = leaderboard(lines)
    rows = list(csv.DictReader(io.StringIO(render(board, "csv"))))
    assert rows[0] == {
        "rank": "1", "name": "Robert'); DROP | *TABLE*", "speedup": "123.4", "device": "NVIDIA H200",
        "driver": "580.1", "date": "2026-11-21",
    }  # fmt: skip
    assert json.loads(render(board, "json"))["rows"][1]["value"] == pytest.approx(2.0)
    markdown = render(board, "markdown")
    assert r"DROP \| \*TABLE\*" in markdown
    latex = render(leaderboard(named(("50%_&", [2.0]))), "latex")
    assert r"50\%\_\&" in latex
    assert latex.startswith(r"\begin{tabular}")
    with pytest.raises(UsageError, match="no format 'xml'"):
        render(board, "xml")


def test_the_language_is_a_column_where_there_are_several() -> None:
    cuda = made_record("a", speedups=[2.0])
    triton = made_record("b", speedups=[3.0])
    triton = triton.model_copy(update={"submission": triton.submission.model_copy(update={"files": ("hw4.py",)})})
    rows = list(csv.DictReader(io.StringIO(render(leaderboard([line_of(cuda), line_of(triton)]), "csv"))))
    assert [row["language"] for row in rows] == ["Triton", "CUDA"]
    assert "language" not in render(leaderboard([line_of(cuda)]), "csv")


def test_manual_points_and_lateness_make_the_total() -> None:
    record = made_record(
        parts=[{"part": "correctness", "points": 60, "max": 60, "how": ""},
               {"part": "report", "points": None, "max": 10, "how": "entered by an assistant"}]
    )  # fmt: skip
    assert line_of(record).total is None
    assert line_of(record).missing == ("report",)
    line = line_of(record, penalty=0.1, report=8)
    assert (line.total, line.points, line.missing) == (61.2, 61.2, ())
    assert line_of(record.model_copy(update={"practice": True}), report=8).total is None


def test_a_time_without_repetition_has_no_interval_and_a_repeated_one_its_own() -> None:
    once = made_test("t21", gpu_ms=2.0, speedup=10.0)
    assert timing.speedup(once) == Measured(10.0)
    assert timing.gpu_ms(once) == Measured(2.0)
    often = made_test("t21", gpu_ms=2.0, speedup=10.0, timing=repeated(2.0, low_ms=1.6, high_ms=2.5))
    assert timing.gpu_ms(often) == Measured(2.0, 1.6, 2.5)
    assert timing.speedup(often) == Measured(10.0, 8.0, 12.5)


def test_overlapping_times_of_two_records_share_a_rank() -> None:
    def line(name: str, ms: float) -> Line:
        return line_of(made_record(name, tests=[timed("t21", ms, 0.01)]), name)

    assert ranking([line("a", 10.0), line("b", 10.1), line("c", 11.0)]) == [(1, "a"), (1, "b"), (3, "c")]


def test_a_time_that_is_not_believed_counts_as_no_speedup_and_has_no_place_by_time() -> None:
    doubted = made_test("t21", gpu_ms=0.001, speedup=1e6, timing_refused="faster than the GPU can be")
    lines = [line_of(made_record("b", tests=[doubted, made_test("t22", gpu_ms=1.0, speedup=4.0)]), "b")]
    lines += named(("a", [3.0, 3.0]))
    assert ranking(lines) == [(1, "a"), (2, "b")]
    assert ranking(lines, metric="gpu_ms") == [(1, "a")]


def test_the_share_of_the_floor_is_shown_when_all_tests_have_one() -> None:
    floor = FloorRecord(ms=1.0, refuse_below_ms=0.9, limit="memory", terms=(), share=0.25)
    with_floor = made_test("t21", gpu_ms=4.0, speedup=9.0, floor=floor)
    assert "25%" in render(leaderboard([line_of(made_record("a", tests=[with_floor]), "a")]))
    assert "of floor" not in render(leaderboard(named(("a", [3.0]))))


def timed(name: str, ms: float, noise: float | None = None, verdict: Verdict = Verdict.PASSED) -> TestRecord:
    """One test of `ms`, with an interval of `noise` on both sides, or without one."""
    interval: dict[str, Any] = {} if noise is None else {"low_ms": ms * (1 - noise), "high_ms": ms * (1 + noise)}
    passed = verdict is Verdict.PASSED
    how = repeated(ms, **interval) if passed else None
    return made_test(name, verdict, gpu_ms=ms, speedup=1000 / ms if passed else None, timing=how)


def test_how_long_a_wrong_answer_took_has_no_place_by_time() -> None:
    wrong = line_of(made_record("wrong", tests=[timed("t21", 0.01, verdict=Verdict.WRONG_ANSWER)]), "wrong")
    right = line_of(made_record("right", tests=[timed("t21", 5.0)]), "right")
    assert ranking([wrong, right], metric="gpu_ms") == [(1, "right")]
    crashed = line_of(made_record("x", tests=[made_test("t21", Verdict.RUNTIME_ERROR, wall_s=0.01)]), "crashed")
    assert ranking([crashed, right], metric="wall_s") == [(1, "right")]


def test_an_entry_that_overlaps_two_others_joins_them() -> None:
    """The last is uncertain enough to be either of the others, so none of the three can be told from another."""
    rows = [("a", timed("t21", 1.0, 0.05)), ("b", timed("t21", 1.2, 0.05)), ("c", timed("t21", 1.3, 0.25))]
    lines = [line_of(made_record(name, tests=[test]), name) for name, test in rows]
    assert ranking(lines, metric="gpu_ms") == [(1, "a"), (1, "b"), (1, "c")]


def test_ranks_are_those_of_linked_groups_in_whatever_order_the_records_come() -> None:
    dice = random.Random(4)
    for _ in range(150):
        tests = [timed("t21", dice.uniform(1, 3), dice.choice([None, 0.01, 0.1])) for _ in range(dice.randint(1, 9))]
        lines = [line_of(made_record(f"s{n}", tests=[test]), f"s{n}") for n, test in enumerate(tests)]
        found = {row.name: row.rank for row in leaderboard(lines, metric="gpu_ms").rows}
        dice.shuffle(lines)
        board = leaderboard(lines, metric="gpu_ms")
        assert {row.name: row.rank for row in board.rows} == found
        times = {row.name: row.measured for row in board.rows}
        group = {name: {name} for name in times}
        for one, other in ((one, other) for one in times for other in times if times[one].overlaps(times[other])):
            group[one] |= group[other]
            for member in group[one]:
                group[member] = group[one]
        for name, members in group.items():
            fastest = min(times[member].value for member in members)
            assert found[name] == 1 + sum(time.value < fastest for time in times.values())


def test_failing_one_more_test_never_helps_on_the_board() -> None:
    dice = random.Random(5)
    for _ in range(150):
        tests = [timed(f"t{n}", 10 ** dice.uniform(-2, 6)) for n in range(21, 21 + dice.randint(2, 5))]
        place = dice.randrange(len(tests))
        worse = [*tests[:place], timed(tests[place].name, 0.001, verdict=Verdict.WRONG_ANSWER), *tests[place + 1 :]]
        names = [test.name for test in tests]
        others = named(("other", [dice.uniform(0.5, 100) for _ in tests]))
        before, after = (
            leaderboard([line_of(made_record("a", tests=each), "a"), *others], tests=names) for each in (tests, worse)
        )
        value = {row.name: row.measured.value for row in before.rows}["a"]
        assert {row.name: row.measured.value for row in after.rows}["a"] <= value * (1 + 1e-12)


def test_speedups_over_different_processors_are_not_mixed() -> None:
    def line(name: str, cpu: str) -> Line:
        baseline = BaselineRecord(seconds=1.0, description="", source_sha256="0", cpu=cpu)
        test = made_test("t21", gpu_ms=2.0, speedup=500.0, baseline=baseline)
        return line_of(made_record(name, tests=[test]), name)

    lines = [line("a", "Xeon"), line("b", "EPYC")]
    with pytest.raises(UsageError, match=r"on different CPUs \(EPYC, Xeon\)"):
        leaderboard(lines)
    assert ranking(lines, metric="gpu_ms")[:2] == [(1, "a"), (1, "b")]
    assert len(leaderboard(lines, mix_devices=True).rows) == 3


def test_points_of_a_record_that_could_not_be_judged_are_not_ranked() -> None:
    faulted = line_of(made_record("f", tests=[made_test("t01"), made_test("t02", Verdict.GRADER_ERROR)]), "f")
    board = leaderboard([faulted, *named(("a", [1.0]))], metric="correctness")
    assert [row.name for row in board.rows] == ["a"]
    assert board.unranked == 1


def test_the_title_names_the_tests_that_count_and_no_others() -> None:
    lines = [line_of(made_record("a", tests=[timed(name, 1.0) for name in ("t21", "t22", "t23", "t25", "s09", "s10")]))]
    assert leaderboard(lines).title.endswith("on t21..t23, t25, s09..s10")


def test_a_mean_is_the_root_of_the_product() -> None:
    dice = random.Random(6)
    for _ in range(200):
        speedups = [dice.uniform(1, 1000) for _ in range(dice.randint(1, 8))]
        (row,) = leaderboard(named(("a", speedups))).rows
        assert row.measured.value == pytest.approx(math.prod(speedups) ** (1 / len(speedups)))


def claimed(name: str, gpu_ms: float, **changes: Any) -> TestRecord:
    """A test whose time only its own trace claims."""
    return made_test(name, gpu_ms=gpu_ms, speedup=1000 / gpu_ms, **({"timing": None} | changes))


@pytest.mark.parametrize("metric", ["speedup", "gpu_ms", "total"])
def test_a_time_that_nothing_outside_the_program_confirms_gives_no_place(metric: str) -> None:
    floor = FloorRecord(ms=1.0, refuse_below_ms=0.01, limit="memory", terms=(), share=7.0)
    honest = made_test("t21", gpu_ms=2.0, speedup=500.0)
    doubtful = {
        "once": claimed("t21", 0.1),
        "unseen": claimed("t21", 0.1, timing=repeated(0.1, seen=False)),
        "too fast": claimed("t21", 0.1, timing=repeated(0.1), floor=floor),
    }
    lines = [line_of(made_record(name, tests=[test], total=99), name, report=9) for name, test in doubtful.items()]
    lines += [line_of(made_record("honest", tests=[honest], total=80), "honest", report=5)]
    lines = [replace(line, total=line.attempt.record.scores.total) for line in lines]
    board = leaderboard(lines, metric=metric)
    assert [(row.rank, row.name) for row in board.rows] == [(1, "honest")]
    assert dict(board.refused) == {
        "once": "t21: it ran only once.",
        "unseen": "t21: no clock outside the program confirms its time.",
        "too fast": "t21: its time is below the floor of this GPU.",
    }
    assert "once has no place: t21: it ran only once." in render(board)


def test_a_forged_time_of_a_test_that_runs_once_changes_no_ranking() -> None:
    """On an H100, a forged trace on t20 gave 97,641 x, and a mean over all tests put it first."""
    forger = made_record("forger", tests=[claimed("t20", 1e-5), made_test("t21", gpu_ms=10.0, speedup=100.0)])
    honest = made_record("honest", tests=[claimed("t20", 5.0), made_test("t21", gpu_ms=5.0, speedup=200.0)])
    board = leaderboard([line_of(forger, "forger"), line_of(honest, "honest")])
    assert board.tests == ("t21",)
    assert [(row.rank, row.name) for row in board.rows] == [(1, "honest"), (2, "forger")]
    board = leaderboard([line_of(forger, "forger"), line_of(honest, "honest")], tests=["t21"], metric="gpu_ms")
    assert [row.name for row in board.rows] == ["honest", "forger"]
    with pytest.raises(UsageError, match="t20: it ran only once"):
        leaderboard([line_of(forger, "forger"), line_of(honest, "honest")], tests=["t20"])


def test_without_a_time_to_rank_by_the_board_is_by_correct_results() -> None:
    board, why = default_board([line_of(made_record("a", tests=[claimed("t20", 1.0)]), "a")])
    assert (board.metric, [row.name for row in board.rows]) == ("correctness", ["a"])
    assert why.startswith("No student has a speedup")
    board, why = default_board(named(("a", [2.0])))
    assert (board.metric, why) == ("speedup", "")
