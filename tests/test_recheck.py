"""Places on a leaderboard are for results that were run again on a second draw of values."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cudaemu.process import Runner
from grader.base.errors import MachineFault
from grader.base.verdict import Fault, Verdict
from grader.classes.recheck import Recheck, recheck, rests_on, state_of
from grader.commands import class_results
from grader.programs.engine.interface import Compiled, Launch
from grader.programs.trace import PATH_VARIABLE
from grader.records.record import EngineRecord, Record, TestRecord
from grader.store import HandIn, open_store
from tests.support.batch_engine import PlainC
from tests.support.command_line import run
from tests.support.records import made_recheck, made_record, made_test
from tests.support.sequential import right_program

# ---- what is looked at, and what passes ---------------------------------------------------------------------------


def graded(**gpu_ms: float) -> Record:
    tests = [made_test(name, gpu_ms=value, speedup=100.0) for name, value in gpu_ms.items()]
    return made_record(tests=tests, recheck=None)


def again(*rounds: dict[str, TestRecord]) -> tuple[list[list[str]], object]:
    """What was asked for, and a `Grade` that answers round by round."""
    asked: list[list[str]] = []

    def grade(names: Sequence[str]) -> Record:
        asked.append(list(names))
        return made_record(tests=[rounds[len(asked) - 1][name] for name in names])

    return asked, grade


def test_a_place_rests_on_the_tests_that_passed_with_a_time_that_is_believed() -> None:
    record = made_record(
        tests=[
            made_test("t01", gpu_ms=1.0),
            made_test("t02", Verdict.WRONG_ANSWER),
            made_test("t03", gpu_ms=1.0, timing_refused="Too fast."),
            made_test("t04"),
        ]
    )
    assert rests_on(record) == ("t01",)
    assert rests_on(record, ["t04"]) == ()


def test_points_without_a_time_need_no_recheck() -> None:
    assert state_of(made_record()) is Recheck.NOT_NEEDED


def test_a_recheck_of_other_tests_is_none() -> None:
    record = graded(t21=1.0, t22=1.0)
    assert state_of(record) is Recheck.MISSING
    some = record.model_copy(update={"recheck": made_recheck(["t21"])})
    assert state_of(some, ["t21"]) is Recheck.PASSED
    assert state_of(some, ["t21", "t22"]) is Recheck.MISSING
    assert state_of(record.model_copy(update={"recheck": made_recheck(["t21"], "Wrong.")})) is Recheck.FAILED


def test_one_run_is_enough_when_the_time_repeats() -> None:
    asked, grade = again({"t21": made_test("t21", gpu_ms=1.2), "t22": made_test("t22", gpu_ms=0.9)})
    found = recheck(graded(t21=1.0, t22=1.0), ["t21", "t22"], "fresh 00", grade)  # type: ignore[arg-type]
    assert found.passed and not found.reason
    assert found.draw == "fresh 00"
    assert [(test.name, test.gpu_ms, test.graded_ms) for test in found.tests] == [("t21", 1.2, 1.0), ("t22", 0.9, 1.0)]
    assert asked == [["t21", "t22"]]


def test_a_slow_run_is_repeated_and_a_time_that_does_not_repeat_is_refused() -> None:
    slow, quick = {"t21": made_test("t21", gpu_ms=3.0)}, {"t21": made_test("t21", gpu_ms=1.1)}
    asked, grade = again(slow, quick)
    assert recheck(graded(t21=1.0), ["t21"], "d", grade).passed  # type: ignore[arg-type]
    assert len(asked) == 2
    asked, grade = again(slow, slow, slow)
    found = recheck(graded(t21=1.0), ["t21"], "d", grade)  # type: ignore[arg-type]
    assert found.reason == "t21 took 3 ms on a second draw, but at most 1 ms when it was graded."
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (made_test("t21", Verdict.WRONG_ANSWER, reason="It is wrong."), "t21 on a second draw: It is wrong."),
        (made_test("t21", gpu_ms=1.0, flags=("Forged.",)), "t21 on a second draw: Forged."),
        (made_test("t21"), "t21 on a second draw: no GPU time was measured."),
    ],
)
def test_what_fails_or_is_doubted_on_the_second_draw_does_not_pass(test: TestRecord, reason: str) -> None:
    _, grade = again({"t21": test})
    found = recheck(graded(t21=1.0), ["t21"], "d", grade)  # type: ignore[arg-type]
    assert (found.passed, found.reason) == (False, reason)


def test_times_of_another_gpu_model_are_not_compared() -> None:
    _, grade = again({"t21": made_test("t21", gpu_ms=9.0)})
    record = made_record(tests=[made_test("t21", gpu_ms=1.0)], device="NVIDIA A100")
    assert recheck(record, ["t21"], "d", grade).passed  # type: ignore[arg-type]


def test_a_fault_of_the_machine_says_nothing_about_a_student() -> None:
    _, grade = again({"t21": made_test("t21", Verdict.GRADER_ERROR, reason="The disk is full.")})
    with pytest.raises(MachineFault, match="t21: The disk is full"):
        recheck(graded(t21=1.0), ["t21"], "d", grade)  # type: ignore[arg-type]


# ---- the command --------------------------------------------------------------------------------------------------

_TRACER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
__attribute__((destructor)) static void end(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    long long now = t.tv_sec * 1000000000LL + t.tv_nsec;
    FILE *file = fdopen(atoi(getenv("GRADER_TRACE") + 3), "w");
    fprintf(file, "{\"kind\":\"start\",\"engine\":\"traced-c\",\"clock_ns\":%lld}\n"
                  "{\"kind\":\"kernel\",\"name\":\"f\",\"grid\":[1,1,1],\"block\":[32,1,1],\"registers\":16,"
                  "\"static_shared_bytes\":0,\"dynamic_shared_bytes\":0,\"local_bytes\":0,\"start_ns\":%lld,"
                  "\"end_ns\":%lld,\"stream\":7,\"counters\":{}}\n"
                  "{\"kind\":\"end\",\"dropped\":0}\n", now, now, now + 1000000);
    fclose(file);
}
"""


class TracedC(PlainC):
    """Plain C whose every program says that it ran one kernel of a millisecond."""

    def __init__(self) -> None:
        super().__init__(name="traced-c", measures_time=True)

    def identity(self) -> str:
        return "traced-c"

    def compile(
        self, sources: Sequence[str], flags: Sequence[str], *, folder: Path, output: Path, run: Runner
    ) -> Compiled:
        (folder / "tracer.c").write_text(_TRACER)
        done = run(["cc", "-O1", "-x", "c", *sources, "tracer.c", "-o", str(output), "-lm"], folder)
        return Compiled(None if done.exit_code == 0 else Fault.STUDENT, done.output)

    def problem(self) -> str:
        return ""

    def launch(self, program: Path, arguments: Sequence[str], trace: str) -> Launch:
        return Launch(command=(str(program), *arguments), environment={PATH_VARIABLE: trace})


RIGHT = right_program().encode()
CLASS = {  # source, GPU ms in the record
    "alice": (RIGHT, 1.0),
    "bob": (b"int main() { return 0; }", 0.5),
    "carol": (RIGHT, 0.1),
    "dora": (RIGHT, 0.9),
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A class that was graded on s01 by `TracedC`, as its records say."""
    monkeypatch.setattr(class_results, "select_engines", lambda name, target: (TracedC(),))
    path = tmp_path / "class.sqlite"
    engine = EngineRecord(name="traced-c", device=TracedC().device, facts={})
    with open_store(path, create=True) as opened:
        for student, (source, gpu_ms) in CLASS.items():
            when = datetime(2026, 11, 20, tzinfo=UTC)
            record = made_record(
                student, tests=[made_test("s01", gpu_ms=gpu_ms, speedup=1 / gpu_ms)], engine=engine, recheck=None
            )
            handed = HandIn("hw4", student, record.submission.sha256, "", when, files=(("hw4.cu", source),))
            opened.add_record(opened.add_submission(handed), "conditions", record)
    return path


def board(store: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    run("leaderboard", "--store", store, "--names", "id", "--format", "json", *words)
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def rows(found: dict[str, object]) -> list[tuple[object, object, object]]:
    listed = found["rows"]
    assert isinstance(listed, list)
    return [(row["rank"], row["name"], row["recheck"]) for row in listed if row["mark"] is None]


def test_without_a_recheck_the_order_is_shown_and_no_place_given(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rows(board(store, capsys)) == [(None, name, "missing") for name in ("carol", "bob", "dora", "alice")]
    run("leaderboard", "--store", store, "--names", "id")
    said = capsys.readouterr().out
    assert "carol (not rechecked)" in said
    assert "4 without a place" in said


def test_recheck_gives_places_to_what_repeats_and_says_what_did_not(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = board(store, capsys, "--recheck")
    assert rows(found) == [(1, "dora", "passed"), (2, "alice", "passed")]
    carol, bob = found["refused"]
    assert carol == {
        "name": "carol",
        "reason": "s01 took 1 ms on a second draw, but at most 0.1 ms when it was graded.",
    }
    assert bob["name"] == "bob" and "s01 on a second draw: The program wrote no output file" in bob["reason"]
    with open_store(store) as opened:
        kept = {attempt.student.id: attempt.record for attempt in opened.attempts("hw4")}
        assert opened.counts()["records"] == 2 * len(CLASS), "the records from before stay"
    looked_at = kept["alice"].recheck
    assert looked_at is not None and looked_at.draw.startswith("fresh ")
    assert [(test.name, test.verdict, test.gpu_ms) for test in looked_at.tests] == [("s01", Verdict.PASSED, 1.0)]
    assert rows(board(store, capsys)) == rows(found), "what was rechecked stays so"


def test_only_those_up_for_the_first_places_are_run_again(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rows(board(store, capsys, "--recheck", "--top", "1")) == [(1, "dora", "passed")]
    with open_store(store) as opened:
        kept = {attempt.student.id: attempt.record.recheck for attempt in opened.attempts("hw4")}
    assert [name for name, recheck in kept.items() if recheck is None] == ["alice"]


def test_another_engine_cannot_recheck(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_results, "select_engines", lambda name, target: (PlainC(),))
    run("leaderboard", "--store", store, "--recheck", code=2)
    assert "was graded on traced-c, and this machine has plain-c" in capsys.readouterr().err
