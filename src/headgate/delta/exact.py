"""Doubles as whole numbers, so that what was added can be taken away again and leaves nothing behind.

A double *fits* if it is smaller than 2^52 and a multiple of 2^-84, as all from 2^-32 up are. A double that fits is cut
into four whole numbers of 34 bits each; what is left behind each of them is exact. The square or product of two
doubles, 106 bits long, is written as the sum of two doubles (Dekker) and cut into ten of 28 bits. Sums of these are
whole numbers: exact, whatever comes and goes, and the same in whatever order. Some 2^29 rows have room, and Spark
raises an error when there are more.

    n Σxy - Σx Σy        computed in whole numbers too, digit by digit, so that a large mean takes nothing from a small
                         spread

All other doubles do not fit: they are huge, tiny, infinite, or not a number. Such a double belongs to a *band* of 34
powers of two; divided by the band's power it fits. What is not finite has bands of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.sql import Sql, double

DOES_NOT_FIT = "headgate: beyond the doubles that are summed in one piece"
"""The error of a program that meets a double that it cannot sum."""

WIDTH = 34
UNITS = (18, -16, -50, -84)
"""The four parts of a double, as powers of two."""

LEAST, MOST = -32, 52
"""A double of a size from 2^-32 to 2^52 fits, whatever its bits are."""

WIDE = 28
WIDE_UNITS = tuple(range(84, -169, -WIDE))
"""The ten parts of a product."""

DIGIT = 56
"""Bits of a digit where sums are multiplied: two products of digits fit into 38 decimals."""

INFINITE, MINUS_INFINITE, NOT_A_NUMBER = 100, 101, 102
"""The bands of what is not finite."""


def power(exponent: int) -> Sql:
    """A power of two as a double."""
    return double(float.fromhex(f"0x1p{exponent}"))


def fits(value: Sql) -> Sql:
    """The condition that a double fits."""
    units = f"{value} * {power(-UNITS[-1])}"
    return f"ABS({value}) < {power(MOST)} AND RINT({units}) = {units}"


def remainders(column: Sql, small: bool = False) -> list[list[Sql]]:
    """Columns, step by step: what is left of a double that fits behind its first part, its second and its third.

    A part is cut off towards zero, so what is left has some of the bits of the double: the difference is exact. A
    double that is `small` has no first part.
    """
    before = _remains(column)
    cut = [
        [f"{rest} - CAST({rest} * {power(-unit)} AS BIGINT) * {power(unit)} AS {name}"]
        for rest, name, unit in zip(before, before[1:], UNITS, strict=False)
    ]
    return [[f"{column} AS {before[1]}"], *cut[1:]] if small else cut


def parts(column: Sql) -> list[Sql]:
    """The whole numbers that a double that fits is cut into, the largest first, from its `remainders`."""
    return [f"CAST({rest} * {power(-unit)} AS BIGINT)" for rest, unit in zip(_remains(column), UNITS, strict=True)]


def _remains(column: Sql) -> list[Sql]:
    """The columns that the parts of a double are cut from: the double itself, and its remainders."""
    return [column, *(f"{column}r{number}" for number in range(1, len(UNITS)))]


def product_parts(high: Sql, low: Sql) -> list[Sql]:
    """The whole numbers that a product is cut into, given as the sum of two doubles."""
    return [
        f"{one} + {two}" for one, two in zip(_cut(high, WIDE_UNITS, WIDE), _cut(low, WIDE_UNITS, WIDE), strict=True)
    ]


def _cut(value: Sql, units: Sequence[int], width: int) -> list[Sql]:
    first, *others = units
    rests = [(value, first), *((f"({value} % {power(unit + width)})", unit) for unit in others)]
    return [f"CAST({rest} * {power(-unit)} AS BIGINT)" for rest, unit in rests]


def upper(value: Sql) -> Sql:
    """The upper half of the bits of a double: products of halves are exact."""
    return f"{value} * 134217729D - ({value} * 134217729D - {value})"


def product(one: Sql, two: Sql, upper_one: Sql, upper_two: Sql) -> tuple[Sql, Sql]:
    """A product as the sum of two doubles."""
    high = f"{one} * {two}"
    lower_one, lower_two = f"({one} - {upper_one})", f"({two} - {upper_two})"
    rest = f"(({upper_one} * {upper_two} - {high}) + {upper_one} * {lower_two} + {lower_one} * {upper_two})"
    return high, f"{rest} + {lower_one} * {lower_two}"


def total(sums: Sequence[Sql]) -> Sql:
    """The double that the sums of the parts make up."""
    one, two, three, four = (f"{name} * {power(unit)}" for name, unit in zip(sums, UNITS, strict=True))
    return f"(({one} + {two}) + ({three} + {four}))"


# sums multiplied


def _whole(value: Sql | int) -> Sql:
    return f"CAST({value} AS DECIMAL(38, 0))"


BASE = 1 << DIGIT


def digits(name: Sql, sums: Sequence[Sql]) -> list[list[Sql]]:
    """Columns, in two steps, from which the digits of a sum follow, in units of 2^-84."""
    one, two, three, four = map(_whole, sums)
    shift = _whole(1 << WIDTH)
    lower = f"({three} * {shift} + {four})"
    middle = f"({name}u * {_whole(1 << 2 * WIDTH - DIGIT)} + {_carry(f'{name}l', f'{name}0')})"
    return [
        [f"{one} * {shift} + {two} AS {name}u", f"{lower} AS {name}l", f"PMOD({lower}, {_whole(BASE)}) AS {name}0"],
        [f"{middle} AS {name}m", f"PMOD({middle}, {_whole(BASE)}) AS {name}1"],
    ]


def _carry(value: Sql, digit: Sql) -> Sql:
    """The digits of a number above its last one."""
    return _whole(f"({value} - {digit}) DIV {_whole(BASE)}")


def moment(name: Sql, one: Sql, two: Sql, sums: Sequence[Sql], count: Sql) -> list[list[Sql]]:
    """Columns, step by step, that end with `name`: n Σxy - Σx Σy, from the digits of Σx and Σy and the sums of parts of
    xy.
    """
    ours, theirs = ([f"{side}0", f"{side}1", _carry(f"{side}m", f"{side}1")] for side in (one, two))
    rising, half = list(reversed(sums)), _whole(BASE // 2)
    places = []
    for place in range(5):
        taken = " - ".join(f"{ours[i]} * {theirs[place - i]}" for i in range(3) if 0 <= place - i < 3)
        given = f"({_whole(rising[2 * place])} + {_whole(rising[2 * place + 1])} * {_whole(1 << WIDE)})"
        places.append(f"({given} * {_whole(count)} - {taken})")
    steps = [[f"{value} AS {name}_{place}" for place, value in enumerate(places[1:], 1)]]
    for place in range(5):  # digits from -2^55 up to 2^55: the first that is not 0 decides the sign
        value = f"({name}_{place} + {_carry(f'{name}e{place - 1}', f'{name}r{place - 1}')})" if place else places[0]
        columns = [f"{value} AS {name}e{place}", f"PMOD({value} + {half}, {_whole(BASE)}) - {half} AS {name}r{place}"]
        steps = [[*steps[0], *columns]] if not place else [*steps, columns]
    shown = [_carry(f"{name}e4", f"{name}r4"), *(f"{name}r{place}" for place in reversed(range(5)))]
    terms = [
        f"CAST({value} AS DOUBLE) * {power(2 * UNITS[-1] + DIGIT * place)}"
        for value, place in zip(shown, range(5, -1, -1), strict=True)
    ]
    return [*steps, [f"{' + '.join(terms)} AS {name}"]]


# doubles that do not fit


def band(value: Sql) -> Sql:
    """The band of a double, 0 for all that fit."""
    infinite = Sql("CAST('Infinity' AS DOUBLE)")
    return (
        f"CASE WHEN {fits(value)} THEN 0 WHEN ISNAN({value}) THEN {NOT_A_NUMBER} WHEN {value} = {infinite} THEN "
        f"{INFINITE} "
        f"WHEN {value} = -{infinite} THEN {MINUS_INFINITE} ELSE CAST(FLOOR(LOG2(ABS({value})) / {WIDTH}) AS INT) END"
    )


def scaled(value: Sql, band: Sql) -> Sql:
    """A double divided by its band's power of two; 0 for what is not finite.

    It is divided twice by the root of that power, because the power itself may be infinite.
    """
    step = f"POWER(2D, {-WIDTH // 2} * {band})"
    return f"CASE WHEN {band} >= {INFINITE} THEN 0D ELSE {value} * {step} * {step} END"


def restored(value: Sql, *bands: Sql) -> Sql:
    """A sum of scaled doubles, or of products of two bands, multiplied by the powers of the bands again."""
    steps = [f"POWER(2D, {WIDTH // 2} * {band})" for band in bands] * 2
    return f"{value} * {' * '.join(steps)}"
