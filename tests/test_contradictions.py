"""What leaves no result that could be right is said first: nothing launched, nothing copied back."""

from dataclasses import replace

import numpy as np
import pytest

from grader.checking.contradictions import contradictions
from grader.findings import sentence
from grader.programs.trace.events import KernelEvent, MemcpyEvent, Trace

PROGRAM = """\
__global__ void scale(const float* x, float* y, int n) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
int main() {
    float *d_x, *d_y;
    cudaMalloc(&d_x, 4 * n);
    cudaMalloc(&d_y, 4 * n);
    cudaMemcpy(d_x, x, 4 * n, cudaMemcpyHostToDevice);
    scale<<<1, n>>>(d_x, d_y, n);
    cudaMemcpy(y, d_y, 4 * n, cudaMemcpyDeviceToHost);
}
"""
KERNEL = KernelEvent("scale", (1, 1, 1), (32, 1, 1), 8, 0, 0, 0, 0, np.array([(0, 1)]))
IN, BACK = (MemcpyEvent(direction, 128, 0, 1, 0) for direction in ("HtoD", "DtoH"))
RAN = Trace(kernels=(KERNEL,), memcpys=(IN, BACK), starts=1, ends=1)


def said(source: str, trace: Trace) -> str:
    found = contradictions([("hw4.cu", source.encode())], trace)
    return sentence(found[0]) if found else ""


def test_a_run_that_copies_its_result_back_has_none() -> None:
    assert said(PROGRAM, RAN) == ""


@pytest.mark.parametrize(
    ("line", "instead", "trace", "words"),
    [
        (7, "", replace(RAN, kernels=()), "Kernel scale is never launched"),
        (1, "", replace(RAN, kernels=()), "No kernel ran: the program ended without reaching its launch. Look at hw4"),
        (1, "__global__ void scale(const float* x, float* y, int n) {}", RAN, "Kernel scale is empty"),
        (8, "", replace(RAN, memcpys=(IN,)), "No result is copied back to the host: after the last launch"),
        (8, "cudaMemcpy(d_y, y, 4, cudaMemcpyHostToDevice);}", replace(RAN, memcpys=(IN, IN)), "Look at hw4.cu:8"),
        (8, "cudaMemcpy(y, d_x, 4, cudaMemcpyDeviceToHost);}", RAN, "`d_x` is copied back to the host, but no kernel"),
    ],
)  # fmt: skip
def test_a_contradiction_is_said_with_its_line(line: int, instead: str, trace: Trace, words: str) -> None:
    lines = PROGRAM.splitlines()
    lines[line - 1] = instead
    assert words in said("\n".join(lines), trace)


def test_inputs_that_are_copied_before_a_function_that_launches_are_not_copied_the_wrong_way() -> None:
    kernel, main, *rest = PROGRAM.splitlines()
    start = "void start(float *x, float *y) {\n    scale<<<1, n>>>(x, y, n);\n}"
    text = said("\n".join((kernel, start, main, *rest[:4], "    start(d_x, d_y);", "}")), replace(RAN, memcpys=(IN,)))
    assert "Look at hw4.cu:10" in text and "after the last launch, copy it with" in text


@pytest.mark.parametrize(("right_bytes", "is_said"), [(128, True), (64, False), (512, False)])
def test_a_copy_of_a_part_of_the_result_is_said_if_that_part_is_right(right_bytes: int, is_said: bool) -> None:
    found = contradictions([("hw4.cu", PROGRAM.encode())], RAN, right_bytes, 512)
    assert [(each.kind, each.line) for each in found] == ([("copied_in_part", 8)] if is_said else [])


def test_a_file_without_a_kernel_is_not_sent_to_its_launch() -> None:
    text = said("int main() { return 0; }\n", replace(RAN, kernels=(), memcpys=()))
    assert text.startswith("The program launches no kernel") and "Look at" not in text


def test_memory_that_the_host_shares_needs_no_copy() -> None:
    managed = PROGRAM.replace("cudaMalloc(&d_y", "cudaMallocManaged(&d_y")
    assert said(managed, replace(RAN, memcpys=(IN,))) == ""


def test_a_run_that_failed_is_not_explained_by_what_it_did_not_reach() -> None:
    assert said(PROGRAM, replace(RAN, kernels=(), ends=0)) == ""
