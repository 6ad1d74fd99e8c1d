"""The model solutions of hw4 beside PyTorch's scaled_dot_product_attention: times, errors and floors, in one run.

    python benchmarks/attention.py                              must-hold shapes: t12 t23 t24 t30
    python benchmarks/attention.py --tests all --only ours      the 30 testcases
    python benchmarks/attention.py --processes                  whole programs on t12 and t23, beside their parts

Needs a CUDA machine with nvcc, PyTorch, numpy and pyyaml, and nothing of the grader.

How it measures. All competitors get the same float32 numbers, uniform in [-3, 3], in device memory: ours as one array
in the file's order, PyTorch's as contiguous Q, K and V, and half-precision ones these rounded to halves (outside the
timed region). Launches are captured into a CUDA graph, so that the time between small kernels is the GPU's and not
Python's, and a replay is timed with CUDA events. Inputs smaller than 4 times the L2 cache are rotated among as many
copies as make up that size, one launch each in the graph. After 3 replays of warm-up, `--repetitions` (20 at least) are
timed one by one, in rounds over all competitors, so that a change of clock or temperature meets all of them. The table
shows the median and a 95 % confidence interval of the median from order statistics, which assumes no distribution.
Errors are those of the first replay's output, which is written into memory full of NaN, against float64.

Floors. The least time that each unit of the chip needs: bytes of Q, K, V and O over the bandwidth of a measured device
copy; 4 B N^2 d operations over the peak of the CUDA cores; the same, or three times that for float32 from products of
halves, over the tensor cores' peak for halves; B N^2 exponentials over the special-function units. Peaks are units
times the highest clock that the GPU reports; a busy chip runs slower. The percentage of a floor is floor / time. The
largest floor that applies is the limit, set in bold.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as functional
import yaml
from gpu_timing import timed_ms
from torch.nn.attention import SDPBackend, sdpa_kernel
from whole_programs import ProgramTime, print_programs, time_programs

ROOT = Path(__file__).resolve().parent.parent
SOLUTIONS = ROOT / "reference/hw4"
MODELS = ("flash2", "tensor_cores", "hopper")
WARM_UP = 3

Shape = tuple[int, int, int]  # B, N, d


# ------------------------------------------------------------------------------------------------- the machine


@dataclass(frozen=True)
class Machine:
    """Rates of the GPU. Units per multiprocessor and clock are those of NVIDIA's tuning guides and white papers."""

    name: str
    driver: str
    multiprocessors: int
    clock_hz: float
    l2_bytes: int
    copy_bytes_per_s: float  # read plus written, measured

    def rate(self, per_multiprocessor_and_clock: int) -> float:
        return self.multiprocessors * self.clock_hz * per_multiprocessor_and_clock


# float32 operations, operations on halves by tensor cores, special functions: each per multiprocessor and clock.
UNITS = {(8, 0): (128, 2048, 16), (8, 6): (256, 512, 16), (8, 9): (256, 512, 16), (9, 0): (256, 4096, 16)}


def query_smi(what: str) -> str:
    command = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader,nounits", "--id=0"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def this_machine() -> Machine:
    properties = torch.cuda.get_device_properties(0)
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_(0, 255)
    target = torch.empty_like(source)
    seconds = min(timed_ms(lambda: target.copy_(source)) for _ in range(10)) / 1e3
    return Machine(
        name=properties.name,
        driver=query_smi("driver_version"),
        multiprocessors=properties.multi_processor_count,
        clock_hz=float(query_smi("clocks.max.sm")) * 1e6,
        l2_bytes=properties.L2_cache_size,
        copy_bytes_per_s=2 * source.numel() / seconds,
    )


def floors_ms(shape: Shape, machine: Machine, arithmetic: str) -> dict[str, float]:
    """Milliseconds that each unit needs at least; see the head of this file."""
    batches, rows, dim = shape
    float32, halves, special = UNITS[torch.cuda.get_device_capability()]
    operations = 4.0 * batches * rows * rows * dim
    floors = {
        "bandwidth": 4 * batches * rows * dim * (2 if arithmetic == "half" else 4) / machine.copy_bytes_per_s,
        "special-function": batches * rows * rows / machine.rate(special),
    }
    if arithmetic == "float32":
        floors["CUDA-core"] = operations / machine.rate(float32)
    if arithmetic == "split":
        floors["tensor"] = 3 * operations / machine.rate(halves)
    if arithmetic == "half":
        floors["tensor"] = operations / machine.rate(halves)
    if arithmetic == "tf32":
        floors["tensor"] = 2 * operations / machine.rate(halves)
    return {unit: 1e3 * seconds for unit, seconds in floors.items()}


# ----------------------------------------------------------------------------------------------- the competitors


@dataclass(frozen=True)
class Input:
    """The same numbers in the form that each competitor needs. Shapes: packed [B, 3, N, d], the others [B, 1, N, d]."""

    packed: torch.Tensor
    separate: tuple[torch.Tensor, ...]
    halves: tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Competitor:
    """`make(input, output)` prepares one launch; `output` is float32 [B, N, d] and may be replaced by what the launch
    returns. `arithmetic` says which floors apply."""

    name: str
    arithmetic: str
    make: Callable[[Input], Callable[[], torch.Tensor]]


def build(source: Path, target: Path, *flags: str) -> None:
    major, minor = torch.cuda.get_device_capability()
    chip = f"{major}{minor}" + ("a" if major >= 9 else "")
    command = ["nvcc", "-O3", "-std=c++17", f"-gencode=arch=compute_{chip},code=sm_{chip}", *flags]
    subprocess.run([*command, "-o", str(target), str(source)], check=True)


def library(model: str, folder: Path) -> ctypes.CDLL:
    path = folder / f"{model}.so"
    build(SOLUTIONS / f"{model}.cu", path, "-shared", "-Xcompiler", "-fPIC", "-DATTENTION_LIBRARY")
    loaded = ctypes.CDLL(str(path))
    loaded.attention_workspace_bytes.restype = ctypes.c_size_t
    loaded.attention_launch.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 3 + [ctypes.c_void_p]
    return loaded


def ours(model: str, folder: Path) -> Competitor:
    loaded = library(model, folder)

    def make(data: Input) -> Callable[[], torch.Tensor]:
        batches, _, rows, dim = data.packed.shape
        output = torch.full((batches, rows, dim), math.nan, device="cuda")
        workspace = torch.empty(
            max(1, loaded.attention_workspace_bytes(batches, rows, dim)), dtype=torch.uint8, device="cuda"
        )

        def launch() -> torch.Tensor:
            stream = torch.cuda.current_stream().cuda_stream
            error = loaded.attention_launch(
                data.packed.data_ptr(), output.data_ptr(), workspace.data_ptr(), batches, rows, dim, stream
            )
            if error:
                raise RuntimeError(f"{model}: launch failed with CUDA error {error}")
            return output

        return launch

    return Competitor(f"{model}.cu", "float32" if model == "flash2" else "split", make)


def pytorch(name: str, arithmetic: str, backend: SDPBackend, tf32: bool = False) -> Competitor:
    def make(data: Input) -> Callable[[], torch.Tensor]:
        query, key, value = data.halves if arithmetic == "half" else data.separate

        def launch() -> torch.Tensor:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            with sdpa_kernel(backend):
                output = functional.scaled_dot_product_attention(query, key, value)
            torch.backends.cuda.matmul.allow_tf32 = False
            return output.squeeze(1)

        return launch

    return Competitor(f"PyTorch {name}", arithmetic, make)


def flash_attention() -> Competitor | None:
    try:
        from flash_attn import flash_attn_func
    except ImportError:
        return None

    def make(data: Input) -> Callable[[], torch.Tensor]:
        query, key, value = (x.transpose(1, 2) for x in data.halves)  # it wants [B, N, heads, d]
        return lambda: flash_attn_func(query, key, value).squeeze(2)

    return Competitor("flash-attn float16", "half", make)


def competitors(which: str, folder: Path) -> list[Competitor]:
    entries = [ours(model, folder) for model in MODELS]
    if which == "ours":
        return entries
    entries.append(pytorch("float32 efficient", "float32", SDPBackend.EFFICIENT_ATTENTION))
    if which == "baseline":
        return entries
    entries += [
        pytorch("float32 math", "float32", SDPBackend.MATH),
        pytorch("TF32 math", "tf32", SDPBackend.MATH, tf32=True),
        pytorch("float16 flash", "half", SDPBackend.FLASH_ATTENTION),
        pytorch("float16 cuDNN", "half", SDPBackend.CUDNN_ATTENTION),
    ]
    flash = flash_attention()
    if flash is None:
        print("flash-attn: not installed here, not measured", file=sys.stderr)
    return entries + ([flash] if flash else [])


# --------------------------------------------------------------------------------------------------- measuring


@dataclass
class Result:
    """Times are of one launch, in ms; errors are of float32 output against float64, absolute."""

    test: str
    shape: Shape
    competitor: str
    samples_ms: list[float] = field(default_factory=list)
    max_error: float = math.nan
    rms_error: float = math.nan
    floors_ms: dict[str, float] = field(default_factory=dict)
    problem: str = ""

    @property
    def median_ms(self) -> float:
        return statistics.median(self.samples_ms)

    @property
    def interval_ms(self) -> tuple[float, float]:
        """95 % confidence interval of the median: the order statistics n/2 -+ 0.98 sqrt(n), by the binomial law."""
        ordered = sorted(self.samples_ms)
        reach = math.ceil(0.98 * math.sqrt(len(ordered)))
        middle = len(ordered) / 2
        return ordered[max(0, math.floor(middle - reach))], ordered[
            min(len(ordered) - 1, math.ceil(middle + reach) - 1)
        ]

    @property
    def floor(self) -> tuple[str, float]:
        return max(self.floors_ms.items(), key=lambda item: item[1])


def make_input(shape: Shape, generator: torch.Generator) -> Input:
    batches, rows, dim = shape
    packed = torch.rand(batches, 3, rows, dim, device="cuda", generator=generator) * 6 - 3
    separate = tuple(packed[:, i].contiguous().unsqueeze(1) for i in range(3))
    return Input(packed, separate, tuple(x.half() for x in separate))


def reference(packed: torch.Tensor) -> torch.Tensor:
    """softmax(Q K^T / sqrt(d)) V in float64, [B, N, d]."""
    batches, _, rows, dim = packed.shape
    output = torch.empty(batches, rows, dim, dtype=torch.float64, device="cuda")
    step = max(1, (1 << 27) // (rows * rows))
    for first in range(0, batches, step):
        query, key, value = packed[first : first + step].double().unbind(1)
        for row in range(0, rows, 4096):
            scores = query[:, row : row + 4096] @ key.transpose(1, 2) / math.sqrt(dim)
            output[first : first + step, row : row + 4096] = torch.softmax(scores, -1) @ value
    return output


def measure(test: str, shape: Shape, entries: Sequence[Competitor], machine: Machine, repetitions: int) -> list[Result]:
    generator = torch.Generator(device="cuda").manual_seed(sum(map(ord, test)))
    bytes_of_one = 4 * 4 * math.prod(shape)
    inputs = [make_input(shape, generator) for _ in range(max(1, math.ceil(4 * machine.l2_bytes / bytes_of_one)))]
    expected = reference(inputs[0].packed)
    results, graphs = [], []
    for entry in entries:
        result = Result(test, shape, entry.name, floors_ms=floors_ms(shape, machine, entry.arithmetic))
        results.append(result)
        try:
            launches = [entry.make(data) for data in inputs]
            launches[0]()  # loads modules and picks algorithms, which a capture would refuse
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                outputs = [launch() for launch in launches]
            outputs[0].fill_(math.nan)
            graph.replay()
            error = (outputs[0].double() - expected).abs()
            result.max_error, result.rms_error = float(error.max()), float(error.square().mean().sqrt())
            del error
            for _ in range(WARM_UP - 1):
                graph.replay()
            torch.cuda.synchronize()
            graphs.append((graph, result, launches, outputs))  # the launches own their workspaces
        except RuntimeError as problem:  # out of memory, or a back end that refuses the shape
            result.problem = str(problem).splitlines()[0][:100]
    del expected
    for _ in range(repetitions):
        for graph, result, *_ in graphs:
            result.samples_ms.append(timed_ms(graph.replay) / len(inputs))
    return results


# ------------------------------------------------------------------------------------------------------- output


def print_table(results: Sequence[Result]) -> None:
    print(
        "| test | B x N x d | implementation | ms | 95 % interval | TFLOP/s | max error | rms error |"
        " tensor | CUDA-core | special-function | bandwidth |"
    )
    print("|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for result in results:
        shape = " x ".join(map(str, result.shape))
        if not result.samples_ms:
            print(f"| {result.test} | {shape} | {result.competitor} | not measured: {result.problem} |" + " |" * 8)
            continue
        low, high = result.interval_ms
        batches, rows, dim = result.shape
        rate = 4 * batches * rows * rows * dim / result.median_ms / 1e9
        binding = result.floor[0]
        cells = []
        for unit in ("tensor", "CUDA-core", "special-function", "bandwidth"):
            share = f"{100 * result.floors_ms[unit] / result.median_ms:.0f} %" if unit in result.floors_ms else ""
            cells.append(f"**{share}**" if unit == binding else share)
        print(
            f"| {result.test} | {shape} | {result.competitor} | {result.median_ms:.4f} | {low:.4f}–{high:.4f} |"
            f" {rate:.1f} | {result.max_error:.1e} | {result.rms_error:.1e} | " + " | ".join(cells) + " |",
            flush=True,
        )


def all_tests() -> dict[str, Shape]:
    groups = yaml.safe_load((ROOT / "testcases/hw4.yaml").read_text())["groups"]
    return {name: tuple(shape) for group in groups if group.get("graded") for name, shape in group["cases"].items()}


def parse_options() -> tuple[argparse.Namespace, dict[str, Shape]]:
    """Return the options, and the testcases that they name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", default="t12,t23,t24,t30", help="names of testcases, or all")
    parser.add_argument(
        "--only", choices=("all", "baseline", "ours"), default="all", help="baseline: ours and PyTorch float32"
    )
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--processes", action="store_true", help="also time whole programs on t12 and t23")
    parser.add_argument("--json", type=Path, help="write all samples here")
    options = parser.parse_args()
    if options.repetitions < 20:
        parser.error("--repetitions: at least 20, or the interval says little")
    known = all_tests()
    names = list(known) if options.tests == "all" else options.tests.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"--tests: no testcase is called {', '.join(unknown)}; there are {', '.join(known)}")
    return options, {name: known[name] for name in names}


def main() -> None:
    options, shapes = parse_options()
    machine = this_machine()
    print(
        f"{machine.name}, driver {machine.driver}, PyTorch {torch.__version__}, {options.repetitions} repetitions\n"
        f"{machine.multiprocessors} multiprocessors at up to {machine.clock_hz / 1e9:.2f} GHz, "
        f"device copy {machine.copy_bytes_per_s / 1e12:.2f} TB/s\n"
    )
    results: list[Result] = []
    lines: Sequence[ProgramTime] = ()
    with tempfile.TemporaryDirectory() as scratch:
        entries = competitors(options.only, Path(scratch))
        for name, shape in shapes.items():
            results += measure(name, shape, entries, machine, options.repetitions)
            torch.cuda.empty_cache()
        print_table(results)
        if options.processes:
            known = all_tests()
            lines = time_programs({name: known[name] for name in ("t12", "t23")}, MODELS, build, Path(scratch))
    if lines:
        print()
        print_programs(lines)
    if options.json:
        content = {
            "machine": asdict(machine),
            "results": [asdict(result) for result in results],
            "programs": [asdict(line) for line in lines],
        }
        options.json.write_text(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
