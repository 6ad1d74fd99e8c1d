"""`contract: function`: solve on device pointers becomes a program; what is wrong with it is said at its line."""

import json
import shutil
from pathlib import Path

import pytest

from grader.base.errors import UsageError
from grader.base.verdict import Fault
from grader.course.assignment import load_assignment
from grader.course.coherence import suite_of
from grader.programs.build import build
from grader.programs.function_contract import added_files, signature
from grader.programs.submission import read_submission
from tests.support.builds import engine
from tests.support.command_line import grader
from tests.support.course import ROOT

RULES = load_assignment("saxpy")
KERNEL = "__global__ void saxpy(const float* x, const float* y, float* z, int n, float a) {}\n"
SOLVE = 'extern "C" void solve(const float* X, const float* Y, float* Z, int n, float a)'


def built(folder: Path, text: str, rules=RULES):
    (folder / "saxpy.cu").write_text(text)
    return build(read_submission(folder / "saxpy.cu", rules), rules, engine("emulator"))


def test_the_signature_is_the_operators() -> None:
    assert signature(suite_of(RULES)) == SOLVE


def test_packed_tensors_cannot_be_handed_over() -> None:
    with pytest.raises(UsageError, match="write `contract: program`"):
        added_files(suite_of(load_assignment("half")))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (KERNEL, ("does not define the function", SOLVE)),
        (KERNEL + SOLVE.replace("float a", "double a") + " {}\n", ("saxpy.cu(2): solve has other parameters", SOLVE)),
        (KERNEL + SOLVE + " {}\nint main() { return 0; }\n", ("It defines main, which the grader brings along",)),
        (KERNEL + SOLVE + " { saxpy<<<1, 1>>>(X, Y, Z, n); }\n", ("saxpy.cu(2): error", "too few arguments")),
    ],
)
def test_what_does_not_compile_is_explained(tmp_path: Path, text: str, parts: tuple[str, ...]) -> None:
    made = built(tmp_path, text)
    assert not made.ok and all(part in made.reason for part in parts), made.reason


def test_either_takes_a_function_also_without_extern_c_and_a_program(tmp_path: Path) -> None:
    rules = RULES.model_copy(update={"contract": "either"})
    assert built(tmp_path, KERNEL + SOLVE.removeprefix('extern "C" ') + " {}\n", rules).ok
    (tmp_path / "program").mkdir()
    assert built(tmp_path / "program", "int main() { return 0; }\n", rules).ok


def test_many_units_are_gathered_and_scattered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """hw4 as a function: Q, K and V of a batch lie together in the file, but each apart on the device."""
    for name in ("assignment/hw4", "reference/hw4"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "testcases").mkdir()
    text = (ROOT / "testcases/hw4.yaml").read_text()
    (tmp_path / "testcases/hw4.yaml").write_text(text)
    shutil.copy(ROOT / "reference/sequential.h", tmp_path / "reference")
    rules = tmp_path / "assignment/hw4/assignment.yaml"
    rules.write_text("contract: function\n" + rules.read_text())
    (tmp_path / "hw4.cu").write_text("""
#include <math.h>
__global__ void attend(const float* q, const float* k, const float* v, float* o, int n, int d) {
    const size_t batch = size_t(blockIdx.y) * n * d;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    q += batch + i * d, k += batch, v += batch, o += batch + i * d;
    float sum = 0, out[64] = {};
    for (int j = 0; j < n; j++) {
        float score = 0;
        for (int c = 0; c < d; c++) score += q[c] * k[j * d + c];
        const float weight = expf(score / sqrtf(d) - 20);
        sum += weight;
        for (int c = 0; c < d; c++) out[c] += weight * v[j * d + c];
    }
    for (int c = 0; c < d; c++) o[c] = out[c] / sum;
}
extern "C" void solve(const float* Q, const float* K, const float* V, float* O, int B, int N, int d) {
    attend<<<dim3(N / 64, B), 64>>>(Q, K, V, O, N, d);
}
""")
    monkeypatch.setenv("GRADER_ROOT", str(tmp_path))
    said = grader(
        "grade", tmp_path / "hw4.cu", "--assignment", "hw4", "--engine", "emulator", "--tests", "s01", "--json",
        tmp_path / "record.json",
    )  # fmt: skip
    assert said.code == 0, said.err
    record = json.loads((tmp_path / "record.json").read_text())
    assert [test["verdict"] for test in record["tests"]] == ["passed"], record["tests"][0]["reason"]


@pytest.mark.parametrize("name", ["grader_main.cpp/x.h", "grader_solve.h", "sub/grader_solve.h", "GRADER_shapes.h"])
def test_no_file_of_a_submission_stands_in_the_place_of_the_graders(tmp_path: Path, name: str) -> None:
    """The source rules would see another file than the compiler."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("#define CLEAN 1\n")
    (tmp_path / "saxpy.cu").write_text(KERNEL + SOLVE + " {}\n")
    made = build(read_submission(tmp_path, RULES), RULES, engine("emulator"))
    assert made.fault is Fault.STUDENT and made.reason.endswith("the grader's own file has this name: rename yours.")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("const int i = threadIdx.x; z[i + n] = x[i];", "the argument `Z` (4000 bytes)"),
        ("const int i = threadIdx.x; if (i < n / 2) z[i] = a * x[i] + y[i];", "bytes of `Z` were never written"),
    ],
)
def test_memory_that_the_graders_main_allocated_is_called_by_the_arguments_name(
    tmp_path: Path, body: str, said: str
) -> None:
    (tmp_path / "saxpy.cu").write_text(
        f"{KERNEL.replace('{}', f'{{ {body} }}')}{SOLVE} {{ saxpy<<<1, 256>>>(X, Y, Z, n, a); }}"
    )
    words = ("--assignment", "saxpy", "--engine", "emulator", "--tests", "s03")
    out = " ".join(grader("check", tmp_path / "saxpy.cu", *words).out.split())
    assert said in out
    assert "grader_main" not in out
    assert "cudaMemcpy" not in out
