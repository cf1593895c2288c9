"""Aggregates that can be added and taken away again: running sums over the events of a group. Between epochs only sums
are kept.

    count, sum, avg      integers and decimals as they are, doubles as whole numbers (`exact`)
    variance and kin     from the sums of the values and of their products, in whole numbers as well
    min, max and kin     where nothing ever leaves: the largest so far instead of a sum

A program knows tame doubles only and raises an error at the first wild one. The program that is run from then on has,
beside these sums, those of the wild doubles by band (`wild`), which rightly begin empty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from headgate.delta import exact, recomputed, sweep, wild
from headgate.plan.expressions import INTEGRAL, NUMERIC, Call
from headgate.plan.nodes import Aggregate, domain
from headgate.plan.temporal import groups_until
from headgate.sql import bracketed, comma, conjunction, listed, name, union

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

TAMED = frozenset({"TINYINT", "SMALLINT", "INT", wild.TAME})
"""Types whose values are tame as doubles."""

WHOLE_DIGITS = 27
"""A decimal of so many digits can be multiplied by a count without losing any."""


def additive(call: Call) -> bool:
    if call.distinct or call.function not in SUMS | SPREADS.keys():
        return False
    return call.function == "count" or all(argument.type.startswith(NUMERIC) for argument in call.arguments)


def growing(call: Call) -> bool:
    """What can be kept up to date as long as nothing leaves."""
    return call.function in EXTREMES


def ranked(call: Call) -> str:
    """What the extreme is taken of: the value, or for MAX_BY and MIN_BY its place and the value."""
    value = call.arguments[0].sql
    given = [f"({call.condition})"] if call.condition else []
    if len(call.arguments) > 1:
        value = f"STRUCT({call.arguments[1].sql} AS k, {value} AS v)"
        given.append(f"{bracketed(call.arguments[1].sql)} IS NOT NULL")
    return f"CASE WHEN {' AND '.join(given)} THEN {value} END" if given else value


def field(call: Call) -> str:
    """Where in that the value is."""
    return ".v" if len(call.arguments) > 1 else ""


@dataclass(frozen=True, slots=True)
class _Accumulator:
    name: str
    combine: str
    nothing: str = "0"
    """What it is over no rows. A 0 beside decimals could cost them digits."""


@dataclass(frozen=True, slots=True)
class Doubles:
    """One double of a row, or two that belong together, taken where a condition holds."""

    values: tuple[str, ...]
    given: str
    tame: bool
    """Whether it is known that they are."""

    columns: bool
    """Whether the values are columns, which cost nothing to write more than once."""


class Accumulators:
    """What is accumulated for a set of calls: how and of which SQL over the input row -> accumulator, each one once."""

    def __init__(self, wild: bool = False) -> None:
        self.wild = wild
        """Whether the wild doubles are summed beside these: their bands lie in `_w0`, `_w1`, ..."""
        self.terms: dict[tuple[str, str], _Accumulator] = {("SUM", "_n"): _Accumulator("_rows", "SUM")}
        self.doubles: dict[Doubles, int] = {}
        """The doubles that are summed, and their numbers."""
        self.products: dict[tuple[str, str], int] = {}
        """The columns of doubles whose products are summed."""
        self.steps: list[list[str]] = []
        """Columns to be computed from the accumulators, step by step, before the values."""

    def term(self, sql: str, combine: str = "SUM", nothing: str = "0") -> str:
        number = len(self.terms)
        return self.terms.setdefault((combine, sql), _Accumulator(f"_a{number}", combine, nothing)).name

    def names(self) -> list[str]:
        return [accumulator.name for accumulator in self.terms.values()]

    def value(self, call: Call) -> str:
        """The call's value from the accumulators; those that are missing are added."""
        if call.function in EXTREMES:
            return self.extreme(call)
        given = condition_of(call)
        if not given:
            return "_rows"
        count = self.term(f"CASE WHEN {given} THEN _n ELSE 0 END")
        if call.function == "count":
            return count
        if call.function in SPREADS:
            return self.spread(call, count)
        (argument,) = call.arguments
        total = self.total(call, argument.sql, argument.type, given)
        quotient = total if call.function == "sum" else f"({total}) / {count}"
        return f"CASE WHEN {count} > 0 THEN {quotient} END"

    def extreme(self, call: Call) -> str:
        return f"{self.term(ranked(call), EXTREMES[call.function], 'NULL')}{field(call)}"

    def total(self, call: Call, argument: str, kind: str, given: str) -> str:
        if kind in INTEGRAL:
            return self.term(f"CASE WHEN {given} THEN {bracketed(argument)} * _n ELSE 0 END")
        if kind.startswith("DECIMAL"):
            return self.term(f"CASE WHEN {given} THEN {_often(bracketed(argument), kind)} END", nothing="NULL")
        number = self.double(doubles_of(call))
        tame = exact.total(self.sums(f"_d{number}x"))
        return wild.total(tame, f"_w{number}") if self.bands(number) else tame

    def double(self, doubles: Doubles) -> int:
        return self.doubles.setdefault(doubles, len(self.doubles))

    def bands(self, number: int) -> bool:
        return self.wild and not list(self.doubles)[number].tame

    def sums(self, column: str) -> list[str]:
        """The sums of the parts of a double."""
        return [self.term(f"COALESCE({part}, 0) * _n") for part in exact.parts(column)]

    def product(self, one: str, two: str) -> list[str]:
        """The sums of the parts of a product."""
        number = self.products.setdefault((one, two), len(self.products))
        return [self.term(f"COALESCE({part}, 0) * _n") for part in exact.product_parts(f"_h{number}", f"_l{number}")]

    def prepared(self, form: str) -> str:
        """The rows of a form with the doubles and their products beside them, step by step: each is used more than
        once.
        """
        raw, checked, upper, products = list[str](), list[str](), list[str](), list[str]()
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
            tame = present if doubles.tame else " AND ".join(map(exact.tame, values))
            other = "" if self.wild or doubles.tame else f" WHEN {present} THEN RAISE_ERROR('{exact.BEYOND}')"
            pairs = zip(values, letters, strict=True)
            checked += [f"CASE WHEN {tame} THEN {value}{other} END AS _d{number}{letter}" for value, letter in pairs]
        for column in dict.fromkeys(column for pair in self.products for column in pair):
            upper.append(f"{exact.upper(column)} AS {column.replace('d', 'u')}")
        for (one, two), number in self.products.items():
            high, low = exact.product(one, two, one.replace("d", "u"), two.replace("d", "u"))
            products += [f"{high} AS _h{number}", f"{low} AS _l{number}"]
        return stepwise(form, [raw, checked, upper, products])

    def spread(self, call: Call, count: str) -> str:
        kind, less = SPREADS[call.function]
        number = self.double(doubles_of(call))
        letters = "xy"[: len(call.arguments)]
        sides = (letters[0], letters[-1])
        pairs = [sides, *([("x", "x"), ("y", "y")] if kind == "corr" else [])]
        if self.bands(number):
            self.computed(0, [[f"{wild.tame_count(count, f'_w{number}')} AS _n{number}"]])
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
        tame = f"_n{number}" if self.bands(number) else count
        self.computed(3, exact.moment(f"{name}m", f"{one}s", f"{two}s", self.product(one, two), tame))
        within = f"CASE WHEN {tame} > 0 THEN {name}m / {tame} ELSE 0D END"
        if not self.bands(number):
            self.computed(9, [[f"{within} AS {name}"]])
            return name
        means = []
        for letter in pair:
            mean, side = f"_e{number}{letter}", "xy".index(letter) + 1
            about = f"CASE WHEN {tame} > 0 THEN {exact.total(self.sums(f'_d{number}{letter}'))} / {tame} ELSE 0D END"
            self.computed(
                1, [[f"{about} AS {mean}"], [f"{wild.mean(f'_w{number}', count, tame, mean, side)} AS {mean}e"]]
            )
            means.append((side, mean, f"{mean}e"))
        field = "q" if sides > 1 and pair[0] != pair[1] else f"q{means[0][0]}"
        self.computed(
            9, [[f"{within} AS {name}t"], [f"{wild.squares(f'_w{number}', tame, f'{name}t', means, field)} AS {name}"]]
        )
        return name

    def computed(self, at: int, steps: list[list[str]]) -> None:
        """Add columns to the steps from this one on, each once."""
        self.steps += [[] for _ in range(len(self.steps), at + len(steps))]
        for place, columns in enumerate(steps, at):
            self.steps[place] += [column for column in columns if column not in self.steps[place]]

    def finished(self, form: str) -> str:
        """The rows of a form that holds the accumulators, with what is computed from them beside them."""
        return stepwise(form, self.steps)


def stepwise(form: str, steps: list[list[str]]) -> str:
    for columns in steps:
        form = f"(SELECT *, {', '.join(columns)} FROM {form})" if columns else form
    return form


def condition_of(call: Call) -> str:
    """Which rows count: those with all arguments, where the FILTER holds."""
    conditions = [f"{bracketed(argument.sql)} IS NOT NULL" for argument in call.arguments]
    return " AND ".join([*conditions, f"({call.condition})"] if call.condition else conditions)


def doubles_of(call: Call) -> Doubles:
    values = tuple(f"CAST({argument.sql} AS DOUBLE)" for argument in call.arguments)
    tame = all(argument.type in TAMED for argument in call.arguments)
    return Doubles(
        values, condition_of(call), tame, not call.condition and all(argument.column for argument in call.arguments)
    )


def _often(argument: str, kind: str) -> str:
    """A decimal as often as its row counts. A product may have more digits than fit, and Spark would round it in
    silence.
    """
    digits = int(kind.split("(")[1].split(",")[0].strip(" )")) if "(" in kind else 10
    if digits <= WHOLE_DIGITS:
        return f"{argument} * CAST(_n AS DECIMAL(10, 0))"
    return (
        f"CASE _n WHEN 1 THEN {argument} WHEN -1 THEN -{argument} "
        f"ELSE RAISE_ERROR('a {kind} in rows that count several times cannot be summed: it has too many digits') END"
    )


def timeline(lowering: Lowering, node: Aggregate) -> str:
    accumulated = Accumulators(lowering.wild)
    values = {call.name: accumulated.value(call) for call in node.calls}
    hidden = sweep.group(node)
    every = list(accumulated.terms.values())
    terms = ", ".join(f"{sql} AS {accumulator.name}" for (_, sql), accumulator in accumulated.terms.items())
    events = _events(lowering, node, accumulated, terms)
    own = accumulated.names()

    state = lowering.fresh("sums")
    columns = listed((*hidden, "_t", *own))
    held = f"SELECT {comma(listed(hidden), 'CAST(:since AS BIGINT) AS _t', listed(own))} FROM {state}"
    moves = lowering.step("moves", union(held, f"SELECT {columns} FROM {events}"))
    totals = _combined(every)
    if hidden:
        until = groups_until(node, hidden)
        there = conjunction("SUM(_rows) <> 0", f"COALESCE({until}, :until + 1) > :until" if until is not None else "")
        grouped = f"SELECT {listed(hidden)}, {totals} FROM {moves} GROUP BY {listed(hidden)} HAVING {there}"
        shape = f"SELECT {listed(hidden)}, {totals} FROM {events} GROUP BY {listed(hidden)}"
    else:
        grouped = f"SELECT {totals} FROM {moves} HAVING COUNT(*) > 0"
        shape = f"SELECT {totals} FROM {events}"
    lowering.synopsis(state, lowering.step("totals", grouped), lowering.step("shape", shape))

    over = sweep.over(hidden)
    running = ", ".join(f"{a.combine}({a.name}) OVER {over} AS {a.name}" for a in every)
    swept = lowering.step(
        "swept", f"SELECT {comma(listed(hidden), '_t')}, LEAD(_t) OVER {over} AS _next,\n  {running}\nFROM {moves}"
    )
    living = "TRUE" if node.row_when_empty else "_rows > 0"
    last = (
        f"SELECT {comma(listed(hidden), listed(own), '_t', f'{living} AS _live')} FROM {swept}\nWHERE _next IS "
        "NULL OR _next > _t"
    )
    if bands := _bands(lowering, node, accumulated):
        last = _beside(lowering, node, lowering.step("tame", last), own, bands)
    row = comma(
        sweep.keys_again(node),
        ", ".join(f"{sql} AS {name(call)}" for call, sql in values.items()),
        listed(hidden),
    )
    return lowering.step("timeline", f"SELECT {row}, _t, _live FROM {accumulated.finished(f'({last})')}")


def _bands(lowering: Lowering, node: Aggregate, accumulated: Accumulators) -> dict[str, str]:
    """The bands of the wild doubles, where they are summed: column -> timeline."""
    made: dict[str, str] = {}
    for doubles, number in accumulated.doubles.items():
        if accumulated.bands(number):
            calls = [call for call in node.calls if call.arguments and doubles_of(call) == doubles]
            spread = any(call.function in SPREADS for call in calls)
            bands = wild.bands(node, calls[0], doubles.given, f"_w{number}", spread)
            with lowering.naming("wild_"):
                made[f"_w{number}"] = lowering.once(
                    "timeline", bands, partial(recomputed.timeline, lowering, bands, unchanged=True)
                )
    return made


def _beside(lowering: Lowering, node: Aggregate, tame: str, own: list[str], bands: dict[str, str]) -> str:
    """The accumulators and the bands of each group, as they are from each instant of change on."""
    hidden = sweep.group(node)
    known = sweep.together(lowering, hidden, [(tame, own), *((step, [column]) for column, step in bands.items())])
    columns = [f"_p0.{one} AS {one}" for one in own]
    columns += [f"_p{number}.{column} AS {column}" for number, column in enumerate(bands, 1)]
    return f"SELECT {comma(listed(hidden), *columns)}, _t, _p0._live AS _live FROM {known}"


def _combined(every: list[_Accumulator]) -> str:
    return ", ".join(f"{a.combine}({a.name}) AS {a.name}" for a in every)


def _events(lowering: Lowering, node: Aggregate, accumulated: Accumulators, terms: str) -> str:
    """The group, the instant and what is added there: every start in the epoch, and every end, negated."""
    hidden, every = sweep.group(node), list(accumulated.terms.values())
    own = [accumulator.name for accumulator in every]
    selected = comma(sweep.keys(node), "_t", "_x", terms)
    born, ends = lowering.born(node.child), lowering.ends(node.child)
    touched = union(*(f"SELECT {selected} FROM {accumulated.prepared(form)}" for form in (born, ends) if form))
    moved = lowering.step("touched", touched)
    if node.child.coarse:
        ends_by = listed((*hidden, "_t", "_x"))
        moved = lowering.step("panes", f"SELECT {ends_by}, {_combined(every)} FROM {moved} GROUP BY {ends_by}")
    if node.child.endless:
        events = f"SELECT {listed((*hidden, '_t', *own))} FROM {moved}"
    else:
        signed = ", ".join(
            f"CASE WHEN _side = 1 THEN {accumulator} ELSE -{accumulator} END AS {accumulator}" for accumulator in own
        )
        events = (
            f"SELECT {listed((*hidden, '_t', *own))} FROM (\n"
            f"  SELECT {comma(listed(hidden), 'CASE WHEN _side = 1 THEN _t ELSE _x END AS _t', signed)}\n"
            f"  FROM {moved} LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side\n"
            f") WHERE _t > :since AND _t <= :until"
        )
    if node.row_when_empty:  # the row over nothing is there from the first instant on
        nothing = ", ".join(f"{a.nothing} AS {a.name}" for a in every)
        origin = domain(node.child).origin
        events = union(
            events, f"SELECT CAST({origin} AS BIGINT) AS _t, {nothing} WHERE {origin} > :since AND {origin} <= :until"
        )
    return lowering.step("events", events)
