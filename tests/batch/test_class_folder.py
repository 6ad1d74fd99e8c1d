"""Which folder is a class, whose hand-in is whose, and how late it is."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.base.errors import UsageError
from grader.classes.batch import Found, Policy, Which, find_class, is_class
from grader.classes.batch.late import lateness
from grader.classes.batch.roster import Student, read_roster
from grader.course.assignment import Assignment, Deadline
from grader.sandbox.scratch import remove
from grader.store import State

Write = Callable[[str, str], Path]
MAIN = "int main() {}"


def with_pattern(rules: Assignment, pattern: str) -> Assignment:
    changed = rules.submission.model_dump() | {"id_pattern": pattern}
    return rules.model_copy(update={"submission": type(rules.submission).model_validate(changed)})


def test_a_folder_per_student_is_a_class(write: Write, rules: Assignment) -> None:
    write("class/alice/hw4.cu", MAIN)
    folder = write("class/bob/src/attention.cu", MAIN).parent.parent.parent
    assert is_class(folder, rules)
    assert [found.student for found in find_class(folder, rules)[0]] == ["alice", "bob"]


def test_a_file_per_student_is_a_class(write: Write, rules: Assignment) -> None:
    write("class/Zoë Ångström 🦊.cu", MAIN)
    folder = write("class/bob.cu", MAIN).parent
    assert is_class(folder, rules)
    assert [found.student for found in find_class(folder, rules)[0]] == ["Zoë Ångström 🦊", "bob"]


@pytest.mark.parametrize(
    "files",
    [
        {"hw4.cu": MAIN},
        {"hw4.cu": MAIN, "old.cu": MAIN},
        {"a.cu": MAIN, "kernel.cu": "__global__ void f() {}"},
        {"a.cu": MAIN, "b.cu": MAIN, "Makefile": "all:"},
        {"src/hw4.cu": MAIN},
        {"only.cu": MAIN},
    ],
)
def test_one_submission_of_several_files_is_no_class(write: Write, rules: Assignment, files: dict[str, str]) -> None:
    for name, text in files.items():
        write(f"alice/{name}", text)
    assert not is_class(write("alice/report.md", "").parent, rules)


def test_ids_come_from_names_by_the_assignments_pattern(write: Write, rules: Assignment) -> None:
    write("class/Smith Alice_1234_assignsubmission_file/hw4.cu", MAIN)
    folder = write("class/odd/hw4.cu", MAIN).parent.parent
    found, notes = find_class(folder, with_pattern(rules, r"[^_]+_(?P<id>\d+)_.*"))
    assert [one.student for one in found] == ["1234", "odd"]
    assert [one.name for one in found] == ["Smith Alice", ""]
    assert notes == ["Names that do not match submission.id_pattern (1: odd): the whole name is the id."]


def test_a_pattern_without_an_id_is_refused(rules: Assignment) -> None:
    with pytest.raises(ValueError, match=r"needs a group \(\?P<id>"):
        with_pattern(rules, r".*")


def test_an_empty_class_is_told(tmp_path: Path, rules: Assignment) -> None:
    with pytest.raises(UsageError, match="holds no submissions"):
        find_class(tmp_path, rules)


def test_the_time_of_a_hand_in_is_its_newest_files(write: Write, rules: Assignment) -> None:
    old, new = write("class/alice/hw4.cu", MAIN), write("class/alice/report.md", "")
    write("class/bob/hw4.cu", MAIN)
    os.utime(old, (1000, 1000))
    os.utime(new, (2000, 2000))
    assert find_class(old.parent.parent, rules)[0][0].handed_in == datetime.fromtimestamp(2000, UTC)


def test_the_roster_knows_names_times_and_extensions(write: Write) -> None:
    path = write(
        "roster.csv", "﻿ID,Name,nickname,handed_in,extension_days\nalice,Alice A,fox,2026-11-20T10:00:00+01:00,2\nbob\n"
    )
    students = read_roster(path)
    assert students["alice"].nickname == "fox"
    assert students["alice"].handed_in == datetime(2026, 11, 20, 9, tzinfo=UTC)
    assert (students["alice"].extension_days, students["bob"].extension_days) == (2, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name\nalice\n", "has no column id"),
        ("", "has no column id"),
        ("id\nalice\nbob\nalice\n", r"line 4: 'alice' is already on line 2"),
        ("id,name\n,Alice\n", "line 2: the id is empty"),
        ("id,due\nalice,tomorrow\n", "line 2, due: 'tomorrow' is not a time"),
        ("id,extension_days\nalice,two\n", "'two' is not a number"),
    ],
)
def test_a_wrong_roster_is_told_with_its_line(write: Write, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_roster(write("roster.csv", text))


def test_an_unreadable_roster_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"roster .*none\.csv cannot be read"):
        read_roster(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes("id,name\na,Zoë\n".encode("latin-1"))
    with pytest.raises(UsageError, match="not UTF-8"):
        read_roster(tmp_path / "latin.csv")


@pytest.mark.parametrize(
    ("day", "hour", "student", "expected"),
    [
        (10, 0, Student("a"), (0, 0.0)),
        (10, 1, Student("a"), (0, 0.0)),  # within the grace of 60 minutes
        (10, 2, Student("a"), (1, 0.0)),  # the first day is free
        (12, 0, Student("a"), (2, 0.1)),
        (12, 0, Student("a", extension_days=1), (1, 0.0)),
        (12, 0, Student("a", due=datetime(2026, 12, 12, tzinfo=UTC)), (0, 0.0)),
        (14, 0, Student("a"), (4, 0.3)),  # not 0.30000000000000004
        (16, 0, Student("a"), (6, 1.0)),  # later than max_days
    ],
)
def test_lateness_counts_begun_days(day: int, hour: int, student: Student, expected: tuple[int, float]) -> None:
    deadline = Deadline(
        due=datetime(2026, 12, 10, tzinfo=UTC), grace_minutes=60, free_days=1, penalty_per_day=0.1, max_days=5
    )
    assert lateness(datetime(2026, 12, day, hour, tzinfo=UTC), deadline, student) == expected


def test_latest_takes_one_attempt_and_best_all() -> None:
    found = [Found("alice", Path(name), datetime(2026, 1, day, tzinfo=UTC)) for name, day in (("b", 2), ("a", 1))]
    assert [str(one.path) for one in Policy().chosen(found)] == ["b"]
    assert [str(one.path) for one in Policy(Which.BEST).chosen(found)] == ["b", "a"]


def test_rerun_says_what_is_graded_again() -> None:
    states = (State.FAULTED, State.FAILED, State.PASSED)
    wanted = {
        word: [Policy(rerun=word).wants(state) for state in states]
        for word in (None, "machine-faults", "older", "failed", "all", "alice")
    }
    assert wanted == {
        None: [True, False, False],
        "machine-faults": [True, False, False],
        "older": [True, False, False],
        "failed": [True, True, False],
        "all": [True] * 3,
        "alice": [True] * 3,
    }
    assert [Policy(rerun=word).wants(State.PASSED, older=True) for word in (None, "older")] == [False, True]


def test_deadlines_do_not_change_what_a_grade_depends_on(rules: Assignment) -> None:
    later = rules.model_copy(update={"deadline": Deadline(due=datetime(2026, 12, 10, tzinfo=UTC))})
    assert later.rules_sha256 == with_pattern(rules, "(?P<id>.*)").rules_sha256 == rules.rules_sha256
    assert rules.model_copy(update={"tolerance": 1.0}).rules_sha256 != rules.rules_sha256


def test_a_link_is_no_hand_in_even_when_it_is_called_like_one(write: Write, rules: Assignment) -> None:
    write("class/alice/hw4.cu", MAIN)
    folder = write("class/bob/hw4.cu", MAIN).parent.parent
    (folder / "mallory.cu").symlink_to("/etc/passwd")
    assert is_class(folder, rules)
    found, notes = find_class(folder, rules)
    assert [one.student for one in found] == ["alice", "bob"]
    assert notes == ["mallory.cu is left out: it is a link; put the files themselves there."]


def test_a_hand_in_of_a_thousand_nested_folders_is_found_with_the_others(
    rules: Assignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("alice", "mallory"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "hw4.cu").write_text("int main() {}")
    monkeypatch.chdir(tmp_path / "mallory")
    for _ in range(1500):
        Path("a").mkdir()
        monkeypatch.chdir("a")
    assert is_class(tmp_path, rules)
    assert [one.student for one in find_class(tmp_path, rules)[0]] == ["alice", "mallory"]
    monkeypatch.chdir("/")
    remove(tmp_path / "mallory")  # pytest's own removal recurses


def test_names_that_only_encode_accents_otherwise_are_attempts_of_one_student(
    tmp_path: Path, rules: Assignment
) -> None:
    for name in ("zo\u00eb", "zoe\u0308", "new\nline", os.fsdecode(b"caf\xe9")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "hw4.cu").write_text(MAIN)
    assert sorted(one.student for one in find_class(tmp_path, rules)[0]) == [
        "caf\\udce9",
        "new\\nline",
        "zo\u00eb",
        "zo\u00eb",
    ]


def test_a_time_that_no_calendar_has_is_the_epoch(
    write: Write, rules: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write("class/alice/hw4.cu", MAIN).parent.parent
    monkeypatch.setattr("grader.classes.batch.class_folder._newest", lambda path: 1e18)
    assert find_class(folder, rules)[0][0].handed_in == datetime.fromtimestamp(0, UTC)


@pytest.mark.parametrize("words", ["", " , "])
def test_a_rerun_of_nobody_is_refused(words: str) -> None:
    with pytest.raises(UsageError, match="names no student: give failed, machine-faults, older, all, or ids"):
        Policy(rerun=words)
