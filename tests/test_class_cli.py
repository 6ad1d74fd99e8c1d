"""The commands for a class from the command line. Hand-ins are C programs that run on this CPU (tests/support)."""

import errno
import json
import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from grader.classes.batch import Which, policy
from grader.commands import choice, classroom
from grader.course.assignment import Assignment, Deadline, load_assignment
from grader.course.catalogue import TestcaseFiles
from grader.store import HandIn, open_store
from tests.support.batch_engine import PlainC
from tests.support.command_line import run
from tests.support.executors import Here
from tests.support.records import made_record
from tests.support.sequential import right_program

RIGHT = right_program()


@pytest.fixture(autouse=True)
def _in_plain_c(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("grader.classes.schedule.LocalExecutor", Here)
    monkeypatch.setattr(choice, "select_engines", lambda name, target: (PlainC(),))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for student, source in {"alice": RIGHT, "bob": "int main( {", "zoë 🦊": "int main() { return 0; }"}.items():
        (tmp_path / "class" / student).mkdir(parents=True)
        (tmp_path / "class" / student / "hw4.cu").write_text(source)
    return tmp_path / "class"


def test_a_folder_of_students_is_graded_into_the_usual_store_and_told_in_a_summary(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "roster.csv").write_text("id,nickname\nalice,fox\ncarol,owl\n")
    run("grade", folder, "--tests", "s01", "--roster", "roster.csv", "--json", "all.json", "--junit", "all.xml")
    shown = capsys.readouterr()
    assert "3 submissions: 3 graded now (" in shown.out
    assert "On the roster without a submission (1): carol." in shown.out
    assert "Everything is in results/hw4.sqlite." in shown.out
    assert len([line for line in shown.err.splitlines() if line.startswith("[")]) == 3
    assert [record["submission"]["id"] for record in json.loads(Path("all.json").read_text())] == [
        "alice", "bob", "zoë 🦊",
    ]  # fmt: skip
    assert len(ElementTree.parse("all.xml").getroot()) == 3
    run("gradebook", "--columns", "id,nickname,attempts")
    assert capsys.readouterr().out.splitlines()[1:] == ["alice,fox,1", "bob,,1", "zoë 🦊,,1", "carol,owl,0"]
    run("grade", folder, "--tests", "s01")
    assert "3 submissions: 0 graded now, 3 were graded before." in capsys.readouterr().out
    run("leaderboard", "--metric", "correctness", "--format", "csv")
    assert capsys.readouterr().out.splitlines()[1].startswith("1,fox,60.00")


def test_what_could_not_be_judged_is_listed_with_exit_code_1_until_the_same_command_judges_it(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "bob/hw4.cu").write_text("int main() { return 1; }")
    files = TestcaseFiles(tmp_path / "testcases")
    monkeypatch.setattr(TestcaseFiles, "beside", lambda suite: files)
    run("grade", folder, "--tests", "s01")
    rules = load_assignment("hw4")
    stricter = rules.model_copy(update={"tolerance": 4e-3})
    monkeypatch.setattr(choice, "chosen_assignment", lambda *words: stricter)
    expected = next(files.folder.glob("s01.out"))
    right = expected.read_bytes()
    expected.write_bytes(b"spoilt!!" + right[8:])
    run("grade", folder, "--tests", "s01", code=1)  # three faults in a row: it stops
    expected.write_bytes(right)
    run("grade", folder, "--tests", "s01", "--rerun", "alice", code=1)
    told = capsys.readouterr().out
    assert "not judged, through no fault of theirs" in told and "\n    bob: " in told
    assert "alice: " not in told.rpartition("Needs attention")[2]
    run("grade", folder, "--tests", "s01")
    told = capsys.readouterr().out
    assert "3 submissions: 2 graded now" in told and "attention" not in told and "different rules" not in told


def test_model_solutions_beside_a_class_are_known_as_such(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rules = classroom.load_assignment("hw4")
    model = tmp_path / "reference/hw4/fast.cu"
    model.parent.mkdir(parents=True)
    model.write_text(RIGHT)
    monkeypatch.setattr(type(rules), "reference_folder", property(lambda self: model.parent))
    (model.parent / "naive.cu").write_text(RIGHT)
    (model.parent / rules.baseline.source).write_text(RIGHT)
    (model.parent / "wrong").mkdir()
    (model.parent / "wrong/zeros.cu").write_text("int main() { }")
    run("grade", folder, "--tests", "s01", "--store", "s.sqlite")
    run("grade", folder, model.parent, "--tests", "s01", "--store", "s.sqlite")
    assert "5 submissions: 2 graded now" in capsys.readouterr().out
    run("leaderboard", "--metric", "correctness", "--store", "s.sqlite")
    assert "fast (model solution)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--roster", "none.csv"), "The roster none.csv cannot be read"),
        (("--rerun", "mallory"), "mallory"),
        (("--cluster", "lsf"), "There is no cluster 'lsf'"),
        (("--html", "x.html"), "`grader site OUT`"),
        (("--store", "class"), "is a folder, expected a file"),
    ],
)
def test_what_cannot_be_done_for_a_class_is_told(
    folder: Path, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run("grade", folder, "--tests", "s01", *words, code=2)
    assert message in capsys.readouterr().err


def test_class_options_on_one_submission_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("grade", folder / "alice", "--rerun", "all", code=2)
    assert "is one submission" in capsys.readouterr().err


def test_a_hand_in_that_looks_like_a_class_adds_nothing_under_classmates_ids(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for student in ("alice", "bob", "carol"):
        (folder / "mallory" / student).mkdir(parents=True)
        (folder / "mallory" / student / "hw4.cu").write_text(RIGHT)
    grade = ("--tests", "s01", "--store", "s.sqlite")
    run("grade", folder, *grade)
    run("grade", folder / "mallory", *grade, code=2)
    assert "mallory looks like a class, but s.sqlite holds the results of another folder" in capsys.readouterr().err
    run("grade", folder / "mallory", "--class", *grade)
    run("grade", folder, *grade)
    run("grade", folder / "mallory", "--tests", "s01", "--store", "new.sqlite")  # with nothing to compare with: a class
    run("grade", folder, "--tests", "s01", "--store", "new.sqlite", code=2)
    assert "new.sqlite holds the results of another folder" in capsys.readouterr().err


def test_a_store_must_be_named_where_there_is_none_or_several_assignments(capsys: pytest.CaptureFixture[str]) -> None:
    run("leaderboard", code=2)
    assert "Which store? Name one with --store" in capsys.readouterr().err
    with open_store(Path("empty.sqlite"), create=True):
        pass
    run("gradebook", "--store", "empty.sqlite", code=2)
    assert "empty.sqlite holds no record." in capsys.readouterr().err
    run("site", "out", "--store", "none.sqlite", code=2)
    assert "There is no store at none.sqlite" in capsys.readouterr().err


def test_the_bundle_holds_what_gradescope_starts_and_no_secret_unless_it_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("gradescope", "build", "one.zip", "--assignment", "hw4")
    run("gradescope", "build", "two.zip", "--assignment", "hw4")
    assert Path("one.zip").read_bytes() == Path("two.zip").read_bytes()
    with zipfile.ZipFile("one.zip") as bundle:
        names = bundle.namelist()
        assert {"setup.sh", "run_autograder", "grader/commands/cli.py", "assignment/hw4/assignment.yaml"} <= set(names)
        assert "testcases/secret" not in names
        assert bundle.getinfo("run_autograder").external_attr >> 16 & 0o111
        assert b"--tests public --engine auto" in bundle.read("run_autograder")
        assert b"triton" not in bundle.read("setup.sh")
    run("gradescope", "build", "python.zip", "--assignment", "softmax")
    with zipfile.ZipFile("python.zip") as bundle:
        assert b"setup.sh triton" in bundle.read("setup.sh"), "it takes programs in Triton"
    capsys.readouterr()
    run("gradescope", "build", "three.zip", "--assignment", "hw4", "--tests", "all", code=2)
    assert "names hidden testcases (t01" in capsys.readouterr().err


def test_the_bundle_holds_a_reference_solution_of_another_assignment() -> None:
    run("gradescope", "build", "backward.zip", "--assignment", "half_backward")
    with zipfile.ZipFile("backward.zip") as bundle:
        assert "reference/half/backward_mma.cu" in bundle.namelist()


def test_a_bundle_that_cannot_be_written_leaves_the_older_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(content: dict[str, bytes]) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    Path("one.zip").write_text("older")
    monkeypatch.setattr("grader.gradescope.bundle.packed", full)
    run("gradescope", "build", "one.zip", "--assignment", "hw4", code=1)
    assert "could not be made: one.zip: No space left on device." in capsys.readouterr().err
    assert [path.name for path in Path().glob("*one.zip*")] == ["one.zip"]
    assert Path("one.zip").read_text() == "older"


def test_grading_one_hand_in_again_forgets_no_lateness_and_a_new_one_is_the_latest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = Deadline(due=datetime.fromtimestamp(86_400, UTC), penalty_per_day=0.1)
    rules = load_assignment("hw4").model_copy(update={"deadline": due})
    monkeypatch.setattr(classroom, "load_assignment", lambda name: rules)
    source = folder / "alice" / "hw4.cu"
    os.utime(source, (86_400 * 4, 86_400 * 4))
    first = made_record("alice")
    path = Path("class.sqlite")
    with open_store(path, create=True) as store:  # the roster gave her two more days
        entered = HandIn("hw4", "alice", first.submission.sha256, "p", datetime.fromtimestamp(86_400 * 4, UTC), 1, 0.1)
        store.add_submission(entered)
    graded = first.submission.model_copy(update={"path": str(source)})
    classroom.keep([first.model_copy(update={"submission": graded})], path)
    with open_store(path) as store:
        assert [(one.days_late, one.penalty) for one in store.attempts("hw4")] == [(1, 0.1)]
    os.utime(source, (86_400 * 5, 86_400 * 5))
    second = graded.model_copy(update={"sha256": "2" * 64})
    classroom.keep([first.model_copy(update={"submission": second})], path)
    with open_store(path) as store:
        found = [(one.number, one.sha256[0], one.days_late, one.penalty) for one in store.attempts("hw4")]
    assert found == [(1, first.submission.sha256[0], 1, 0.1), (2, "2", 4, 0.4)]


@pytest.mark.parametrize(("best", "counts"), [(None, Which.BEST), (True, Which.BEST), (False, Which.LATEST)])
def test_the_assignment_says_which_attempt_counts_unless_an_option_does(
    best: bool | None, counts: Which, hw4: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = hw4.submission.model_copy(update={"counts": "best"})
    changed = hw4.model_copy(update={"submission": submission})
    monkeypatch.setattr(policy, "load_assignment", lambda name: changed)
    assert Which.chosen("hw4", best) is counts
    assert Which.chosen("an assignment of another course", None) is Which.LATEST
    assert changed.rules_sha256 == hw4.rules_sha256, "nobody has to be graded again for it"
