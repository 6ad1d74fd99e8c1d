"""Lines of host code behind addresses, which a program and its line table can make up."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cudaemu.process import Completed
from grader import sandbox
from grader.findings import Finding, Place
from grader.programs.host_lines import read_lines, with_lines

ANSWER = """\
0x10
/usr/include/c++/12/bits/stl_vector.h:31
./hw4.cu:7 (discriminator 2)
hw4.cu:70
0x20
??:?
0x30
/tmp/x/cudaemu/runtime/api_copy.c:143
0x40
a file
named 0x50:12:hw4.cu:4
/tmp/.grader-1/source/part/util.cuh:9
0xzz
:5
hw4.cu:99999999999999999999
"""


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Finding]:
    def with_values(**values: tuple[int, ...] | int) -> Finding:
        (found,) = with_lines([Finding(kind="host_endless", values=values)], Path("program"))
        return found

    monkeypatch.setattr(sandbox, "runner", lambda *limits, **paths: lambda command, folder: Completed(0, ANSWER))
    return with_values


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        ((0x10,), "hw4.cu:7"),
        ((0x20, 0x30, 0x10), "hw4.cu:7"),
        ((0x20, 0x30), "None"),
        ((0x40,), "named 0x50:12:hw4.cu:4"),
        ((0x50,), "None"),
        ((-16,), "None"),
        (16, "None"),
    ],
)
def test_the_line_is_the_innermost_of_the_students(placed, frames: tuple[int, ...], place: str) -> None:
    found = placed(host_at=frames)
    assert (str(found.place), found.values) == (place, {})


def test_the_two_other_places_have_their_lines(placed) -> None:
    found = placed(allocated_at=(0x10,), other_at=(0x30, 0x40), serial=3)
    assert (str(found.allocated), str(found.other)) == ("hw4.cu:7", "named 0x50:12:hw4.cu:4")
    assert not found.values
    assert placed(allocated_at=(0x20,), serial=3).values == {"serial": 3}


@pytest.mark.parametrize(("innermost", "line", "last"), [(0x10, 7, None), (0x30, 4, "call")])
def test_inside_the_runtime_the_line_is_that_of_the_last_call(
    placed, innermost: int, line: int, last: str | None
) -> None:
    found = placed(host_at=(innermost, 0x10), last_at=(0x40,))
    assert (found.line, found.words.get("last")) == (line, last)


def test_a_file_name_that_is_slow_to_match_is_read_at_once() -> None:
    """200,000 times "./", at a line with more digits than are taken: two minutes of backtracking before."""
    began = time.process_time()
    room_reads = read_lines.__wrapped__  # type: ignore[attr-defined]
    assert room_reads("0x10\n" + "./" * 200_000 + "x:20000000\n./hw4.cu:7\n") == [(16, Place(file="hw4.cu", line=7))]
    assert time.process_time() - began < 5
