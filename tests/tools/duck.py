"""Runs compiled programs in DuckDB instead of Spark: their SQL, transpiled, epoch after epoch. No JVM, log or clock."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from math import isfinite

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Function, Relation, Stream, View
from headgate.cql.binder import bind
from headgate.cql.script import parse
from headgate.cql.skipping import skipping
from headgate.delta.assumptions import Assumption
from headgate.delta.exact import DOES_NOT_FIT
from headgate.delta.lower import Way, lower
from headgate.delta.program import Input, Program
from headgate.delta.ranges import Ranges
from headgate.log.statistics import Values
from headgate.plan.fragments import Part
from headgate.plan.nodes import Node
from headgate.plan.rewrites.driver import rewritten
from headgate.sql import Column
from headgate.testing.cases import FUNCTIONS, Case, Change, sql_type
from headgate.testing.reference_sql import table_of
from headgate.testing.runner import script
from headgate.ticks import TimeDomain
from tools.as_sql import sql

NARROW, WIDE = Ranges(pieces=20, blocks=1000, own=0), Ranges(pieces=5, blocks=3, own=1)
"""Ranges for a few rows: each instant or value by itself, and a few of them together."""

EMPTY_ITEM = re.compile(r"SELECT\s*,|,\s*,|,\s*FROM\b")


def compiled(case: Case) -> tuple[Program, ...]:
    """The programs that would run, of the plan as rewritten: for tiny, larger and large epochs."""
    return _lowered(script(case), case)


_programs: dict[str, tuple[Program, ...]] = {}


def _lowered(text: str, case: Case) -> tuple[Program, ...]:
    """The programs of a query, made once: Hypothesis draws a query with many inputs."""
    if text not in _programs:
        if len(_programs) > 500:
            _programs.clear()
        plan = rewritten(bound(case)).plan
        _programs[text] = variants(plan)
    return _programs[text]


def variants(plan: Node, as_elements: bool = False) -> tuple[Program, ...]:
    """The programs of a plan: for large, tiny and small epochs, and by ranges if it has windows to cut."""
    program = lower(plan, as_elements=as_elements)
    cut = (program.by_ranges(NARROW), program.by_ranges(WIDE)) if program.by_ranges else ()
    small = Way(large=False)
    tiny = lower(plan, tiny=True, as_elements=as_elements, way=small)
    return (program, tiny, lower(plan, as_elements=as_elements, way=small), *cut)


def bound(case: Case, time: TimeDomain = TimeDomain.INTEGER) -> Node:
    """The plan as the case's query says it, over streams and relations with time of that kind."""
    tree = parse(case.query)[0]
    plan = bind(tree, case.query, catalog_of(case, time)).plan
    return skipping(plan).plan if tree.meta.get("skips") else plan


def catalog_of(case: Case, time: TimeDomain = TimeDomain.INTEGER) -> Catalog:
    """The definitions of a case, with time of that kind."""
    catalog = Catalog()
    catalog.outside.add("my_function")
    catalog.set("dialect", "stream" if case.dialect == "stream" else "cql")
    catalog.set("range", case.range)
    catalog.set("empty_aggregate", case.empty_aggregate)
    catalog.set("time_unit", f"{case.unit_seconds} seconds")
    for name, (parameter, body) in FUNCTIONS.items():
        catalog.add_function(Function(name, (parameter,), sql(body)))
    for name, schema in case.streams.items():
        orders = case.orders.get(name, {})
        columns = tuple(Column(column, sql_type(kind), orders.get(column)) for column, kind in schema.items())
        catalog.add(Stream(name, columns, time, case.timestamps.get(name)))
    for name, schema in case.relations.items():
        columns = tuple(Column(column, sql_type(kind)) for column, kind in schema.items())
        catalog.add(Relation(name, columns, time, key=case.keys.get(name, ())))
    for view in case.views:
        catalog.add(View(view.name, bind(parse(view.query)[0], view.query, catalog, columns=view.columns).plan))
    return catalog


@cache
def shared() -> duckdb.DuckDBPyConnection:
    """One database for all programs, because starting one takes longer than most of them. Each has a cursor of its own,
    with its own temporary tables.
    """
    database = duckdb.connect(":memory:")
    database.execute("SET threads = 1; CREATE MACRO pmod(a, b) AS ((a % b) + b) % b")
    database.execute("CREATE MACRO headgate_once() AS 0")
    database.execute("CREATE MACRO rint(x) AS round_even(x, 0)")
    database.execute(
        "CREATE MACRO raise_error(said) AS error(said); CREATE MACRO timestamp_micros(x) AS make_timestamp(x)"
    )
    return database


@lru_cache(maxsize=20_000)
def transpiled(sql: str) -> str:
    assert not EMPTY_ITEM.search(sql), "sqlglot passes over an empty item of a list; Spark does not"
    tree = sqlglot.parse_one(sql, read="spark")  # ours alone: a copy for each step takes longer than the steps
    return tree.transform(_in_duckdb, copy=False).sql("duckdb", copy=False)


UNCUT = (exp.Literal, exp.Null, exp.Anonymous, exp.SplitPart)
"""Casts of these to whole numbers are left alone: DuckDB takes the TRUNC of an error for null."""


def _in_duckdb(node: exp.Expression) -> exp.Expression | None:
    """Translate what sqlglot leaves alone: Spark's MAX_BY may give null, and its lists are empty rather than null."""
    match node:
        case exp.Hint():
            return None  # DuckDB has none
        case exp.ArgMax() | exp.ArgMin():
            name = "ARG_MAX_NULL" if isinstance(node, exp.ArgMax) else "ARG_MIN_NULL"
            return exp.Anonymous(this=name, expressions=[node.this, node.expression])
        case exp.Cast(to=exp.DataType(this=exp.DType.BIGINT)) if not isinstance(node.this, UNCUT):
            node.set("this", exp.Anonymous(this="TRUNC", expressions=[node.this]))  # Spark cuts off, DuckDB rounds
            return node
        case exp.Cast(to=exp.DataType(this=exp.DType.DECIMAL) as kind) if [one.name for one in kind.expressions] == [
            "38",
            "0",
        ]:
            node.set("to", exp.DataType.build("HUGEINT", dialect="duckdb"))  # DuckDB divides decimals as doubles
            return node
        case exp.Anonymous(this=str() as called) if called.upper() == "HEADGATE_TRY":
            return exp.Anonymous(this="TRY", expressions=node.expressions)
        case exp.Anonymous(this=str() as called) if called.upper() == "XXHASH64":
            return exp.Anonymous(this="HASH", expressions=node.expressions)
        case exp.Filter(this=exp.ArrayAgg() | exp.ArrayUniqueAgg() as call):
            return _list(call, node.expression.this)
        case exp.ArrayAgg() | exp.ArrayUniqueAgg():
            return _list(node, exp.true())
        case _:
            return node


def _list(call: exp.Expression, condition: exp.Expression) -> exp.Expression:
    value = call.this
    present = exp.not_(exp.Is(this=value.copy(), expression=exp.null()))
    given = exp.Distinct(expressions=[value]) if isinstance(call, exp.ArrayUniqueAgg) else value
    rows = exp.Filter(
        this=exp.Anonymous(this="LIST", expressions=[given]),
        expression=exp.Where(this=exp.and_(condition.copy(), present)),
    )
    return exp.Coalesce(this=rows, expressions=[exp.Array(expressions=[])])


class Fragments:
    """Executes a query in fragments, each with cuts of its own; one gets no further than those it reads."""

    def __init__(self, case: Case, parts: Sequence[Part]) -> None:
        """The parts of a plan, each behind those that it reads."""
        self.case = case
        self.parts = parts
        self.logs: dict[str, pa.Table] = {}

    def run(self, cuttings: Sequence[tuple[Sequence[int], Sequence[bool]]]) -> list[Change]:
        changes: list[Change] = []
        for part, (cuts, moves) in zip(self.parts, itertools.cycle(cuttings)):
            programs = variants(part.plan, as_elements=part.log is not None)
            duck = Duck(self.case, programs, self.logs, part.plan.opens)
            changes = duck.run(cuts, moves)
            if part.log is not None:
                self.logs[part.log] = pa.concat_tables(duck.elements)
        return changes


class Duck:
    """Executes a query; `moves` says after which epochs the state is moved forward.

    The programs of the query take turns, epoch by epoch: they work on the same synopses. What the output and the
    synopses share is computed once an epoch, as a table; everything else is part of the statement that needs it.
    """

    def __init__(
        self, case: Case, programs: Sequence[Program], logs: Mapping[str, pa.Table] | None = None, opens: bool = True
    ) -> None:
        self.case = case
        self.skips = logs is not None
        """Whether epochs are left out in which nothing can happen."""
        self.opens = opens
        self.logs = logs or {}
        self.elements: list[pa.Table] = []
        self.programs = programs
        assert len({tuple(synopsis.name for synopsis in program.synopses) for program in programs}) == 1
        self.database = shared().cursor()
        self.database.execute("PRAGMA disable_optimizer")  # planning takes longer than running
        self.computed: set[str] = set()
        self.laid: set[str] = set()
        self.denied: frozenset[Assumption] = frozenset()
        self.turn(0)

    def turn(self, epoch: int) -> None:
        self.program = self.programs[epoch % len(self.programs)]
        self.tables = _tables(self.program)

    def run(self, cuts: Iterable[int], moves: Iterable[bool]) -> list[Change]:
        since = after = self.program.domain.origin - 1
        changes: list[Change] = []
        first = True
        for epoch, (until, move) in enumerate(zip(cuts, moves, strict=True)):
            self.turn(epoch)
            last = until == max(cuts) and first  # so that there is a result to read
            if (
                self.skips
                and not last
                and not (first and self.opens)
                and not self.programs[0].happens(after, until, self.has_rows)
            ):
                after = until
                since = since if self.program.synopses else until
                continue
            first = False
            try:
                self.respect(since, until)
                self.turn(epoch)
                found = self.epoch(since, after, until, move)
            except duckdb.Error as error:
                if DOES_NOT_FIT not in str(error):
                    raise
                self.programs = [
                    program.for_all_doubles() if program.for_all_doubles else program for program in self.programs
                ]
                self.widen(since, until)
                self.turn(epoch)
                found = self.epoch(since, after, until, move)
            changes += found
            since = until if move else since
            after = until
        self.database.close()
        return changes

    def respect(self, since: int, until: int) -> None:
        """Go on with programs that take nothing for granted which the rows of the epoch do not keep to."""
        wrong = {
            one
            for program in self.programs
            for one in program.assumed
            if not one.holds(self.values(program, one.stream, one.column, since, until))
        }
        if not wrong:
            return
        self.denied |= wrong
        self.programs = [program.denying(self.denied) if program.denying else program for program in self.programs]
        self.widen(since, until)

    def widen(self, since: int, until: int) -> None:
        """Give the synopses the columns of other programs, which take less for granted."""
        self.turn(0)
        self.lay_inputs(since, until)
        for synopsis in self.program.synopses:
            self.compute(synopsis.shape, since, until)
            empty = f"FROM {synopsis.shape} WHERE FALSE"
            kept = f"{empty} UNION ALL BY NAME FROM {synopsis.name}" if synopsis.name in self.laid else empty
            self.database.execute(f"CREATE OR REPLACE TEMP TABLE widened AS {kept}")
            self.create(synopsis.name, "FROM widened")
            self.laid.add(synopsis.name)

    def values(self, program: Program, stream: str, column: str, since: int, until: int) -> Values:
        """The null count and range of a column in the rows that an epoch reads."""
        schema = {**self.case.streams, **self.case.relations}[stream]
        ranges = [source.range(since, until) for source in program.inputs if source.stream == stream]
        rows = [
            row[list(schema).index(column)]
            for ts, row, _ in self.case.input.get(stream, [])
            if any((low is None or ts > low) and ts <= high for low, high in ranges)
        ]
        there = [value for value in rows if value is not None]
        if not there or not all(map(isfinite, there)):
            return Values(len(rows), len(rows) - len(there))
        return Values(len(rows), len(rows) - len(there), min(there), max(there))

    def epoch(self, since: int, after: int, until: int, move: bool) -> list[Change]:
        changes: list[Change] = []
        self.lay_inputs(since, until)
        self.lay_synopses(since, until)
        self.compute(self.program.result, since, until)
        output = self.database.sql(f"FROM {self.program.result} WHERE _t > {after}")
        elements = [output.to_arrow_table()] if self.program.kind == "elements" else []
        for *values, ts, count in output.fetchall() if self.program.kind != "elements" else ():
            assert after < ts <= until, f"an epoch ({after}, {until}] put out something at {ts}"
            changes.append((ts, "+" if count > 0 else "-", tuple(values)))
        if move:
            self.move(since, until)
        self.elements += elements
        return changes

    def compute(self, target: str, since: int, until: int) -> None:
        """The tables that the target needs and that this epoch has not computed yet, in order."""
        needed = self.program.needed(target) - self.computed
        inline: dict[str, str] = {}
        for name, step in self.program.steps.items():
            if name in needed:
                inline[name] = transpiled(step.sql).replace("$since", f"({since})").replace("$until", f"({until})")
                if name in self.tables:
                    self.create(name, self.statement(name, inline))
                    self.computed.add(name)

    def statement(self, name: str, inline: dict[str, str]) -> str:
        reached = _reached(self.program, name, self.tables)
        steps = ", ".join(f"{step} AS ({sql})" for step, sql in inline.items() if step in reached)
        return f"WITH {steps} {inline[name]}" if steps else inline[name]

    def create(self, name: str, sql: str) -> None:
        self.database.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")

    def lay_inputs(self, since: int, until: int) -> None:
        self.computed.clear()
        for source in self.program.inputs:
            self.lay(source, *source.range(since, until))

    def lay(self, source: Input, low: int | None, high: int | None) -> None:
        if source.stream in self.logs:
            self.lay_part(source, low, high)
            return
        schema = {**self.case.streams, **self.case.relations}[source.stream]
        columns = [
            *((name, sql_type(kind)) for name, kind in schema.items()),
            *((name, "BIGINT") for name in ("_t", "_s", "_n")),
        ]
        rows = [
            (*row, ts, position, 1 if sign == "+" else -1)
            for position, (ts, row, sign) in enumerate(self.case.input.get(source.stream, []))
            if (low is None or ts > low) and (high is None or ts <= high)
        ]
        self.create(source.name, table_of(columns, rows))

    def has_rows(self, stream: str, low: int | None, high: int) -> bool:
        stamps = (
            self.logs[stream]["_t"].to_pylist()
            if stream in self.logs
            else [ts for ts, *_ in self.case.input.get(stream, [])]
        )
        return any((low is None or low < ts) and ts <= high for ts in stamps)

    def lay_part(self, source: Input, low: int | None, high: int | None) -> None:
        """What another fragment put out: the columns, `_t`, `_x` and `_n`."""
        self.database.register("elements", self.logs[source.stream])
        within = [f"_t > {low}" if low is not None else "", f"_t <= {high}" if high is not None else ""]
        self.create(source.name, f"FROM elements WHERE {' AND '.join(filter(None, within)) or 'TRUE'}")

    def lay_synopses(self, since: int, until: int) -> None:
        """Create the synopses, empty, before the first epoch; the steps that tell their columns serve that epoch."""
        for synopsis in self.program.synopses:
            if synopsis.name not in self.laid:
                self.compute(synopsis.shape, since, until)
                self.create(synopsis.name, f"FROM {synopsis.shape} WHERE FALSE")
                self.laid.add(synopsis.name)

    def move(self, since: int, until: int) -> None:
        for synopsis in self.program.synopses:
            for way in synopsis.ways():
                self.compute(way, since, until)
        for synopsis in self.program.synopses:
            contents, *others = [
                sorted(self.database.sql(f"FROM {way}").fetchall(), key=repr) for way in synopsis.ways()
            ]
            assert all(other == contents for other in others), f"{synopsis.name}: {contents} and from logs {others}"
            self.create(synopsis.name, f"FROM {synopsis.contents}")


def _tables(program: Program) -> set[str]:
    """The steps that become tables: the output, the contents and shapes of synopses, and what several of them share."""
    targets = {program.result, *(name for synopsis in program.synopses for name in (*synopsis.ways(), synopsis.shape))}
    needing: dict[str, set[str]] = {name: set() for name in program.steps}
    for target in targets:
        for name in program.needed(target) & needing.keys():
            needing[name].add(target)
    border = {
        read
        for name, step in program.steps.items()
        for read in step.reads
        if needing.get(read, needing[name]) != needing[name]
    }
    return targets | border


def _reached(program: Program, target: str, tables: set[str]) -> set[str]:
    """The steps that the statement of a table holds: what it reads, up to other tables."""
    found: set[str] = set()
    waiting = list(program.steps[target].reads)
    while waiting:
        name = waiting.pop()
        if name in program.steps and name not in tables and name not in found:
            found.add(name)
            waiting.extend(program.steps[name].reads)
    return found
