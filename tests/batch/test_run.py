"""Grading a class: what is finished is stored, once; what goes wrong with one hand-in stays with it.

The hand-ins are C programs that run on this CPU in place of CUDA programs (tests/support/batch_engine.py)."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import pytest
from rich.console import Console
from rich.live import Live

from grader.base.errors import MachineFault
from grader.base.identity import identity
from grader.base.verdict import Fault, Verdict
from grader.classes import attention, schedule
from grader.classes.attention import Why, needs_attention
from grader.classes.batch import Outcome, Policy, Which, find_class, grade_class
from grader.classes.batch.roster import Student
from grader.classes.batch.view import Log, Screen
from grader.classes.comparable import mixed
from grader.classes.final_points import absent, gradebook
from grader.course.assignment import Deadline
from grader.grading.setup import Setup
from grader.records.conditions import conditions_of
from grader.records.record import GraderRecord, Record
from grader.store import Store, check_store, open_store
from tests.support.batch_engine import PlainC
from tests.support.executors import Here
from tests.support.sequential import right_program

RIGHT = right_program()
SILENT = "int main() { return 0; }"
WRONG = RIGHT.replace("scale)\n{", "scale)\n{\n    scale *= 2;", 1)
BROKEN = "int main( {"
CRASHING = "int main() { return *(volatile int *)0; }"
HANGING = "int main() { for (;;); }"


WITH_WORKERS = ("worker_that_dies", "two_lanes", "killed")


@pytest.fixture(autouse=True)
def _few_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(words in request.node.name for words in WITH_WORKERS):
        monkeypatch.setattr("grader.classes.schedule.LocalExecutor", Here)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "class.sqlite", create=True) as opened:
        yield opened


def a_class(folder: Path, **sources: str) -> Path:
    for student, source in sources.items():
        (folder / student).mkdir(parents=True, exist_ok=True)
        (folder / student / "hw4.cu").write_text(source)
    return folder


def graded(setup: Setup, store: Store, folder: Path, **options: object) -> Outcome:
    found, _ = find_class(folder, setup.assignment)
    engines = options.pop("engines", [PlainC()])
    return grade_class(setup, engines, found, store, helpers=1, **options)  # type: ignore[arg-type]


def records(store: Store) -> dict[str, Record]:
    return {attempt.student.id: attempt.record for attempt in store.attempts("hw4")}


@dataclass(frozen=True)
class Graded:
    """A class that was graded, and what is in its store's file."""

    folder: Path
    store: Path
    outcome: Outcome
    log: list[str]


@pytest.fixture(scope="module")
def once(setup: Setup, tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """Alice's hand-in passes, bob's does not compile and carol's writes nothing; read only, `again` is a copy."""
    home = tmp_path_factory.mktemp("graded once")
    folder = a_class(home / "class", alice=RIGHT, bob=BROKEN, carol=SILENT)
    with open_store(home / "class.sqlite", create=True) as opened, (home / "log").open("w") as log:
        outcome = graded(setup, opened, folder, view=Log(Console(file=log, width=300)))
    return Graded(folder, home / "class.sqlite", outcome, (home / "log").read_text().splitlines())


@pytest.fixture
def again(once: Graded, tmp_path: Path) -> Iterator[tuple[Store, Path]]:
    """The store of the class that was graded once, and the class's folder."""
    shutil.copy(once.store, tmp_path / "again.sqlite")
    shutil.copytree(once.folder, tmp_path / "class")
    with open_store(tmp_path / "again.sqlite") as opened:
        yield opened, tmp_path / "class"


def test_a_roster_says_who_is_missing_and_its_extensions_are_not_forgotten_in_silence(
    setup: Setup, store: Store, tmp_path: Path
) -> None:
    folder = a_class(tmp_path / "class", alice=BROKEN, bob=BROKEN)
    for name in ("alice", "bob"):
        os.utime(folder / name / "hw4.cu", (86_400 * 3, 86_400 * 3))
    due = Deadline(due=datetime.fromtimestamp(86_400, UTC), penalty_per_day=0.1)
    setup = replace(setup, assignment=setup.assignment.model_copy(update={"deadline": due}))
    roster = {"alice": Student("alice", "Alice Ahn", nickname="fox", extension_days=2), "carol": Student("carol")}
    first = graded(setup, store, folder, roster=roster)
    assert "On the roster without a submission (1): carol." in first.notes
    concerns = needs_attention(gradebook(store, "hw4"), absent(store, "hw4"))
    assert [concern.why for concern in concerns if concern.student.id == "alice"] == [Why.NOT_BUILT]
    assert [concern.student.id for concern in concerns if concern.why is Why.NOT_ON_ROSTER] == ["bob"]
    assert "\n    alice (Alice Ahn): " in attention.render(concerns)
    assert next(store.attempts("hw4", "alice")).student.nickname == "fox"
    assert {attempt.student.id: attempt.penalty for attempt in store.attempts("hw4")} == {"alice": 0, "bob": 0.2}
    assert not [note for note in first.notes if "lateness" in note]
    again = graded(setup, store, folder)
    (note,) = [note for note in again.notes if "lateness" in note]
    assert "(1: alice)" in note and "--roster" in note


def test_every_kind_of_hand_in_gets_its_own_record(setup: Setup, store: Store, tmp_path: Path) -> None:
    folder = a_class(
        tmp_path / "class",
        right=RIGHT, wrong=WRONG, silent=SILENT, broken=BROKEN, crashing=CRASHING, hanging=HANGING, empty="",
    )  # fmt: skip
    (folder / "nothing").mkdir()
    huge = a_class(folder, huge="").joinpath("huge/hw4.cu")
    huge.write_text("//" + "x" * setup.assignment.submission.max_bytes)
    many = a_class(folder, **{"10,000 files 🦊": RIGHT}) / "10,000 files 🦊"
    for number in range(10_000):
        (many / f"{number}.cu").touch()
    outcome = graded(setup, store, folder)
    found = {student: record.tests[0].verdict for student, record in records(store).items()}
    assert found == {
        "right": Verdict.PASSED,
        "wrong": Verdict.WRONG_ANSWER,
        "silent": Verdict.NO_OUTPUT,
        "broken": Verdict.COMPILE_ERROR,
        "crashing": Verdict.RUNTIME_ERROR,
        "hanging": Verdict.TIME_LIMIT,
        "empty": Verdict.COMPILE_ERROR,
        "nothing": Verdict.COMPILE_ERROR,
        "huge": Verdict.COMPILE_ERROR,
        "10,000 files 🦊": Verdict.COMPILE_ERROR,
    }
    assert "holds no .cu file" in records(store)["nothing"].tests[0].reason
    assert "more than 64 source files" in records(store)["10,000 files 🦊"].tests[0].reason
    assert all(test.fault is not Fault.MACHINE for record in records(store).values() for test in record.tests)
    assert outcome.tally.graded == outcome.tally.total == 10
    assert outcome.faulted == ()


def test_a_second_run_grades_what_changed_alone_as_another_attempt(setup: Setup, again: tuple[Store, Path]) -> None:
    store, folder = again
    a_class(folder, bob=SILENT)
    outcome = graded(setup, store, folder)
    assert (outcome.tally.kept, outcome.tally.graded) == (2, 1)
    attempts = [(attempt.student.id, attempt.number) for attempt in store.attempts("hw4")]
    assert Counter(student for student, _ in attempts) == {"alice": 1, "bob": 2, "carol": 1}


def test_other_rules_or_another_shape_mean_grading_again(setup: Setup, again: tuple[Store, Path]) -> None:
    store, folder = again
    stricter = replace(setup, assignment=setup.assignment.model_copy(update={"tolerance": 1e-6}))
    (case,) = setup.cases
    larger = replace(setup, cases=(replace(case, shape=(3, *case.shape[1:])),))
    shutil.rmtree(folder / "alice")
    for changed in (stricter, larger):
        assert graded(changed, store, folder).tally.graded == 2
        assert conditions_of(records(store)["bob"]) == changed.conditions, "what is imported is known by its own"


def with_points(setup: Setup, per_failure: float) -> Setup:
    """The same rules, except that a failed test costs other points."""
    correctness, *others = setup.assignment.rubric
    changed = correctness.model_copy(update={"per_failure": per_failure})
    return replace(setup, assignment=setup.assignment.model_copy(update={"rubric": (changed, *others)}))


def test_other_points_are_computed_from_what_is_stored_and_nothing_runs(
    setup: Setup, again: tuple[Store, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, folder = again
    before = records(store)
    dearer = with_points(setup, 1)
    with (tmp_path / "log").open("w") as log, monkeypatch.context() as patch:
        patch.setattr("grader.classes.batch.class_run.GradeTask", None)  # a run would fail
        tally = graded(dearer, store, folder, view=Log(Console(file=log, width=300))).tally
    assert (tally.rescored, tally.graded, tally.kept) == (3, 0, 0)
    said = (tmp_path / "log").read_text()
    assert "Only points changed in the rules since 3 stored results were made" in said
    assert "nothing runs for them" in said
    rescored = records(store)
    with open_store(tmp_path / "fresh.sqlite", create=True) as other:
        graded(dearer, other, folder)
        fresh = records(other)
    for student, record in rescored.items():
        assert (record.parts, record.scores) == (fresh[student].parts, fresh[student].scores)
        assert record.parts != before[student].parts or student == "alice"
        assert record.rescored is not None and record.assignment_sha256 == dearer.assignment.rules_sha256
        assert conditions_of(record) == dearer.conditions
    assert graded(dearer, store, folder).tally.kept == 3
    assert graded(setup, store, folder).tally.kept == 3, "the points of before are still there"
    assert records(store)["bob"] == before["bob"]


def test_results_of_an_older_grader_stand_until_somebody_asks(setup: Setup, again: tuple[Store, Path]) -> None:
    store, folder = again
    old = GraderRecord(version="0.0", commit="1" * 40, package_sha256="f" * 64)
    for attempt in list(store.attempts("hw4")):
        record = attempt.record.model_copy(update={"grader": old})
        store.execute("DELETE FROM records WHERE id = ?", (attempt.record_id,))
        store.add_record(attempt.submission, conditions_of(record), record)
    outcome = graded(setup, store, folder)
    assert (outcome.tally.kept, outcome.tally.graded) == (3, 0)
    (note,) = [note for note in outcome.notes if "older grader" in note]
    shown = "0.0, commit 111111111111, files ffffffffffff"
    assert note == f"3 were graded by an older grader ({shown}): --rerun older."
    shutil.rmtree(folder / "alice")
    assert graded(setup, store, folder, policy=Policy(rerun="older")).tally.graded == 2
    assert graded(setup, store, folder, policy=Policy(rerun="older")).tally.graded == 0
    (note,) = [note for note in mixed(gradebook(store, "hw4")) if "versions of the grader" in note]
    assert f"{identity()}: 2 (bob, carol)" in note and f"{shown}: 1 (alice)" in note


def test_rerun_grades_again_what_it_names(setup: Setup, again: tuple[Store, Path]) -> None:
    store, folder = again
    assert graded(setup, store, folder, policy=Policy(rerun="failed")).tally.graded == 2
    assert graded(setup, store, folder, policy=Policy(rerun="carol")).tally.graded == 1
    assert graded(setup, store, folder, policy=Policy(rerun="machine-faults")).tally.graded == 0
    assert store.counts()["submissions"] == 3


def test_several_hand_ins_of_one_student_are_attempts(setup: Setup, store: Store, tmp_path: Path) -> None:
    rules = setup.assignment.submission.model_copy(update={"id_pattern": r"(?P<id>[a-z]+).*"})
    setup = replace(setup, assignment=setup.assignment.model_copy(update={"submission": rules}))
    folder = a_class(tmp_path / "class", **{"alice 1": SILENT, "alice 2": BROKEN, "bob": SILENT})
    for number, name in enumerate(("alice 1", "alice 2")):
        os.utime(folder / name / "hw4.cu", (1000 * number, 1000 * number))
    outcome = graded(setup, store, folder)
    assert "Students with several submissions (1: alice): these are attempts, and the latest counts." in outcome.notes
    assert records(store)["alice"].tests[0].verdict is Verdict.COMPILE_ERROR
    graded(setup, store, folder, policy=Policy(Which.BEST))
    assert [attempt.number for attempt in store.attempts("hw4", "alice")] == [1, 2]


class NoCompiler(PlainC):
    """A machine whose compiler is gone for a hand-in that says so, and for the control program right after it."""

    gone: ClassVar[list[bool]] = [False]

    def compile(self, sources, flags, *, folder, output, run):
        asked = "NO COMPILER" in (folder / sources[0]).read_text()
        if asked or self.gone[0]:
            self.gone[0] = asked
            raise MachineFault("The compiler is gone.")
        return super().compile(sources, flags, folder=folder, output=output, run=run)


def test_what_could_not_be_judged_is_tried_twice_then_kept_and_listed_apart(
    setup: Setup, store: Store, tmp_path: Path
) -> None:
    folder = a_class(tmp_path / "class", alice=SILENT, bob="// NO COMPILER\n" + SILENT)
    with (tmp_path / "log").open("w+") as file:
        view = Log(Console(file=file, width=300))
        roster = {"alice": Student("alice", name="Alice Ross")}
        setup = replace(setup, engine=NoCompiler())
        outcome = graded(setup, store, folder, engines=[NoCompiler()], view=view, roster=roster)
        file.seek(0)
        log = file.read()
    assert outcome.faulted == (("bob", "The compiler is gone."),)
    assert log.count("bob: The compiler is gone.") == 1
    assert "] Alice Ross: 0 of " in log
    assert records(store)["bob"].tests[0].fault is Fault.MACHINE
    assert records(store)["alice"].tests[0].verdict is Verdict.NO_OUTPUT


class Flaky(PlainC):
    """Fails like a machine the first time it is asked to run anything, if a file says so."""

    def launch(self, program, arguments, trace):
        marker = Path(os.environ["FLAKY"])
        if marker.exists():
            if marker.read_text() == "once":
                marker.unlink()
            elif marker.read_text() == "die once":
                marker.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
            raise MachineFault("The GPU is gone.")
        return super().launch(program, arguments, trace)


def test_a_worker_that_dies_costs_one_try(
    setup: Setup, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "flaky"
    marker.write_text("die once")
    monkeypatch.setenv("FLAKY", str(marker))
    folder = a_class(tmp_path / "class", alice=RIGHT, bob=RIGHT)
    outcome = graded(setup, store, folder, engines=[Flaky()])
    assert outcome.faulted == ()
    assert all(record.tests[0].verdict is Verdict.PASSED for record in records(store).values())


def test_a_machine_that_fails_every_time_stops_the_class_after_three_and_keeps_the_rest_for_later(
    setup: Setup, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "flaky"
    marker.write_text("always")
    monkeypatch.setenv("FLAKY", str(marker))
    monkeypatch.setattr(schedule, "REST_S", 0.1)
    folder = a_class(tmp_path / "class", **{f"student{number}": RIGHT for number in range(8)})
    with pytest.raises(MachineFault, match=r"3 times in a row .*The GPU is gone.* continues with the rest"):
        graded(setup, store, folder, engines=[Flaky()])
    marker.unlink()
    outcome = graded(setup, store, folder, engines=[Flaky()])
    assert outcome.faulted == ()
    assert {record.tests[0].verdict for record in records(store).values()} == {Verdict.PASSED}
    assert len(records(store)) == 8


def test_two_lanes_work_on_different_hand_ins_and_the_coordinator_grades_none(
    setup: Setup, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("grader.classes.batch.class_run.grade")
    folder = a_class(tmp_path / "class", bob=BROKEN, dave="", **{f"student{number}": SILENT for number in range(4)})
    outcome = graded(setup, store, folder, engines=[PlainC(0), PlainC(1)])
    assert "does not compile" in records(store)["bob"].tests[0].reason
    devices = Counter(record.engine.device for record in records(store).values())
    assert sum(devices.values()) == 6
    assert set(devices) == {"this CPU, 0", "this CPU, 1"}
    assert [note.partition(" was busy")[0] for note in outcome.notes] == ["plain-c 0", "plain-c 1"]


def test_a_log_has_a_line_per_hand_in_with_counts_and_pace(once: Graded) -> None:
    assert [line.split()[0] for line in once.log] == ["[1/3]", "[2/3]", "[3/3]"]
    assert any("bob: not built: It does not compile" in line for line in once.log)
    assert any("carol: 0 of 1 passed, " in line and " a minute, " in line for line in once.log)


def test_a_terminal_shows_counts_lanes_and_what_went_wrong_and_obeys_no_hand_in(
    setup: Setup, store: Store, tmp_path: Path
) -> None:
    folder = a_class(
        tmp_path / "class",
        broken="#error \x1b[31mred\x07\n",
        noisy='int puts(const char *);\nint main() { puts("\\x1b[2Jgone"); return 0; }',
    )
    with (tmp_path / "screen").open("w+") as file:
        console = Console(file=file, width=200, force_terminal=True)
        with Live(console=console, auto_refresh=False) as live:
            graded(setup, store, folder, view=Screen(console, live))
            live.refresh()
        file.seek(0)
        text = file.read()
    assert "2 of 2" in text
    assert "1 not built" in text
    assert "broken: not built: It does not compile" in text
    assert "plain-c 0" in text
    kept = records(store)
    assert "\\x1b[31mred\\x07" in kept["broken"].build.log and "\x1b" not in kept["broken"].build.log
    assert "\x1b" not in kept["broken"].tests[0].reason
    assert kept["noisy"].tests[0].output == "\\x1b[2Jgone\n"


SCRIPT = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from grader.classes.batch import find_class, grade_class
from grader.classes.batch.view import Log
from grader.store import open_store
from grader.records.conditions import conditions_of
from rich.console import Console
import pickle
setup = pickle.loads(Path(sys.argv[1]).read_bytes())
with open_store(Path(sys.argv[2]), create=True) as store:
    found, _ = find_class(Path(sys.argv[3]), setup.assignment)
    grade_class(setup, [setup.engine], found, store, helpers=1, view=Log(Console(file=sys.stdout, width=200)))
"""


def in_another_process(setup: Setup, tmp_path: Path, folder: Path) -> subprocess.Popen[str]:
    import pickle

    (tmp_path / "setup.pickle").write_bytes(pickle.dumps(setup))
    arguments = [str(tmp_path / "setup.pickle"), str(tmp_path / "killed.sqlite"), str(folder)]
    return subprocess.Popen([sys.executable, "-c", SCRIPT, *arguments], stdout=subprocess.PIPE, text=True)


def test_killed_five_times_it_ends_with_the_store_of_a_run_that_was_not(setup: Setup, tmp_path: Path) -> None:
    sources = [SILENT, BROKEN, CRASHING]
    folder = a_class(tmp_path / "class", **{f"student{number}": sources[number % 3] for number in range(30)})
    for lines in (1, 0, 2, 4, 9):
        grader = in_another_process(setup, tmp_path, folder)
        assert grader.stdout is not None
        for _ in range(lines):
            grader.stdout.readline()
        grader.kill()
        grader.communicate()
    assert in_another_process(setup, tmp_path, folder).wait(timeout=120) == 0
    with open_store(tmp_path / "whole.sqlite", create=True) as whole, open_store(tmp_path / "killed.sqlite") as store:
        graded(setup, whole, folder)
        assert store.counts() == whole.counts() and store.counts()["records"] == 30
        found, expected = records(store), records(whole)
        assert found.keys() == expected.keys() and len(found) == 30
        for student, record in expected.items():
            assert (found[student].scores, found[student].parts) == (record.scores, record.parts)
            assert [test.verdict for test in found[student].tests] == [test.verdict for test in record.tests]
        assert check_store(store) == []


def test_nothing_of_a_killed_grader_runs_on(setup: Setup, tmp_path: Path) -> None:
    slow = setup.assignment.limits.model_copy(update={"emulator_wall_s": 600.0})
    setup = replace(setup, assignment=setup.assignment.model_copy(update={"limits": slow}))
    folder = a_class(tmp_path / "class", alice=HANGING, bob=HANGING)
    grader = in_another_process(setup, tmp_path, folder)
    while not (running := _running_below(grader.pid)):
        assert grader.poll() is None
    grader.kill()
    grader.communicate()
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() and _state(pid) != "Z" for pid in running):
        assert time.monotonic() < deadline, "what the grader ran lives on"
        time.sleep(0.05)


def _running_below(root: int) -> list[int]:
    """Processes below `root`, once one of them is a hand-in's program."""
    parents: dict[int, int] = {}
    programs = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
                if (entry / "cmdline").read_bytes().split(b"\0")[0].endswith(b"/program"):
                    programs.append(int(entry.name))
            except (OSError, IndexError):
                continue

    def below(pid: int) -> bool:
        while pid in parents:
            pid = parents[pid]
            if pid == root:
                return True
        return False

    if not any(below(pid) for pid in programs):
        return []
    return [pid for pid in parents if below(pid)]


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"
