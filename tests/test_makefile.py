"""Flags from students' Makefiles: what is theirs to choose is kept, the rest is dropped and named."""

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.programs.compiler_calls import calls
from grader.programs.makefile import MakefileFlags, read_makefile_flags, sort_flags
from grader.sandbox import runner

Write = Callable[[str, str], Path]


def flags_of(command: str) -> tuple[str, ...]:
    return sort_flags([call.words for call in calls(command)], (Path("/submission"),) * 2).flags


def notes_of(command: str) -> str:
    return " ".join(sort_flags([call.words for call in calls(command)], (Path("/submission"),) * 2).notes)


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("nvcc -O3 -o hw4 hw4.cu", ("-O3",)),
        ("nvcc -std=c++11 -O3 -Xptxas=-v -arch=sm_61 hw4.cu", ("-std=c++11", "-O3", "-Xptxas=-v")),
        ("/usr/local/cuda/bin/nvcc -D TILE=32 -DN=1 hw4.cu", ("-DTILE=32", "-DN=1")),
        ("nvcc --use_fast_math -maxrregcount 64 -gencode arch=compute_61,code=sm_61 a.cu", None),
        ('nvcc -Xcompiler "-O2 -march=native" a.cu', ("-Xcompiler=-O2", "-Xcompiler=-march=native")),
        ("CUDA=1 nvcc -lm -L/x -lcudart a.cu", ()),
        ("mkdir -p build && nvcc -O2 -Iinclude -c a.cu", ("-O2", "-Iinclude")),
        ("ccache nvcc -O3 -lineinfo a.cu", ("-O3", "-lineinfo")),
        ("@/usr/bin/time -p nvcc -O1 a.cu", ("-O1",)),
        ("echo 'it; nvcc -O1 x.cu", ("-O1",)),
    ],
)
def test_flags_that_change_the_program_are_kept(command: str, kept: tuple[str, ...] | None) -> None:
    if kept is None:
        kept = ("--use_fast_math", "-maxrregcount=64")
    assert flags_of(command) == kept


def test_dropped_flags_are_named_with_the_reason() -> None:
    assert notes_of("nvcc -lineinfo -lm a.cu") == ""
    notes = notes_of("nvcc -G -lcublas -I/etc -I../peer --made-up -Xcompiler=-fplugin=evil.so hw4.cu")
    assert "-G is left out: kernels are built with optimization" in notes
    assert "-lcublas is left out: libraries are not linked" in notes
    assert "-I/etc is left out: it is outside the submission" in notes
    assert "-I../peer is left out" in notes
    assert "--made-up is left out" in notes
    assert "-fplugin=evil.so is left out" in notes


def test_the_target_named_after_the_submission_is_preferred(write: Write) -> None:
    folder = write(
        "Makefile", "all:\n\tnvcc -O1 other.cu\nhw4: hw4.cu\n\tnvcc -O3 \\\n\t  -DFAST hw4.cu -o hw4\n"
    ).parent
    write("hw4.cu", "")
    made = read_makefile_flags(folder, "hw4", runner(10))
    assert made is not None
    assert made.flags == ("-O3", "-DFAST")
    assert made.sources == ("hw4.cu",)


@pytest.mark.parametrize("text", ["hw4:\n\tgcc hw4.c\n", "this is no makefile", "hw4:\n\t@echo nothing here\n"])
def test_a_makefile_without_nvcc_gives_nothing(write: Write, text: str) -> None:
    assert read_makefile_flags(write("Makefile", text).parent, "hw4", runner(10)) is None


def sorted_flag(flag: str) -> MakefileFlags:
    return sort_flags([["-O2", flag, "a.cu"]], (Path("/submission"),) * 2)


@pytest.mark.parametrize(
    "flag",
    [
        "-DX=$(touch x)",
        "-DX=`touch x`",
        '-DX=";touch x;"',
        '-DX=\\\\";touch x;\\\\"',
        "--optimize=$(touch x)",
        "-I$(touch x)",
        "-DX=a\0b",
        "-DX=\x1b[2J",
        "-DX=" + "y" * 200_000,
    ],
)
def test_what_nvccs_own_shell_would_run_is_left_out_and_named(flag: str) -> None:
    made = sorted_flag(flag)
    assert made.flags == ("-O2",)
    assert "is left out" in made.notes[0] and made.notes[0].isprintable()


@pytest.mark.parametrize("value", [";touch x", "a&touch x", "a|touch${IFS}x", "(x)", "<x"])
def test_macros_for_the_host_compiler_hold_words_only(value: str) -> None:
    assert sorted_flag(f"-Xcompiler=-DX={value}").flags == ("-O2",)


@pytest.mark.parametrize(
    "flag",
    [
        "-I@options",
        "-I./@options",
        "-D@options",
        "-U@options",
        "-DX,@options",
        "--define-macro=@options",
        "-D-x",
        "-DX,,-x",
    ],
)
def test_a_word_that_gcc_would_take_for_a_file_of_options_is_left_out(flag: str) -> None:
    made = sorted_flag(flag)
    assert made.flags == ("-O2",)
    assert f"{flag} is left out" in made.notes[0]


@pytest.mark.parametrize("flag", ["-DX=(1+2)", "-DT=unsigned long", r"-DNAME=\"a.b\"", "-DV=a;b", "-DX=1,Y=2", "-D_x"])
def test_honest_macros_are_kept(flag: str) -> None:
    assert sorted_flag(flag).flags == ("-O2", flag)


def test_an_include_folder_is_judged_as_it_is_written_whatever_lies_there(tmp_path: Path) -> None:
    (tmp_path / "`touch x`").mkdir()
    (tmp_path / "link").symlink_to("`touch x`")
    assert sort_flags([["-Ilink", "a.cu"]], (tmp_path, tmp_path)).flags == ("-Ilink",)


@pytest.mark.parametrize("value", ["a,/etc", "../other", "a/../../b"])
def test_an_include_folder_elsewhere_is_left_out(value: str, tmp_path: Path) -> None:
    made = sort_flags([[f"-I{value}", "a.cu"]], (tmp_path, tmp_path))
    assert made.flags == () and "is left out" in made.notes[0]


def test_no_more_flags_are_kept_than_a_command_line_can_hold(tmp_path: Path) -> None:
    made = sort_flags([[f"-DA{number}" for number in range(100_000)]], (tmp_path, tmp_path))
    assert len(made.flags) == 256 and "left out" in made.notes[-1]


def test_a_makefile_that_prints_hundreds_of_thousands_of_calls_is_read_in_part() -> None:
    assert len(calls("cc a.o -o b.o;" * 50_000)) < 1000
    assert len(calls("nvcc " + "a.o " * 50_000)[0].inputs) < 1000
