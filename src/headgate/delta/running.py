"""Aggregates that can be added and taken away again: running sums over the events of a group.

    timeline             the sums at `since`, and after each event of the group; between epochs only sums are kept
    count, sum, avg      integers and decimals as they are, doubles as whole numbers (`exact`)
    variance and kin     from the sums of the values and of their products, in whole numbers as well
    min, max and kin     where nothing ever leaves: the largest so far instead of a sum

A program first sums only doubles that fit (`exact`) and raises an error at the first one that does not. The program
that runs from then on has, beside these sums, those of the other doubles by band (`bands`), which rightly begin
empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from headgate.delta import bands, exact, ranges, recomputed, sweep
from headgate.delta.query import LateralView, Select, Source, Table, select, union
from headgate.delta.ranges import Ranges
from headgate.plan.expressions import INTEGRAL, NUMERIC, Call
from headgate.plan.nodes import Aggregate, domain
from headgate.plan.temporal import groups_until
from headgate.sql import bracketed, comma, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

SUMS = frozenset({"count", "sum", "avg"})
SPREADS = {
    "variance": ("var", 1),
    "variance_pop": ("var", 0),
    "stddev": ("dev", 1),
    "stddev_samp": ("dev", 1),
    "stddev_pop": ("dev", 0),
    "covar_samp": ("cov", 1),
    "covar_pop": ("cov", 0),
    "corr": ("corr", 0),
}
"""Name -> what is computed, and whether it divides by one less than the count."""

EXTREMES = {"min": "MIN", "max": "MAX", "arg_min": "MIN", "arg_max": "MAX"}

FITTING = frozenset({"TINYINT", "SMALLINT", "INT", bands.FITTING})
"""Types whose values fit as doubles."""

WHOLE_DIGITS = 27
"""A decimal of so many digits can be multiplied by a count without losing any."""


def additive(call: Call) -> bool:
    """True if a row can be added to the call's value and taken away again."""
    if call.distinct or call.function not in SUMS | SPREADS.keys():
        return False
    return call.function == "count" or all(argument.type.startswith(NUMERIC) for argument in call.arguments)


def growing(call: Call) -> bool:
    """True if the call's value can be kept up to date as long as nothing leaves."""
    return call.function in EXTREMES


def ranked(call: Call) -> str:
    """The expression that the extreme is taken of: the value, or for MAX_BY and MIN_BY a struct of key and value."""
    value = call.arguments[0].sql
    given = [f"({call.condition})"] if call.condition else []
    if len(call.arguments) > 1:
        value = f"STRUCT({call.arguments[1].sql} AS k, {value} AS v)"
        given.append(f"{bracketed(call.arguments[1].sql)} IS NOT NULL")
    return f"CASE WHEN {' AND '.join(given)} THEN {value} END" if given else value


def field(call: Call) -> str:
    """The field of `ranked` that holds the value; empty if it is the value itself."""
    return ".v" if len(call.arguments) > 1 else ""


@dataclass(frozen=True, slots=True)
class _Accumulator:
    """A column that holds a sum, or another combination, over the rows of a group."""

    name: str
    combine: str
    """The aggregate that combines two of its values."""

    nothing: str = "0"
    """Its value over no rows. A 0 beside decimals could cost them digits."""


@dataclass(frozen=True, slots=True)
class Doubles:
    """One double of a row, or two that belong together, taken where a condition holds."""

    values: tuple[str, ...]
    given: str
    """The condition."""

    fitting: bool
    """True if it is known that they fit."""

    columns: bool
    """True if the values are columns, which cost nothing to write more than once."""


class Accumulators:
    """The accumulators that a set of calls needs, each once, and the calls' values in terms of them."""

    def __init__(self, all_doubles: bool = False, once: bool = False) -> None:
        self.all_doubles = all_doubles
        """True if the doubles that do not fit are summed beside these: their bands lie in `_w0`, `_w1`, ..."""
        self.once = once
        """True if every row counts once, whatever `_n` says."""
        self.terms: dict[tuple[str, str], _Accumulator] = {("SUM", self.weight): _Accumulator("_rows", "SUM")}
        """The accumulators by how they are combined and by their SQL over the input row."""
        self.doubles: dict[Doubles, int] = {}
        """The doubles that are summed, and their numbers."""
        self.products: dict[tuple[str, str], int] = {}
        """The columns of doubles whose products are summed."""
        self.steps: list[list[str]] = []
        """Columns to be computed from the accumulators, step by step, before the values."""

    @property
    def weight(self) -> str:
        """How often a row counts."""
        return "1" if self.once else "_n"

    def often(self, sql: str) -> str:
        """A number as often as its row counts."""
        return sql if self.once else f"{sql} * _n"

    def term(self, sql: str, combine: str = "SUM", nothing: str = "0") -> str:
        """The name of the accumulator of an expression; it is added if it is missing."""
        number = len(self.terms)
        return self.terms.setdefault((combine, sql), _Accumulator(f"_a{number}", combine, nothing)).name

    def names(self) -> list[str]:
        """The columns that hold the accumulators."""
        return [accumulator.name for accumulator in self.terms.values()]

    def value(self, call: Call) -> str:
        """The call's value from the accumulators; those that are missing are added."""
        if call.function in EXTREMES:
            return self.extreme(call)
        given = condition_of(call)
        if not given:
            return "_rows"
        count = self.term(f"CASE WHEN {given} THEN {self.weight} ELSE 0 END")
        if call.function == "count":
            return count
        if call.function in SPREADS:
            return self.spread(call, count)
        (argument,) = call.arguments
        total = self.total(call, argument.sql, argument.type, given)
        quotient = total if call.function == "sum" else f"({total}) / {count}"
        return f"CASE WHEN {count} > 0 THEN {quotient} END"

    def extreme(self, call: Call) -> str:
        """The value of a call that takes the largest or smallest."""
        return f"{self.term(ranked(call), EXTREMES[call.function], 'NULL')}{field(call)}"

    def total(self, call: Call, argument: str, kind: str, given: str) -> str:
        """The sum of an argument over the rows where it is given, by its type."""
        if kind in INTEGRAL:
            return self.term(f"CASE WHEN {given} THEN {self.often(bracketed(argument))} ELSE 0 END")
        if kind.startswith("DECIMAL"):
            number = bracketed(argument)
            often = number if self.once else _often(number, kind)
            return self.term(f"CASE WHEN {given} THEN {often} END", nothing="NULL")
        own = self.double(doubles_of(call))
        fitting = exact.total(self.sums(f"_d{own}x"))
        return bands.total(fitting, f"_w{own}") if self.has_bands(own) else fitting

    def double(self, doubles: Doubles) -> int:
        """The number of these doubles: their columns are `_d0x`, `_d0y` and so on."""
        return self.doubles.setdefault(doubles, len(self.doubles))

    def has_bands(self, number: int) -> bool:
        """True if some of these doubles may be summed by band."""
        return self.all_doubles and not list(self.doubles)[number].fitting

    def may_not_fit(self) -> bool:
        """True if `prepared` raises an error at a double that does not fit."""
        return not self.all_doubles and not all(doubles.fitting for doubles in self.doubles)

    def sums(self, column: str) -> list[str]:
        """The sums of the parts of a double."""
        return [self.term(self.often(f"COALESCE({part}, 0)")) for part in exact.parts(column)]

    def product(self, one: str, two: str) -> list[str]:
        """The sums of the parts of a product."""
        number = self.products.setdefault((one, two), len(self.products))
        parts = exact.product_parts(f"_h{number}", f"_l{number}")
        return [self.term(self.often(f"COALESCE({part}, 0)")) for part in parts]

    def prepared(self, form: Table) -> Source:
        """The rows of a form with the doubles and their products as columns, each computed once."""
        raw, checked, upper, products = list[str](), list[str](), list[str](), list[str]()
        left: tuple[list[str], ...] = ([], [], [])
        for doubles, number in self.doubles.items():
            letters = "xy"[: len(doubles.values)]
            values = doubles.values
            if not doubles.columns:
                values = tuple(f"_v{number}{letter}" for letter in letters)
                raw += [
                    f"CASE WHEN {doubles.given} THEN {sql} END AS {name}"
                    for sql, name in zip(doubles.values, values, strict=True)
                ]
            present = " AND ".join(f"{value} IS NOT NULL" for value in values)
            fits = present if doubles.fitting else " AND ".join(map(exact.fits, values))
            known = self.all_doubles or doubles.fitting
            other = "" if known else f" WHEN {present} THEN RAISE_ERROR('{exact.DOES_NOT_FIT}')"
            pairs = zip(values, letters, strict=True)
            checked += [f"CASE WHEN {fits} THEN {value}{other} END AS _d{number}{letter}" for value, letter in pairs]
            for letter in letters:
                for columns, more in zip(left, exact.remainders(f"_d{number}{letter}"), strict=True):
                    columns += more
        for column in dict.fromkeys(column for pair in self.products for column in pair):
            upper.append(f"{exact.upper(column)} AS {_upper(column)}")
        for (one, two), number in self.products.items():
            high, low = exact.product(one, two, _upper(one), _upper(two))
            products += [f"{high} AS _h{number}", f"{low} AS _l{number}"]
        return stepwise(form, [raw, checked, [*left[0], *upper], [*left[1], *products], left[2]])

    def spread(self, call: Call, count: str) -> str:
        """The value of a variance, a covariance or a correlation."""
        kind, less = SPREADS[call.function]
        number = self.double(doubles_of(call))
        letters = "xy"[: len(call.arguments)]
        sides = (letters[0], letters[-1])
        pairs = [sides, *([("x", "x"), ("y", "y")] if kind == "corr" else [])]
        if self.has_bands(number):
            self.computed(0, [[f"{bands.fitting_count(count, f'_w{number}')} AS _n{number}"]])
        for letter in letters:
            self.computed(1, exact.digits(f"_d{number}{letter}s", self.sums(f"_d{number}{letter}")))
        squares = [self.squares(number, pair, count, len(letters)) for pair in pairs]
        if kind == "corr":
            shared, *own = squares
            scale = f"(SQRT({own[0]}) * SQRT({own[1]}))"
            return f"CASE WHEN {count} > 1 AND NOT {scale} = 0D THEN {shared} / {scale} END"
        quotient = f"{squares[0]} / {f'({count} - 1)' if less else count}"
        return f"CASE WHEN {count} > {less} THEN {f'SQRT({quotient})' if kind == 'dev' else quotient} END"

    def squares(self, number: int, pair: tuple[str, str], count: str, sides: int) -> str:
        """The column with the sum of squares or products about the mean."""
        name = f"_q{number}{''.join(pair)}"
        one, two = (f"_d{number}{letter}" for letter in pair)
        fitting = f"_n{number}" if self.has_bands(number) else count
        self.computed(3, exact.moment(f"{name}m", f"{one}s", f"{two}s", self.product(one, two), fitting))
        within = f"CASE WHEN {fitting} > 0 THEN {name}m / {fitting} ELSE 0D END"
        if not self.has_bands(number):
            self.computed(9, [[f"{within} AS {name}"]])
            return name
        means = []
        for letter in pair:
            mean, side = f"_e{number}{letter}", "xy".index(letter) + 1
            total = exact.total(self.sums(f"_d{number}{letter}"))
            about = f"CASE WHEN {fitting} > 0 THEN {total} / {fitting} ELSE 0D END"
            of_all = bands.mean(f"_w{number}", count, fitting, mean, side)
            self.computed(1, [[f"{about} AS {mean}"], [f"{of_all} AS {mean}e"]])
            means.append((side, mean, f"{mean}e"))
        field = "q" if sides > 1 and pair[0] != pair[1] else f"q{means[0][0]}"
        of_all = bands.squares(f"_w{number}", fitting, f"{name}t", means, field)
        self.computed(9, [[f"{within} AS {name}t"], [f"{of_all} AS {name}"]])
        return name

    def computed(self, at: int, steps: list[list[str]]) -> None:
        """Add columns to the steps from this one on, each once."""
        self.steps += [[] for _ in range(len(self.steps), at + len(steps))]
        for place, columns in enumerate(steps, at):
            self.steps[place] += [column for column in columns if column not in self.steps[place]]

    def finished(self, form: Select) -> Source:
        """The rows of a query that holds the accumulators, with the columns of `steps` beside them."""
        return stepwise(form, self.steps)


def _upper(column: str) -> str:
    """The column with the upper half of a double `_d0x`: `_u0x`."""
    return f"_u{column.removeprefix('_d')}"


def stepwise(source: Source, steps: list[list[str]]) -> Source:
    """A source with more columns, computed step by step: those of a step from those of the steps before it."""
    for columns in steps:
        source = select(f"*, {', '.join(columns)}", source) if columns else source
    return source


def condition_of(call: Call) -> str:
    """The condition that a row counts: it has all arguments, and the FILTER holds."""
    conditions = [f"{bracketed(argument.sql)} IS NOT NULL" for argument in call.arguments]
    return " AND ".join([*conditions, f"({call.condition})"] if call.condition else conditions)


def doubles_of(call: Call) -> Doubles:
    """The doubles that a call sums."""
    values = tuple(f"CAST({argument.sql} AS DOUBLE)" for argument in call.arguments)
    fitting = all(argument.type in FITTING for argument in call.arguments)
    columns = not call.condition and all(argument.column for argument in call.arguments)
    return Doubles(values, condition_of(call), fitting, columns)


def _often(argument: str, kind: str) -> str:
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


def timeline(lowering: Lowering, node: Aggregate, alone: bool = False) -> Table:
    """Timeline: the sums kept at `since` and the events of the epoch, added up in order of time.

    One that stands alone, and not beside the timelines of other calls, can be walked through by ranges.
    """
    accumulated = Accumulators(lowering.all_doubles)
    values = {call.name: accumulated.value(call) for call in node.calls}
    hidden = sweep.group(node)
    every = list(accumulated.terms.values())
    terms = ", ".join(f"{sql} AS {accumulator.name}" for (_, sql), accumulator in accumulated.terms.items())
    events = _events(lowering, node, accumulated, terms)
    own = accumulated.names()

    state = lowering.fresh("sums")
    held = select(comma(listed(hidden), "CAST(:since AS BIGINT) AS _t", listed(own)), state)
    moves = lowering.step("moves", union(held, select(listed((*hidden, "_t", *own)), events)))
    totals = comma(listed(hidden), combined(accumulated))
    if hidden:
        until = groups_until(node, hidden)
        there = ("SUM(_rows) <> 0", f"COALESCE({until}, :until + 1) > :until" if until is not None else "")
    else:
        there = ("COUNT(*) > 0", "")
    contents = lowering.step("totals", select(totals, moves, group_by=listed(hidden), having=there))
    lowering.synopsis(state, contents, lowering.step("shape", select(totals, events, group_by=listed(hidden))))

    if alone and (cut := _cut(lowering, node, accumulated)):
        swept = ranges.running(lowering, cut, moves, {a.name: a.combine for a in every})
        lowering.ranged.add(node)
    else:
        over = sweep.over(hidden)
        running = ", ".join(f"{a.combine}({a.name}) OVER {over} AS {a.name}" for a in every)
        instants = f"{comma(listed(hidden), '_t')}, LEAD(_t) OVER {over} AS _next"
        swept = lowering.step("swept", select(f"{instants},\n  {running}", moves))
    living = "TRUE" if node.row_when_empty else "_rows > 0"
    last = select(
        comma(listed(sweep.walk(lowering, node)), listed(own), "_t", f"{living} AS _live"),
        swept,
        where="_next IS NULL OR _next > _t",
    )
    return finished(lowering, node, accumulated, values, last)


def finished(
    lowering: Lowering, node: Aggregate, accumulated: Accumulators, values: dict[str, str], last: Select
) -> Table:
    """Timeline: the values of the calls, from the accumulators of each group at each instant of change."""
    if by_band := _bands(lowering, node, accumulated):
        last = _beside(lowering, node, lowering.step("fitting", last), accumulated.names(), by_band)
    row = comma(
        sweep.keys_again(node),
        ", ".join(f"{sql} AS {name(call)}" for call, sql in values.items()),
        listed(sweep.walk(lowering, node)),
        "_t, _live",
    )
    return lowering.step("timeline", select(row, accumulated.finished(last)))


def _cut(lowering: Lowering, node: Aggregate, accumulated: Accumulators) -> Ranges | None:
    """Into how many ranges of time a timeline of one group is cut; None if one task walks through it.

    Sums of decimals get wider with each addition, so they would have another type. The bands of doubles have timelines
    of their own.
    """
    decimals = any(a.combine == "SUM" and a.nothing == "NULL" for a in accumulated.terms.values())
    beside = any(map(accumulated.has_bands, range(len(accumulated.doubles))))
    if node.keys or decimals or beside or not lowering.inputs_of_epoch():
        return None
    lowering.can_be_cut = True
    return lowering.by_ranges


def _bands(lowering: Lowering, node: Aggregate, accumulated: Accumulators) -> dict[str, Table]:
    """The timelines of the bands, where doubles are summed by band, by the column that holds them."""
    made: dict[str, Table] = {}
    for doubles, number in accumulated.doubles.items():
        if accumulated.has_bands(number):
            calls = [call for call in node.calls if call.arguments and doubles_of(call) == doubles]
            spread = any(call.function in SPREADS for call in calls)
            plan = bands.by_group(node, calls[0], doubles.given, f"_w{number}", spread)
            with lowering.naming("wild_"):  # names of synopses, which directories on disk have
                made[f"_w{number}"] = lowering.once(
                    "timeline", plan, partial(recomputed.timeline, lowering, plan, unchanged=True)
                )
    return made


def _beside(lowering: Lowering, node: Aggregate, fitting: Table, own: list[str], by_band: dict[str, Table]) -> Select:
    """The accumulators and the bands of each group, as they are from each instant of change on."""
    hidden = sweep.group(node)
    known = sweep.together(
        lowering, hidden, [(fitting, own), *((timeline, [column]) for column, timeline in by_band.items())]
    )
    columns = [f"_p0.{one} AS {one}" for one in own]
    columns += [f"_p{number}.{column} AS {column}" for number, column in enumerate(by_band, 1)]
    return select(f"{comma(listed(hidden), *columns)}, _t, _p0._live AS _live", known)


def combined(accumulated: Accumulators) -> str:
    """The accumulators combined over several rows."""
    return ", ".join(f"{a.combine}({a.name}) AS {a.name}" for a in accumulated.terms.values())


def _events(lowering: Lowering, node: Aggregate, accumulated: Accumulators, terms: str) -> Table:
    """The group, the instant and what is added there: every start in the epoch, and every end, negated."""
    hidden, every = sweep.group(node), list(accumulated.terms.values())
    own = [accumulator.name for accumulator in every]
    selected = comma(sweep.keys(node), "_t", "_x", terms)
    born, ends = lowering.born(node.child), lowering.ends(node.child)
    touched = union(*(select(selected, accumulated.prepared(form)) for form in (born, ends) if form))
    moved = lowering.step("touched", touched, accumulated.may_not_fit())
    if node.child.coarse:
        ends_by = listed((*hidden, "_t", "_x"))
        moved = lowering.step("panes", select(f"{ends_by}, {combined(accumulated)}", moved, group_by=ends_by))
    columns = listed((*hidden, "_t", *own))
    if node.child.endless:
        events = select(columns, moved)
    else:
        signed = ", ".join(
            f"CASE WHEN _side = 1 THEN {accumulator} ELSE -{accumulator} END AS {accumulator}" for accumulator in own
        )
        both = LateralView(moved, "EXPLODE(ARRAY(1, -1)) e AS _side")
        sides = select(comma(listed(hidden), "CASE WHEN _side = 1 THEN _t ELSE _x END AS _t", signed), both)
        events = select(columns, sides, where=("_t > :since", "_t <= :until"))
    if not node.row_when_empty:
        return lowering.step("events", events)
    nothing = ", ".join(f"{a.nothing} AS {a.name}" for a in every)
    origin = domain(node.child).origin
    begun = (f"{origin} > :since", f"{origin} <= :until")
    first = select(f"CAST({origin} AS BIGINT) AS _t, {nothing}", where=begun)  # the row over nothing, from then on
    return lowering.step("events", union(events, first))
