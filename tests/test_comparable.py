"""Results of a class that cannot be compared are noted, with the students of each kind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.base.verdict import Verdict
from grader.classes.batch.policy import Which
from grader.classes.comparable import mixed
from grader.classes.final_points import Line, absent, gradebook
from grader.course.assignment import load_assignment
from grader.records.record import BaselineRecord, PartRecord, Record
from grader.store import HandIn, open_store
from grader.store.rows import Points
from tests.support.command_line import run
from tests.support.records import line_of, made_record, made_test

OLD, NEW = "0" * 64, "1" * 64


def under(rules: str, *names: str) -> list[Line]:
    return [line_of(made_record(name, assignment_sha256=rules)) for name in names]


def test_a_half_done_regrade_names_who_stands_under_which_rules() -> None:
    assert mixed(under(NEW, "a", "b"), NEW) == []
    (note,) = mixed([*under(OLD, "dave", "carol"), *under(NEW, "alice")], NEW)
    assert f"Rules {OLD[:12]}: 2 (carol, dave); rules {NEW[:12]} (the current rules): 1 (alice)." in note
    (all_old,) = mixed(under(OLD, "a"), NEW)
    assert f"Rules {OLD[:12]}: 1 (a)." in all_old
    assert mixed(under(OLD, "a")) == [], "what the rules are now is not known"


def test_of_many_the_largest_group_is_all_others() -> None:
    many = under(NEW, *(f"s{number}" for number in range(200)))
    (note,) = mixed([*many, *under(OLD, "zoe")], NEW)
    assert "200 (all others)" in note and "1 (zoe)" in note and "s17" not in note


def test_other_machines_and_other_inputs_are_told() -> None:
    def on(name: str, cpu: str, device: str, digest: str, verdict: Verdict = Verdict.PASSED) -> Line:
        baseline = BaselineRecord(seconds=1, description="", source_sha256="0", cpu=cpu)
        test = made_test("t21", verdict, gpu_ms=1.0, baseline=baseline, input_digest=digest)
        return line_of(made_record(name, tests=[test], device=device))

    class_ = [on("a", "Xeon", "H100", "x"), on("b", "Xeon", "H100", "x")]
    assert mixed(class_) == []
    assert mixed([*class_, on("c", "Xeon", "H100", "of one grading", Verdict.WRONG_ANSWER)]) == []
    gpus, cpus, inputs = mixed([*class_, on("c", "EPYC", "H200", "y")])
    assert "H100: 2 (a, b); H200: 1 (c)" in gpus
    assert "Xeon: 2 (a, b); EPYC: 1 (c)" in cpus
    assert inputs.endswith("c (t21).")


def test_speedups_over_several_measurements_of_a_baseline_are_told() -> None:
    def over(name: str, seconds: float, measured: str) -> Line:
        baseline = BaselineRecord(
            seconds=seconds,
            description="",
            source_sha256="0",
            cpu="Xeon",
            id=measured,
            date=f"2026-11-{measured}T10:00",
        )
        return line_of(made_record(name, tests=[made_test("t21", gpu_ms=1.0, baseline=baseline)]))

    class_ = [over("a", 10, "20"), over("b", 10, "20")]
    assert mixed(class_) == []
    (note,) = mixed([*class_, over("c", 9.5, "24")])
    assert "(20 of 2026-11-20, 24 of 2026-11-24), up to 5.3% apart" in note


def test_points_entered_under_other_rules_are_told() -> None:
    assert mixed([line_of(made_record("alice"), report=10)]) == []
    (note,) = mixed([line_of(made_record("alice"), report=12, poster=3)])
    assert "alice has 12 of 10 for report, alice has points for poster" in note


# ---- from the store, by the commands ----


@pytest.fixture
def keep(tmp_path: Path) -> Callable[..., Path]:
    def add(*records: Record, silent: str = "") -> Path:
        path = tmp_path / "class.sqlite"
        with open_store(path, create=True) as store:
            for record in records:
                graded = record.submission
                store.add_record(store.add_submission(HandIn("hw4", graded.id, graded.sha256, "p")), "c", record)
            if silent:
                store.add_student(silent, name="Sil Ent")
        return path

    return add


def test_every_command_that_shows_points_tells_it_beside_them(
    keep: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = load_assignment("hw4").rules_sha256
    store = keep(made_record("alice", assignment_sha256=OLD), made_record("bob", assignment_sha256=now))
    for words in (("gradebook",), ("gradebook", "--format", "canvas"), ("leaderboard", "--metric", "correctness")):
        run(*words, "--store", store)
        said = capsys.readouterr()
        assert f"Rules {OLD[:12]}: 1 (alice)" in said.err, words
        assert "different rules" not in said.out, "it would become part of the file"
    run("site", tmp_path / "site", "--store", store)
    assert f"Rules {OLD[:12]}: 1 (alice)" in capsys.readouterr().out
    assert "different rules" in (tmp_path / "site" / "assistants" / "index.html").read_text()
    assert "different rules" not in (tmp_path / "site" / "public" / "index.html").read_text()


def test_who_is_on_the_roster_can_be_given_points_without_a_hand_in(
    keep: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = keep(made_record("alice"), silent="silent")
    (tmp_path / "points.csv").write_text("id,report,report_comment\nsilent,6,handed in on paper\n")
    run("points", "import", tmp_path / "points.csv", "--store", store)
    run("gradebook", "--store", store, "--columns", "id,name,report,points,total")
    assert capsys.readouterr().out.splitlines()[-1] == "silent,Sil Ent,6.0,6.0,"
    run("site", tmp_path / "site", "--store", store)
    page = (tmp_path / "site" / "assistants" / "index.html").read_text()
    assert "no submission" in page and "Sil Ent" in page


def test_a_hand_in_that_an_interrupted_run_left_ungraded_is_in_the_gradebook(keep: Callable[..., Path]) -> None:
    path = keep(made_record("alice"))
    with open_store(path) as store:
        store.add_submission(HandIn("hw4", "bob", "b" * 64, "p"))
        store.set_points("hw4", [Points("bob", "report", 3, "")])
        (one,) = absent(store, "hw4")
        assert (one.student.id, one.waiting, one.points) == ("bob", True, 3)
        assert [line.attempt.student.id for line in gradebook(store, "hw4")] == ["alice"]


# ---- which attempt is the best ----


def attempt(sha256: str, correctness: float, **changes: Any) -> Record:
    parts = (
        PartRecord(part="correctness", points=correctness, max=60, how=""),
        PartRecord(part="speedup", points=changes.pop("speedup", 10.0), max=20, how=""),
    )
    record = made_record("alice", parts=parts, **changes)
    return record.model_copy(update={"submission": record.submission.model_copy(update={"sha256": sha256 * 64})})


FAULTED = [made_test("t01"), made_test("t02", Verdict.GRADER_ERROR)]


@pytest.mark.parametrize(
    ("records", "best"),
    [
        ([attempt("a", 50), attempt("b", 40)], "a"),
        ([attempt("a", 40), attempt("b", 40)], "b"),
        ([attempt("a", 40), attempt("b", 60, practice=True)], "a"),
        ([attempt("a", 60, speedup=None, practice=True), attempt("b", 3)], "b"),
        ([attempt("a", 60, speedup=None, tests=FAULTED), attempt("b", 55, speedup=15.0)], "a"),
        ([attempt("a", 30, speedup=None, tests=FAULTED), attempt("b", 55, speedup=15.0)], "b"),
    ],
)
def test_the_best_attempt_is_no_practice_and_a_fault_of_the_machine_hides_nothing(
    keep: Callable[..., Path], records: list[Record], best: str
) -> None:
    with open_store(keep(*records)) as store:
        (line,) = gradebook(store, "hw4", Which.BEST)
    assert (line.attempt.sha256[0], line.attempts) == (best, 2)
