"""What `grader doctor` finds, and how it tries the sandbox's promises."""

from pathlib import Path

import pytest

from grader.base.errors import MachineFault, UsageError
from grader.commands import doctor
from grader.commands.doctor import Answer, examine, render
from grader.sandbox import Job, Limits, Outcome, bubblewrap, promises, run
from grader.sandbox.promises import Promise, try_promises


@pytest.fixture
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_here() -> None:
        raise MachineFault("no nvcc on PATH: make setup")

    monkeypatch.setattr(doctor, "find_toolkit", none_here)


def by_name(findings: list[Answer]) -> dict[str, Answer]:
    return {finding.what.strip(): finding for finding in findings}


def test_what_fails_is_marked_with_what_to_do_and_what_is_needed_is_told_from_what_is_not() -> None:
    text = render(
        [
            Answer("nvcc", False, "not found", "make setup", needed=True),
            Answer("a GPU", False, "none", "fine without"),
            Answer("g++", True, "/usr/bin/g++", "never shown", needed=True),
        ]
    )
    assert text.splitlines() == [
        "MISSING  nvcc   not found",
        "                -> make setup",
        "no       a GPU  none",
        "                -> fine without",
        "ok       g++    /usr/bin/g++",
    ]


@pytest.mark.usefixtures("without_compiler")
def test_without_a_compiler_nothing_can_be_graded_and_the_rest_is_examined() -> None:
    found = by_name(examine())
    assert not found["nvcc"].ok and found["nvcc"].needed and "make setup" in found["nvcc"].remedy
    assert found["Python"].ok and found["course files"].ok
    assert "emulator" not in found


@pytest.mark.usefixtures("without_compiler")
def test_without_the_courses_files_everything_else_is_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise UsageError("No folder assignment/ was found")

    monkeypatch.setattr(doctor, "course_root", nowhere)
    found = by_name(examine())
    assert not found["course files"].ok and found["course files"].needed
    assert "No folder assignment/ was found" in found["course files"].remedy
    assert "the course is out of reach" not in found and "accounts are not shown" not in found


@pytest.mark.usefixtures("without_compiler")
def test_little_room_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_LEAST_FREE_BYTES", 1 << 62)
    assert not by_name(examine())["room for builds"].ok


def test_every_promise_is_held_where_bubblewrap_runs(tmp_path: Path) -> None:
    if (why := bubblewrap.problem()) is not None:
        pytest.skip(why)
    (tmp_path / "assignment").mkdir()
    tried = try_promises(tmp_path)
    assert [promise for promise in tried if promise.held is False] == []
    assert {"the course is out of reach", "no network", "memory is limited"} <= {promise.what for promise in tried}


def test_a_promise_that_is_broken_is_seen_and_one_that_cannot_be_tried_is_neither(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "assignment").mkdir()

    def in_the_open(job: Job, limits: Limits) -> Outcome:
        """As without a sandbox: what the job may read is everything that matters here."""
        if "python3" in job.command[-1]:
            return run(Job(("sh", "-c", "exit 9"), job.folder), limits)
        return run(Job(job.command, job.folder, readable=(tmp_path,)), Limits(wall_s=20))

    monkeypatch.setattr(promises, "run", in_the_open)
    monkeypatch.setattr(promises, "_EXCESSES", tuple(e for e in promises._EXCESSES if e.what.startswith("file size")))
    held = {promise.what: promise.held for promise in try_promises(tmp_path)}
    assert held["the course is out of reach"] is False
    assert held["file size is limited"] is False
    assert held["no network"] is None
    assert held["accounts are not shown"] is True


@pytest.mark.usefixtures("without_compiler")
def test_promises_are_one_line_and_one_for_each_that_is_broken_or_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor,
        "try_promises",
        lambda course: [Promise("one", True, "how"), Promise("two", False, "how"), Promise("three", None, "how")],
    )
    found = by_name(examine())
    assert "1 of 3 promises were tried and hold" in found["confinement"].found and "one" not in found
    assert (found["two"].found, found["three"].found) == ("BROKEN (how)", "not tried (how)")
    assert (found["two"].ok, found["three"].ok) == (False, True)
