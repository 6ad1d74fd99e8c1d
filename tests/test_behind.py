"""What the source adds to a wrong value: the loop that loses terms, what sets a pointer, an end or a grid."""

import pytest

from grader.findings import Finding, sentence
from grader.findings.finding import Place
from grader.sanitizers import explained

TEXT = """\
__global__ void product(const float* a, const float* b, float* c, int n) {
    const float* mine = a + blockIdx.y * n;
    const float* row = mine + threadIdx.x * n;
    const int steps = n / 16;
    float acc[4] = {};
    for (int step = 0; step < steps; ++step)
        for (int k = 0; k < 16; ++k)
            for (int j = 0; j < 4; ++j)
                acc[j] += row[k] * b[j];
    for (int j = 0; j < 4; ++j) c[j] += acc[j];
}
void run(const float* a, float* c, int n) {
    const int groups = n / 12;
    const dim3 grid(n / 64);
    for (int group = 0; group < groups; ++group)
        product<<<grid, 64>>>(a, a, c, n);
}
"""
FILES = (("product.cu", TEXT.encode()),)


def told(kind: str, line: int, **words: str) -> Finding:
    return explained([Finding(kind=kind, file="product.cu", line=line, words=words)], FILES)[0]


@pytest.mark.parametrize(("lost", "line"), [("end", 6), ("", 7)])
def test_terms_are_lost_by_a_loop_over_terms_and_not_by_one_over_elements(lost: str, line: int) -> None:
    found = told("terms_missing", 9, **({"lost": lost} if lost else {}))
    assert found.line == line
    assert (found.values.get("end_line"), found.words.get("end")) == ((4, "steps") if lost else (None, None))


def test_without_such_a_loop_in_the_kernel_it_is_the_one_around_the_launch() -> None:
    assert told("terms_missing", 10, lost="end").line == 15
    divides = (("product.cu", TEXT.replace("c[j] += acc[j]", "c[j] /= acc[j]").encode()),)
    found = Finding(kind="terms_missing", file="product.cu", line=10, words={"lost": "end"})
    assert explained([found], divides)[0].line == 10  # where the sum is no longer made


def test_a_sum_that_keeps_old_terms_is_declared_before_a_loop() -> None:
    said = sentence(told("carried_over", 9, left="l0[0]", right="l0[1]"))
    assert "line 5 sets `acc` once, before the loop of line 6" in said


def test_the_lines_that_call_a_helper_function_are_named() -> None:
    text = "__device__ float f(float x) { return x / 0; }\n__global__ void k(float* y) {\n    y[0] = f(y[0]);\n}\n"
    finding = Finding(kind="wrong_value_from", file="k.cu", line=1, array="Y")
    said = sentence(explained([finding], (("k.cu", text.encode()),))[0])
    assert said.endswith("Look at k.cu:1 (called at line 3).")


def test_the_pointer_of_a_wrong_element_and_what_it_comes_from() -> None:
    assert told("other_input", 9).words["set_name"] == "row"
    found = told("other_unit_read", 9)
    assert (found.values["set_line"], found.words["set_name"]) == (2, "mine")


def test_what_sets_the_grid_and_the_end_of_the_loop_around_a_launch() -> None:
    assert told("never_written", 12).words["grid"] == "product.cu:14"
    found = told("launch_not_reached", 16)
    assert (found.values["loop_line"], found.values["end_line"], found.words["end"]) == (15, 13, "groups")


def test_an_index_of_a_narrow_type_is_named_where_values_are_never_written() -> None:
    text = TEXT.replace("float* c, int n) {", "float* c, int n) {\n    const unsigned short at = threadIdx.x * n;", 1)
    text = text.replace("c[j] += acc[j]", "c[at] = acc[j]")
    finding = Finding(kind="never_written", file="product.cu", line=13, values={"at": 11})
    (found,) = explained([finding], (("product.cu", text.encode()),))
    assert found.words["narrow"] == "at" and (found.values["narrow_line"], found.values["most"]) == (2, 65535)


def test_the_condition_of_the_line_that_writes_the_others_is_named() -> None:
    text = TEXT.replace(
        "    for (int j = 0; j < 4; ++j) c[j]", "    if (n > 7) return;\n    c[0] = acc[0];\n    c[j]", 1
    )
    finding = Finding(kind="never_written", file="product.cu", line=14, values={"at": 11})
    (found,) = explained([finding], (("product.cu", text.encode()),))
    assert found.values["guard_line"] == 10


TAKING = """\
__global__ void expand(const int* j, int* d, int* best, int e) {
    int v = j[e];
    if (d[v] == -1) {
        d[v] = 1;
    }
    if (best[threadIdx.x] > v) {
        best[threadIdx.x] = v;
    }
}
"""


@pytest.mark.parametrize(("look", "how"), [(3, "check"), (6, "barrier")])
def test_a_look_before_a_change_at_a_place_that_was_read_needs_one_atomic_operation(look: int, how: str) -> None:
    words = {"between": "warps", "how": "barrier", "does": "read", "other_does": "write"}
    race = Finding(kind="race", file="taking.cu", line=look, other=Place(file="taking.cu", line=look + 1), words=words)
    (found,) = explained([race], (("taking.cu", TAKING.encode()),))
    assert found.words["how"] == how
    assert ("atomicCAS" in sentence(found, lambda file, line: "")) == (how == "check")
