"""One class, one board: a CUDA program, a CUDA function and, where Triton is installed, a Triton program."""

import csv
import importlib.util
import io
import json
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import grader
from tests.support.course import ROOT

KERNEL = """\
__global__ void saxpy(const float* x, const float* y, float* z, int n, float a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] + y[i];
}
"""
FUNCTION = """
extern "C" void solve(const float* X, const float* Y, float* Z, int n, float a) {
    saxpy<<<(n + 255) / 256, 256>>>(X, Y, Z, n, a);
}
"""
PROGRAM = """
#include <cstdio>
#include <vector>
int main(int, char** argv) {
    FILE* const in = std::fopen(argv[1], "rb");
    int n;
    float a;
    if (!in || std::fread(&n, 4, 1, in) != 1 || std::fread(&a, 4, 1, in) != 1) return 1;
    std::vector<float> values(2 * n);
    if (std::fread(values.data(), 8, n, in) != size_t(n)) return 1;
    float *x, *z;
    cudaMalloc(&x, 8 * size_t(n));
    cudaMalloc(&z, 4 * size_t(n));
    cudaMemcpy(x, values.data(), 8 * size_t(n), cudaMemcpyHostToDevice);
    saxpy<<<(n + 255) / 256, 256>>>(x, x + n, z, n, a);
    cudaMemcpy(values.data(), z, 4 * size_t(n), cudaMemcpyDeviceToHost);
    FILE* const out = std::fopen(argv[2], "wb");
    return !out || std::fwrite(values.data(), 4, n, out) != size_t(n) || std::fclose(out);
}
"""
HAS_TRITON = importlib.util.find_spec("triton") is not None


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "course"
    for folder in ("assignment/saxpy", "reference/saxpy", "student_template/saxpy"):
        shutil.copytree(ROOT / folder, root / folder)
    (root / "testcases").mkdir()
    shutil.copy(ROOT / "testcases/saxpy.yaml", root / "testcases")
    shutil.copy(ROOT / "reference/sequential.h", root / "reference")
    rules = root / "assignment/saxpy/assignment.yaml"
    rules.write_text(rules.read_text().replace("contract: function", "contract: either"))
    monkeypatch.setenv("GRADER_ROOT", str(root))
    monkeypatch.chdir(tmp_path)
    return root


def test_programs_functions_and_triton_are_graded_as_one_class_with_one_board_and_site(
    course: Path, tmp_path: Path
) -> None:
    files = {"fay": ("saxpy.cu", KERNEL + FUNCTION), "pat": ("saxpy.cu", KERNEL + PROGRAM)}
    if HAS_TRITON:
        files["tri"] = ("saxpy.py", (ROOT / "reference/saxpy/blocks.py").read_text())
    for student, (name, text) in files.items():
        (tmp_path / "class" / student).mkdir(parents=True)
        (tmp_path / "class" / student / name).write_text(text)
    store = tmp_path / "class.sqlite"
    words = ("--assignment", "saxpy", "--engine", "emulator", "--tests", "s01,s03")
    said = grader("grade", tmp_path / "class", *words, "--store", store, "--json", tmp_path / "all.json", cwd=tmp_path)
    assert said.code == 0, said.err
    records = json.loads((tmp_path / "all.json").read_text())
    assert {record["submission"]["id"] for record in records} == set(files)
    assert {test["verdict"] for record in records for test in record["tests"]} == {"passed"}
    said = grader("leaderboard", "--store", store, "--metric", "correctness", "--names", "id", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert {row["name"] for row in rows} == set(files) and {row["rank"] for row in rows} == {"1"}
    said = grader("site", tmp_path / "site", "--store", store)
    assert said.code == 0, said.err
    pages = "".join(page.read_text() for page in (tmp_path / "site/assistants").rglob("*.html"))
    assert all(student in pages for student in files)
