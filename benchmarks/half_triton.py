"""The model solution of half in Triton beside PyTorch's scaled_dot_product_attention: errors, times, and its best tiles.

    python benchmarks/half_triton.py                       forward: errors of many shapes, times of few
    python benchmarks/half_triton.py --backward
    python benchmarks/half_triton.py --only tune           time every tile that fits, instead; the table says which is best

Needs a CUDA machine with PyTorch and its Triton. Errors and times are taken as in half.py and half_backward.py: kernels
are launched on PyTorch's tensors, with the program's tiles. FLASH=FILE measures another program with
the same functions as reference/half/flash.py.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import half
import half_backward
import torch
from half import Result, Shape, Tensors
from torch.nn.attention import SDPBackend

Tile = tuple[int, int, int, int]  # BM, BN, warps, stages
TABLES = {False: ("FORWARD",), True: ("BACKWARD_KEYS", "BACKWARD_QUERIES")}
HELD = {"FORWARD": 1, "BACKWARD_KEYS": 2, "BACKWARD_QUERIES": 1}
"""The number of tiles of sums, each as wide as a head, that a program of each kernel keeps."""


def load_flash() -> Any:
    program = Path(os.environ.get("FLASH", half.SOLUTIONS / "flash.py"))
    sys.path.insert(0, str(program.parent))
    return importlib.import_module(program.stem)


flash = load_flash()


# ---------------------------------------------------------------------------------------------------- competitors


def numbers(shape: Shape) -> tuple[float, int, int]:
    """The scale, whether there is a causal mask, and the window."""
    return shape.used_scale, int(shape.causal), shape.window


@dataclass(frozen=True)
class TritonModel:
    name: str

    def launcher(self, shape: Shape, data: Tensors) -> tuple[Callable[[], None], torch.Tensor]:
        count = shape.batches * shape.query_heads * shape.queries * shape.dim
        output = torch.full((count,), math.nan, dtype=shape.output_type, device="cuda")
        result = half_backward.as_output(shape, output)
        return partial(flash.solve, data.query, data.key, data.value, result, *numbers(shape)), result


@dataclass(frozen=True)
class Backward:
    """Memory of one case, and its gradients after the forward pass."""

    case: half_backward.Case
    output: torch.Tensor
    gradients: Tensors
    row_sums: torch.Tensor

    def forward(self) -> None:
        data = self.case.data
        flash.attend(data.query, data.key, data.value, self.output, self.row_sums, *numbers(self.case.shape))

    def backward(self) -> None:
        data, into = self.case.data, self.gradients
        flash.gradients(
            data.query, data.key, data.value, self.case.gradient, self.output, into.query, into.key, into.value,
            self.row_sums, *numbers(self.case.shape),
        )  # fmt: skip


def prepare(case: half_backward.Case) -> Backward:
    shape = case.shape
    output = half_backward.as_output(shape, torch.full_like(case.flat[case.data.flat.numel() :], math.nan))
    gradients = half.view(shape, torch.full_like(case.data.flat, math.nan))
    rows = shape.batches * shape.query_heads * shape.queries
    return Backward(case, output, gradients, torch.empty(rows, device="cuda"))


# --------------------------------------------------------------------------------------------------------- errors


def check_forward(shapes: Sequence[Shape]) -> int:
    return half.check([TritonModel("flash.py")], shapes)


def check_backward(shapes: Sequence[Shape]) -> int:
    shapes = [shape for shape in shapes if shape.type < 2]
    generator = torch.Generator(device="cuda").manual_seed(21)
    wrong, worst = 0, dict.fromkeys(half_backward.NAMES, 0.0)
    for shape in shapes:
        run = prepare(half_backward.make_case(shape, generator))
        run.forward()
        run.backward()
        got = (run.output, run.gradients.query, run.gradients.key, run.gradients.value)
        ratios = half_backward.errors_over_allowed(run.case, got)
        worst = {name: max(worst[name], ratio) for name, ratio in ratios.items()}
        if not all(ratio <= 1 for ratio in ratios.values()):
            wrong += 1
            print(
                f"WRONG {shape}: of what is allowed " + ", ".join(f"{k} {v:.2f}" for k, v in ratios.items()), flush=True
            )
    text = ", ".join(f"{name} {ratio:.2f}" for name, ratio in worst.items())
    print(f"backward: {len(shapes)} shapes, at most of the error allowed: {text}", flush=True)
    return wrong


# ---------------------------------------------------------------------------------------------------------- times


def measure_backward(shape: Shape, repetitions: int) -> list[Result]:
    case = half_backward.make_case(shape, torch.Generator(device="cuda").manual_seed(1))
    run = prepare(case)
    run.forward()
    launches: dict[str, Callable[[], object]] = {"flash.py": run.backward}
    launches["PyTorch flash"] = half_backward.pytorch(case, SDPBackend.FLASH_ATTENTION)
    launches["PyTorch cuDNN"] = half_backward.pytorch(case, SDPBackend.CUDNN_ATTENTION)
    return half.measure_launches(shape, launches, repetitions)


# ---------------------------------------------------------------------------------------------------------- tiles


def candidates(table: str, dim: int) -> list[Tile]:
    """Tiles that fit into shared memory, with float32 sums and scores for 40 to 200 registers of each thread."""
    chosen = []
    held, products = HELD[table], 1 if table == "FORWARD" else 2
    for rows, columns, warps, stages in product((32, 64, 128), (32, 64, 128), (4, 8), (1, 2, 3)):
        own, walked = (columns, rows) if table == "BACKWARD_KEYS" else (rows, columns)
        registers = (held * own * dim + products * own * walked) / 32 / warps
        shared_bytes = 2 * dim * (products * own + 2 * stages * walked)
        if own >= 64 and 40 <= registers <= 200 and shared_bytes <= 227 << 10:
            chosen.append((rows, columns, warps, stages))
    return chosen


def compile_tile(table: str, dim: int, tile: Tile) -> None:
    """Leave the kernel in Triton's cache; tiles that do not fit fail again when they are timed."""
    torch.cuda.set_device(0)
    getattr(flash, table)[dim] = tile
    run = prepare(half_backward.make_case(Shape(1, 2, 2, 512, 512, dim), torch.Generator(device="cuda")))
    try:
        run.forward() if table == "FORWARD" else run.backward()
        torch.cuda.synchronize()
    except Exception as error:  # OutOfResources has no stable place in Triton's packages
        print(f"{table} {dim} {tile}: {str(error)[:100]}", flush=True)


def tune(tables: Sequence[str], dims: Sequence[int], pool: Executor) -> None:
    usual = {table: dict(getattr(flash, table)) for table in tables}
    jobs = [(table, dim, tile) for table in tables for dim in dims for tile in candidates(table, dim)]
    for done in [pool.submit(compile_tile, *job) for job in jobs]:
        done.result()
    for table, shape in product(tables, [row for row in half.ROWS if row.dim in dims and row.keys == 4096]):
        run = prepare(half_backward.make_case(shape, torch.Generator(device="cuda").manual_seed(1)))
        run.forward()
        times = {}
        for tile in candidates(table, shape.dim):
            getattr(flash, table)[shape.dim] = tile
            launch = run.forward if table == "FORWARD" else run.backward
            try:
                times[tile] = half.measure_launches(shape, {"": launch}, 2)[0].ms
            except Exception:  # compile_tile has reported it
                continue
        getattr(flash, table)[shape.dim] = usual[table][shape.dim]
        best = sorted(times, key=lambda tile: times[tile])
        text = ", ".join(f"{tile} {times[tile]:.3f}" for tile in [*best[:6], best[-1]])
        print(f"{table} {shape}: ms by (BM, BN, warps, stages): {text}", flush=True)
        torch.cuda.empty_cache()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("errors", "times", "tune"))
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--shapes", type=int, default=100, help="random shapes to check")
    parser.add_argument("--dims", default="64,128,256", help="times: rows with these d only")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--processes", type=int, default=8, help="that compile kernels")
    options = parser.parse_args()
    wrong = 0
    dims = [int(dim) for dim in options.dims.split(",")]
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        if options.only == "tune":
            tune(TABLES[options.backward], dims, pool)
            return 0
        if options.only != "times":
            shapes = half.random_shapes(options.shapes)
            parts = [shapes[first :: options.processes] for first in range(options.processes)]
            wrong = sum(pool.map(check_backward if options.backward else check_forward, parts))
    if options.only != "errors":
        results: list[Result] = []
        for shape in (row for row in half.ROWS if row.dim in dims):
            if options.backward:
                results += measure_backward(shape, options.repetitions)
            else:
                results += half.measure(shape, [TritonModel("flash.py")], options.repetitions)
            torch.cuda.empty_cache()
        half.print_table(results, operations=2.5 if options.backward else 1.0)
    print(f"{wrong} wrong", file=sys.stderr if wrong else sys.stdout)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
