"""The model solutions of half_backward beside PyTorch's backward pass: errors of many shapes, times of few.

    python benchmarks/half_backward.py
    python benchmarks/half_backward.py --only compare            errors next to PyTorch's
    python benchmarks/half_backward.py --only times --dims 128 --variant "keys 64=once(Config<128, 2, 64, 4>{}, ...)"

Errors and times are taken as in half.py. On both sides, only the gradients are timed, after one forward pass; ours
include the kernel that sums dO O over rows. TFLOP/s count 10 B H Nq Nk d operations, half of them for causal.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import half
import torch
from half import Model, Result, Shape, Tensors
from torch.nn.attention import SDPBackend

SOLUTIONS = half.SOLUTIONS
NAMES = ("O", "dQ", "dK", "dV")


@dataclass(frozen=True)
class Case:
    """Q, K, V, and dO behind them in the same buffer."""

    shape: Shape
    data: Tensors
    flat: torch.Tensor
    gradient: torch.Tensor  # dO as [B, H, N, d]


def as_output(shape: Shape, flat: torch.Tensor) -> torch.Tensor:
    b, h, n, d = shape.batches, shape.query_heads, shape.queries, shape.dim
    return flat.view(b, h, n, d) if shape.layout == 0 else flat.view(b, n, h, d).transpose(1, 2)


def make_case(shape: Shape, generator: torch.Generator) -> Case:
    count = shape.batches * shape.query_heads * shape.queries * shape.dim
    data = half.make_input(shape, generator)
    gradient = torch.randn(count, device="cuda", generator=generator).clamp(-4, 4).to(shape.output_type)
    flat = torch.cat([data.flat, gradient])
    inputs = data.flat.numel()
    return Case(shape, half.view(shape, flat[:inputs]), flat, as_output(shape, flat[inputs:]))


# -------------------------------------------------------------------------------------------------- competitors


@dataclass(frozen=True)
class Run:
    """One of our programs on one case: the whole program, or only the gradients."""

    model: Model
    case: Case
    output: torch.Tensor
    workspace: torch.Tensor
    header: ctypes.Array[ctypes.c_char]

    def launch(self, function: str = "half_launch") -> None:
        pointers = (self.case.flat.data_ptr(), self.output.data_ptr(), self.workspace.data_ptr())
        call = getattr(self.model.library, function)
        call.argtypes = [ctypes.c_void_p] * 5
        error = call(self.header, *pointers, torch.cuda.current_stream().cuda_stream)
        if error:
            raise RuntimeError(f"{self.model.name}: {function} failed with CUDA error {error}")

    @property
    def gradients(self) -> tuple[torch.Tensor, ...]:
        """O, dQ, dK, dV as [B, H, N, d]."""
        outputs = self.case.gradient.numel()
        parts = half.view(self.case.shape, self.output[outputs:])
        return as_output(self.case.shape, self.output[:outputs]), parts.query, parts.key, parts.value


def prepare(model: Model, case: Case) -> Run:
    header = ctypes.create_string_buffer(case.shape.header, 44)
    output = torch.full_like(case.flat, math.nan)
    workspace = torch.zeros(model.library.half_workspace_bytes(header), dtype=torch.uint8, device="cuda")
    return Run(model, case, output, workspace, header)


def pytorch(case: Case, backend: SDPBackend) -> Callable[[], Sequence[torch.Tensor]]:
    leaves = [x.detach().requires_grad_() for x in (case.data.query, case.data.key, case.data.value)]
    output = half.pytorch(case.shape, Tensors(case.flat, *leaves), backend)()
    return lambda: torch.autograd.grad(output, leaves, case.gradient, retain_graph=True)


# ------------------------------------------------------------------------------------------------------- errors


def gradients(case: Case, plain: bool) -> tuple[torch.Tensor, ...]:
    """O, dQ, dK, dV in float64, or as a plain implementation computes them: sums in float32, rounded to the type after
    every operation."""
    shape, group = case.shape, case.shape.query_heads // case.shape.key_heads
    wide = torch.float32 if plain else torch.float64
    query, go = case.data.query.to(wide), case.gradient.to(wide)
    key, value = (x.to(wide).repeat_interleave(group, 1) for x in (case.data.key, case.data.value))

    def rounded(x: torch.Tensor) -> torch.Tensor:
        return x.to(shape.output_type).to(wide) if plain else x

    def summed(x: torch.Tensor) -> torch.Tensor:
        return rounded(x.unflatten(1, (shape.key_heads, group)).sum(2))

    seen = half.visible(shape)
    scores = rounded(shape.used_scale * rounded(query @ key.transpose(2, 3))).masked_fill(~seen, -math.inf)
    weights = rounded(torch.softmax(scores, -1).masked_fill(~seen.any(1)[:, None], 0))
    output = rounded(weights @ value)
    ds = rounded(weights * (rounded(go @ value.transpose(2, 3)) - (go * output).sum(-1, keepdim=True)))
    dq = rounded(shape.used_scale * (ds @ key))
    dk = summed(shape.used_scale * (ds.transpose(2, 3) @ query))
    return tuple(x.double() for x in (output, dq, dk, summed(weights.transpose(2, 3) @ go)))


def errors_over_allowed(case: Case, got: Sequence[torch.Tensor]) -> dict[str, float]:
    """By tensor, the larger of the largest error and the rms error, both relative to the allowed one; more than 1 is
    wrong."""
    unit = 2.0**-8 if case.shape.output_type == torch.bfloat16 else 2.0**-11
    ratios = {}
    for name, x, expected, plain in zip(
        NAMES, got, gradients(case, plain=False), gradients(case, plain=True), strict=True
    ):
        factor = 2 if name == "O" else 3
        error, plain_error = (x.double() - expected).abs(), (plain - expected).abs()
        top = expected.abs().max()
        largest = plain_error.max() * (factor if expected.numel() >= 128 else 3) + 1e-5 * top + unit / 100
        rms = plain_error.square().mean().sqrt() * factor + 1e-6 * top + unit / 400
        pair = (error.max() / largest).item(), (error.square().mean().sqrt() / rms).item()
        ratios[name] = math.nan if any(map(math.isnan, pair)) else max(pair)
    return ratios


def check(models: Sequence[Model], shapes: Sequence[Shape]) -> int:
    generator = torch.Generator(device="cuda").manual_seed(21)
    wrong = 0
    for model in models:
        worst = dict.fromkeys(NAMES, 0.0)
        for shape in shapes:
            run = prepare(model, make_case(shape, generator))
            run.launch()
            first = run.output.clone()
            run.launch()
            torch.cuda.synchronize()
            ratios = errors_over_allowed(run.case, run.gradients)
            worst = {name: max(worst[name], ratio) for name, ratio in ratios.items()}
            if not all(ratio <= 1 for ratio in ratios.values()) or not torch.equal(first, run.output):
                wrong += 1
                if wrong < 30:
                    text = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
                    print(f"WRONG {model.name}: {shape}: of what is allowed {text}", flush=True)
        text = ", ".join(f"{name} {ratio:.2f}" for name, ratio in worst.items())
        print(f"{model.name}: {len(shapes)} shapes, at most of the error allowed: {text}", flush=True)
    return wrong


def compare_errors(models: Sequence[Model]) -> None:
    print("| B x H/Hkv x Nq,Nk x d | implementation | largest error | root mean square |\n|---|---|---|---|")
    generator = torch.Generator(device="cuda").manual_seed(22)
    for shape in map(half.few_heads, half.ROWS):
        case = make_case(shape, generator)
        right = dict(zip(NAMES, gradients(case, plain=False), strict=True))
        for model in models:
            run = prepare(model, case)
            run.launch()
            half.print_errors(shape, model.name, dict(zip(NAMES[1:], run.gradients[1:], strict=True)), right)
        for name, backend in half.PYTORCH.items():
            found = pytorch(case, backend)()
            half.print_errors(shape, name, dict(zip(NAMES[1:], found, strict=True)), right)
        torch.cuda.empty_cache()


# -------------------------------------------------------------------------------------------------------- times


def measure(shape: Shape, models: Sequence[Model], repetitions: int) -> list[Result]:
    case = make_case(shape, torch.Generator(device="cuda").manual_seed(1))
    launches: dict[str, Callable[[], object]] = {}
    for model in models:
        run = prepare(model, case)
        run.launch()
        launches[model.name] = partial(run.launch, "half_gradients")
    launches |= {name: pytorch(case, backend) for name, backend in half.PYTORCH.items()}
    return half.measure_launches(shape, launches, repetitions)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("build", "errors", "times", "compare"))
    parser.add_argument("--models", default="hopper", help="hopper, mma, or both, with a comma")
    parser.add_argument(
        "--variant", action="append", default=[], metavar="NAME=CODE", help="other Configs of hopper.cu"
    )
    parser.add_argument("--shapes", type=int, default=200, help="random shapes to check")
    parser.add_argument("--dims", default="64,128,256", help="times: rows with these d only")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--keep", type=Path, help="a folder for what is built, to be used again")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor() as pool:
        folder = options.keep or Path(scratch)
        folder.mkdir(exist_ok=True)
        builds = [(name, SOLUTIONS / f"backward_{name}.cu", "") for name in options.models.split(",") if name]
        for variant in options.variant:
            name, code = variant.split("=", 1)
            builds.append((name, SOLUTIONS / "backward_hopper.cu", code))
        built = list(pool.map(lambda item: half.build(f"backward {item[0]}", item[1], folder, item[2]), builds))
        models, variants = built[: len(built) - len(options.variant)], built[len(built) - len(options.variant) :]
        if options.only == "compare":
            compare_errors(models)
        if options.only in ("build", "compare"):
            return 0
        shapes = [replace(shape, type=shape.type % 2) for shape in half.random_shapes(options.shapes)]
        if options.only != "times":
            wrong += check(models, shapes)
        if options.only != "errors":
            chosen = [int(dim) for dim in options.dims.split(",")]
            wrong += check(variants, [replace(shape, dim=chosen[0]) for shape in shapes[:12]])
            results = []
            for shape in (row for row in half.ROWS if row.dim in chosen):
                results += measure(shape, built, options.repetitions)
                torch.cuda.empty_cache()
            half.print_table(results, operations=2.5)
    print(f"{wrong} wrong", file=sys.stderr if wrong else sys.stdout)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
