"""Predicted times as text and JSON. The word "predicted" stands wherever such a time does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from grader.estimates.estimate import LEAST_GAIN, Fix, Interval, KernelEstimate
from grader.findings import short_kernel


@dataclass(frozen=True)
class Estimate:
    """The prediction for one test; without a `time`, `why` says why there is none. `sequential_s`: the time of the
    sequential program, if it is known here."""

    test: str
    shape: tuple[int | float, ...]
    gpu: str
    calibrated: bool
    note: str = ""
    why: str = ""
    time: Interval | None = None
    kernels: tuple[KernelEstimate, ...] = ()
    sequential_s: float | None = None

    def without_ms(self, kernel: KernelEstimate, fix: Fix) -> float:
        """The program's predicted time after a fix."""
        assert self.time is not None
        return self.time.ms - kernel.ms + fix.without_ms


def render(estimates: Sequence[Estimate]) -> str:
    return "\n\n".join("\n".join(_lines(estimate)) for estimate in estimates)


def sentence(estimate: Estimate) -> str:
    """One sentence: the predicted time, its interval, the factor over the sequential program."""
    if estimate.time is None:
        return f"On an {estimate.gpu}, {estimate.test} is not predictable: {estimate.why}."
    time = estimate.time
    text = (
        f"Predicted, not measured: on an {estimate.gpu}, {estimate.test} would take about {_ms(time.ms)} "
        f"({_number(time.low_ms)} to {_ms(time.high_ms)})"
    )
    if estimate.sequential_s:
        times = estimate.sequential_s * 1e3 / time.ms
        text += f", {_number(times)} times as fast as the sequential program on this machine"
    return f"{text}."


def limit_sentence(estimate: Estimate) -> str:
    """What limits the program, and what it would take without that."""
    if not estimate.kernels:
        return ""
    kernel = estimate.kernels[0]
    if kernel.fixes:
        fix = kernel.fixes[0]
        share, after = 1 - fix.without_ms / kernel.ms, _ms(estimate.without_ms(kernel, fix))
        place = f"{fix.what}{_at(fix.file, fix.line)}"
        return f"Limit: {place} ({share:.0%} of the kernel's time); without that about {after}."
    return f"Limit: {_limit(kernel)}; none of the fixes that the model knows saves {LEAST_GAIN:.0%}."


def as_json(estimates: Sequence[Estimate]) -> str:
    """DESIGN's format: gpu, tests[].kernels[]."""
    return json.dumps(
        {"gpu": estimates[0].gpu if estimates else None, "tests": [_test(e) for e in estimates]}, indent=1
    )


def _test(estimate: Estimate) -> dict[str, Any]:
    time, total = estimate.time, sum(kernel.ms for kernel in estimate.kernels)
    return {
        "name": estimate.test,
        "shape": list(estimate.shape),
        "predicted_ms": time and time.ms,
        "low_ms": time and time.low_ms,
        "high_ms": time and time.high_ms,
        "calibrated": estimate.calibrated,
        "why": estimate.why or None,
        "limit": estimate.kernels[0].limit if estimate.kernels else None,
        "kernels": [
            {
                "name": short_kernel(kernel.name),
                "launches": round(kernel.launches),
                "predicted_ms": kernel.ms,
                "share": kernel.ms / total,
                "limit": kernel.limit,
                "busy": kernel.busy,
                "occupancy": kernel.occupancy,
                "file": kernel.file or None,
                "line": kernel.line or None,
                "without_ms": kernel.fixes[0].without_ms if kernel.fixes else None,
                "fixes": [
                    {"what": fix.what, "file": fix.file or None, "line": fix.line or None, "without_ms": fix.without_ms}
                    for fix in kernel.fixes
                ],
            }
            for kernel in estimate.kernels
        ],
    }


def _lines(estimate: Estimate) -> Iterator[str]:
    yield sentence(estimate)
    if estimate.time is None:
        return
    yield limit_sentence(estimate)
    total = sum(kernel.ms for kernel in estimate.kernels)
    for kernel in estimate.kernels:
        if kernel.ms < LEAST_GAIN * total and kernel is not estimate.kernels[0]:
            continue
        launches = f"{kernel.launches:,.0f} launch{'es' if kernel.launches != 1 else ''}"
        yield (
            f"\n  {short_kernel(kernel.name)}: {_ms(kernel.ms)} predicted, {kernel.ms / total:.0%}, {launches}, "
            f"occupancy {kernel.occupancy:.0%}; limit: {_limit(kernel)}"
        )
        for fix in kernel.fixes:
            yield f"    without {fix.what}{_at(fix.file, fix.line)}: about {_ms(fix.without_ms)}"
    if not estimate.calibrated:
        yield f"\nNo time of an {estimate.gpu} was compared with predictions here: the interval is a guess."
    if estimate.note:
        yield f"Note: {estimate.note}."


def _limit(kernel: KernelEstimate) -> str:
    if kernel.limit == "latency":
        return f"waiting for results ({kernel.busy:.0%} of the time no unit is full)"
    return f"{kernel.limit}{_at(kernel.file, kernel.line)}, {kernel.busy:.0%} busy"


def _at(file: str, line: int) -> str:
    return f" at {file}:{line}" if line else ""


def _ms(value: float) -> str:
    return f"{_number(value)} ms"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
