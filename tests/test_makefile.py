"""Flags from students' Makefiles: what is theirs to choose is kept, the rest is dropped and named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.makefile import nvcc_commands, read_makefile_flags, sort_flags
from grader.sandbox import runner

Write = Callable[[str, str], Path]


def flags_of(command: str) -> tuple[str, ...]:
    return sort_flags(nvcc_commands(command), Path("/submission")).flags


def notes_of(command: str) -> str:
    return " ".join(sort_flags(nvcc_commands(command), Path("/submission")).notes)


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
        ("echo 'it; nvcc -O1 x.cu", ("-O1",)),
    ],
)
def test_flags_that_change_the_program_are_kept(command: str, kept: tuple[str, ...] | None) -> None:
    if kept is None:
        kept = ("--use_fast_math", "-maxrregcount=64")
    assert flags_of(command) == kept


def test_dropped_flags_are_named_with_the_reason() -> None:
    notes = notes_of("nvcc -lcublas -I/etc -I../peer --made-up -Xcompiler=-fplugin=evil.so hw4.cu")
    assert "-lcublas is left out: libraries are not linked" in notes
    assert "-I/etc is left out: it lies outside the submission" in notes
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
