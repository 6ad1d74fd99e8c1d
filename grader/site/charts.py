"""Charts as inline SVG.

They are drawn here and not by a plotting library because they are part of the page: their colours are the page's own
(CSS classes, so they follow light and dark and print), each mark has a title that a pointer or a screen reader finds,
and two hundred pages of them take a second. Every chart's numbers stand beside it in a table as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

_WIDTH, _HEIGHT = 640, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 14, 42
_BAR = Markup('<rect class="bar {}" x="{:.1f}" y="{}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>')
_GRID = Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>')


@dataclass(frozen=True)
class Bar:
    """One bar: what it is of, how high, and the words of its title."""

    label: str
    value: float
    title: str
    kind: str = ""


@dataclass(frozen=True)
class Point:
    """One mark of a scatter."""

    x: float
    y: float
    title: str
    kind: str = ""


@dataclass(frozen=True)
class _Axis:
    """Maps values to pixels from `start` to `stop`."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def at(self, value: float) -> float:
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.stop - self.start), 1)

    def ticks(self) -> list[float]:
        if self.log:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            return [10.0**power for power in powers]
        step = _step((self.high - self.low) / 5)
        first = math.ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


def bars(items: Sequence[Bar], *, label: str, x_label: str, y_label: str, most: float | None = None) -> Markup:
    """Upright bars from zero."""
    if not items:
        return Markup("")
    y = _Axis(0, most or max((bar.value for bar in items), default=1) or 1, _HEIGHT - _BOTTOM, _TOP)
    each = (_WIDTH - _LEFT - _RIGHT) / len(items)
    parts = [*_frame(y, x_label, y_label)]
    every = max(1, math.ceil(len(items) * max(len(bar.label) for bar in items) * 7.5 / (_WIDTH - _LEFT)))
    for place, bar in enumerate(items):
        left, top = _LEFT + place * each + each * 0.1, y.at(bar.value)
        parts.append(_BAR.format(bar.kind, left, top, each * 0.8, max(0.0, _HEIGHT - _BOTTOM - top), bar.title))
        if place % every == 0:
            parts.append(_text(_LEFT + (place + 0.5) * each, _HEIGHT - _BOTTOM + 16, bar.label, "middle"))
    return _svg(label, parts)


def scatter(
    points: Sequence[Point],
    *,
    label: str,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    lines: Sequence[tuple[Sequence[tuple[float, float]], str]] = (),
) -> Markup:
    """Marks, and `lines` through given points with a title each. Logarithmic axes take positive values only."""
    usable = [point for point in points if (point.x > 0 or not log_x) and (point.y > 0 or not log_y)]
    if not usable:
        return Markup("")
    xs = [point.x for point in usable] + [x for line, _ in lines for x, _ in line]
    ys = [point.y for point in usable] + [y for line, _ in lines for _, y in line]
    x = _Axis(*_range(xs, log_x), _LEFT, _WIDTH - _RIGHT, log_x)
    y = _Axis(*_range(ys, log_y), _HEIGHT - _BOTTOM, _TOP, log_y)
    parts = [*_frame(y, x_label, y_label)]
    for tick in x.ticks():
        parts.append(_text(x.at(tick), _HEIGHT - _BOTTOM + 16, _number(tick), "middle"))
    for line, title in lines:
        path = " ".join(f"{x.at(a)},{y.at(b)}" for a, b in line)
        parts.append(Markup('<polyline class="line" points="{}"><title>{}</title></polyline>').format(path, title))
    for point in usable:
        parts.append(
            Markup('<circle class="mark {}" cx="{}" cy="{}" r="4"><title>{}</title></circle>').format(
                point.kind, x.at(point.x), y.at(point.y), point.title
            )
        )
    return _svg(label, parts)


def _frame(y: _Axis, x_label: str, y_label: str) -> list[Markup]:
    parts = []
    for tick in y.ticks():
        at = y.at(tick)
        parts.append(_GRID.format(_LEFT, _WIDTH - _RIGHT, at, at))
        parts.append(_text(_LEFT - 6, at + 4, _number(tick), "end"))
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, x_label, "middle"))
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    parts.append(
        Markup('<text transform="translate(12 {}) rotate(-90)" text-anchor="middle">{}</text>').format(middle, y_label)
    )
    return parts


def _svg(label: str, parts: Sequence[Markup]) -> Markup:
    body = Markup("").join(parts)
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, _HEIGHT, label, body
    )


def _text(x: float, y: float, words: str, anchor: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(x, y, anchor, escape(words))


def _range(values: Sequence[float], log: bool) -> tuple[float, float]:
    low, high = min(values), max(values)
    if log:
        first = math.floor(math.log10(low))
        return 10.0**first, 10.0 ** max(math.ceil(math.log10(high)), first + 1)
    return min(0.0, low), high * 1.05 if high > 0 else 1.0


def _step(rough: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.3g}"
