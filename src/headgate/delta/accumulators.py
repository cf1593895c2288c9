"""Accumulators: the columns from which the values of aggregate calls follow, and which can be added up.

    count, sum, avg      integers and decimals as they are, doubles as whole numbers (`exact`)
    variance and kin     from the sums of the values and of their products, in whole numbers as well
    min, max and kin     the largest so far instead of a sum

What is known of the columns (`assumptions`) leaves out accumulators that say nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from headgate.delta import bands, exact
from headgate.delta.assumptions import Kind
from headgate.delta.query import Select, Source, Table, select
from headgate.plan.expressions import INTEGRAL, Call, Expression
from headgate.plan.sums import EXTREMES, SPREADS
from headgate.sql import EMPTY, Sql, bracketed, literal, part

FITTING = frozenset({"TINYINT", "SMALLINT", "INT", bands.FITTING})
"""Types whose values fit as doubles."""

SIDES = (Sql("x"), Sql("y"))
"""The letters of the doubles of a row, of which two may belong together."""

WHOLE_DIGITS = 27
"""A decimal of so many digits can be multiplied by a count without losing any."""


def ranked(call: Call) -> Sql:
    """The expression that the extreme is taken of: the value, or for MAX_BY and MIN_BY a struct of key and value."""
    value = call.arguments[0].sql
    given = [f"({call.condition})"] if call.condition else []
    if len(call.arguments) > 1:
        value = f"STRUCT({call.arguments[1].sql} AS k, {value} AS v)"
        given.append(f"{bracketed(call.arguments[1].sql)} IS NOT NULL")
    return f"CASE WHEN {' AND '.join(given)} THEN {value} END" if given else value


def field(call: Call) -> Sql:
    """The field of `ranked` that holds the value; empty if it is the value itself."""
    return Sql(".v") if len(call.arguments) > 1 else EMPTY


Holds: TypeAlias = Callable[[Expression, Kind], bool]
"""Says whether something is taken for granted of an argument."""


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A column that holds a sum, or another combination, over the rows of a group."""

    name: Sql
    combine: Sql
    """The aggregate that combines two of its values."""

    nothing: Sql = Sql("0")
    """Its value over no rows. A 0 beside decimals could cost them digits."""

    unless_kept: Sql = EMPTY
    """Its value in a synopsis that does not have it, because it was left out so far; empty if it is always there."""

    @property
    def kept(self) -> Sql:
        """Its value in a synopsis."""
        return f"COALESCE({self.name}, {self.unless_kept}) AS {self.name}" if self.unless_kept else self.name


@dataclass(frozen=True, slots=True)
class Doubles:
    """One double of a row, or two that belong together, taken where a condition holds."""

    values: tuple[Sql, ...]
    given: Sql
    """The condition."""

    fitting: bool
    """True if it is known that they fit."""

    columns: bool
    """True if the values are columns, which cost nothing to write more than once."""

    small: bool = False
    """True if it is known that they are smaller than the unit of the first part."""

    complete: bool = False
    """True if it is known that none is null."""


class Accumulators:
    """The accumulators that a set of calls needs, each once, and the calls' values in terms of them."""

    def __init__(
        self, all_doubles: bool = False, once: bool = False, holds: Holds = lambda argument, kind: False
    ) -> None:
        self.holds = holds
        self.all_doubles = all_doubles
        """True if the doubles that do not fit are summed beside these: their bands lie in `_w0`, `_w1`, ..."""
        self.once = once
        """True if every row counts once, whatever `_n` says."""
        self.terms: dict[tuple[Sql, Sql], Accumulator] = {
            (Sql("SUM"), self.weight): Accumulator(Sql("_rows"), Sql("SUM"))
        }
        """The accumulators by how they are combined and by their SQL over the input row."""
        self.left_out: dict[tuple[Sql, Sql], Sql] = {}
        """The values of those that are left out. They have numbers, so that the others keep their names."""
        self.doubles: dict[Doubles, int] = {}
        """The doubles that are summed, and their numbers."""
        self.products: dict[tuple[Sql, Sql], int] = {}
        """The columns of doubles whose products are summed."""
        self.steps: list[list[Sql]] = []
        """Columns to be computed from the accumulators, step by step, before the values."""

    @property
    def weight(self) -> Sql:
        """How often a row counts."""
        return Sql("1") if self.once else Sql("_n")

    def often(self, sql: Sql) -> Sql:
        """A number as often as its row counts."""
        return sql if self.once else f"{sql} * _n"

    def term(self, sql: Sql, combine: Sql = Sql("SUM"), nothing: Sql = Sql("0"), unless_kept: Sql = EMPTY) -> Sql:
        """The name of the accumulator of an expression; it is added if it is missing."""
        number = len(self.terms) + len(self.left_out)
        made = Accumulator(Sql(f"_a{number}"), combine, nothing, unless_kept)
        return self.terms.setdefault((combine, sql), made).name

    def without(self, sql: Sql, value: Sql) -> Sql:
        """The value of a sum that is known without an accumulator."""
        return self.left_out.setdefault((Sql("SUM"), sql), value)

    def complete(self, call: Call) -> bool:
        """True if it is known that the call counts every row."""
        return not call.condition and all(self.holds(argument, "complete") for argument in call.arguments)

    def names(self) -> list[Sql]:
        """The columns that hold the accumulators."""
        return [accumulator.name for accumulator in self.terms.values()]

    def terms_sql(self) -> Sql:
        """The accumulators of a single row."""
        return ", ".join(f"{sql} AS {accumulator.name}" for (_, sql), accumulator in self.terms.items())

    def value(self, call: Call) -> Sql:
        """The call's value from the accumulators; those that are missing are added."""
        if call.function in EXTREMES:
            return self.extreme(call)
        given = condition_of(call)
        if not given:
            return Sql("_rows")
        counted = f"CASE WHEN {given} THEN {self.weight} ELSE 0 END"
        complete = self.complete(call)
        count = (
            self.without(counted, Sql("_rows")) if complete else self.term(counted, unless_kept=self.rows_unless(call))
        )
        if call.function == "count":
            return count
        if call.function in SPREADS:
            return self.spread(call, count)
        (argument,) = call.arguments
        total = self.total(call, argument.sql, argument.type, given)
        quotient = total if call.function == "sum" else f"({total}) / {count}"
        return f"CASE WHEN {count} > 0 THEN {quotient} END"

    @staticmethod
    def rows_unless(call: Call) -> Sql:
        """The count of a call in a synopsis that does not have it: so far it was that of the rows."""
        return EMPTY if call.condition else Sql("_rows")

    def extreme(self, call: Call) -> Sql:
        """The value of a call that takes the largest or smallest."""
        return f"{self.term(ranked(call), EXTREMES[call.function], Sql('NULL'))}{field(call)}"

    def total(self, call: Call, argument: Sql, kind: Sql, given: Sql) -> Sql:
        """The sum of an argument over the rows where it is given, by its type."""
        if kind in INTEGRAL:
            number = self.often(bracketed(argument))
            return self.term(number if self.complete(call) else f"CASE WHEN {given} THEN {number} ELSE 0 END")
        if kind.startswith("DECIMAL"):
            number = bracketed(argument)
            often = number if self.once else _often(number, kind)
            return self.term(f"CASE WHEN {given} THEN {often} END", nothing=Sql("NULL"))
        own = self.double(self.doubles_of(call))
        fitting = exact.total(self.sums(own, Sql("x")))
        return bands.total(fitting, Sql(f"_w{own}")) if self.has_bands(own) else fitting

    def doubles_of(self, call: Call) -> Doubles:
        """The doubles that a call sums, with what is taken for granted of them."""
        doubles = doubles_of(call)
        if self.all_doubles or not doubles.columns:
            return doubles
        known = {
            kind: all(self.holds(one, kind) for one in call.arguments) for kind in ("fitting", "small", "complete")
        }
        fitting = doubles.fitting or known["fitting"]
        return replace(doubles, fitting=fitting, small=known["small"], complete=known["complete"])

    def double(self, doubles: Doubles) -> int:
        """The number of these doubles: their columns are `_d0x`, `_d0y` and so on."""
        return self.doubles.setdefault(doubles, len(self.doubles))

    def has_bands(self, number: int) -> bool:
        """True if some of these doubles may be summed by band."""
        return self.all_doubles and not list(self.doubles)[number].fitting

    def may_not_fit(self) -> bool:
        """True if `prepared` raises an error at a double that does not fit."""
        return not self.all_doubles and not all(doubles.fitting for doubles in self.doubles)

    def sums(self, number: int, letter: Sql) -> list[Sql]:
        """The sums of the parts of a double."""
        doubles = list(self.doubles)[number]
        parts = [self.often(self.present(part, doubles)) for part in exact.parts(f"_d{number}{letter}")]
        first, *others = parts
        sums = [self.without(first, Sql("0")) if doubles.small else self.term(first, unless_kept=Sql("0"))]
        return sums + [self.term(part) for part in others]

    def present(self, part: Sql, doubles: Doubles) -> Sql:
        """A part of doubles; 0 where they are null."""
        return part if doubles.complete else f"COALESCE({part}, 0)"

    def product(self, number: int, one: Sql, two: Sql) -> list[Sql]:
        """The sums of the parts of a product."""
        product = self.products.setdefault((one, two), len(self.products))
        parts = exact.product_parts(Sql(f"_h{product}"), Sql(f"_l{product}"))
        return [self.term(self.often(self.present(part, list(self.doubles)[number]))) for part in parts]

    def prepared(self, form: Table) -> Source:
        """The rows of a form with the doubles and their products as columns, each computed once."""
        raw, checked, upper, products = list[Sql](), list[Sql](), list[Sql](), list[Sql]()
        left: tuple[list[Sql], ...] = ([], [], [])
        for doubles, number in self.doubles.items():
            letters = SIDES[: len(doubles.values)]
            values = doubles.values
            if not doubles.columns:
                values = tuple(f"_v{number}{letter}" for letter in letters)
                raw += [
                    f"CASE WHEN {doubles.given} THEN {sql} END AS {name}"
                    for sql, name in zip(doubles.values, values, strict=True)
                ]
            pairs = list(zip(values, letters, strict=True))
            if doubles.fitting and doubles.complete:
                checked += [f"{value} AS _d{number}{letter}" for value, letter in pairs]
            else:
                present = " AND ".join(f"{value} IS NOT NULL" for value in values)
                fits = present if doubles.fitting else " AND ".join(map(exact.fits, values))
                known = self.all_doubles or doubles.fitting
                other = EMPTY if known else f" WHEN {present} THEN RAISE_ERROR({literal(exact.DOES_NOT_FIT)})"
                checked += [
                    f"CASE WHEN {fits} THEN {value}{other} END AS _d{number}{letter}" for value, letter in pairs
                ]
            for letter in letters:
                for columns, more in zip(left, exact.remainders(f"_d{number}{letter}", doubles.small), strict=True):
                    columns += more
        for column in dict.fromkeys(column for pair in self.products for column in pair):
            upper.append(f"{exact.upper(column)} AS {_upper(column)}")
        for (one, two), number in self.products.items():
            high, low = exact.product(one, two, _upper(one), _upper(two))
            products += [f"{high} AS _h{number}", f"{low} AS _l{number}"]
        return stepwise(form, [raw, checked, [*left[0], *upper], [*left[1], *products], left[2]])

    def spread(self, call: Call, count: Sql) -> Sql:
        """The value of a variance, a covariance or a correlation."""
        kind, less = SPREADS[call.function]
        number = self.double(self.doubles_of(call))
        letters = SIDES[: len(call.arguments)]
        sides = (letters[0], letters[-1])
        pairs = [sides, *([(side, side) for side in SIDES] if kind == "corr" else [])]
        if self.has_bands(number):
            self.computed(0, [[f"{bands.fitting_count(count, Sql(f'_w{number}'))} AS _n{number}"]])
        for letter in letters:
            self.computed(1, exact.digits(f"_d{number}{letter}s", self.sums(number, letter)))
        squares = [self.squares(number, pair, count, len(letters)) for pair in pairs]
        if kind == "corr":
            shared, *own = squares
            scale = f"(SQRT({own[0]}) * SQRT({own[1]}))"
            return f"CASE WHEN {count} > 1 AND NOT {scale} = 0D THEN {shared} / {scale} END"
        quotient = f"{squares[0]} / {f'({count} - 1)' if less else count}"
        return f"CASE WHEN {count} > {less} THEN {f'SQRT({quotient})' if kind == 'dev' else quotient} END"

    def squares(self, number: int, pair: tuple[Sql, Sql], count: Sql, sides: int) -> Sql:
        """The column with the sum of squares or products about the mean."""
        name = f"_q{number}{''.join(pair)}"
        one, two = (f"_d{number}{letter}" for letter in pair)
        fitting = Sql(f"_n{number}") if self.has_bands(number) else count
        self.computed(3, exact.moment(f"{name}m", f"{one}s", f"{two}s", self.product(number, one, two), fitting))
        within = f"CASE WHEN {fitting} > 0 THEN {name}m / {fitting} ELSE 0D END"
        if not self.has_bands(number):
            self.computed(9, [[f"{within} AS {name}"]])
            return name
        means = []
        for letter in pair:
            mean, side = f"_e{number}{letter}", SIDES.index(letter) + 1
            total = exact.total(self.sums(number, letter))
            about = f"CASE WHEN {fitting} > 0 THEN {total} / {fitting} ELSE 0D END"
            of_all = bands.mean(Sql(f"_w{number}"), count, fitting, mean, side)
            self.computed(1, [[f"{about} AS {mean}"], [f"{of_all} AS {mean}e"]])
            means.append((side, mean, f"{mean}e"))
        field = Sql("q") if sides > 1 and pair[0] != pair[1] else Sql(f"q{means[0][0]}")
        of_all = bands.squares(Sql(f"_w{number}"), fitting, f"{name}t", means, field)
        self.computed(9, [[f"{within} AS {name}t"], [f"{of_all} AS {name}"]])
        return name

    def computed(self, at: int, steps: list[list[Sql]]) -> None:
        """Add columns to the steps from this one on, each once."""
        self.steps += [[] for _ in range(len(self.steps), at + len(steps))]
        for place, columns in enumerate(steps, at):
            self.steps[place] += [column for column in columns if column not in self.steps[place]]

    def finished(self, form: Select) -> Source:
        """The rows of a query that holds the accumulators, with the columns of `steps` beside them."""
        return stepwise(form, self.steps)


def _upper(column: Sql) -> Sql:
    """The column with the upper half of a double `_d0x`: `_u0x`."""
    return f"_u{part(column, len('_d'))}"


def stepwise(source: Source, steps: list[list[Sql]]) -> Source:
    """A source with more columns, computed step by step: those of a step from those of the steps before it."""
    for columns in steps:
        source = select(f"*, {', '.join(columns)}", source) if columns else source
    return source


def condition_of(call: Call) -> Sql:
    """The condition that a row counts: it has all arguments, and the FILTER holds."""
    conditions = [f"{bracketed(argument.sql)} IS NOT NULL" for argument in call.arguments]
    return " AND ".join([*conditions, f"({call.condition})"]) if call.condition else " AND ".join(conditions)


def doubles_of(call: Call) -> Doubles:
    """The doubles that a call sums."""
    values = tuple(f"CAST({argument.sql} AS DOUBLE)" for argument in call.arguments)
    fitting = all(argument.type in FITTING for argument in call.arguments)
    columns = not call.condition and all(argument.column for argument in call.arguments)
    return Doubles(values, condition_of(call), fitting, columns)


def _often(argument: Sql, kind: Sql) -> Sql:
    """A decimal as often as its row counts.

    A product may have more digits than there is room for, and Spark would round it in silence: that is an error here.
    """
    digits = int(kind.split("(")[1].split(",")[0].strip(" )")) if "(" in kind else 10
    if digits <= WHOLE_DIGITS:
        return f"{argument} * CAST(_n AS DECIMAL(10, 0))"
    return (
        f"CASE _n WHEN 1 THEN {argument} WHEN -1 THEN -{argument} "
        f"ELSE RAISE_ERROR('a {kind} in rows that count several times cannot be summed: it has too many digits') END"
    )
