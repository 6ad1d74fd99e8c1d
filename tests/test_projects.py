"""Programs of several files, with a Makefile or a CMakeLists.txt, as a person has them: built whole by both engines."""

import subprocess
from pathlib import Path

import pytest

from grader.course.assignment import Assignment
from grader.programs.build import Build, build
from grader.programs.submission import read_submission as read
from tests.support.builds import engine, foreign, project
from tests.support.command_line import grader

KERNEL = r"""
#include "scale.h"
__global__ void scale(int *values) { values[threadIdx.x] *= 3; }
extern "C" int on_device(int value) {
    int *p;
    if (cudaMallocManaged(&p, sizeof(int))) return value * 3;
    *p = value;
    scale<<<1, 1>>>(p);
    cudaDeviceSynchronize();
    return *p;
}
"""
MAIN = r"""
#include <cstdio>
#include "scale.h"
int main() { printf("%d from %s\n", on_device(plus_one(13)), __FILE__); }
"""
HEADER = """
#pragma once
#ifdef __cplusplus
extern "C" {
#endif
int on_device(int value);
int plus_one(int value);
#ifdef __cplusplus
}
#endif
"""
C = '#include "scale.h"\nint plus_one(int class) { return class + 1; }\n'  # no C++: class is a word of it
IN_STEPS = """
NVCC := $(CUDA_HOME)/bin/nvcc
demo: src/main.o src/kernel.o src/c.o
\tg++ -o $@ $^ -lcudart
src/main.o: src/main.cpp
\tg++ -std=c++17 -O2 -Iinclude -c $< -o $@
src/c.o: src/c.c
\tgcc -std=c99 -Wall -Iinclude -c -o $@ $<
src/kernel.o: src/kernel.cu
\t$(NVCC) -O2 -Iinclude -c $< -o $@
other: old.cu
\tnvcc -DOLD old.cu -o other
"""
CMAKE = """
project(demo LANGUAGES C CXX CUDA)
include_directories(include ../../common)
add_executable(demo src/main.cpp src/kernel.cu src/c.c)
"""
FILES = {"src/kernel.cu": KERNEL, "src/main.cpp": MAIN, "src/c.c": C, "include/scale.h": HEADER}
OLD = {"old.cu": "int main() { return 1; }\n"}


def output_of(made: Build) -> str:
    """What the program prints here, where it finds no GPU or is the emulator's."""
    assert made.program is not None, made.log
    return subprocess.run([made.program], capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(
    ("name", "how"), [("cuda", {"CMakeLists.txt": CMAKE}), ("emulator", {"Makefile": IN_STEPS})], ids=["cmake", "make"]
)
def test_sources_in_c_cpp_and_cuda_make_one_program(
    name: str, how: dict[str, str], tmp_path: Path, rules: Assignment
) -> None:
    submission = read(project(tmp_path, FILES | OLD | how), rules)
    assert sorted(submission.sources) == ["src/c.c", "src/kernel.cu", "src/main.cpp"]
    made = build(submission, rules, engine(name))
    assert output_of(made) == "42 from src/main.cpp\n"
    assert foreign(made.log) == []


def test_folders_outside_are_named_and_where_the_flags_come_from(tmp_path: Path, rules: Assignment) -> None:
    submission = read(project(tmp_path, FILES | {"CMakeLists.txt": CMAKE}), rules)
    assert submission.flags == ("-Iinclude",)
    assert submission.flags_from == "the submission's CMakeLists.txt"
    assert submission.notes == ("CMakeLists.txt: -I../../common is left out: it is outside the submission.",)


def test_cpp_compiled_as_cuda_is_cuda_and_c_stays_c(tmp_path: Path, rules: Assignment) -> None:
    files = {"kernel.cpp": KERNEL, "main.cc": MAIN, "c.c": C, "inc/scale.h": HEADER, "empty.cu": ""}
    make = (
        "demo:\n\tnvcc -x cu -std=c++17 -Iinc -c kernel.cpp main.cc\n\tgcc -c c.c\n\tnvcc kernel.o main.o c.o -o demo\n"
    )
    submission = read(project(tmp_path, files | {"Makefile": make}), rules)
    assert submission.sources == ("kernel.cpp", "main.cc", "c.c")
    assert output_of(build(submission, rules, engine("emulator"))) == "42 from main.cc\n"


@pytest.mark.parametrize("name", ["cuda", "emulator"])
def test_device_code_of_several_files_is_linked_where_dc_asks_for_it(
    name: str, tmp_path: Path, rules: Assignment
) -> None:
    files = {
        "a.cu": "__device__ int f(int);\n__global__ void k(int *p) { *p = f(1); }\n#include <cstdio>\n"
        'int main() { int *p; cudaMallocManaged(&p, 4); k<<<1, 1>>>(p); cudaDeviceSynchronize(); puts("linked"); }\n',
        "b.cu": "__device__ int f(int x) { return x + 1; }\n",
        "Makefile": "demo:\n\tnvcc -dc a.cu b.cu\n\tnvcc -arch=sm_80 a.o b.o -o demo\n",
    }
    assert output_of(build(read(project(tmp_path, files), rules), rules, engine(name))) == "linked\n"


def test_of_several_programs_the_assignments_own_is_built(tmp_path: Path, rules: Assignment) -> None:
    make = "all:\n\tgcc -O3 seq.c -o seq\n\tnvcc -DTEST test.cu -o test\n\tnvcc -DMINE hw4.cu util.cpp -o hw\n"
    files = {"seq.c": C, "test.cu": MAIN, "hw4.cu": MAIN, "util.cpp": "", "Makefile": make}
    submission = read(project(tmp_path, files), rules)
    assert submission.sources == ("hw4.cu", "util.cpp")
    assert submission.flags == ("-DMINE",)


def test_an_archive_of_objects_is_followed_to_its_sources(tmp_path: Path, rules: Assignment) -> None:
    make = "all:\n\tg++ -c lib/a.cpp -o lib/a.o\n\tar rcs lib/libours.a lib/a.o\n\tnvcc main.cu -Llib -lours -o all\n"
    submission = read(project(tmp_path, {"lib/a.cpp": "", "main.cu": MAIN, "Makefile": make}), rules)
    assert submission.sources == ("lib/a.cpp", "main.cu")


def test_a_source_that_lies_outside_is_named(tmp_path: Path, rules: Assignment) -> None:
    make = "hw4:\n\tnvcc main.cu ../common/util.cpp -o hw4\n"
    project(tmp_path, {"common/util.cpp": ""})
    submission = read(project(tmp_path / "mine", {"main.cu": MAIN, "Makefile": make}), rules)
    assert submission.sources == ("main.cu",)
    assert submission.notes == ("../common/util.cpp is left out: the submission holds no such file.",)


def test_headers_found_through_an_include_folder_come_along_with_a_single_file(
    tmp_path: Path, rules: Assignment
) -> None:
    files = {
        "hw4.cu": '#include <part.cu_inl>\n#include <tables.inc>\n#include "more.inl"\n' + MAIN,
        "inc/part.cu_inl": "#include <deep/er.hpp>\n",
        "inc/deep/er.hpp": "",
        "inc/tables.inc": "",
        "inc/unrelated.h": "",
        "more.inl": "",
        "Makefile": "hw4: hw4.cu\n\tnvcc -Iinc hw4.cu -o hw4\n",
    }
    submission = read(project(tmp_path, files) / "hw4.cu", rules)
    assert [name for name, _ in submission.files] == [
        *("Makefile", "hw4.cu", "inc/deep/er.hpp", "inc/part.cu_inl", "inc/tables.inc", "more.inl")
    ]


def test_the_programs_own_helper_headers_win_over_the_graders(tmp_path: Path, rules: Assignment) -> None:
    files = {
        "main.cu": "#include <helper_cuda.h>\n#include <helper_timer.h>\nint main() { puts(OWN TIMER); }\n",
        "Common/helper_cuda.h": '#include <cstdio>\n#define OWN "own"\n',
        "Common/helper_timer.h": '#define TIMER " and own timer"\n',
        "Makefile": "main:\n\tnvcc -ICommon main.cu -o main\n",
    }
    made = build(read(project(tmp_path, files), rules), rules, engine("emulator"))
    assert output_of(made) == "own and own timer\n"


def test_what_a_makefile_asks_for_in_vain_is_said_once(tmp_path: Path) -> None:
    cmake = "project(demo LANGUAGES CUDA)\ninclude_directories(../../common)\nadd_executable(demo demo.cu)\n"
    project(tmp_path, {"demo.cu": "int main() { return 3; }\n", "CMakeLists.txt": cmake})
    first = grader("run", ".", "--engine", "emulator", cwd=tmp_path)
    again = grader("run", ".", "--engine", "emulator", cwd=tmp_path)
    assert first.code == again.code == 3
    assert first.err == "grader: CMakeLists.txt: -I../../common is left out: it is outside the submission.\n"
    assert again.err == ""
