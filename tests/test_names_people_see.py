"""Whatever a person reads names files as they were handed in: no folder that a program was built or run in."""

import subprocess
from itertools import product
from pathlib import Path

import pytest

from grader.course.assignment import Assignment
from grader.programs.build import Build, build
from grader.programs.submission import read_submission
from tests.support.builds import engine, foreign
from tests.support.command_line import grader

TALKS = r"""
#include "lib/check.cuh"
#include <cassert>
__global__ void k(int *p, int mode) {
    printf("kernel in %s\n", __FILE__);
    if (mode == 1) p[1 << 20] = 1;
    assert(mode != 2);
}
int main(int argc, char **argv) {
    const int mode = argc > 1 ? atoi(argv[1]) : 0;
    printf("%s of %s\n", argv[0], __FILE__);
    say_where();
    int *p = nullptr;
    CHECK(cudaMalloc(&p, 64));
    if (mode == 3) CHECK(cudaMemcpy(p, p, 1 << 20, cudaMemcpyDeviceToDevice));
    k<<<1, 1>>>(p, mode);
    CHECK(cudaDeviceSynchronize());
    assert(mode != 4);
}
"""
CHECK = r"""
#include <cstdio>
#include <cstdlib>
inline void say_where() { printf("header %s\n", __FILE__); }
#define CHECK(call) do { \
    cudaError_t e = (call); \
    if (e) { printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorName(e)); exit(3); } } while (0)
"""
WRONG = {
    "missing header": '#include "nowhere.h"\nint main() {}',
    "undefined function": "void f(int);\nint main() { f(1); }",
    "undefined kernel function": "extern __device__ void f(int *);\n__global__ void k(int *p) { f(p); }\nint main() {}",
    "ptx": '__global__ void k() { asm("nonsense;"); }\nint main() { k<<<1, 1>>>(); }',
    "shared memory": "__global__ void k(int *p){ __shared__ int a[99999]; a[p[0]] = 1; p[1] = a[p[2]]; }\nint main(){}",
    "assembler without lines": 'asm("nonsense");\nint main() {}',
    "assembler": 'int main() { asm("nonsense"); }',
    "a warning too": "__global__ void k() {}\nint main() { int unused; k<<<1, 1>>>(); return nothing; }",
}

_OTHERS = ("shared memory", "undefined kernel function", "assembler without lines")
"""ptxas names the kernel alone, and the assembler its own input."""


def built(folder: Path, rules: Assignment, name: str, source: str) -> Build:
    (folder / "lib").mkdir()
    (folder / "lib" / "check.cuh").write_text(CHECK)
    (folder / "hw4.cu").write_text(source)
    return build(read_submission(folder / "hw4.cu", rules), rules, engine(name))


# of a GPU, those that another command complains of than on the emulator
@pytest.mark.parametrize(("name", "what"), [*product(["emulator"], WRONG), *product(["cuda"], list(WRONG)[1:6])])
def test_what_compilers_and_linkers_say_names_the_students_files(
    name: str, what: str, tmp_path: Path, rules: Assignment
) -> None:
    made = built(tmp_path, rules, name, WRONG[what])
    assert not made.ok
    assert "hw4" in made.log or what in _OTHERS
    assert foreign(made.log + "\n" + made.reason) == []


def test_a_program_built_for_a_gpu_sees_its_sources_as_they_were_handed_in(tmp_path: Path, rules: Assignment) -> None:
    made = built(tmp_path, rules, "cuda", TALKS)
    assert made.program is not None, made.log
    done = subprocess.run(["./hw4", "0"], executable=made.program, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("./hw4 of hw4.cu\nheader lib/check.cuh\n")
    assert foreign(done.stdout + done.stderr) == []


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        (0, "./hw4 of hw4.cu\nheader lib/check.cuh\nkernel in hw4.cu\n"),
        (1, "error: hw4.cu:6: kernel k, thread (0,0,0) of block (0,0,0) wrote 4 bytes"),
        (1, "\nhw4.cu:17: cudaErrorIllegalAddress"),
        (2, "hw4.cu:7: void k(int *, int): block"),
        (2, "failed at hw4.cu:7"),
        (3, "error: hw4.cu:15: cudaMemcpy"),
        (4, "hw4: hw4.cu:18: int main(int, char**): Assertion `mode != 4' failed"),
    ],
)
def test_what_a_program_says_at_run_time_names_its_line(mode: int, says: str, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "check.cuh").write_text(CHECK)
    (tmp_path / "hw4.cu").write_text(TALKS)
    said = grader("run", "hw4.cu", "--engine", "emulator", str(mode), cwd=tmp_path)
    assert says in said.out + said.err
    assert foreign(said.out + said.err) == []


READS_NOTHING = r"""
#include <cstdio>
#include <cassert>
__global__ void k(int *p) { p[1 << 20] = 1; }
int main(int argc, char **argv) {
    printf("%s %s %s of %s\n", argv[0], argv[1], argv[2], __FILE__);
    int *p;
    cudaMalloc(&p, 64);
    k<<<1, 1>>>(p);
    fflush(stdout);
    assert(cudaDeviceSynchronize() == cudaSuccess);
}
"""


def test_records_pages_and_tables_hold_no_folder_of_the_graders(tmp_path: Path) -> None:
    source, record, page = tmp_path / "hw4.cu", tmp_path / "record.json", tmp_path / "page.html"
    source.write_text(READS_NOTHING)
    quick = ("hw4.cu", "--engine", "emulator")
    graded = grader("grade", *quick, "--tests", "s01", "--json", record, "--html", page, "-v", cwd=tmp_path)
    checked = grader("check", *quick, "--tests", "s01", "-v", "--sanitize", "memory", cwd=tmp_path)
    profiled = grader("profile", *quick, "--test", "s01", cwd=tmp_path)
    assert "./program INPUT OUTPUT of hw4.cu" in record.read_text().replace("\\n", "\n")
    assert "hw4.cu:4" in record.read_text() and "hw4.cu:4" in checked.out
    for said in (graded, checked, profiled):
        assert foreign((said.out + said.err).replace(str(tmp_path), "")) == []
    for file in (record, page):
        assert foreign(file.read_text().replace(str(tmp_path), "").replace("\\n", "\n")) == []
