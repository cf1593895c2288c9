"""Aggregates that can be added and taken away again: running sums over the events of a group. Between epochs only sums are kept.

    count, sum, avg      exact for integers and decimals
    variance and kin     from the sums of the values, their squares and products
    min, max and kin     where nothing ever leaves: the largest so far instead of a sum

A sum of doubles that loses what it gained drifts, and what once was infinite never comes back. So a double is summed in parts:
its multiple of 2^20 and the multiple of 2^-20 in what is left as whole numbers, exactly; the rest, smaller than 2^-21, as a
double; what is larger than 2^60 apart from all this; infinities and NaN are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.delta import sweep
from headgate.delta.sql import comma, conjunction, listed, name, union
from headgate.plan.expressions import INTEGRAL, NUMERIC, Call
from headgate.plan.nodes import Aggregate, domain
from headgate.plan.properties import coarse, endless
from headgate.plan.temporal import groups_until

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

SUMS = frozenset({"count", "sum", "avg"})
SPREADS = {
    "variance": ("var", 1), "variance_pop": ("var", 0), "stddev": ("dev", 1), "stddev_samp": ("dev", 1),
    "stddev_pop": ("dev", 0), "covar_samp": ("cov", 1), "covar_pop": ("cov", 0), "corr": ("corr", 0),
}  # fmt: skip
"""Name -> what is computed, and whether it divides by one less than the count."""

EXTREMES = {"min": "MIN", "max": "MAX", "arg_min": "MIN", "arg_max": "MAX"}
LARGE, SMALL = "1048576D", "1048576D"
HUGE = "1152921504606846976D"
FLAG = "2147483648"


def additive(call: Call) -> bool:
    if call.distinct or call.function not in SUMS | SPREADS.keys():
        return False
    return call.function == "count" or all(argument.type.startswith(NUMERIC) for argument in call.arguments)


def sums_only(call: Call) -> bool:
    return additive(call) and call.function in SUMS


def growing(call: Call) -> bool:
    """What can be kept up to date as long as nothing leaves."""
    return call.function in EXTREMES


def ranked(call: Call) -> str:
    """What the extreme is taken of: the value, or for MAX_BY and MIN_BY its place and the value."""
    value = call.arguments[0].sql
    given = [f"({call.condition})"] if call.condition else []
    if len(call.arguments) > 1:
        value = f"STRUCT({call.arguments[1].sql} AS k, {value} AS v)"
        given.append(f"{call.arguments[1].sql} IS NOT NULL")
    return f"CASE WHEN {' AND '.join(given)} THEN {value} END" if given else value


def field(call: Call) -> str:
    """Where in that the value is."""
    return ".v" if len(call.arguments) > 1 else ""


@dataclass(frozen=True, slots=True)
class _Accumulator:
    name: str
    combine: str


class _Accumulators:
    """What is accumulated for a set of calls: how and of which SQL over the input row -> accumulator, each one once."""

    def __init__(self) -> None:
        self.terms: dict[tuple[str, str], _Accumulator] = {("SUM", "_n"): _Accumulator("_rows", "SUM")}
        self.doubles: dict[str, int] = {}
        """The doubles that are summed, and their numbers."""

    def term(self, sql: str, combine: str = "SUM") -> str:
        number = len(self.terms)
        return self.terms.setdefault((combine, sql), _Accumulator(f"_a{number}", combine)).name

    def value(self, call: Call) -> str:
        """The call's value from the accumulators; those that are missing are added."""
        if call.function in EXTREMES:
            return self.extreme(call)
        conditions = [f"{argument.sql} IS NOT NULL" for argument in call.arguments]
        given = " AND ".join([*conditions, f"({call.condition})"] if call.condition else conditions)
        if not given:
            return "_rows"
        count = self.term(f"CASE WHEN {given} THEN _n ELSE 0 END")
        if call.function == "count":
            return count
        if call.function in SPREADS:
            return self.spread(call, given, count)
        (argument,) = call.arguments
        total = self.total(argument.sql, argument.type, given)
        quotient = total if call.function == "sum" else f"({total}) / {count}"
        return f"CASE WHEN {count} > 0 THEN {quotient} END"

    def extreme(self, call: Call) -> str:
        return f"{self.term(ranked(call), EXTREMES[call.function])}{field(call)}"

    def total(self, argument: str, kind: str, given: str) -> str:
        if kind in INTEGRAL:
            return self.term(f"CASE WHEN {given} THEN {argument} * _n ELSE 0 END")
        if kind.startswith("DECIMAL"):
            return self.term(f"CASE WHEN {given} THEN {argument} * CAST(_n AS DECIMAL(10, 0)) ELSE 0 END")
        return self.double(f"CAST({argument} AS DOUBLE)", given)

    def double(self, value: str, given: str) -> str:
        number = self.doubles.setdefault(f"CASE WHEN {given} THEN {value} END", len(self.doubles))
        whole, upper, rest, lower = (f"_{part}{number}" for part in "durl")
        infinite = "CAST('Infinity' AS DOUBLE)"
        high = self.term(f"COALESCE(CAST({upper} AS BIGINT), 0) * _n")
        low = self.term(f"COALESCE(CAST({lower} AS BIGINT), 0) * _n")
        fine = self.term(f"COALESCE({rest} - {lower} / {SMALL}, 0D) * _n")
        beyond = f"{upper} IS NULL AND {whole} IS NOT NULL"
        huge = self.term(f"CASE WHEN {beyond} AND ABS({whole}) < {infinite} THEN {whole} * _n ELSE 0D END")
        # Not a number counts as both infinities, whose sum it is.
        flags = f"CASE WHEN ISNAN({whole}) THEN 1 + {FLAG} WHEN {whole} > 0 THEN 1 ELSE {FLAG} END"
        strange = self.term(f"CASE WHEN {beyond} AND NOT (ABS({whole}) < {infinite}) THEN _n * {flags} ELSE 0 END")
        sum_ = f"({high} * {LARGE} + ({low} / {SMALL} + {fine})) + {huge}"
        return (
            f"CASE WHEN {strange} = 0 THEN {sum_} WHEN {strange} < {FLAG} THEN {infinite} "
            f"WHEN {strange} % {FLAG} = 0 THEN -{infinite} ELSE CAST('NaN' AS DOUBLE) END"
        )

    def prepared(self, form: str) -> str:
        """The rows of a form with the parts of each double beside them, step by step: each is used more than once."""
        for columns in (
            [f"{sql} AS _d{number}" for sql, number in self.doubles.items()],
            [f"CASE WHEN ABS(_d{i}) < {HUGE} THEN ROUND(_d{i} / {LARGE}) END AS _u{i}" for i in self.doubles.values()],
            [f"_d{i} - _u{i} * {LARGE} AS _r{i}" for i in self.doubles.values()],
            [f"ROUND(_r{i} * {SMALL}) AS _l{i}" for i in self.doubles.values()],
        ):
            form = f"(SELECT *, {', '.join(columns)} FROM {form})" if columns else form
        return form

    def spread(self, call: Call, given: str, count: str) -> str:
        kind, less = SPREADS[call.function]
        values = [f"CAST({argument.sql} AS DOUBLE)" for argument in call.arguments]
        totals = [self.double(value, given) for value in values]
        about = [f"({self.double(f'({one} * {two})', given)})" for one, two in zip(values, reversed(values), strict=True)]
        shared = f"({about[0]} - ({totals[0]}) * ({totals[-1]}) / {count})"
        if kind == "corr":
            squares = [self.double(f"({value} * {value})", given) for value in values]
            own = [f"({square} - ({total}) * ({total}) / {count})" for square, total in zip(squares, totals, strict=True)]
            scale = f"SQRT(GREATEST({own[0]}, 0D) * GREATEST({own[1]}, 0D))"
            return f"CASE WHEN {count} > 0 AND {scale} > 0 THEN {shared} / {scale} END"
        if kind in ("var", "dev"):
            shared = f"GREATEST({shared}, 0D)"
        quotient = f"{shared} / {f'({count} - 1)' if less else count}"
        return f"CASE WHEN {count} > {less} THEN {f'SQRT({quotient})' if kind == 'dev' else quotient} END"


def timeline(lowering: Lowering, node: Aggregate) -> str:
    accumulated = _Accumulators()
    values = {call.name: accumulated.value(call) for call in node.calls}
    hidden = sweep.group(node)
    every = list(accumulated.terms.values())
    terms = ", ".join(f"{sql} AS {accumulator.name}" for (_, sql), accumulator in accumulated.terms.items())
    events = _events(lowering, node, accumulated, terms)
    own = [accumulator.name for accumulator in every]

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
    row = comma(
        sweep.keys_again(node),
        ", ".join(f"{sql} AS {name(call)}" for call, sql in values.items()),
        listed(hidden),
    )
    living = "TRUE" if node.row_when_empty else "_rows > 0"
    return lowering.step(
        "timeline", f"SELECT {comma(row, '_t', f'{living} AS _live')} FROM {swept}\nWHERE _next IS NULL OR _next > _t"
    )


def _combined(every: list[_Accumulator]) -> str:
    return ", ".join(f"{a.combine}({a.name}) AS {a.name}" for a in every)


def _events(lowering: Lowering, node: Aggregate, accumulated: _Accumulators, terms: str) -> str:
    """The group, the instant and what is added there: every start in the epoch, and every end, negated."""
    hidden, every = sweep.group(node), list(accumulated.terms.values())
    own = [accumulator.name for accumulator in every]
    selected = comma(sweep.keys(node), "_t", "_x", terms)
    born, ends = lowering.born(node.child), lowering.ends(node.child)
    touched = union(*(f"SELECT {selected} FROM {accumulated.prepared(form)}" for form in (born, ends) if form))
    moved = lowering.step("touched", touched)
    if coarse(node.child):
        ends_by = listed((*hidden, "_t", "_x"))
        moved = lowering.step("panes", f"SELECT {ends_by}, {_combined(every)} FROM {moved} GROUP BY {ends_by}")
    if endless(node.child):
        events = f"SELECT {listed((*hidden, '_t', *own))} FROM {moved}"
    else:
        signed = ", ".join(f"{accumulator} * _side AS {accumulator}" for accumulator in own)
        events = (
            f"SELECT {listed((*hidden, '_t', *own))} FROM (\n"
            f"  SELECT {comma(listed(hidden), 'CASE WHEN _side = 1 THEN _t ELSE _x END AS _t', signed)}\n"
            f"  FROM {moved} LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side\n"
            f") WHERE _t > :since AND _t <= :until"
        )
    if node.row_when_empty:  # the row over nothing is there from the first instant on
        nothing = ", ".join(f"{0 if a.combine == 'SUM' else 'NULL'} AS {a.name}" for a in every)
        origin = domain(node.child).origin
        events = union(events, f"SELECT CAST({origin} AS BIGINT) AS _t, {nothing} WHERE {origin} > :since AND {origin} <= :until")
    return lowering.step("events", events)
