"""Draws line and bar charts as SVG text, by hand: axes with units, logarithmic where wanted, a legend, values at the bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 92, 28, 84, 58
COLOURS = ("#b3541e", "#2b4a6f", "#2b7a5f", "#8a5aa8", "#7d8796", "#c49a2a")
DASHES = ("", "", "", "7 4", "2 4", "9 3 2 3")
"""Lines that lie on each other stay told apart, also in print."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Axis:
    """What is drawn along one side, and from where to where."""

    label: str
    log: bool = False
    ticks: tuple[float, ...] = ()
    """Where it is marked; found out if empty."""


@dataclass(frozen=True, slots=True)
class Scale:
    low: float
    high: float
    log: bool
    begin: float
    """In pixels, as is `end`."""

    end: float

    def at(self, value: float) -> float:
        low, high, here = (self._turned(number) for number in (self.low, self.high, value))
        return self.begin + (here - low) / (high - low) * (self.end - self.begin)

    def _turned(self, number: float) -> float:
        return log10(max(number, self.low)) if self.log else number


def marks(low: float, high: float, log: bool) -> list[float]:
    """Round numbers that span the values: powers of ten, or steps of 1, 2 or 5."""
    if log:
        return [10.0**power for power in range(floor(log10(low)), max(ceil(log10(high)), floor(log10(low)) + 1) + 1)]
    rough = (high - low) / 5 or 1.0
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    return [step * number for number in range(floor(low / step), ceil(high / step) + 1)]


def shown(value: float) -> str:
    """A number as short as it can be read: 0.05, 7.5, 120, 12,000, 3M."""
    size = abs(value)
    if size >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2g}" if size < 10 else f"{value:.3g}"


def line_chart(title: str, across: Axis, up: Axis, series: Mapping[str, Sequence[Point]]) -> str:
    """One line a name. Points whose value is not a number, or nothing on a logarithmic axis, are left out."""
    drawn = {name: [point for point in points if _drawable(point, across, up)] for name, points in series.items()}
    xs, ys = ([point[place] for points in drawn.values() for point in points] for place in (0, 1))
    x, y = _scale(across, xs, LEFT, WIDTH - RIGHT, from_zero=False), _scale(up, ys, HEIGHT - BOTTOM, TOP)
    parts = [*_frame(title, up, y), *_legend(list(drawn))]
    for tick in across.ticks or marks(x.low, x.high, across.log):
        parts.append(f'<path class="grid" d="M{x.at(tick):.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
        parts.append(_text(x.at(tick), HEIGHT - BOTTOM + 20, shown(tick), "middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, across.label, "middle"))
    for number, points in enumerate(drawn.values()):
        pixels = [(x.at(across_value), y.at(value)) for across_value, value in points]
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in pixels)
        parts.append(f'<path d="M{path}" {_stroke(number)}/>' if pixels else "")
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.4" fill="{_colour(number)}"/>' for a, b in pixels]
    return _whole(parts)


def bar_chart(title: str, up: Axis, groups: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    """For each group, whose name may have two lines, one bar a name, with its value above; "none" where there is no number."""
    values = [value for bars in series.values() for value in bars if isfinite(value) and (value > 0 or not up.log)]
    y = _scale(up, values, HEIGHT - BOTTOM, TOP)
    parts = [*_frame(title, up, y), *_legend(list(series))]
    room = (WIDTH - LEFT - RIGHT) / max(len(groups), 1)
    wide = min(room * 0.8 / max(len(series), 1), 90)
    for place, group in enumerate(groups):
        middle = LEFT + room * (place + 0.5)
        parts += [_text(middle, HEIGHT - BOTTOM + 20 + 17 * row, words, "middle") for row, words in enumerate(group.split("\n"))]
        for number, bars in enumerate(series.values()):
            left = middle + (number - len(series) / 2) * wide
            value = bars[place]
            if not isfinite(value) or (up.log and value <= 0):
                parts.append(_text(left + wide / 2, HEIGHT - BOTTOM - 6, "none", "middle"))
                continue
            top, base = y.at(value), HEIGHT - BOTTOM
            parts.append(
                f'<rect x="{left + 2:.1f}" y="{top:.1f}" width="{wide - 4:.1f}" height="{max(base - top, 1):.1f}" '
                f'fill="{_colour(number)}"/>'
            )
            parts.append(_text(left + wide / 2, top - 6, shown(float(f"{value:.3g}")), "middle"))
    return _whole(parts)


def _drawable(point: Point, across: Axis, up: Axis) -> bool:
    return all(isfinite(value) and (value > 0 or not axis.log) for value, axis in zip(point, (across, up), strict=True))


def _scale(axis: Axis, values: Sequence[float], begin: float, end: float, from_zero: bool = True) -> Scale:
    least, most = min(values, default=1.0), max(values, default=1.0)
    if not axis.log and from_zero:
        least = min(least, 0.0)
    ticks = axis.ticks or marks(least, most, axis.log)
    low, high = min(least, *ticks), max(most, *ticks)
    return Scale(low, high if high > low else low + 1, axis.log, begin, end)


def _frame(title: str, up: Axis, y: Scale) -> list[str]:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts = [f'<text x="{LEFT}" y="28" font-size="17" font-weight="bold">{escape(title)}</text>']
    for tick in up.ticks or marks(y.low, y.high, up.log):
        parts.append(f'<path class="grid" d="M{LEFT} {y.at(tick):.1f}H{WIDTH - RIGHT}"/>')
        parts.append(_text(LEFT - 9, y.at(tick) + 5, shown(tick), "end"))
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    parts.append(f'<text x="24" y="{middle}" text-anchor="middle" transform="rotate(-90 24 {middle})">{escape(up.label)}</text>')
    return parts


def _legend(names: Sequence[str]) -> list[str]:
    parts, at = [], float(LEFT)
    for number, name in enumerate(names if len(names) > 1 else ()):  # one alone is what the title says
        parts.append(f'<path d="M{at:.1f} 54h26" {_stroke(number)}/>')
        parts.append(_text(at + 34, 59, name, "start"))
        at += 34 + 7.6 * len(name) + 22
    return parts


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _stroke(number: int) -> str:
    dash = DASHES[number % len(DASHES)]
    return f'stroke="{_colour(number)}" stroke-width="2.4" fill="none"' + (f' stroke-dasharray="{dash}"' if dash else "")


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _whole(parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="Helvetica, Arial, sans-serif" '
        'font-size="14">',
        "<style>.axis { stroke: #5a6b80; fill: none } .grid { stroke: #e3e9f0; fill: none } text { fill: #1b2b3f }</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    )
    return "\n".join((*head, *filter(None, parts), "</svg>")) + "\n"
