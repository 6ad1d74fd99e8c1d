"""`python -m tools.foreign_suites` on miniature checkouts in the layouts of the three suites."""

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.builds import project
from tests.support.course import ROOT
from tools.foreign_suites.causes import cause_of
from tools.foreign_suites.layouts import programs_of, suite_of

USES_COMMON = '#include <cstdio>\n#include <helper_mini.h>\nint main() { printf("%s\\n", VERDICT); return CODE; }\n'
CMAKE = "include_directories(../../../Common)\nadd_executable({0} {0}.cu)\n"
SAMPLES = {
    "Common/helper_mini.h": '#include "deeper/more.h"\n',
    "Common/deeper/more.h": '#define VERDICT "Test passed"\n#define CODE 0\n',
    "Common/unused.h": "#error not this one\n",
    "Samples/0_Introduction/mini/mini.cu": USES_COMMON,
    "Samples/0_Introduction/mini/CMakeLists.txt": CMAKE.format("mini"),
    "Samples/2_Concepts_and_Techniques/broken/broken.cu": "int main() { return nothing; }\n",
    "Samples/2_Concepts_and_Techniques/broken/CMakeLists.txt": CMAKE.format("broken"),
    "Samples/3_CUDA_Features/library/library.cu": "#include <cublas_v2.h>\nint main() {}\n",
    "Samples/4_CUDA_Libraries/beyond/beyond.cu": "int main() {}\n",
}
WAITS = {"Samples/3_CUDA_Features/waits/waits.cu": "#include <unistd.h>\nint main() { for (;;) pause(); }\n"}
HECBENCH = {
    "src/include/shared.h": "#define WIDTH 5\n",
    "src/sum-sycl/reference.h": "inline int twice(int x) { return 2 * x; }\n",
    "src/sum-cuda/main.cu": '#include <cstdio>\n#include "shared.h"\n#include "../sum-sycl/reference.h"\n'
    '#include <cstdlib>\nint main(int n, char **v) {puts(n == 3 && twice(WIDTH) == 2 * atoi(v[1]) ? "PASS" : "FAIL");}',
    "src/sum-cuda/Makefile": "program = main\nsource = main.cu\nobj = $(source:.cu=.o)\n$(program): $(obj) Makefile\n"
    "\tnvcc $(obj) -o $@\n%.o: %.cu\n\tnvcc -I../include -c $< -o $@\nrun: $(program)\n\t$(RUN) ./$(program) 5 9\n",
    "src/sum-hip/main.cu": "never looked at",
}
POLYBENCH = {
    "common/polybenchUtilFuncts.h": "#define THRESHOLD 0.05\n",
    "CUDA/2MM/2mm.cu": '#include "2mm.cuh"\n#include "../../common/polybenchUtilFuncts.h"\n#include <cstdio>\n'
    'int main() { printf("Non-Matching CPU-GPU Outputs Beyond Error Threshold of %.2f Percent: %d", THRESHOLD, N); }',
    "CUDA/2MM/2mm.cuh": "#define N 7\n",
    "CUDA/2MM/Makefile": "all:\n\tnvcc -O3 2mm.cu -o 2mm.exe\n",
}


def suites(root: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tools.foreign_suites", str(root), *words]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)


def table_of(root: Path, *words: str) -> tuple[str, str]:
    """(the table, the progress)"""
    out, err = suites(root, *words).communicate()
    return out, err


def test_samples_are_run_with_what_they_share_and_told_apart_by_cause(tmp_path: Path) -> None:
    root = project(tmp_path / "checkout", SAMPLES)
    out, err = table_of(root, "--write", str(tmp_path / "table.md"))
    assert "# cuda-samples: 3 programs" in out
    assert "## passes\n\n- mini\n" in out
    assert '## does not build\n\n- broken.cu(1): error: identifier "nothing" is undefined: broken\n' in out
    assert "## out of scope\n\n- needs a library: library\n" in out
    assert (tmp_path / "table.md").read_text() in out
    assert "mini passes (" in err
    again, nothing_run = table_of(root)
    assert again == out and nothing_run == "", "kept results are not made again"


def test_a_program_that_does_not_end_is_stopped_at_the_limit(tmp_path: Path) -> None:
    root = project(tmp_path, {"Common/unused.h": ""} | WAITS)
    assert "## hang\n\n- stopped after 3 s: waits\n" in table_of(root, "--limit", "3")[0]


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (HECBENCH, "# HeCBench: 1 programs\n\n| what became of it | programs |\n|---|---|\n| passes | 1 |"),
        (POLYBENCH, "## wrong result\n\n- 7 numbers: 2MM\n"),
    ],
)
def test_the_other_suites_are_run_with_their_arguments_and_shared_headers(
    files: Mapping[str, str], says: str, tmp_path: Path
) -> None:
    assert says in table_of(project(tmp_path, files))[0]


def test_ctrl_c_ends_what_runs_and_the_same_command_goes_on(tmp_path: Path) -> None:
    root = project(tmp_path, {name: text for name, text in SAMPLES.items() if "broken" not in name} | WAITS)
    running = suites(root, "--jobs", "1")
    assert running.stderr is not None
    assert "[1] mini passes" in running.stderr.readline()
    running.send_signal(signal.SIGINT)
    out, err = running.communicate()
    assert running.returncode == 130
    assert "- mini\n" in out and "the same command goes on from here" in err and "Traceback" not in err
    assert "mini" not in table_of(root, "--limit", "120", "--only", "mini")[1], "its result was kept"


def test_a_folder_that_is_no_suite_is_refused_with_what_is_expected(tmp_path: Path) -> None:
    assert "give the top folder of a checkout of cuda-samples, HeCBench, PolyBench-GPU" in table_of(tmp_path)[1]


@pytest.mark.parametrize(
    ("code", "out", "err", "kind"),
    [
        (0, "Test PASSED", "", "passes"),
        (0, "Result = FAIL", "", "wrong result"),
        (1, "", "", "wrong result"),
        (2, "not supported, waiving", "", "waived"),
        (139, "", "", "crash"),
        (1, "", "x.cu:3: error: write of 4 bytes at address 0x12", "wrong result"),
        (
            2,
            "",
            "grader: error: . was not built. The emulator cannot run this program: a.cu:3: x is not supported",
            "refused",
        ),
        (2, "", "grader: error: . was not built.\nx.cu(3): error: y", "does not build"),
        (2, "", "grader: error: --engine cuda needs an NVIDIA GPU", "refused"),
        (0, "Test PASSED", "grader: old.cu is left out.\n", "passes"),
        (3, "", "grader: old.cu is left out.\n", "wrong result"),
        (None, "", "", "hang"),
    ],
)
def test_a_cause_is_told_by_exit_code_and_words(code: int | None, out: str, err: str, kind: str) -> None:
    assert cause_of(code, out, err, 10).kind == kind


def test_layouts_are_recognised(tmp_path: Path) -> None:
    for name, files in (("cuda-samples", SAMPLES), ("HeCBench", HECBENCH), ("PolyBench-GPU", POLYBENCH)):
        root = project(tmp_path / name, files)
        assert suite_of(root) == name
        assert all(program.folder.is_dir() for program in programs_of(name, root))
    assert programs_of("HeCBench", tmp_path / "HeCBench")[0].arguments == ("5", "9")
