"""CQL's meaning, written from its formal definition: the relation at every instant, recomputed from all tuples.

Slow, plain, and independent of the compiler: of the rest of headgate it uses only the syntax. For each instant from 0 to the
horizon the bags behind FROM are worked out from the tuples, relational SQL over them is evaluated by DuckDB, and
Istream, Dstream and Rstream compare consecutive instants as bags. Time is integer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Literal

from sqlglot import exp

from headgate.cql.dialect import parse
from headgate.cql.syntax import StreamOf, StreamWindow, WindowedQuery
from headgate.errors import NotYet, UserError
from headgate.testing.cases import FUNCTIONS, Case, Change, Row, sql_type

SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 604800}


@dataclass(frozen=True)
class TupleStream:
    """All tuples up to the horizon, ordered by timestamp, ties in the order of arrival."""

    columns: list[tuple[str, str]]
    tuples: list[tuple[int, Row]]


@dataclass(frozen=True)
class VaryingRelation:
    """The bag of rows at each instant from 0 to the horizon."""

    columns: list[tuple[str, str]]
    bags: list[list[Row]]


def evaluate(case: Case) -> tuple[Literal["stream", "relation"], list[Change]]:
    """The answer to the case's query: of a stream its tuples, of a relation its changes."""
    reference = _Reference(case)
    tree = parse(case.query)[0]
    answer = reference.query(tree)
    if isinstance(answer, VaryingRelation) and reference.monotonic(tree):
        answer = reference.istream(answer)
    if isinstance(answer, TupleStream):
        return "stream", [(ts, "+", row) for ts, row in answer.tuples]
    changes: list[Change] = []
    before: Counter[Row] = Counter()
    for instant, bag in enumerate(answer.bags):
        now = Counter(bag)
        changes += [(instant, "-", row) for row in (before - now).elements()]
        changes += [(instant, "+", row) for row in (now - before).elements()]
        before = now
    return "relation", changes


class _Reference:
    def __init__(self, case: Case) -> None:
        try:
            import duckdb
        except ImportError:
            raise UserError("no-duckdb", "the reference evaluator needs DuckDB", hint="pip install 'headgate[testing]'") from None
        self.case = case
        self.database = _shared(duckdb).cursor()  # its own temporary tables
        self.database.execute("SET integer_division = true; SET error_on_division_by_zero = false; PRAGMA disable_optimizer")  # planning takes longer than running
        self.tables = 0
        self.named: dict[str, TupleStream | VaryingRelation] = {}
        self.growing: set[str] = set()
        for name, schema in case.streams.items():
            tuples = [(ts, row) for ts, row, _ in case.input.get(name, []) if ts <= case.horizon]
            self.named[name.lower()] = TupleStream(_columns(schema), sorted(tuples, key=lambda entry: entry[0]))
        for name, schema in case.relations.items():
            self.named[name.lower()] = self.changelog(_columns(schema), case.input.get(name, []))
            if all(sign == "+" for _, _, sign in case.input.get(name, [])):
                self.growing.add(name.lower())
        for view in case.views:
            tree = parse(view.query)[0]
            found = self.query(tree)
            if isinstance(found, VaryingRelation) and self.monotonic(tree):
                self.growing.add(view.name.lower())
                found = self.istream(found)
            if view.columns:
                columns = [(name, kind) for name, (_, kind) in zip(view.columns, found.columns, strict=True)]
                found = type(found)(columns, found.tuples if isinstance(found, TupleStream) else found.bags)  # type: ignore[arg-type]
            self.named[view.name.lower()] = found

    def changelog(self, columns: list[tuple[str, str]], entries: list[tuple[int, Row, str]]) -> VaryingRelation:
        bags, held = [], Counter[Row]()
        for instant in range(self.case.horizon + 1):
            for ts, row, sign in entries:
                if ts == instant:
                    held[row] += 1 if sign == "+" else -1
            bags.append(list(held.elements()))
        return VaryingRelation(columns, bags)

    # queries

    def query(self, tree: exp.Expression) -> TupleStream | VaryingRelation:
        match tree:
            case StreamOf() if tree.args.get("query") is not None:
                return self.operator(tree.args["kind"], tree.args["query"])
            case WindowedQuery():
                return self.window(self.stream(tree.this), tree.args["window"])
            case exp.Subquery() if tree.args.get("window"):
                return self.window(self.stream(tree.this), tree.args["window"])
            case exp.Subquery() if not tree.args.get("joins"):
                return self.query(tree.this)
            case exp.Select():
                operator, plain_query = _without_operator(tree)
                return self.operator(operator, plain_query) if operator else self.relational(tree)
            case exp.SetOperation():
                return self.relational(tree)
            case _:
                raise NotYet(f"a query of the form {type(tree).__name__}")

    def relation(self, tree: exp.Expression) -> VaryingRelation:
        found = self.query(tree)
        return self.unbounded(found) if isinstance(found, TupleStream) else found

    def stream(self, tree: exp.Expression) -> TupleStream:
        """A query behind which a window stands."""
        found = self.query(tree)
        if isinstance(found, TupleStream):
            return found
        if self.monotonic(tree):
            return self.istream(found)
        raise UserError("window-over-relation", "a window needs a stream")

    def operator(self, kind: str, tree: exp.Expression) -> TupleStream:
        in_order = self.in_order_of_arrival(kind, tree)
        if in_order is not None:
            return in_order
        relation = self.relation(tree)
        return {"ISTREAM": self.istream, "DSTREAM": self.dstream, "RSTREAM": self.rstream}[kind](relation)

    def istream(self, relation: VaryingRelation) -> TupleStream:
        return self.streamed(relation, lambda before, now: now - before)

    def dstream(self, relation: VaryingRelation) -> TupleStream:
        return self.streamed(relation, lambda before, now: before - now)

    def rstream(self, relation: VaryingRelation) -> TupleStream:
        return self.streamed(relation, lambda before, now: now)

    def streamed(self, relation: VaryingRelation, chosen: Callable[[Counter[Row], Counter[Row]], Counter[Row]]) -> TupleStream:
        tuples, before = [], Counter[Row]()
        for instant, bag in enumerate(relation.bags):
            now = Counter(bag)
            tuples += [(instant, row) for row in sorted(chosen(before, now).elements(), key=_by_value)]
            before = now
        return TupleStream(relation.columns, tuples)

    # windows

    def unbounded(self, stream: TupleStream) -> VaryingRelation:
        return self.held(stream, lambda instant: [row for ts, row in stream.tuples if ts <= instant])

    def held(self, stream: TupleStream, bag: Callable[[int], list[Row]]) -> VaryingRelation:
        return VaryingRelation(stream.columns, [bag(instant) for instant in range(self.case.horizon + 1)])

    def window(self, stream: TupleStream, window: StreamWindow) -> VaryingRelation:
        given = window.args
        slide = self.units(given["slide"], given.get("slide_unit")) if given.get("slide") else 1
        match given["kind"]:
            case "NOW":
                return self.held(stream, lambda instant: [row for ts, row in stream.tuples if ts == instant])
            case "UNBOUNDED":
                return self.unbounded(stream)
            case "RANGE" if given.get("on") is None:
                length = self.units(given["amount"], given.get("unit"))
                return self.held(stream, lambda instant: self.last(stream, instant // slide * slide, length))
            case "ROWS" if given.get("slide") is None:
                names = [name.lower() for name, _ in stream.columns]
                by = [names.index(column.name.lower()) for column in given.get("partition") or ()]
                lasting = self.units(given["range"], given.get("range_unit")) if given.get("range") else None
                return self.held(stream, lambda instant: self.tail(stream, instant, int(given["amount"]), by, lasting))
            case _:
                raise NotYet("this window")

    def last(self, stream: TupleStream, instant: int, length: int) -> list[Row]:
        return [row for ts, row in stream.tuples if self.first_of(instant, length) <= ts <= instant]

    def tail(self, stream: TupleStream, instant: int, count: int, by: list[int], length: int | None) -> list[Row]:
        groups: dict[Row, list[tuple[int, Row]]] = {}
        for ts, row in stream.tuples:
            if ts <= instant:
                groups.setdefault(tuple(row[position] for position in by), []).append((ts, row))
        last = [entry for rows in groups.values() for entry in (rows[-count:] if count else [])]
        return [row for ts, row in last if length is None or self.first_of(instant, length) <= ts]

    def first_of(self, instant: int, length: int) -> int:
        return max(instant - length, 0) if self.case.range == "closed" else instant - length + 1

    def units(self, amount: str, unit: str | None) -> int:
        length = Fraction(amount)
        if unit is not None and unit != "TICK":
            length = length * SECONDS[unit] / self.case.unit_seconds
        if length.denominator != 1:
            raise UserError("not-whole-ticks", f"{amount} {unit} is not a whole number of time units")
        return int(length)

    # relational SQL

    def relational(self, tree: exp.Expression) -> VaryingRelation:
        """Work out what stands behind FROM, then let DuckDB evaluate the SQL once for each instant."""
        copy = tree.copy()
        if self.case.dialect == "stream":
            for operation in copy.find_all(exp.SetOperation):  # on bare names, Stanford's prototype means bags
                if operation.this.meta.get("bare") and operation.expression.meta.get("bare"):
                    operation.set("distinct", False)
        inputs: dict[str, VaryingRelation] = {}
        copy = self.detached(copy, inputs)
        sql = copy.sql("duckdb")
        bags: list[list[Row]] = []
        columns: list[tuple[str, str]] = []
        seen: tuple[list[Row], ...] | None = None
        for instant in range(self.case.horizon + 1):
            contents = tuple(relation.bags[instant] for relation in inputs.values())
            if contents == seen:
                bags.append(bags[-1])
                continue
            seen = contents
            for (name, relation), rows in zip(inputs.items(), contents, strict=True):
                self.fill(name, relation.columns, rows)
            columns, rows = self.run(sql)
            bags.append(self.without_empty_aggregate(tree, rows, contents))
        return VaryingRelation(columns, bags)

    def without_empty_aggregate(self, tree: exp.Expression, rows: list[Row], contents: tuple[list[Row], ...]) -> list[Row]:
        if self.case.empty_aggregate == "no-row" and isinstance(tree, exp.Select) and not tree.args.get("group"):
            if any(map(_is_aggregate, tree.expressions)) and not all(contents):
                return []
        return rows

    def detached(self, tree: exp.Expression, inputs: dict[str, VaryingRelation]) -> exp.Expression:
        """The tree with every stream, windowed query and view in FROM replaced by a table of its current rows."""
        if isinstance(tree, exp.Subquery) and (tree.args.get("window") or _alias_window(tree) or _gives_stream(tree.this)):
            window = tree.args.get("window") or _alias_window(tree)
            relation = self.window(self.stream(tree.this), window) if window else self.relation(tree.this)
            return self.table(relation, tree.alias, inputs)
        if isinstance(tree, exp.Table):
            found = self.named.get(tree.name.lower())
            if found is None:
                if any(tree.name.lower() == name for name in _cte_names(tree)):
                    return tree
                raise UserError("no-such-stream", f'stream "{tree.name}" does not exist')
            window = tree.args.get("window") or _alias_window(tree)
            if isinstance(found, TupleStream):
                found = self.window(found, window) if window else self.unbounded(found)
            return self.table(found, tree.alias or tree.name, inputs, tree.args.get("joins"))
        for child in list(tree.iter_expressions()):
            changed = self.detached(child, inputs)
            if changed is not child:
                child.replace(changed)
        return tree

    def table(
        self, relation: VaryingRelation, alias: str, inputs: dict[str, VaryingRelation], joins: Any = None
    ) -> exp.Expression:
        self.tables += 1
        name = f"input_{self.tables}"
        inputs[name] = relation
        table = exp.to_table(name)
        table.set("alias", exp.TableAlias(this=exp.to_identifier(alias or f"q{self.tables}")))
        if joins:
            table.set("joins", joins)
        return table

    def fill(self, name: str, columns: list[tuple[str, str]], rows: list[Row]) -> None:
        self.database.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {table_of(columns, rows)}")

    def run(self, sql: str) -> tuple[list[tuple[str, str]], list[Row]]:
        cursor = self.database.execute(sql)
        columns = [(entry[0], str(entry[1])) for entry in cursor.description]
        return _unique(columns), [tuple(row) for row in cursor.fetchall()]

    def in_order_of_arrival(self, kind: str, tree: exp.Expression) -> TupleStream | None:
        """A query that only selects and projects from one stream keeps its order among equal timestamps."""
        while isinstance(tree, exp.Subquery) and not tree.args.get("window"):
            tree = tree.this
        if not isinstance(tree, exp.Select) or tree.args.get("joins") or tree.args.get("distinct"):
            return None
        source = tree.args["from_"].this
        window = source.args.get("window") or _alias_window(source)
        frame = window.args["kind"] if window is not None else "UNBOUNDED"
        shape = {part for part, value in tree.args.items() if value} - {"expressions", "from_", "where"}
        if (kind, frame) not in (("ISTREAM", "UNBOUNDED"), ("RSTREAM", "NOW")) or shape:
            return None
        if any(_is_aggregate(item) or item.find(exp.Select) for item in [*tree.expressions, tree.args.get("where")] if item):
            return None
        if isinstance(source, exp.Table):
            stream = self.named.get(source.name.lower())
        elif isinstance(source, exp.Subquery) and (window is not None or _gives_stream(source.this)):
            stream = self.stream(source.this)
        else:
            return None
        if not isinstance(stream, TupleStream):
            return None
        copy = tree.copy()
        holder: dict[str, VaryingRelation] = {}
        columns = [*stream.columns, ("_position", "BIGINT")]
        alias = source.alias or (source.name if isinstance(source, exp.Table) else "")
        copy.args["from_"].set("this", self.table(VaryingRelation(columns, []), alias, holder))
        items = []
        for item in copy.expressions:  # * must not take the position along
            star = isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
            items += [exp.column(exp.to_identifier(name, quoted=True)) for name, _ in stream.columns] if star else [item]
        copy.set("expressions", [*items, exp.column("_position")])
        (name,) = holder
        self.fill(name, columns, [(*row, position) for position, (_, row) in enumerate(stream.tuples)])
        found, rows = self.run(copy.sql("duckdb"))
        ordered = sorted(rows, key=lambda row: row[-1])
        return TupleStream(found[:-1], [(stream.tuples[row[-1]][0], row[:-1]) for row in ordered])

    def monotonic(self, tree: exp.Expression) -> bool:
        """Rows never go away, by the look of it."""
        if tree.find(exp.Except, exp.Intersect, exp.Group, exp.Having, exp.Limit, exp.Window) or _is_aggregate(tree):
            return False
        if any(join.args.get("side") for join in tree.find_all(exp.Join)):
            return False
        if any(where.find(exp.Select, exp.Exists) for where in tree.find_all(exp.Where)):
            return False
        if isinstance(tree, WindowedQuery) and tree.args["window"].args["kind"] != "UNBOUNDED":
            return False
        for source in tree.find_all(exp.Table, exp.Subquery):
            window = source.args.get("window") or _alias_window(source)
            if window is not None and window.args["kind"] != "UNBOUNDED":
                return False
            if isinstance(source, exp.Table):
                found = self.named.get(source.name.lower())
                if isinstance(found, VaryingRelation) and source.name.lower() not in self.growing:
                    return False
        return True


@cache
def _shared(duckdb: Any) -> Any:
    """One database for all evaluations: starting one takes longer than most of them."""
    database = duckdb.connect(":memory:")
    database.execute("SET threads = 1")
    for name, (parameter, body) in FUNCTIONS.items():
        database.execute(f"CREATE MACRO {name}({parameter}) AS {body}")
    return database


def _columns(schema: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, sql_type(kind)) for name, kind in schema.items()]


def table_of(columns: list[tuple[str, str]], rows: list[Row]) -> str:
    """A query that gives the rows."""
    names = [f'"{name}"' for name, _ in columns]
    typed = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, (_, kind) in zip(names, columns, strict=True))
    lines = rows or [tuple(None for _ in columns)]
    listed = ", ".join(f"({', '.join(map(_literal, row))})" for row in lines)
    return f"SELECT {typed} FROM (VALUES {listed}) AS given({', '.join(names)}){'' if rows else ' WHERE FALSE'}"


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool() | int():
            return str(value)
        case float() if math.isfinite(value):
            return f"CAST({value!r} AS DOUBLE)"
        case list():
            return f"[{', '.join(map(_literal, value))}]"
        case _:
            return "'" + str(value).replace("'", "''") + "'"


def _unique(columns: list[tuple[str, str]]) -> list[tuple[str, str]]:
    counts: Counter[str] = Counter()
    result = []
    for name, kind in columns:
        counts[name.lower()] += 1
        result.append((name if counts[name.lower()] == 1 else f"{name}_{counts[name.lower()]}", kind))
    return result


def _by_value(row: Row) -> tuple[Any, ...]:
    return tuple((value is not None, value) for value in row)


def _without_operator(tree: exp.Select) -> tuple[str, exp.Expression]:
    """The operator of a select list, and the select without it."""
    first = tree.expressions[0] if tree.expressions else None
    if not isinstance(first, StreamOf):
        return "", tree
    copy = tree.copy()
    copy.set("expressions", first.expressions)
    if first.args.get("distinct"):
        copy.set("distinct", exp.Distinct())
    return first.args["kind"], copy


def _gives_stream(tree: exp.Expression) -> bool:
    return isinstance(tree, StreamOf) or (isinstance(tree, exp.Select) and bool(_without_operator(tree)[0]))


def _alias_window(tree: exp.Expression) -> StreamWindow | None:
    alias = tree.args.get("alias")
    return alias.args.get("window") if isinstance(alias, exp.TableAlias) else None


def _cte_names(tree: exp.Expression) -> set[str]:
    names, node = set(), tree.parent
    while node is not None:
        with_ = node.args.get("with_")
        names |= {cte.alias.lower() for cte in with_.expressions} if with_ else set()
        node = node.parent
    return names


def _is_aggregate(tree: exp.Expression | None) -> bool:
    """Whether an aggregate of the query itself stands in the expression, not one of a query inside it."""
    if tree is None or isinstance(tree, exp.Subquery | exp.Window):
        return False
    if isinstance(tree, exp.AggFunc | exp.Filter | exp.WithinGroup):
        return True
    return any(_is_aggregate(child) for child in tree.iter_expressions())
