"""Draws a submission's timing and roofline pictures from its record.

Marks differ in shape as well as in colour: a dot is a measured value, a dash is a limit, a diamond is the reference
solution.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product

from markupsafe import Markup

from grader.base.verdict import Verdict
from grader.profiling.roofline import Mark, Roof, Roofline
from grader.records import measured_times as timing
from grader.records.record import TestRecord
from grader.site.charts import LEFT, RIGHT, WIDTH, Axis, frame, number, svg, text

_HEIGHT, _TOP, _BOTTOM = 320, 52, 46
_UNITS = {
    "fp32": "FP32 on CUDA cores",
    "tf32": "TF32 on tensor cores",
    "tf32x3": "FP32 as three TF32 products",
    "fp16": "FP16 on tensor cores",
    "bf16": "BF16 on tensor cores",
    "bf16x3": "FP32 as three BF16 products",
    "fp8": "FP8 on tensor cores",
}
_LETTER_WIDTH, _LETTER_HEIGHT = 7.4, 14
"""The size of a letter in pixels. The estimate is generous, since the reader's browser chooses the font."""


# ---- times ------------------------------------------------------------------------------------------------------


def times(tests: Sequence[TestRecord]) -> Markup:
    """GPU time of every timed test on a logarithmic axis, with its interval, the least possible time and the reference
    solution's time; empty when nothing was timed."""
    timed = [test for test in tests if test.gpu_ms]
    if not timed:
        return Markup("")
    values = [value for test in timed for value in _milliseconds(test)]
    y = Axis(*_room(values), _HEIGHT - _BOTTOM, _TOP, log=True)
    each = (WIDTH - LEFT - RIGHT) / len(timed)
    parts = frame(y, "test", "GPU time, ms")
    every = -(-len(timed) * 40 // (WIDTH - LEFT))
    for place, test in enumerate(timed):
        middle = round(LEFT + (place + 0.5) * each, 1)
        parts += _test(test, y, middle, min(9.0, each * 0.35))
        if place % every == 0:
            parts.append(text(middle, y.start + 16, test.name, "middle"))
    floors = [test.floor.ms for test in timed if test.floor]
    shown = {
        _MEASURED: True,
        _FLOOR: bool(floors),
        _REFERENCE: any(test.reference_ms for test in timed),
        _CROSSED: any(_crossed(test) for test in timed),
    }
    parts += _legend(kind for kind, used in shown.items() if used)
    said = f"GPU times of {len(timed)} testcases, {_range([test.gpu_ms or 0 for test in timed], 'ms')}"
    said += f"; the least possible are {_range(floors, 'ms')}" if floors else ""
    return svg("GPU time of every timed testcase", parts, description=f"{said}.", height=_HEIGHT)


_MEASURED, _FLOOR, _REFERENCE, _CROSSED = (
    ("measured", "measured, with interval"),
    ("limit", "least possible"),
    ("reference", "reference solution"),
    ("crossed", "does not count"),
)
"""The kinds of marks, each with its CSS class and its text in the legend."""


def _milliseconds(test: TestRecord) -> Iterable[float]:
    found = [test.gpu_ms, test.reference_ms, test.floor.ms if test.floor else None]
    return [value for value in found if value]


def _crossed(test: TestRecord) -> str:
    """The reason why a time does not count; '' if it counts."""
    if test.verdict is not Verdict.PASSED:
        return "but it failed"
    return "not believed" if timing.refused(test) else ""


def _test(test: TestRecord, y: Axis, x: float, half: float) -> list[Markup]:
    """The marks of one test at `x`; dashes extend `half` to each side."""
    assert test.gpu_ms
    parts = []
    if test.floor:
        title = f"{test.name}: at least {test.floor.ms:.3g} ms, for {test.floor.limit}"
        parts.append(_mark("limit", x, y.at(test.floor.ms), title, half))
    if test.reference_ms:
        title = f"{test.name}: the reference solution takes {test.reference_ms:.4g} ms"
        parts.append(_mark("reference", x, y.at(test.reference_ms), title))
    if why := _crossed(test):
        return [*parts, _mark("crossed", x, y.at(test.gpu_ms), f"{test.name}: {test.gpu_ms:.4g} ms, {why}")]
    interval = ""
    known = timing.gpu_ms(test)
    if known is not None and known.low and known.high:
        line = '<line class="whisker" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>'
        parts.append(Markup(line).format(x, y.at(known.low), y.at(known.high)))
        interval = f" ({known.low:.4g} to {known.high:.4g})"
    return [*parts, _mark("measured", x, y.at(test.gpu_ms), f"{test.name}: {test.gpu_ms:.4g} ms{interval}")]


# ---- roofline ---------------------------------------------------------------------------------------------------


def roofline(found: Roofline | None) -> Markup:
    """The achieved FLOP/s of each test over its arithmetic intensity, under the roofs of the device; empty when nothing
    was measured."""
    if found is None:
        return Markup("")
    limits = [mark.limit_tflops for mark in found.marks if mark.limit_tflops]
    heights = [mark.tflops for mark in found.marks] + limits + [roof.flops / 1e12 for roof in found.roofs]
    x = Axis(*found.span, LEFT, WIDTH - RIGHT, log=True)
    y = Axis(*_room(heights), _HEIGHT - _BOTTOM, _TOP, log=True)
    parts = frame(y, "FLOP per byte of device memory, at least", "TFLOP/s")
    for tick in x.ticks():
        at_end = x.at(tick) > WIDTH - RIGHT - 20
        parts.append(text(x.at(tick), y.start + 16, number(tick), "end" if at_end else "middle"))
    parts += [_roof(found.line(roof), x, y, _roof_words(roof)) for roof in found.roofs]
    for mark in found.marks:
        parts += _achieved(mark, x, y)
    parts += _words(found, x, y)
    parts += _legend([("measured", "achieved"), ("limit", "most possible")])
    reached = _range([mark.tflops for mark in found.marks], "TFLOP/s")
    limits_said = ", ".join(map(_roof_words, found.roofs))
    said = f"{len(found.marks)} testcases reach {reached}. Limits: {limits_said}."
    return svg("Roofline", parts, description=said, height=_HEIGHT)


def _words(found: Roofline, x: Axis, y: Axis) -> list[Markup]:
    """The names of the roofs, and the names of those marks for which there is room."""
    parts = [_beside_the_slope(found, x, y, f"device memory: {found.bandwidth / 1e12:.2f} TB/s")]
    taken = [(x.at(mark.intensity) - 5, x.at(mark.intensity) + 5, y.at(mark.tflops) + 4) for mark in found.marks]
    right = WIDTH - RIGHT - 4
    for roof in found.roofs:
        words, base = _roof_words(roof), y.at(roof.flops / 1e12) - 5
        parts.append(text(right, base, words, "end"))
        taken.append((right - len(words) * _LETTER_WIDTH, right, base))
    return parts + _names(found.marks, x, y, taken)


def _roof(corners: Sequence[tuple[float, float]], x: Axis, y: Axis, title: str) -> Markup:
    """A roof, drawn from the point where it enters the picture at the bottom."""
    (first, low), *rest = corners
    if low < y.low:
        first, low = first * y.low / low, y.low
    points = " ".join(f"{x.at(a)},{y.at(b)}" for a, b in [(first, low), *rest] if a >= first)
    return Markup('<polyline class="line" points="{}"><title>{}</title></polyline>').format(points, title)


def _beside_the_slope(found: Roofline, x: Axis, y: Axis, words: str) -> Markup:
    """A label along the slope of the memory roof, in the middle of its visible part."""
    ridge = max(roof.flops for roof in found.roofs) / found.bandwidth
    middle = math.sqrt(max(x.low, y.low * 1e12 / found.bandwidth) * ridge)
    label = '<text transform="translate({} {}) rotate({:.1f})" text-anchor="middle">{}</text>'
    above = x.at(middle) - 5, y.at(middle * found.bandwidth / 1e12) - 5
    return Markup(label).format(*above, _slope_degrees(x, y), words)


def _slope_degrees(x: Axis, y: Axis) -> float:
    """The angle, clockwise as in SVG, of a line of slope one between two logarithmic axes."""
    across = (x.stop - x.start) / math.log10(x.high / x.low)
    up = (y.start - y.stop) / math.log10(y.high / y.low)
    return -math.degrees(math.atan2(up, across))


def _achieved(mark: Mark, x: Axis, y: Axis) -> list[Markup]:
    at, reached = x.at(mark.intensity), y.at(mark.tflops)
    said = f"{mark.name}: {mark.tflops:.3g} TFLOP/s at {mark.intensity:,.4g} FLOP per byte"
    parts = []
    if mark.limit_tflops:
        said += f", {mark.tflops / mark.limit_tflops:.0%} of the {number(mark.limit_tflops)} TFLOP/s possible"
        limit = y.at(mark.limit_tflops)
        line = '<line class="gap" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>'
        parts.append(Markup(line).format(at, reached, limit))
        parts.append(_mark("limit", at, limit, f"{mark.name}: at most {number(mark.limit_tflops)} TFLOP/s", 7))
    return [*parts, _mark("measured", at, reached, said)]


def _names(marks: Sequence[Mark], x: Axis, y: Axis, taken: list[tuple[float, float, float]]) -> list[Markup]:
    """The names of marks, where there is room next to the mark. `taken` lists the lines of text that are already there,
    as (left, right, y); new ones are added to it."""
    parts = []
    for mark in marks:
        at, reached, width = x.at(mark.intensity), y.at(mark.tflops), len(mark.name) * _LETTER_WIDTH
        for right, down in product((8, -8 - width), (4, 16, -8)):
            left, base = at + right, reached + down
            free = all(
                left > end or left + width < start or abs(base - there) >= _LETTER_HEIGHT for start, end, there in taken
            )
            if free and left >= LEFT and left + width <= WIDTH - RIGHT and base < y.start:
                parts.append(text(left, base, mark.name, "start"))
                taken.append((left, left + width, base))
                break
    return parts


# ---- both -------------------------------------------------------------------------------------------------------


def _mark(kind: str, x: float, y: float, title: str, half: float = 7) -> Markup:
    shapes = {
        "measured": "M{x} {y}m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        "limit": "M{left} {y}H{right}",
        "reference": "M{x} {y}m0 -5l5 5l-5 5l-5 -5z",
        "crossed": "M{x} {y}m-4 -4l8 8m0 -8l-8 8",
    }
    path = shapes[kind].format(x=x, y=y, left=round(x - half, 1), right=round(x + half, 1))
    return Markup('<path class="{}" d="{}"><title>{}</title></path>').format(kind, path, title)


def _legend(kinds: Iterable[tuple[str, str]]) -> list[Markup]:
    """A legend of the kinds of marks, in as many rows as it needs."""
    parts, left, base = list[Markup](), LEFT + 8.0, 14
    for kind, words in kinds:
        width = 30 + len(words) * _LETTER_WIDTH
        if left > LEFT + 8 and left + width > WIDTH:
            left, base = LEFT + 8.0, base + 18
        parts += [_mark(kind, left, base, words), text(left + 12, base + 4, words, "start")]
        left += width
    return parts


def _range(values: Sequence[float], unit: str) -> str:
    return f"{min(values):.3g} to {max(values):.3g} {unit}"


def _room(values: Sequence[float]) -> tuple[float, float]:
    """The ends of a logarithmic axis with room for marks and words on both sides of `values`."""
    return min(values) / 2, max(values) * 2


def _roof_words(roof: Roof) -> str:
    return f"{_UNITS.get(roof.name, roof.name)}: {number(roof.flops / 1e12)} TFLOP/s"
