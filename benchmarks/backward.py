"""The model solution of backward beside PyTorch's float32 autograd: forward and backward times, rates and errors.

    python benchmarks/backward.py [--shape 8,4096,64] [--repetitions 40]

Needs a CUDA machine with nvcc, PyTorch and numpy, and nothing of the grader.

How it measures. All competitors get the same float32 numbers, uniform in [-2, 2], in device memory: ours as one array
in the file's order, PyTorch's as contiguous Q, K, V and dO. A pass is timed with CUDA events on the default stream,
after 5 passes of warm-up, in rounds over all competitors, so that a change of clock or temperature meets all of them;
the table shows medians, and the smallest and largest. PyTorch's forward keeps what its backward needs, as ours does;
its backward is autograd.grad with respect to Q, K and V. TF32 is off, so that all of them compute in float32:
scaled_dot_product_attention with the memory-efficient backend (the fast backend for float32; flash and cuDNN support
only half precision), with the math backend, and with PyTorch's own choice. Ours is reference/backward/tiled.cu,
compiled for this GPU, its kernels launched as in the program. Rates: 4 B N^2 d operations forward, 10 B N^2 d backward.
Errors are of batch 0 against float64 autograd.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as functional
from gpu_timing import timed_ms
from torch.nn.attention import SDPBackend, sdpa_kernel

ROOT = Path(__file__).resolve().parent.parent
WARM_UP = 5

WRAPPER = r"""
#define main program_main
#include "tiled.cu"
#undef main

extern "C" int run_pass(const float* input, float* output, float* lse, float* dot, int batches, int n, int d,
                        int backward) {
    const size_t plane = size_t(batches) * n * d;
    const Problem a = {input, output, output + plane, output + 2 * plane, output + 3 * plane, lse, dot, batches, n, d};
    backward ? launch_backward(a) : launch_forward(a);
    return int(cudaGetLastError());
}
"""


@dataclass
class Competitor:
    """`forward` and `backward` launch one pass; `results` gives O, dQ, dK, dV of the last, each [B, N, d]."""

    name: str
    forward: Callable[[], object]
    backward: Callable[[], object]
    results: Callable[[], tuple[torch.Tensor, ...]]
    forward_ms: list[float] = field(default_factory=list)
    backward_ms: list[float] = field(default_factory=list)


def ours(numbers: torch.Tensor, folder: Path) -> Competitor:
    """`numbers`: [B, 4, N, d]."""
    batches, _, n, d = numbers.shape
    major, minor = torch.cuda.get_device_capability()
    chip = f"{major}{minor}{'a' if major >= 9 else ''}"
    (folder / "wrapper.cu").write_text(WRAPPER)
    library = folder / "libours.so"
    command = [
        "nvcc",
        "-O3",
        "-std=c++17",
        f"-gencode=arch=compute_{chip},code=sm_{chip}",
        "-shared",
        "-Xcompiler=-fPIC",
    ]
    command += [f"-I{ROOT / 'reference/backward'}", "-o", str(library), str(folder / "wrapper.cu")]
    subprocess.run(command, check=True)
    run_pass = ctypes.CDLL(str(library)).run_pass
    output = torch.full((4, batches, n, d), float("nan"), device="cuda")
    lse, dot = torch.empty(batches * n, device="cuda"), torch.empty(batches * n, device="cuda")
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (numbers, output, lse, dot)]

    def launch(backward: int) -> None:
        error = run_pass(*pointers, batches, n, d, backward)
        if error:
            raise RuntimeError(f"CUDA error {error} from tiled.cu")

    return Competitor("ours (tiled.cu)", lambda: launch(0), lambda: launch(1), lambda: tuple(output))


def pytorch(name: str, backend: SDPBackend | None, numbers: torch.Tensor) -> Competitor:
    q, k, v = (numbers[:, i].contiguous()[:, None].requires_grad_() for i in range(3))
    gradient = numbers[:, 3].contiguous()[:, None]
    kept: list[tuple[torch.Tensor, ...]] = [(), ()]

    def forward() -> None:
        with sdpa_kernel(backend) if backend is not None else nullcontext():
            kept[0] = (functional.scaled_dot_product_attention(q, k, v),)

    def backward() -> None:
        kept[1] = torch.autograd.grad(kept[0], (q, k, v), gradient, retain_graph=True)

    return Competitor(name, forward, backward, lambda: tuple(t.detach()[:, 0] for t in (*kept[0], *kept[1])))


def exact(numbers: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """O, dQ, dK, dV of batch 0 in float64."""
    q, k, v, gradient = (numbers[0, i].double() for i in range(4))
    q, k, v = (t.requires_grad_() for t in (q, k, v))
    o = torch.softmax(q @ k.T / q.shape[1] ** 0.5, dim=1) @ v
    return o.detach(), *torch.autograd.grad(o, (q, k, v), gradient)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shape", default="8,4096,64", help="B,N,d")
    parser.add_argument("--repetitions", type=int, default=40)
    arguments = parser.parse_args()
    batches, n, d = map(int, arguments.shape.split(","))
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(1)
    numbers = torch.empty(batches, 4, n, d, device="cuda").uniform_(-2, 2)

    with tempfile.TemporaryDirectory() as folder:
        competitors = [
            ours(numbers, Path(folder)),
            pytorch("PyTorch, memory-efficient", SDPBackend.EFFICIENT_ATTENTION, numbers),
            pytorch("PyTorch, math", SDPBackend.MATH, numbers),
            pytorch("PyTorch, its own choice", None, numbers),
        ]
        time_all(competitors, arguments.repetitions)
        print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, B = {batches}, N = {n}, d = {d}, "
              f"median (smallest to largest) of {arguments.repetitions}\n")  # fmt: skip
        print_table(competitors, exact(numbers), work=4.0 * batches * n * n * d)


def time_all(competitors: Sequence[Competitor], repetitions: int) -> None:
    """Warm up, then time all in turn, so that all competitors see the same temperatures and clocks."""
    for _ in range(WARM_UP):
        for competitor in competitors:
            competitor.forward()
            competitor.backward()
    torch.cuda.synchronize()
    for _ in range(repetitions):
        for competitor in competitors:
            competitor.forward_ms.append(timed_ms(competitor.forward))
            competitor.backward_ms.append(timed_ms(competitor.backward))


def print_table(competitors: Sequence[Competitor], right: tuple[torch.Tensor, ...], work: float) -> None:
    """`right`: O, dQ, dK, dV of batch 0 in float64; `work`: floating-point operations of a forward pass."""
    print("| | forward ms | TFLOP/s | backward ms | TFLOP/s | both ms | largest error of O, dQ, dK, dV |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for competitor in competitors:
        forward, backward = (statistics.median(t) for t in (competitor.forward_ms, competitor.backward_ms))
        errors = [
            float((got[0].double() - want).abs().max()) for got, want in zip(competitor.results(), right, strict=True)
        ]
        print(
            f"| {competitor.name} "
            f"| {forward:.3f} ({min(competitor.forward_ms):.3f} to {max(competitor.forward_ms):.3f}) "
            f"| {work / forward / 1e9:.1f} "
            f"| {backward:.3f} ({min(competitor.backward_ms):.3f} to {max(competitor.backward_ms):.3f}) "
            f"| {2.5 * work / backward / 1e9:.1f} | {forward + backward:.3f} "
            f"| {', '.join(f'{error:.1e}' for error in errors)} |"
        )


if __name__ == "__main__":
    main()
