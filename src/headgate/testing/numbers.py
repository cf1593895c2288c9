"""Exact aggregates of doubles: computed with fractions from all values, and rounded once.

Infinities and NaN are added as IEEE 754 says; a variance over any of them is NaN. A sum of finite doubles that is too
large for a double gives an infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

Values = list[float | None] | None


def total(values: Values) -> float | None:
    """The sum; None without values."""
    given = _non_null(values)
    if not given:
        return None
    strange = [value for value in given if not math.isfinite(value)]
    return sum(strange) if strange else rounded(sum(map(Fraction, given), Fraction(0)))


def mean(values: Values) -> float | None:
    """The average; None without values."""
    found = total(values)
    return None if found is None else found / len(_non_null(values))


def covariance(ones: Values, twos: Values, less: int) -> float | None:
    """The covariance; `less` is 1 for a sample and 0 for a population."""
    pairs = _pairs(ones, twos)
    if len(pairs) <= less:
        return None
    found = _about_means(pairs)
    return math.nan if found is None else rounded(found[0] / (len(pairs) - less))


def variance(values: Values, less: int) -> float | None:
    """The variance; `less` is 1 for a sample and 0 for a population."""
    return covariance(values, values, less)


def deviation(values: Values, less: int) -> float | None:
    """The standard deviation; `less` is 1 for a sample and 0 for a population."""
    found = variance(values, less)
    return None if found is None else math.sqrt(found)


def correlation(ones: Values, twos: Values) -> float | None:
    """Pearson's correlation; None for fewer than two pairs or when a side does not vary."""
    pairs = _pairs(ones, twos)
    if len(pairs) < 2:
        return None
    found = _about_means(pairs)
    if found is None:
        return math.nan
    shared, *squares = map(rounded, found)
    scale = math.prod(map(math.sqrt, squares))
    if not scale:
        return None
    return math.nan if math.isinf(shared) and math.isinf(scale) else shared / scale


def text(value: float | None) -> str | None:
    """The number as text for DuckDB, which would turn a NaN returned by a function into null."""
    return None if value is None else repr(value)


def rounded(value: Fraction) -> float:
    """The nearest double; an infinity for a fraction beyond all doubles."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _non_null(values: Values) -> list[float]:
    return [value for value in values or () if value is not None]


def _pairs(ones: Values, twos: Values) -> list[tuple[float, float]]:
    both = zip(ones or (), twos or (), strict=True)
    return [(one, two) for one, two in both if one is not None and two is not None]


def _about_means(pairs: list[tuple[float, float]]) -> tuple[Fraction, Fraction, Fraction] | None:
    """The sums of products and of squares about the means; None if not all values are finite."""
    if not all(math.isfinite(value) for pair in pairs for value in pair):
        return None
    sides = [[Fraction(pair[side]) for pair in pairs] for side in (0, 1)]
    ones, twos = ([value - sum(side, Fraction(0)) / len(side) for value in side] for side in sides)
    products = [(a * b, a * a, b * b) for a, b in zip(ones, twos, strict=True)]
    shared, one, two = (sum((each[i] for each in products), Fraction(0)) for i in range(3))
    return shared, one, two


AGGREGATES: dict[str, Callable[..., str | None]] = {
    "sum": lambda values: text(total(values)),
    "avg": lambda values: text(mean(values)),
    "var_samp": lambda values: text(variance(values, 1)),
    "var_pop": lambda values: text(variance(values, 0)),
    "stddev_samp": lambda values: text(deviation(values, 1)),
    "stddev_pop": lambda values: text(deviation(values, 0)),
    "covar_samp": lambda ones, twos: text(covariance(ones, twos, 1)),
    "covar_pop": lambda ones, twos: text(covariance(ones, twos, 0)),
    "corr": lambda ones, twos: text(correlation(ones, twos)),
}
OF_PAIRS = frozenset({"covar_samp", "covar_pop", "corr"})
NAMES: dict[type[exp.Expression], str] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.CovarSamp: "covar_samp",
    exp.CovarPop: "covar_pop",
    exp.Corr: "corr",
}
