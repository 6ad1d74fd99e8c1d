"""Charts as inline SVG.

They are drawn without a plotting library, so that they are part of the page: their colours are CSS classes of the page
and follow light mode, dark mode and print. Every mark has a title for pointers and screen readers, and a table next to
every chart shows the same numbers. Drawing the charts of two hundred pages takes a second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

WIDTH, HEIGHT = 440, 270
"""The size of a chart. A phone shows it at four fifths of this size, at which letters of 13 px are still readable."""
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 14, 46
_BAR = Markup('<rect class="bar" x="{:.1f}" y="{}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>')
_MARK = Markup('<circle class="mark" cx="{}" cy="{}" r="4"><title>{}</title></circle>')
_GRID = Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>')


@dataclass(frozen=True)
class Bar:
    """One bar: its label, its height, and its title for pointers and screen readers."""

    label: str
    value: float
    title: str


@dataclass(frozen=True)
class Point:
    """One mark of a scatter plot."""

    x: float
    y: float
    title: str


@dataclass(frozen=True)
class Axis:
    """Maps the values `low` to `high` to the pixels `start` to `stop`. On a y axis, `start` is at the bottom."""

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
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            between = (1, 2, 5) if self.high / self.low <= 100 else (1,)
            ticks = [factor * 10.0**power for power in powers for factor in between]
            return [tick for tick in ticks if self.low * (1 - 1e-9) <= tick <= self.high * (1 + 1e-9)]
        step = _step((self.high - self.low) / 5)
        first = math.ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


def bars(items: Sequence[Bar], *, label: str, x_label: str, y_label: str, most: float | None = None) -> Markup:
    """Vertical bars from zero."""
    if not items:
        return Markup("")
    y = Axis(0, most or max(bar.value for bar in items) or 1, HEIGHT - BOTTOM, TOP)
    each = (WIDTH - LEFT - RIGHT) / len(items)
    parts = [*frame(y, x_label, y_label)]
    every = max(1, math.ceil(len(items) * max(len(bar.label) for bar in items) * 9 / (WIDTH - LEFT)))
    for place, bar in enumerate(items):
        left, top = LEFT + place * each + each * 0.1, y.at(bar.value)
        parts.append(_BAR.format(left, top, each * 0.8, max(0.0, HEIGHT - BOTTOM - top), bar.title))
        if place % every == 0:
            parts.append(text(LEFT + (place + 0.5) * each, HEIGHT - BOTTOM + 16, bar.label, "middle"))
    return svg(label, parts)


def scatter(points: Sequence[Point], *, label: str, x_label: str, y_label: str) -> Markup:
    """Marks over a logarithmic y axis. Points whose y is not positive are left out."""
    usable = [point for point in points if point.y > 0]
    if not usable:
        return Markup("")
    x = Axis(*span([point.x for point in usable], log=False), LEFT, WIDTH - RIGHT)
    y = Axis(*span([point.y for point in usable], log=True), HEIGHT - BOTTOM, TOP, log=True)
    parts = [*frame(y, x_label, y_label)]
    parts += [text(x.at(tick), HEIGHT - BOTTOM + 16, number(tick), "middle") for tick in x.ticks()]
    parts += [_MARK.format(x.at(point.x), y.at(point.y), point.title) for point in usable]
    return svg(label, parts)


def frame(y: Axis, x_label: str, y_label: str) -> list[Markup]:
    """Grid lines, the numbers of the y axis, and the labels of both axes."""
    parts = []
    for tick in y.ticks():
        at = y.at(tick)
        parts.append(_GRID.format(LEFT, WIDTH - RIGHT, at, at))
        parts.append(text(LEFT - 6, at + 4, number(tick), "end"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, y.start + 39, x_label, "middle"))
    parts.append(
        Markup('<text transform="translate(14 {}) rotate(-90)" text-anchor="middle">{}</text>').format(
            (y.start + y.stop) / 2, y_label
        )
    )
    return parts


def svg(label: str, parts: Sequence[Markup], *, description: str = "", height: int = HEIGHT) -> Markup:
    """A picture with the accessible name `label`; `description` says in words what it shows."""
    body = Markup("").join(parts)
    described = Markup("<desc>{}</desc>").format(description) if description else Markup("")
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}</svg>').format(
        WIDTH, height, label, described, body
    )


def text(x: float, y: float, words: str, anchor: str) -> Markup:
    """A label; `anchor` says whether `x` is its start, middle or end."""
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(x, y, anchor, words)


def span(values: Sequence[float], log: bool) -> tuple[float, float]:
    """The ends of an axis for `values`: powers of ten if it is logarithmic, else from zero."""
    low, high = min(values), max(values)
    if log:
        first = math.floor(math.log10(low))
        return 10.0**first, 10.0 ** max(math.ceil(math.log10(high)), first + 1)
    return min(0.0, low), high * 1.05 if high > 0 else 1.0


def _step(rough: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)


def number(value: float) -> str:
    """Format a value for an axis."""
    if abs(value) >= 10_000:
        return f"{value / 1000:,.4g}k"
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.3g}"
