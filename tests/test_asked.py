"""Questions about a submission's source have limits, and answers that come too late are left out."""

import pytest

from grader.cpp import reading
from grader.cpp.reading import Files, asked, read_source
from grader.findings import Finding, Place
from grader.sandbox.room import Unreadable, confined
from grader.sanitizers import explained


@confined(cpu_s=1)
def endless(files: Files) -> int:
    while True:
        pass


@confined()
def uses(files: Files) -> int:
    return len(read_source(files).uses)


@confined()
def refused(files: Files) -> int:
    raise Unreadable("is not C++")


ENDLESS = [("a.cu", b"__global__ void endless(int* x) { x[0] = 1; }")]
OTHER = [("a.cu", b"__global__ void other(int* x) { x[0] = x[1]; }")]


def test_a_question_that_exceeds_its_limits_is_the_last_one_about_these_files() -> None:
    assert asked(-1, uses, ENDLESS) == 1
    assert asked(-1, endless, ENDLESS) == -1
    assert asked(-1, uses, ENDLESS) == -1
    assert asked(-1, uses, OTHER) == 2


def test_a_refusal_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(-1, refused, OTHER) == -1
    assert asked(-1, uses, OTHER) == 2


def test_all_questions_about_a_source_have_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [("a.cu", b"int often(int* x) { return x[0]; }")]
    monkeypatch.setattr(reading, "QUESTIONS_S", 0.0)
    assert (asked(-1, uses, files), asked(-1, uses, files)) == (1, -1)


def test_a_source_does_not_leave_the_room() -> None:
    with pytest.raises(AssertionError, match="in the room"):
        read_source(OTHER)


@pytest.mark.usefixtures("hurried_room")
def test_findings_whose_explanation_takes_too_long_are_kept_as_they_are() -> None:
    """One line with 20,000 uses of an array, which a search compares in pairs."""
    line = "(void)a[i];" * 20_000
    files = [("saxpy.cu", f"__global__ void k(int* a, int i) {{\n{line}\n__syncthreads();\n{line}\n}}".encode())]
    race = Finding(
        kind="race",
        file="saxpy.cu",
        line=2,
        other=Place(file="saxpy.cu", line=4),
        words={"how": "barrier", "between": "warps"},
    )
    assert explained([race, race], files) == (race, race)
    assert explained([race], files) == (race,)  # at once
    assert explained([], files) == ()
