"""`cudaemu run`, without anything of the grader."""

import subprocess
import sys
from pathlib import Path

import pytest

from cudaemu.isa import RUNTIME

PROGRAM = """#include <cstdio>
__global__ void store(int *out) { out[threadIdx.x] = 1; }
int main(int argc, char **argv) {
    int *out;
    cudaMalloc(&out, 16);
    store<<<1, argc == 2 ? 4 : 5>>>(out);
    puts(argv[1]);
    return cudaDeviceSynchronize() ? 3 : 0;
}
"""
STRANGER = "import sys\nsys.modules['grader'] = None\nfrom cudaemu.__main__ import main\nmain()"
"""Any import of the grader fails."""


def cudaemu(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(RUNTIME.parents[1])!r})\n{STRANGER}", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_program_runs_with_its_arguments_and_its_mistakes_have_lines(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(PROGRAM)
    right = cudaemu(tmp_path, "run", "a.cu", "--sum")
    assert (right.returncode, right.stdout, right.stderr) == (0, "--sum\n", "")
    wrong = cudaemu(tmp_path, "run", "a.cu", "two", "words")
    assert (wrong.returncode, wrong.stdout) == (3, "two\n")
    assert '"file":"a.cu","line":2' in wrong.stderr and '"allocated_at":"a.cu:5"' in wrong.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.cu"]


@pytest.mark.parametrize(
    ("source", "words", "said"),
    [
        ("int main() { retrun 0; }", ("a.cu",), "a.cu(1): error"),
        ("int main() { return 0; }", ("b.cu",), "b.cu: there is no such file"),
        ("int main() { return 0; }", ("--sanitize", "speed", "a.cu"), "--sanitize speed: expected some of memory"),
    ],
)
def test_what_cannot_run_says_why(source: str, words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(source)
    done = cudaemu(tmp_path, "run", *words)
    assert done.returncode in (1, 2) and said in done.stderr and "Traceback" not in done.stderr
