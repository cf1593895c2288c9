"""Draws line and bar charts as SVG text with Matplotlib: axes with units, a legend, values at the bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from math import isfinite
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

COLOURS = ("#b3541e", "#2b4a6f", "#2b7a5f", "#8a5aa8", "#7d8796", "#c49a2a")
DASHES = ("-", "-", "-", "--", ":", "-.")
"""Styles by which lines that lie on each other can be told apart, also in print."""

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "headgate",
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e9f0",
}

CROWDED = 18
"""More bars than this leave little room for the values above them."""

LEGEND_CHARACTERS = 78
"""What fits beside each other below a chart."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a chart: its label, its scale and its ticks."""

    label: str
    log: bool = False
    ticks: tuple[float, ...] = ()
    """The positions of the ticks; chosen automatically if empty."""


def short_number(value: float) -> str:
    """A number in as few characters as it can be read: 0.05, 7.5, 120, 12,000, 3M."""
    size = abs(value)
    if size >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2g}" if size < 10 else f"{value:.3g}"


def line_chart(title: str, across: Axis, up: Axis, series: Mapping[str, Sequence[Point]]) -> str:
    """A chart with a line for each name; NaN, and zero on a logarithmic axis, are left out."""
    with matplotlib.rc_context(STYLE):
        figure, axes = _new_figure(title, up)
        for number, (name, points) in enumerate(series.items()):
            drawn = [point for point in points if _drawable(point[0], across) and _drawable(point[1], up)]
            xs, ys = [x for x, _ in drawn], [y for _, y in drawn]
            axes.plot(
                xs, ys, DASHES[number % len(DASHES)], color=_colour(number), marker="o", markersize=4.5, label=name
            )
        axes.set_xlabel(across.label)
        _set_up_axis(axes, "x", across)
        if up.ticks:
            bottom, top = axes.get_ylim()
            axes.set_ylim(min(bottom, up.ticks[0]), max(top, up.ticks[-1]))
        return _whole(figure, axes, list(series))


def bar_chart(title: str, up: Axis, groups: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    """A chart with a bar for each name in each group, with its value above, or "none".

    The name of a group may have two lines.
    """
    with matplotlib.rc_context(STYLE):
        figure, axes = _new_figure(title, up)
        wide = 0.8 / max(len(series), 1)
        for number, (name, values) in enumerate(series.items()):
            places = [place + (number - (len(series) - 1) / 2) * wide for place in range(len(groups))]
            heights = [value if _drawable(value, up) else 0.0 for value in values]
            bars = axes.bar(places, heights, wide * 0.92, color=_colour(number), label=name)
            above = [short_number(float(f"{value:.3g}")) if _drawable(value, up) else "none" for value in values]
            axes.bar_label(bars, above, padding=2, fontsize=7 if len(series) * len(groups) > CROWDED else None)
        axes.set_xticks(range(len(groups)), groups)
        axes.grid(axis="x", visible=False)
        return _whole(figure, axes, list(series))


def _new_figure(title: str, up: Axis) -> tuple[Figure, Any]:
    figure = Figure(figsize=(7.9, 4.4), layout="constrained")
    axes: Any = figure.add_subplot()
    axes.set_title(title, loc="left", fontweight="bold", pad=12)
    axes.set_ylabel(up.label)
    _set_up_axis(axes, "y", up)
    return figure, axes


def _set_up_axis(axes: Any, which: str, axis: Axis) -> None:
    """Sets the scale, the ticks and the label of one axis."""
    axes.set(**{f"{which}scale": "log" if axis.log else "linear"})
    side = getattr(axes, f"{which}axis")
    if axis.ticks:
        side.set_major_locator(FixedLocator(axis.ticks))
        side.set_minor_locator(NullLocator())
    side.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))


def _whole(figure: Figure, axes: Any, names: list[str]) -> str:
    if axes.get_yscale() == "linear":
        axes.set_ylim(bottom=min(0.0, axes.dataLim.y0))
    if len(names) > 1:  # one alone is what the title says
        columns = LEGEND_CHARACTERS // (max(map(len, names)) + 4)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=max(1, min(3, columns)), frameon=False)
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def _drawable(value: float, axis: Axis) -> bool:
    return isfinite(value) and (value > 0 or not axis.log)


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]
