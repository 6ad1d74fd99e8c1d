"""The grader in an environment that is not its authors': every obstacle is named in one sentence, with what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.records.record import write_records
from tests.support.command_line import Said, grader, grader_process
from tests.support.course import ROOT
from tests.support.records import made_record

HELLO = '#include <cstdio>\nint main() { puts("hello"); }\n'
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture
def hello(tmp_path: Path) -> Path:
    (tmp_path / "hello.cu").write_text(HELLO)
    return tmp_path


def in_a_shell(words: str, folder: Path) -> Said:
    """`grader` with what a shell does to its descriptors."""
    command = f'exec "$0" -m grader {words}'
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["sh", "-c", command, sys.executable],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("place", ["/dev/full", "/proc/nothing"])
def test_a_cache_that_cannot_be_written_is_the_machines_matter(place: str, hello: Path) -> None:
    said = grader_process("run", "hello.cu", "--engine", "emulator", cwd=hello, GRADER_CACHE=place)
    assert said.code == 1
    assert "set GRADER_CACHE to another folder" in said.err
    assert "bug" not in said.err


def test_an_empty_path_is_answered_with_what_is_missing_from_it(hello: Path) -> None:
    said = grader_process("run", "hello.cu", "--engine", "emulator", cwd=hello, PATH="/nonexistent")
    assert said.code == 1
    assert "apt install g++" in said.err
    assert "free some space" not in said.err


def test_output_that_a_locale_cannot_write_does_not_stop_the_command(hello: Path) -> None:
    write_records([made_record("zo\u00eb \U0001f98a")], hello / "record.json")
    said = grader_process("explain", "record.json", cwd=hello, **ASCII)
    assert said.code == 0 and said.out.startswith("zo? ? "), said


def test_programs_run_also_where_the_standard_descriptors_are_closed(hello: Path) -> None:
    (hello / "made.cu").write_text('#include <cstdio>\nint main() { fclose(fopen("made", "w")); }\n')
    said = in_a_shell("run made.cu --engine emulator <&- >&-", hello)
    assert (said.code, said.err) == (0, "")
    assert (hello / "made").exists()


def test_a_full_disk_behind_the_output_is_named(hello: Path) -> None:
    said = in_a_shell("assignments >/dev/full", hello)
    assert said.code == 1
    assert "No space left on device; free some space" in said.err
    assert "bug" not in said.err


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("#include <nvrtc.h>\nint main() {}\n", "It includes nvrtc.h, which is neither in the submission nor"),
        (
            "__global__ void a() {}\n__global__ void b() { a<<<1, 1>>>(); }\nint main() { b<<<1, 1>>>(); }\n",
            "It launches kernels from a kernel (dynamic parallelism): launch them all from the host.",
        ),
        (
            "template <class F> __global__ void k(F f) { f(); }\nint main() { k<<<1, 1>>>([] __device__ { }); }\n",
            "need nvcc's flag --extended-lambda: hand in a Makefile",
        ),
    ],
)
def test_a_program_that_needs_more_than_its_code_is_answered_with_what_to_do(
    source: str, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "needs.cu").write_text(source)
    said = grader("run", "needs.cu", "--engine", "emulator", cwd=tmp_path)
    assert said.code == 2
    assert sentence in said.err
