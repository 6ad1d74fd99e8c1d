"""A lower bound on the time that a GPU needs for a testcase: a time far below it is refused.

Three terms, each a count of work over a peak rate of the whole GPU:

    arithmetic     FLOPs over the peak of the fastest unit that the assignment allows
    exponentials   exponentials over the rate of the special-function units
    memory         bytes that must move, each once, over the bandwidth of device memory

Units work in parallel, so the floor is the largest term, not their sum. Reports compare times with this floor.

Refusing a time needs a lower bound that no honest program can beat, but honest programs can beat each term. A program
can compute exponentials as polynomials on the FP32 units in parallel with the special-function units (FlashAttention-4,
2025), which at most doubles their rate. Data that the copy from the host left in the second-level cache need not come
from memory, and data written last may still be in that cache when the last kernel ends. A program that keeps
intermediate results skips some of the work that is counted by convention (`Operator.unavoidable`). `refuse_below_ms`
allows for all of this. Clock rates are the highest that the GPU can run at, and the bandwidth is that of the memory's
pins (bus width × clock), not a measured one. Both can only make the floor lower.
"""

from __future__ import annotations

from dataclasses import dataclass

from grader.course.assignment import Unit
from grader.gpu.facts import GpuFacts
from grader.operators import Operator, Shape
from grader.records.disclosure import Doubt

ARITHMETIC, MEMORY = "the floating-point operations", "the transfers from and to memory"
"""Names of terms, as they appear in records."""

PROGRAMMING_GUIDE = (
    'CUDA C++ Programming Guide 13.0, "Arithmetic Instructions", table "Throughput of Native Arithmetic Instructions"'
)


@dataclass(frozen=True)
class Rates:
    """Results per clock and SM: FP32 fused multiply-adds, special functions (the guide's table), and dense FP16
    tensor multiply-adds with FP32 sums (`tensor_source`)."""

    fma32: int
    special: int
    tensor_fp16: int
    tensor_source: str


_RATES = {
    (7, 0): Rates(64, 16, 512, "Tesla V100 whitepaper: 8 tensor cores × 64 FMA"),
    (7, 5): Rates(64, 16, 512, "Turing whitepaper: 8 tensor cores × 64 FMA"),
    (8, 0): Rates(64, 16, 1024, "A100 whitepaper: 4 tensor cores × 256 FMA; 312 TFLOP/s = 108 SMs × 1.41 GHz"),
    (8, 6): Rates(128, 16, 512, "GA102 whitepaper: 4 tensor cores × 128 FMA"),
    (8, 7): Rates(128, 16, 1024, "Jetson AGX Orin technical brief: 4 tensor cores × 256 FMA"),
    (8, 9): Rates(128, 16, 512, "Ada whitepaper: 4 tensor cores × 128 FMA"),
    (9, 0): Rates(128, 16, 2048, "H100 whitepaper: 4 tensor cores × 512 FMA; 989 TFLOP/s = 132 SMs × 1.83 GHz"),
    (10, 0): Rates(128, 16, 4096, "Blackwell datasheet: 2.25 PFLOP/s dense FP16 = 148 SMs × 1.85 GHz"),
    (12, 0): Rates(128, 16, 512, "RTX Blackwell whitepaper: 4 tensor cores × 128 FMA (FP16 sums)"),
}

_EMULATED_EXPONENTIALS = 2.0
"""The largest factor by which polynomials on the FP32 units can raise the rate of exponentials (see above)."""


@dataclass(frozen=True)
class Term:
    """One limit. `ms` is the least time by convention, `hard_ms` the least that no honest program can avoid."""

    name: str
    ms: float
    hard_ms: float
    source: str


@dataclass(frozen=True)
class Floor:
    """The least time of one testcase on one GPU. `flops` and `min_bytes` count the whole problem."""

    terms: tuple[Term, ...]
    flops: int
    min_bytes: int = 0

    @property
    def limit(self) -> Term:
        """The term that sets the floor."""
        return max(self.terms, key=lambda term: term.ms)

    @property
    def ms(self) -> float:
        return self.limit.ms

    @property
    def refuse_below_ms(self) -> float:
        return max(term.hard_ms for term in self.terms)

    def share(self, gpu_ms: float) -> float:
        """The floor as a share of a time: 1 is as fast as the GPU can be."""
        return self.ms / gpu_ms

    def tflops(self, gpu_ms: float) -> float:
        """The achieved TFLOP/s, with the operator's count of operations."""
        return self.flops / gpu_ms / 1e9

    def refusal(self, gpu_ms: float) -> Doubt | None:
        """The reason why this time is refused; None when it is accepted."""
        if gpu_ms >= self.refuse_below_ms:
            return None
        hard = max(self.terms, key=lambda term: term.hard_ms)
        return Doubt(
            f"{gpu_ms:.4g} ms of GPU time is less than the {self.refuse_below_ms:.4g} ms that {hard.name} need at "
            f"least on this GPU ({hard.source})",
            "the program skipped work, or did it where the tracer does not see it. The time is refused: it earns no "
            "points and is not ranked until someone has reviewed it",
        )


def peak_flops(facts: GpuFacts, unit: Unit) -> tuple[float, str] | None:
    """Return (FLOP/s of the whole GPU, the source of that rate); None if the architecture or the unit is unknown."""
    per_clock = fma_per_clock(facts.limits.compute_capability, unit)
    rates = _RATES.get(facts.limits.compute_capability)
    if rates is None or per_clock is None:
        return None
    source = PROGRAMMING_GUIDE if unit == "fp32" else rates.tensor_source
    rate = 2 * per_clock * facts.sms * facts.clock_mhz * 1e6
    return rate, f"{unit}: {per_clock:,.0f} FMA a clock and SM ({source}) × {_chip(facts)}"


def fma_per_clock(compute_capability: tuple[int, int], unit: Unit) -> float | None:
    """Fused multiply-adds that `unit` does per clock and SM; None if the architecture or the unit is unknown."""
    rates = _RATES.get(compute_capability)
    if rates is None:
        return None
    per_clock: dict[Unit, float] = {"fp32": rates.fma32, "fp16": rates.tensor_fp16}
    if compute_capability >= (8, 0):  # TF32 and BF16 came with Ampere
        tf32 = rates.tensor_fp16 / 2
        per_clock |= {"bf16": rates.tensor_fp16, "bf16x3": rates.tensor_fp16 / 3, "tf32": tf32, "tf32x3": tf32 / 3}
    if compute_capability >= (8, 9):  # FP8 came with Ada and Hopper, at twice the rate of FP16 (both whitepapers)
        per_clock["fp8"] = 2 * rates.tensor_fp16
    return per_clock.get(unit)


def least_time(operator: Operator, shape: Shape, facts: GpuFacts, units: tuple[Unit, ...]) -> Floor | None:
    """The floor of one testcase if `units` may do the arithmetic; None for an architecture without known rates. `fp8`
    may do it only if every input tensor has 8 bits."""
    rates = _RATES.get(facts.limits.compute_capability)
    narrow = all(tensor.type.bytes == 1 for tensor in operator.inputs(shape))
    peaks = [peak for unit in units if (unit != "fp8" or narrow) and (peak := peak_flops(facts, unit)) is not None]
    if rates is None or not peaks:
        return None
    fastest, source = max(peaks)
    flops = operator.flops(shape)
    arithmetic = flops / fastest * 1e3
    least_flops, least_exponentials = operator.unavoidable(shape)
    special = rates.special * facts.sms * facts.clock_mhz * 1e6
    exponentials = operator.exponentials(shape) / special * 1e3
    traffic = operator.input_bytes(shape) - operator.header_bytes, operator.output_bytes(shape)
    moved = sum(traffic)
    memory = moved / facts.bandwidth * 1e3
    passing = [max(0, size - facts.l2_bytes) for size in traffic]
    cold = sum(passing) / facts.bandwidth * 1e3
    return Floor(
        (
            Term(ARITHMETIC, arithmetic, least_flops / fastest * 1e3, source),
            Term(
                "the exponentials",
                exponentials,
                least_exponentials / special * 1e3 / _EMULATED_EXPONENTIALS,
                f"{rates.special} a clock and SM ({PROGRAMMING_GUIDE}) × {_chip(facts)}",
            ),
            Term(
                MEMORY,
                memory,
                cold,
                f"{facts.bandwidth / 1e12:.2f} TB/s = {facts.bus_bits} bits × {facts.memory_clock_mhz:,.0f} MHz × 2",
            ),
        ),
        flops,
        moved,
    )


def _chip(facts: GpuFacts) -> str:
    return f"{facts.sms} SMs × {facts.clock_mhz:,.0f} MHz"
