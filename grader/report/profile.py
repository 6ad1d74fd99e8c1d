"""Renders a profile as text, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import textwrap
from collections.abc import Iterator

from tabulate import tabulate

from grader.operators import shape_words
from grader.profiling.kernel_profile import KernelProfile, ProfileStudy
from grader.programs.trace import AccessEvent

WIDTH = 100
_SHOWN_AT_ZERO = frozenset({"shared_load_bank_conflicts", "shared_store_bank_conflicts", "divergent_branch"})
"""Counters of the emulator that are shown even if they are zero; other counters are shown only if they are not."""


def render(study: ProfileStudy) -> str:
    """For each kernel, a table of its metrics, what limits its occupancy, and what its warps wait for."""
    shape = shape_words(study.shape)
    time = f" · {study.gpu_ms:,.3f} ms of GPU time" if study.gpu_ms is not None else ""
    blocks = [f"{study.submission} · {study.test} ({shape}) · {study.device}{time}"]
    blocks += ["\n".join(_kernel(study, kernel)) for kernel in study.kernels]
    blocks += [textwrap.fill(note, WIDTH) for note in study.notes]
    if study.kernels and any(kernel.profiled for kernel in study.kernels):
        blocks.append("--csv and --json also name each metric as Nsight Compute does.")
        blocks.append(
            textwrap.fill(
                "Higher occupancy is not always faster: a kernel needs only enough warps to hide latency.", WIDTH
            )
        )
    return "\n\n".join(blocks)


def _kernel(study: ProfileStudy, kernel: KernelProfile) -> Iterator[str]:
    counted = f", {kernel.profiled:,} profiled" if kernel.profiled else ""
    share = f", {kernel.share:.1%} of the kernels' time" if study.gpu_ms is not None else ""
    yield f"{kernel.name}\n  {kernel.launches:,} launch{'es' if kernel.launches > 1 else ''}{counted}{share}"
    if table := _metrics(study, kernel):
        yield textwrap.indent(table, "  ")
    if kernel.theoretical is not None:
        text = f"theoretical occupancy {kernel.theoretical.theoretical:.3f}: {kernel.theoretical.sentence}"
        yield textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
    if kernel.stalls:
        reasons = ", ".join(f"{meaning} ({word}, {value:.2f})" for word, meaning, value in kernel.stalls)
        text = f"the longest waits of warps, per instruction issued: {reasons}"
        yield textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
    if kernel.mix:
        words = ", ".join(f"{name.replace('_', '-')} {share:.1%}" for name, share in kernel.mix.items())
        yield textwrap.fill(f"instructions of warps: {words}", WIDTH, initial_indent="  ", subsequent_indent="    ")
    for sentence in kernel.advice:
        yield textwrap.fill(sentence, WIDTH, initial_indent="  → ", subsequent_indent="    ")
    if kernel.tflops is not None and kernel.intensity is not None:
        yield f"  {kernel.tflops:.2f} TFLOP/s of FP32 at {kernel.intensity:,.1f} FLOP per byte of device memory"


def _metrics(study: ProfileStudy, kernel: KernelProfile) -> str:
    """The table of a kernel's metrics, '' if it has none. If launches do not differ, there is one column of values."""
    found = [(metric, kernel.ranges[metric.name]) for metric in study.metrics if metric.name in kernel.ranges]
    found = [each for each in found if each[1].high or each[0].name in _SHOWN_AT_ZERO or not kernel.mix]
    if all(range_.low == range_.high for _, range_ in found):
        headers: tuple[str, ...] = ("value",)
        values: list[tuple[str, ...]] = [(_number(range_.mean),) for _, range_ in found]
    else:
        headers = ("min", "max", "avg")
        values = [(_number(range_.low), _number(range_.high), _number(range_.mean)) for _, range_ in found]
    rows = [(metric.name, *numbers, metric.unit) for (metric, _), numbers in zip(found, values, strict=True)]
    aligned = ("left", *["right"] * len(headers), "left")
    names = ("metric", *headers, "unit")
    return tabulate(rows, headers=names, tablefmt="simple", colalign=aligned, disable_numparse=True) if rows else ""


def _number(value: float) -> str:
    """Format with four significant digits, and without decimals from 10,000 on or for whole numbers from 100 on."""
    if value == 0 or abs(value) >= 10_000 or (abs(value) >= 100 and value == round(value)):
        return f"{value:,.0f}"
    return f"{value:,.{max(0, 3 - math.floor(math.log10(abs(value))))}f}"


def as_csv(study: ProfileStudy) -> str:
    """The profile as CSV, with one line per kernel and metric."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("kernel", "launches", "profiled", "share", "metric", "ncu", "unit", "min", "max", "avg"))
    for kernel in study.kernels:
        for metric in study.metrics:
            if (found := kernel.ranges.get(metric.name)) is not None:
                values = (found.low, found.high, found.mean)
                facts = (kernel.name, kernel.launches, kernel.profiled, f"{kernel.share:.6f}")
                writer.writerow((*facts, metric.name, metric.in_ncu, metric.unit, *map(repr, values)))
    return out.getvalue()


def as_json(study: ProfileStudy) -> str:
    """The whole profile as JSON; what was not measured is null, or absent from `metrics`."""
    kernels = [
        {
            "name": kernel.name,
            "launches": kernel.launches,
            "profiled": kernel.profiled,
            "gpu_ms": kernel.gpu_ns / 1e6 if study.gpu_ms is not None else None,
            "share": kernel.share,
            "theoretical_occupancy": kernel.theoretical.theoretical if kernel.theoretical else None,
            "limiter": kernel.theoretical.sentence if kernel.theoretical else None,
            "metrics": {
                metric.name: {
                    "min": found.low, "max": found.high, "avg": found.mean, "unit": metric.unit, "ncu": metric.in_ncu,
                }
                for metric in study.metrics
                if (found := kernel.ranges.get(metric.name)) is not None
            },
            "stalls": [{"reason": word, "meaning": meaning, "warps": value} for word, meaning, value in kernel.stalls],
            "instruction_mix": dict(kernel.mix),
            "accesses": [_access(access) for access in kernel.accesses],
            "advice": list(kernel.advice),
            "flop_per_byte": kernel.intensity,
            "tflops": kernel.tflops,
        }
        for kernel in study.kernels
    ]  # fmt: skip
    content = {
        "schema": "grader-profile-1",
        "submission": study.submission,
        "test": study.test,
        "shape": study.shape,
        "device": study.device,
        "gpu_ms": study.gpu_ms,
        "kernels": kernels,
        "notes": study.notes,
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _access(access: AccessEvent) -> dict[str, object]:
    return {
        "file": access.file, "line": access.line, "space": access.space, "operation": access.operation,
        "bytes": access.bytes, "stride": access.stride, "requests": access.requests, "lanes": access.lanes,
        "units": access.units, "excess": access.excess, "worst": access.worst,
    }  # fmt: skip
