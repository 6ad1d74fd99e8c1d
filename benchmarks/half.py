"""The model solutions of half beside PyTorch's scaled_dot_product_attention: errors of many shapes, times of few.

    python benchmarks/half.py                            errors, then times of hopper.cu, PyTorch's flash and cuDNN
    python benchmarks/half.py --only errors --models mma
    python benchmarks/half.py --only compare             errors next to PyTorch's
    python benchmarks/half.py --only times --variant "fewer keys=128,2,96,4,2"

Needs a CUDA machine with nvcc and PyTorch, and nothing of the grader.

Errors. Every shape gets standard normal values clipped to 4, in any of the three layouts, and an output full of NaN.
The expected output is computed in float64 from the rounded inputs. The allowed error is that of
assignment/half/README.md: twice the error of a plain implementation that rounds to the same type after every operation.

Times. Launches are timed with CUDA events, four at a time, in rounds over all competitors, so that a change of clock or
temperature meets all of them; the table shows the median. Competitors get the same numbers. TFLOP/s count 4 B H Nq Nk d
operations, half of them for causal.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import random
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel

SOLUTIONS = Path(__file__).resolve().parent.parent / "reference/half"
TYPES = (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
LAUNCHES_PER_SAMPLE = 4


@dataclass(frozen=True)
class Shape:
    batches: int
    query_heads: int
    key_heads: int
    queries: int
    keys: int
    dim: int
    type: int = 0
    causal: bool = False
    window: int = -1
    layout: int = 0
    scale: float = 0.0  # 0: 1 / sqrt(d)

    @property
    def used_scale(self) -> float:
        return self.scale or 1 / math.sqrt(self.dim)

    @property
    def header(self) -> bytes:
        sizes = (self.batches, self.query_heads, self.key_heads, self.queries, self.keys, self.dim)
        return struct.pack("<10if", *sizes, self.type, self.causal, self.window, self.layout, self.used_scale)

    @property
    def output_type(self) -> torch.dtype:
        return TYPES[self.type] if self.type < 2 else torch.float16

    @property
    def flop(self) -> float:
        return 4.0 * self.batches * self.query_heads * self.queries * self.keys * self.dim / (2 if self.causal else 1)

    def __str__(self) -> str:
        name = str(TYPES[self.type]).removeprefix("torch.")
        text = f"{self.batches} x {self.query_heads}/{self.key_heads} x {self.queries},{self.keys} x {self.dim} {name}"
        text += " causal" * self.causal + (f" window {self.window}" if self.window >= 0 else "")
        return text + (f" layout {self.layout}" if self.layout else "") + (f" scale {self.scale}" if self.scale else "")


# The rows of docs/benchmarks.md.
ROWS = tuple(
    Shape(b, h, hk, n, n, d, causal=causal)
    for b, h, hk, n, d in (
        (4, 16, 16, 4096, 64),
        (4, 16, 16, 4096, 128),
        (2, 16, 16, 8192, 128),
        (2, 32, 8, 8192, 128),
        (4, 16, 16, 4096, 256),
    )
    for causal in (False, True)
)


# ------------------------------------------------------------------------------------------------------- inputs


@dataclass(frozen=True)
class Tensors:
    """Views of one flat buffer as the file has it, each as [B, H, N, d]."""

    flat: torch.Tensor
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor


def view(shape: Shape, flat: torch.Tensor) -> Tensors:
    b, hq, hk, nq, nk, d = (
        shape.batches, shape.query_heads, shape.key_heads, shape.queries, shape.keys, shape.dim,
    )  # fmt: skip
    if shape.layout == 1:
        packed = flat.view(b, nq, 3, hq, d).permute(2, 0, 3, 1, 4)
        return Tensors(flat, packed[0], packed[1], packed[2])
    head, tail = flat[: b * hq * nq * d], flat[b * hq * nq * d :]
    if shape.layout == 2:
        packed = tail.view(b, nk, 2, hk, d).permute(2, 0, 3, 1, 4)
        return Tensors(flat, head.view(b, nq, hq, d).transpose(1, 2), packed[0], packed[1])
    key, value = tail.view(2, b, hk, nk, d)
    return Tensors(flat, head.view(b, hq, nq, d), key, value)


def make_input(shape: Shape, generator: torch.Generator) -> Tensors:
    count = shape.batches * shape.dim * (shape.query_heads * shape.queries + 2 * shape.key_heads * shape.keys)
    values = torch.randn(count, device="cuda", generator=generator).clamp(-4, 4)
    return view(shape, values.to(TYPES[shape.type]))


# -------------------------------------------------------------------------------------------------- competitors


class Program(Protocol):
    """One of our programs."""

    @property
    def name(self) -> str: ...

    def launcher(self, shape: Shape, data: Tensors) -> tuple[Callable[[], None], torch.Tensor]:
        """Return a function that starts the kernel once, and the output as [B, H, N, d]."""


@dataclass(frozen=True)
class Model:
    """A program in CUDA, as a library with the kernels alone."""

    name: str
    library: ctypes.CDLL

    def launcher(self, shape: Shape, data: Tensors) -> tuple[Callable[[], None], torch.Tensor]:
        header = ctypes.create_string_buffer(shape.header, 44)
        b, h, n, d = shape.batches, shape.query_heads, shape.queries, shape.dim
        output = torch.full((b * h * n * d,), math.nan, dtype=shape.output_type, device="cuda")
        workspace = torch.zeros(self.library.half_workspace_bytes(header), dtype=torch.uint8, device="cuda")

        def launch() -> None:
            stream = torch.cuda.current_stream().cuda_stream
            pointers = (data.flat.data_ptr(), output.data_ptr(), workspace.data_ptr())
            error = self.library.half_launch(header, *pointers, stream)
            if error:
                raise RuntimeError(f"{self.name}: launch failed with CUDA error {error}")

        return launch, output.view(b, h, n, d) if shape.layout == 0 else output.view(b, n, h, d).transpose(1, 2)


def build(name: str, source: Path, folder: Path, config: str = "") -> Model:
    """`config` replaces the tile sizes of hopper.cu."""
    target = folder / f"{name.replace(' ', '_').replace('/', '_')}.so"
    options: list[str] = []
    if config:
        header = target.with_suffix(".h")
        header.write_text(f"#define ONLY {config}\n")
        options = ["-include", str(header)]
    flags = ["-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-DHALF_LIBRARY"]
    flags.append("-gencode=arch=compute_90a,code=sm_90a")
    if not target.exists():
        subprocess.run(["nvcc", "-split-compile=0", *flags, *options, "-o", str(target), str(source)], check=True)
    library = ctypes.CDLL(str(target))
    library.half_workspace_bytes.restype = ctypes.c_size_t
    library.half_launch.argtypes = [ctypes.c_void_p] * 5
    return Model(name, library)


PYTORCH = {"PyTorch flash": SDPBackend.FLASH_ATTENTION, "PyTorch cuDNN": SDPBackend.CUDNN_ATTENTION}


def pytorch(shape: Shape, data: Tensors, backend: SDPBackend) -> Callable[[], torch.Tensor]:
    def launch() -> torch.Tensor:
        with sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(
                data.query, data.key, data.value, is_causal=shape.causal, scale=shape.used_scale,
                enable_gqa=shape.query_heads != shape.key_heads,
            )  # fmt: skip

    return launch


# ------------------------------------------------------------------------------------------------------- errors


def visible(shape: Shape) -> torch.Tensor:
    row = torch.arange(shape.queries, device="cuda")[:, None] + shape.keys - shape.queries
    column = torch.arange(shape.keys, device="cuda")[None, :]
    seen = torch.ones(shape.queries, shape.keys, dtype=torch.bool, device="cuda")
    if shape.causal:
        seen &= column <= row
    if shape.window >= 0:
        seen &= row - shape.window <= column
    return seen


def attention(shape: Shape, data: Tensors, plain: bool) -> torch.Tensor:
    """Attention in float64, or as a plain implementation computes it: sums in float32, rounded to the type after every
    operation."""
    group = shape.query_heads // shape.key_heads
    wide = torch.float32 if plain else torch.float64
    query = data.query.to(wide)
    key, value = (x.to(wide).repeat_interleave(group, 1) for x in (data.key, data.value))

    def rounded(x: torch.Tensor) -> torch.Tensor:
        return x.to(shape.output_type).to(wide) if plain else x

    seen = visible(shape)
    scores = rounded(shape.used_scale * rounded(query @ key.transpose(2, 3))).masked_fill(~seen, -math.inf)
    weights = rounded(torch.softmax(scores, -1).masked_fill(~seen.any(1)[:, None], 0))
    return rounded(weights @ value).double()


def error_over_allowed(shape: Shape, got: torch.Tensor, data: Tensors) -> float:
    """The larger of largest error and rms error, each over what is allowed; more than 1 is wrong."""
    expected, plain = attention(shape, data, plain=False), attention(shape, data, plain=True)
    top = expected.abs().max().item()
    unit = 2.0**-8 if shape.output_type == torch.bfloat16 else 2.0**-11
    factor = 2 if expected.numel() >= 128 else 3

    def both(x: torch.Tensor) -> tuple[float, float]:
        error = (x.double() - expected).abs()
        return error.max().item(), error.square().mean().sqrt().item()

    (largest, rms), (plain_largest, plain_rms) = both(got), both(plain)
    ratios = (
        largest / (factor * plain_largest + 1e-5 * top + unit / 100),
        rms / (2 * plain_rms + 1e-6 * top + unit / 400),
    )
    return math.nan if any(map(math.isnan, ratios)) else max(ratios)


def random_shapes(count: int) -> list[Shape]:
    choose = random.Random(20)
    lengths = (1, 2, 7, 31, 63, 64, 65, 96, 113, 127, 128, 129, 176, 200, 257, 384, 511, 640, 777, 1000, 1024, 1537)
    shapes = []
    for _ in range(count):
        layout, key_heads = choose.choice((0, 0, 1, 2)), choose.choice((1, 1, 2, 3))
        group = 1 if layout == 1 else choose.choice((1, 1, 2, 4))
        queries = choose.choice(lengths)
        keys = queries if layout == 1 else choose.choice(lengths)
        dim = choose.choice((16, 24, 32, 40, 48, 64, 64, 72, 88, 96, 104, 128, 128, 136, 160, 192, 200, 224, 248, 256))
        shape = Shape(
            choose.choice((1, 2, 3)), group * key_heads, key_heads, queries, keys, dim, choose.choice((0, 0, 1, 1, 2, 3)),
            choose.random() < 0.5, choose.choice((-1, -1, -1, 0, 1, 50, 128, 500)), layout, choose.choice((0.0, 0.0, 0.02, 0.5)),
        )  # fmt: skip
        shapes.append(shape)
    return shapes


def check(models: Sequence[Program], shapes: Sequence[Shape], quiet: bool = False) -> int:
    generator = torch.Generator(device="cuda").manual_seed(20)
    wrong = 0
    worst = {model.name: 0.0 for model in models}
    for shape in shapes:
        data = make_input(shape, generator)
        for model in models:
            launch, output = model.launcher(shape, data)
            launch()
            first = output.clone()
            launch()  # the workspace must be as the first launch found it
            torch.cuda.synchronize()
            ratio = error_over_allowed(shape, output, data)
            worst[model.name] = max(worst[model.name], ratio)
            if not ratio <= 1 or not torch.equal(first, output):
                wrong += 1
                if wrong < 40:
                    print(f"WRONG {model.name}: {shape}: {ratio:.2f} of what is allowed", flush=True)
    if not quiet:
        for name, ratio in worst.items():
            print(f"{name}: {len(shapes)} shapes, at most {ratio:.2f} of the error allowed")
    return wrong


def few_heads(shape: Shape) -> Shape:
    """Four query heads: enough to compare errors, and float64 scores fit."""
    return replace(shape, batches=1, query_heads=4, key_heads=4 * shape.key_heads // shape.query_heads)


def print_errors(shape: Shape, name: str, found: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> None:
    errors = {tensor: (found[tensor].double() - right[tensor]).abs() for tensor in found}
    largest = "  ".join(f"{tensor} {error.max().item():.3g}" for tensor, error in errors.items())
    rms = "  ".join(f"{tensor} {error.square().mean().sqrt().item():.3g}" for tensor, error in errors.items())
    print(f"| {shape} | {name} | {largest} | {rms} |", flush=True)


def compare_errors(models: Sequence[Program]) -> None:
    print("| B x H/Hkv x Nq,Nk x d | implementation | largest error | root mean square |\n|---|---|---|---|")
    generator = torch.Generator(device="cuda").manual_seed(22)
    for shape in map(few_heads, ROWS):
        data = make_input(shape, generator)
        right = {"O": attention(shape, data, plain=False)}
        for model in models:
            launch, output = model.launcher(shape, data)
            launch()
            print_errors(shape, model.name, {"O": output}, right)
        for name, backend in PYTORCH.items():
            print_errors(shape, name, {"O": pytorch(shape, data, backend)()}, right)


# -------------------------------------------------------------------------------------------------------- times


@dataclass
class Result:
    shape: Shape
    competitor: str
    samples_ms: list[float] = field(default_factory=list)

    @property
    def ms(self) -> float:
        return statistics.median(self.samples_ms)


def timed_ms(launch: Callable[[], object]) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(LAUNCHES_PER_SAMPLE):
        launch()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / LAUNCHES_PER_SAMPLE


def measure_launches(shape: Shape, launches: dict[str, Callable[[], object]], repetitions: int) -> list[Result]:
    results = {name: Result(shape, name) for name in launches}
    for launch in launches.values():
        for _ in range(LAUNCHES_PER_SAMPLE):
            launch()
    for _ in range(repetitions):
        for name, launch in launches.items():
            results[name].samples_ms.append(timed_ms(launch))
    return list(results.values())


def measure(shape: Shape, models: Sequence[Program], repetitions: int) -> list[Result]:
    data = make_input(shape, torch.Generator(device="cuda").manual_seed(1))
    launches: dict[str, Callable[[], object]] = {model.name: model.launcher(shape, data)[0] for model in models}
    launches |= {name: pytorch(shape, data, backend) for name, backend in PYTORCH.items()}
    return measure_launches(shape, launches, repetitions)


def print_table(results: Sequence[Result], operations: float = 1.0) -> None:
    """`operations` is a multiple of those of the forward pass."""
    print("| B x H/Hkv x Nq,Nk x d | implementation | ms | TFLOP/s | of cuDNN's rate |\n|---|---|---:|---:|---:|")
    for shape in dict.fromkeys(result.shape for result in results):
        rows = [result for result in results if result.shape == shape]
        best = next(row.ms for row in rows if row.competitor == "PyTorch cuDNN")
        for row in sorted(rows, key=lambda row: row.ms):
            rate = operations * shape.flop / row.ms / 1e9
            print(f"| {shape} | {row.competitor} | {row.ms:.3f} | {rate:.0f} | {best / row.ms:.2f} |")


# --------------------------------------------------------------------------------------------------------- main


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("build", "errors", "times", "compare"))
    parser.add_argument("--models", default="hopper", help="names of programs in reference/half, with commas")
    parser.add_argument(
        "--variant", action="append", default=[], metavar="NAME=CONFIG", help="another Config of hopper.cu"
    )
    parser.add_argument("--shapes", type=int, default=300, help="random shapes to check")
    parser.add_argument("--dims", default="64,128,256", help="times: rows with these d only")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--keep", type=Path, help="a folder for what is built, to be used again")
    parser.add_argument("--json", type=Path, help="write all samples here")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor() as pool:
        folder = options.keep or Path(scratch)
        folder.mkdir(exist_ok=True)
        named = [name for name in options.models.split(",") if name]
        models = list(pool.map(lambda name: build(name, SOLUTIONS / f"{name}.cu", folder), named))
        pairs = [variant.split("=", 1) for variant in options.variant]
        configs = dict(pairs)
        variants = dict(
            pool.map(lambda item: (item[0], build(item[0], SOLUTIONS / "hopper.cu", folder, item[1])), configs.items())
        )
        if options.only == "compare":
            compare_errors(models)
        if options.only in ("build", "compare"):
            return 0
        if options.only != "times":
            wrong += check(models, random_shapes(options.shapes))
        dims = {name: int(config.split(",")[0]) for name, config in configs.items()}
        for name, model in variants.items():
            shapes = [replace(shape, dim=dims[name], layout=0, type=shape.type % 2) for shape in random_shapes(12)]
            wrong += check([model], shapes, quiet=True)
        if options.only != "errors":
            results: list[Result] = []
            for shape in (row for row in ROWS if str(row.dim) in options.dims.split(",")):
                chosen = [*models, *(model for name, model in variants.items() if dims[name] == shape.dim)]
                results += measure(shape, chosen, options.repetitions)
                torch.cuda.empty_cache()
            print_table(results)
            if options.json:
                samples = [(str(r.shape), r.competitor, r.samples_ms) for r in results]
                options.json.write_text(json.dumps(samples, indent=1))
    print(f"{wrong} wrong", file=sys.stderr if wrong else sys.stdout)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
