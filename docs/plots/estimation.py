"""Draws docs/images/estimation.svg: adaptive estimation of a skew bound after a spike, from simulated arrivals (Figure
3).

Run with the sources and the tests' simulation on the path: PYTHONPATH=src:tests python docs/plots/estimation.py
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from simulation import SECOND, START_US, Sensor, Spike, sensed

from headgate.catalog.declarations import Estimation
from headgate.heartbeat.arrivals import NEVER, of_one
from headgate.heartbeat.estimate import Estimator
from headgate.heartbeat.generator import Generator

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 380, 70, 20, 70, 50
MIDDLE = (TOP + HEIGHT - BOTTOM) // 2
LENGTH_S, HIGHEST_MS = 30, 600

SOURCE = Sensor(every_us=8_000, usual_us=30_000, latency_us=SECOND, spikes=(Spike(5 * SECOND, 5_300_000, 420_000),))
HOW = Estimation(window_tuples=120)

Point = tuple[float, float]


def x(seconds: float) -> float:
    return LEFT + seconds / LENGTH_S * (WIDTH - LEFT - RIGHT)


def y(ms: float) -> float:
    return HEIGHT - BOTTOM - ms / HIGHEST_MS * (HEIGHT - TOP - BOTTOM)


def watched() -> tuple[list[Point], list[Point], list[Point], list[Point]]:
    """The skew of each tuple that was behind, the estimate, the largest skew of the window, and the largest ever; over
    time.
    """
    generator, estimator = Generator(), Estimator(HOW)
    number, members = generator.add(), np.zeros(1, np.intp)
    generator.cohorts[number].resize(1)
    skews, estimates, in_window, largest = [], [], [], []
    for arrived in sensed([SOURCE], LENGTH_S * SECOND - SOURCE.latency_us, seed=11):
        seconds = (arrived.at_us - START_US) / SECOND
        before = int(generator.cohorts[number].largest[0])
        if before > NEVER and before >= arrived.stamp:
            skews.append((seconds, (before - arrived.stamp + 1) / 1_000))
        arrivals = of_one(np.array([arrived.stamp]))
        estimator.see(generator, number, members, arrivals, [], arrived.at_us)
        generator.arrived(number, members, arrivals, arrived.at_us)
        estimates.append((seconds, estimator.estimate[0, 0] / 1_000))
        in_window.append((seconds, estimator.in_window[0, 0] / 1_000))
        largest.append((seconds, max(ms for _, ms in skews) if skews else 0.0))
    return skews, estimates, in_window, largest


def steps(points: Sequence[Point]) -> str:
    """A line that is level between changes."""
    path, level = [f"M{x(points[0][0]):.1f} {y(points[0][1]):.1f}"], points[0][1]
    for seconds, ms in points:
        if ms != level:
            path.append(f"H{x(seconds):.1f}V{y(ms):.1f}")
            level = ms
    return "".join((*path, f"H{x(points[-1][0]):.1f}"))


def dots(points: Iterable[Point]) -> str:
    return "".join(f"M{x(seconds):.1f} {y(ms):.1f}h0" for seconds, ms in points)


def drawn() -> str:
    skews, estimates, in_window, largest = watched()
    legend = (
        ("dot", "skew of a tuple"),
        ("window", "largest in the window"),
        ("estimate", "estimate in force"),
        ("ever", "largest ever: never falls"),
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="Helvetica, Arial, '
        'sans-serif"',
        ' font-size="12">',
        "<style>path { fill: none } .axis { stroke: #5a6b80 } .grid { stroke: #e3e9f0 } text { fill: #1b2b3f }",
        ".dot { stroke: #2b7a5f; stroke-width: 4; stroke-linecap: round } .window { stroke: #8fa6c0; stroke-width: "
        "1.2 }",
        ".estimate { stroke: #2b4a6f; stroke-width: 2.2 } .ever { stroke: #b3541e; stroke-width: 1.5; "
        "stroke-dasharray: 5 4 }",
        "</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="15">Adaptive estimation after a spike in the latency</text>',
    ]
    for position, (kind, words) in enumerate(legend):
        at = LEFT + 205 * position
        line = f"M{at + 12} 44h0" if kind == "dot" else f"M{at} 44h24"
        parts.append(f'<path class="{kind}" d="{line}"/><text x="{at + 32}" y="48">{words}</text>')
    for ms in range(0, HIGHEST_MS + 1, 100):
        parts.append(f'<path class="grid" d="M{LEFT} {y(ms):.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(ms) + 4:.1f}" text-anchor="end">{ms}</text>')
    for seconds in range(0, LENGTH_S + 1, 5):
        parts.append(f'<text x="{x(seconds):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{seconds}</text>')
    parts += [
        f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>',
        f'<text x="{(LEFT + WIDTH - RIGHT) // 2}" y="{HEIGHT - 12}" text-anchor="middle">seconds on the engine\'s '
        "clock</text>",
        f'<text x="20" y="{MIDDLE}" text-anchor="middle" transform="rotate(-90 20 {MIDDLE})">'
        "behind the largest timestamp, ms</text>",
        f'<path class="dot" d="{dots(skews)}"/>',
        f'<path class="window" d="{steps(in_window)}"/>',
        f'<path class="ever" d="{steps(largest)}"/>',
        f'<path class="estimate" d="{steps(estimates)}"/>',
        "</svg>\n",
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    Path(__file__).parents[1].joinpath("images", "estimation.svg").write_text(drawn(), encoding="utf-8")
