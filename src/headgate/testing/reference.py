"""CQL's meaning, written from its formal definition: the relation at every instant, recomputed from all tuples.

Slow, plain, and independent of the compiler: of the rest of headgate it uses only the syntax. For each instant from 0
to the horizon the bags behind FROM are worked out from the tuples, relational SQL over them is evaluated by DuckDB, and
Istream, Dstream and Rstream compare consecutive instants as bags. Time is integer."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any, Literal, TypeAlias

from sqlglot import exp

from headgate.cql.dialect import parse
from headgate.cql.syntax import StreamOf, StreamWindow, WindowedQuery
from headgate.errors import NotYet, UserError
from headgate.testing import numbers
from headgate.testing.cases import FUNCTIONS, Case, Change, Row, sql_type

ORDERED = (
    exp.First,
    exp.Last,
    exp.FirstValue,
    exp.LastValue,
    exp.AnyValue,
    exp.ArrayAgg,
    exp.ArrayUniqueAgg,
    exp.ArgMax,
    exp.ArgMin,
)
"""Aggregates whose value depends on the order of the rows, or would if ties were left open."""

SECONDS: dict[str, Fraction] = {
    "NANOSECOND": Fraction(1, 10**9),
    "MICROSECOND": Fraction(1, 10**6),
    "MILLISECOND": Fraction(1, 1000),
    "SECOND": Fraction(1),
    "MINUTE": Fraction(60),
    "HOUR": Fraction(3600),
    "DAY": Fraction(86400),
    "WEEK": Fraction(604800),
}


Possible: TypeAlias = dict[str, dict[Any, int]]
"""Columns that follow from time, by name in lower case: the last instant at which each value can occur. ELEMENT_TIME is
one.
"""

FURTHEST = 20
"""How far beyond the horizon time is looked at for that."""


@dataclass(frozen=True)
class TupleStream:
    """All tuples up to the horizon, ordered by timestamp, ties in the order of arrival."""

    columns: list[tuple[str, str]]
    tuples: list[tuple[int, Row]]
    possible: Possible = field(default_factory=dict)


@dataclass(frozen=True)
class VaryingRelation:
    """The bag of rows at each instant from 0 to the horizon; of a window, also the timestamp and place in the stream of
    each.
    """

    columns: list[tuple[str, str]]
    bags: list[list[Row]]
    stamps: list[list[tuple[int, int]]] | None = None
    possible: Possible = field(default_factory=dict)


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
            raise UserError(
                "no-duckdb", "the reference evaluator needs DuckDB", hint="pip install 'headgate[testing]'"
            ) from None
        self.case = case
        self.database = _shared(duckdb).cursor()  # its own temporary tables
        self.database.execute(
            "SET integer_division = true; SET error_on_division_by_zero = false; PRAGMA disable_optimizer"
        )  # planning takes longer than running
        self.tables = 0
        self.named: dict[str, TupleStream | VaryingRelation] = {}
        self.growing: set[str] = set()
        self.sliding: dict[str, set[int]] = {}
        self.finals = any("final" in text.lower() for text in (case.query, *(view.query for view in case.views)))
        """Whether anybody asks what of a relation follows from time."""
        kinds = {
            sql_type(kind) for schema in (*case.streams.values(), *case.relations.values()) for kind in schema.values()
        }
        self.doubles = bool(kinds & {"DOUBLE", "FLOAT"})
        """Whether there are numbers to be summed as doubles: then exactly, and rounded once."""
        for name, schema in case.streams.items():
            tuples = [(ts, row) for ts, row, _ in case.input.get(name, []) if ts <= case.horizon]
            self.named[name.lower()] = TupleStream(_columns(schema), sorted(tuples, key=lambda entry: entry[0]))
        for name, schema in case.relations.items():
            self.named[name.lower()] = self.changelog(
                _columns(schema), case.input.get(name, []), case.keys.get(name, ())
            )
            if not case.keys.get(name) and all(sign == "+" for _, _, sign in case.input.get(name, [])):
                self.growing.add(name.lower())
        for view in case.views:
            tree = parse(view.query)[0]
            found = self.query(tree)
            self.sliding[view.name.lower()] = self.slides(tree)
            if isinstance(found, VaryingRelation) and self.monotonic(tree):
                self.growing.add(view.name.lower())
                found = self.istream(found)
            alias = exp.TableAlias(columns=[exp.to_identifier(name) for name in view.columns])
            self.named[view.name.lower()] = _renamed(found, alias)

    def changelog(
        self, columns: list[tuple[str, str]], entries: list[tuple[int, Row, str]], key: tuple[str, ...]
    ) -> VaryingRelation:
        """Rows put in and taken out. By a key, a row put in replaces the one there, and one taken out need only have
        the key.
        """
        places = [[name for name, _ in columns].index(column) for column in key]
        bags, held = [], Counter[Row]()
        for instant in range(self.case.horizon + 1):
            for ts, row, sign in entries:
                if ts != instant:
                    continue
                if key:
                    for other in [other for other in held if all(other[place] == row[place] for place in places)]:
                        del held[other]
                if not key or sign == "+":
                    held[row] += 1 if sign == "+" else -1
            bags.append(list(held.elements()))
        return VaryingRelation(columns, bags)

    # queries

    def query(self, tree: exp.Expression) -> TupleStream | VaryingRelation:
        match tree:
            case StreamOf() if tree.args.get("query") is not None:
                return self.operator(tree, tree.args["query"])
            case WindowedQuery():
                return self.window(self.stream(tree.this), tree.args["window"])
            case exp.Subquery() if tree.args.get("window"):
                return self.window(self.stream(tree.this), tree.args["window"])
            case exp.Subquery() if not tree.args.get("joins"):
                return self.query(tree.this)
            case exp.Select() if tree.args.get("final"):
                return self.final(tree)
            case exp.Select():
                operator, plain_query = _without_operator(tree)
                return self.operator(operator, plain_query) if operator is not None else self.relational(tree)
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
            return self.in_order_of_arrival("ISTREAM", tree) or self.istream(found)
        raise UserError("window-over-relation", "a window needs a stream")

    def operator(self, written: StreamOf, tree: exp.Expression) -> TupleStream:
        kind = written.args["kind"]
        in_order = self.in_order_of_arrival(kind, tree)
        if in_order is not None:
            every = self.every(written, tree)
            return TupleStream(
                in_order.columns, [(ts, row) for ts, row in in_order.tuples if ts % every == 0], in_order.possible
            )
        relation = self.relation(tree)
        match kind:
            case "ISTREAM":
                return self.istream(relation)
            case "DSTREAM":
                return self.streamed(relation, lambda before, now: before - now)
            case _:
                return self.streamed(relation, lambda before, now: now, self.every(written, tree))

    def every(self, written: StreamOf, tree: exp.Expression) -> int:
        """Rstream speaks at the multiples of this."""
        if written.args.get("at_slide"):
            slides = self.slides(tree)
            if len(slides) != 1:
                raise UserError("no-slide", "EMIT AT SLIDE needs one slide that all sliding windows share")
            return slides.pop()
        return self.units(written.args["every"], written.args.get("every_unit")) if written.args.get("every") else 1

    def slides(self, tree: exp.Expression) -> set[int]:
        """By how much the time windows of a query slide, those of its views included, but not those below a stream."""
        windows = [tree.args.get("window"), _alias_window(tree)]
        found = {self.slide(window) for window in windows if window is not None and _slides_in_time(window)}
        if any(windows) or _gives_stream(tree):
            return found
        if isinstance(tree, exp.Table):
            return found | self.sliding.get(tree.name.lower(), set())
        return found.union(*(self.slides(child) for child in tree.iter_expressions()))

    def istream(self, relation: VaryingRelation) -> TupleStream:
        found = self.streamed(relation, lambda before, now: now - before)
        return TupleStream(found.columns, found.tuples, relation.possible)

    def streamed(
        self, relation: VaryingRelation, chosen: Callable[[Counter[Row], Counter[Row]], Counter[Row]], every: int = 1
    ) -> TupleStream:
        tuples, before = [], Counter[Row]()
        for instant, bag in enumerate(relation.bags):
            now = Counter(bag)
            if instant % every == 0:
                tuples += [(instant, row) for row in sorted(chosen(before, now).elements(), key=_by_value)]
            before = now
        return TupleStream(relation.columns, tuples)

    # windows

    def unbounded(self, stream: TupleStream) -> VaryingRelation:
        return self.held(stream, lambda instant: self.until(stream, instant))

    def held(self, stream: TupleStream, places: Callable[[int], list[int]], slide: int = 1) -> VaryingRelation:
        """The tuples at the places that a window holds at each instant, or held at the last multiple of its slide."""
        chosen = [places(instant // slide * slide) for instant in range(self.case.horizon + 1)]
        bags = [[stream.tuples[place][1] for place in some] for some in chosen]
        stamps = [[(stream.tuples[place][0], place) for place in some] for some in chosen]
        return VaryingRelation(stream.columns, bags, stamps, self.occurring(stream))

    def until(self, stream: TupleStream, instant: int) -> list[int]:
        return [place for place, (ts, _) in enumerate(stream.tuples) if ts <= instant]

    def window(self, stream: TupleStream, window: StreamWindow) -> VaryingRelation:
        given = window.args
        match given["kind"]:
            case "NOW":
                return self.held(stream, lambda instant: self.last(stream, instant, instant))
            case "UNBOUNDED":
                return self.unbounded(stream)
            case "RANGE" if given.get("on") is not None:
                (attribute,) = _places(stream, [given["on"]])
                below = Fraction(given["amount"])
                return self.held(stream, lambda instant: self.largest(stream, instant, attribute, below))
            case "RANGE":
                length = self.units(given["amount"], given.get("unit"))
                first = self.first_of
                return self.held(stream, lambda now: self.last(stream, first(now, length), now), self.slide(window))
            case _:
                count, by = int(given["amount"]), _places(stream, given.get("partition") or [])
                lasting = self.units(given["range"], given.get("range_unit")) if given.get("range") else None
                if given.get("slide") is None or _slides_in_time(window):
                    return self.held(stream, lambda now: self.tail(stream, now, count, by, lasting), self.slide(window))
                step = int(given["slide"])
                return self.held(stream, lambda now: self.tail(stream, now, count, by, lasting, step))

    def slide(self, window: StreamWindow) -> int:
        return self.units(window.args["slide"], window.args.get("slide_unit")) if _slides_in_time(window) else 1

    def last(self, stream: TupleStream, first: int, instant: int) -> list[int]:
        return [place for place in self.until(stream, instant) if first <= stream.tuples[place][0]]

    def largest(self, stream: TupleStream, instant: int, attribute: int, length: Fraction) -> list[int]:
        """The tuples whose attribute is not further than a length below the largest there has been."""
        values = {place: stream.tuples[place][1][attribute] for place in self.until(stream, instant)}
        known = {place: value for place, value in values.items() if value is not None}
        lowest = max(known.values()) - length if known else 0
        closed = self.case.range == "closed"
        return [place for place, value in known.items() if value > lowest or (closed and value == lowest)]

    def tail(
        self, stream: TupleStream, instant: int, count: int, by: list[int], lasting: int | None = None, step: int = 1
    ) -> list[int]:
        """The last tuples of each partition, as of the last of its tuples whose number is a multiple of the step."""
        partitions: dict[Row, list[int]] = {}
        for place in self.until(stream, instant):
            partitions.setdefault(tuple(stream.tuples[place][1][column] for column in by), []).append(place)
        seen = [places[: len(places) // step * step] for places in partitions.values()]
        last = [place for places in seen for place in (places[-count:] if count else [])]
        return [
            place for place in last if lasting is None or self.first_of(instant, lasting) <= stream.tuples[place][0]
        ]

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
        for call in list(copy.find_all(exp.CountIf)):  # null over no rows in DuckDB, a count in SQL
            call.replace(exp.Count(this=exp.If(this=call.this.copy(), true=exp.Literal.number(1))))
        inputs: dict[str, VaryingRelation] = {}
        copy = self.detached(copy, inputs)
        if copy.find(*ORDERED) or any(map(_is_element_time, copy.find_all(exp.Column))):
            copy = _stamped(copy, inputs)
        if self.doubles:
            columns_of = [column for relation in inputs.values() for column in relation.columns]
            others = {name.lower() for name, kind in columns_of if kind not in ("DOUBLE", "FLOAT")}
            copy = copy.transform(_exactly, others)
        clocks = [node for node in copy.find_all(exp.CurrentTime, exp.Column) if _is_current_time(node)]
        clocks = [node.replace(exp.Literal.number(0)) for node in clocks]
        sql = copy.transform(_in_duckdb, copy=True).sql("duckdb")
        bags: list[list[Row]] = []
        columns: list[tuple[str, str]] = []
        seen: tuple[list[Row], ...] | None = None
        for instant in range(self.case.horizon + 1):
            contents = tuple(relation.bags[instant] for relation in inputs.values())
            for clock in clocks:
                clock.set("this", str(instant))
            if clocks:
                sql = copy.transform(_in_duckdb, copy=True).sql("duckdb")
            if contents == seen and not clocks:
                bags.append(bags[-1])
                continue
            seen = contents
            for (name, relation), rows in zip(inputs.items(), contents, strict=True):
                self.fill(name, relation.columns, rows)
            columns, rows = self.run(sql)
            bags.append(self.without_empty_aggregate(tree, rows, contents))
        possible = self.projected(tree, [name for name, _ in columns]) if self.finals else {}
        return VaryingRelation(columns, bags, possible=possible)

    def without_empty_aggregate(
        self, tree: exp.Expression, rows: list[Row], contents: tuple[list[Row], ...]
    ) -> list[Row]:
        if self.case.empty_aggregate == "no-row" and isinstance(tree, exp.Select) and not tree.args.get("group"):
            if any(map(_is_aggregate, tree.expressions)) and not all(contents):
                return []
        return rows

    def detached(self, tree: exp.Expression, inputs: dict[str, VaryingRelation]) -> exp.Expression:
        """The tree with every stream, windowed query, view and common table expression replaced by a table of its
        rows.
        """
        if tree.args.get("with_"):
            outside, with_ = self.named, tree.args["with_"].pop()
            for cte in with_.expressions:
                self.named = {**self.named, cte.alias.lower(): _renamed(self.query(cte.this), cte.args["alias"])}
            tree = self.detached(tree, inputs)
            self.named = outside
            return tree
        if _gives_stream(tree):
            return exp.select("*").from_(self.table(self.relation(tree), exp.TableAlias(), inputs))
        if isinstance(tree, exp.Subquery) and (
            tree.args.get("window") or tree.args.get("drawn") or _alias_window(tree) or _gives_stream(tree.this)
        ):
            window = tree.args.get("window") or _alias_window(tree)
            drawn = _sampled(self.stream(tree.this), tree) if window or tree.args.get("drawn") else None
            relation = (
                self.relation(tree.this)
                if drawn is None
                else self.window(drawn, window)
                if window
                else self.unbounded(drawn)
            )
            table = self.table(relation, tree.args.get("alias"), inputs)
            return exp.select("*").from_(table) if isinstance(tree.parent, exp.SetOperation) else table
        if isinstance(tree, exp.In) and [type(value) for value in tree.expressions] == [exp.Column]:
            (name,) = tree.expressions  # (a, b) In (R): a relation by its name
            if not name.table and name.name.lower() in self.named:
                tree.set("expressions", None)
                tree.set("query", exp.Subquery(this=exp.select("*").from_(exp.to_table(name.name))))
        if isinstance(tree, exp.Table):
            found = self.named.get(tree.name.lower())
            if found is None:
                raise UserError("no-such-stream", f'stream "{tree.name}" does not exist')
            window = tree.args.get("window") or _alias_window(tree)
            if isinstance(found, TupleStream):
                found = _sampled(found, tree)
                found = self.window(found, window) if window else self.unbounded(found)
            elif tree.args.get("drawn"):
                raise UserError("sample-of-relation", "SAMPLE needs a stream")
            alias = tree.args.get("alias") or exp.TableAlias(this=exp.to_identifier(tree.name))
            return self.table(found, alias, inputs, tree.args.get("joins"))
        for child in list(tree.iter_expressions()):
            changed = self.detached(child, inputs)
            if changed is not child:
                child.replace(changed)
        return tree

    def table(
        self,
        relation: VaryingRelation,
        alias: exp.TableAlias | None,
        inputs: dict[str, VaryingRelation],
        joins: Any = None,
    ) -> exp.Expression:
        self.tables += 1
        name = f"input_{self.tables}"
        inputs[name] = relation
        table = exp.to_table(name)
        given = alias.args if alias is not None else {}
        called = given.get("this") or exp.to_identifier(f"q{self.tables}")
        table.set("alias", exp.TableAlias(this=called, columns=given.get("columns")))
        if joins:
            table.set("joins", joins)
        return table

    def fill(self, name: str, columns: list[tuple[str, str]], rows: list[Row]) -> None:
        self.database.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {table_of(columns, rows)}")

    def run(self, sql: str) -> tuple[list[tuple[str, str]], list[Row]]:
        cursor = self.database.execute(sql)
        columns = [(entry[0], str(entry[1])) for entry in cursor.description]
        return _unique(columns), [tuple(map(_hashable, row)) for row in cursor.fetchall()]

    def in_order_of_arrival(self, kind: str, tree: exp.Expression) -> TupleStream | None:
        """A query that only selects and projects from one stream keeps its order among equal timestamps."""
        while isinstance(tree, exp.Subquery) and not tree.args.get("window"):
            tree = tree.this
        if not isinstance(tree, exp.Select) or tree.args.get("joins") or tree.args.get("distinct"):
            return None
        if tree.args.get("from_") is None:
            return None
        source = tree.args["from_"].this
        window = source.args.get("window") or _alias_window(source)
        frame = window.args["kind"] if window is not None else "UNBOUNDED"
        shape = {part for part, value in tree.args.items() if value} - {"expressions", "from_", "where"}
        if (kind, frame) not in (("ISTREAM", "UNBOUNDED"), ("RSTREAM", "NOW")) or shape:
            return None
        if any(
            _is_aggregate(item) or item.find(exp.Select, exp.Window)
            for item in [*tree.expressions, tree.args.get("where")]
            if item
        ):
            return None
        if isinstance(source, exp.Table):
            stream = self.named.get(source.name.lower())
        elif isinstance(source, exp.Subquery) and (
            window is not None or source.args.get("drawn") or _gives_stream(source.this)
        ):
            stream = self.stream(source.this)
        else:
            return None
        if not isinstance(stream, TupleStream):
            return None
        stream = _sampled(stream, source)
        copy = tree.copy()
        holder: dict[str, VaryingRelation] = {}
        columns = [*stream.columns, ("element_time", "BIGINT"), ("_position", "BIGINT")]
        alias = source.alias or (source.name if isinstance(source, exp.Table) else "q")
        alias_tree = exp.TableAlias(this=exp.to_identifier(alias))
        copy.args["from_"].set("this", self.table(VaryingRelation(columns, []), alias_tree, holder))
        items = []
        for item in copy.expressions:  # * must not take the position along
            star = isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
            items += (
                [exp.column(exp.to_identifier(name, quoted=True)) for name, _ in stream.columns] if star else [item]
            )
        copy.set("expressions", [*items, exp.column("_position")])
        (name,) = holder
        self.fill(name, columns, [(*row, ts, position) for position, (ts, row) in enumerate(stream.tuples)])
        found, rows = self.run(copy.sql("duckdb"))
        ordered = sorted(rows, key=lambda row: row[-1])
        possible = self.projected(tree, [name for name, _ in found[:-1]])
        return TupleStream(found[:-1], [(stream.tuples[row[-1]][0], row[:-1]) for row in ordered], possible)

    # EMIT FINAL

    def occurring(self, stream: TupleStream) -> Possible:
        return {
            **stream.possible,
            "element_time": {instant: instant for instant in range(self.case.horizon + FURTHEST)},
        }

    def final(self, tree: exp.Select) -> TupleStream:
        """Each row of the relation at the first instant at which all its inputs are beyond one of the values that close
        it.
        """
        operator, plain = _without_operator(tree)
        plain = plain.copy()
        plain.set("final", None)
        entries = {alias: possible for alias, possible in self.entries(tree) if possible}
        ways = []
        for values in _closing(tree):
            found = [self.values(value, entries) for value in values]
            reached = {alias for alias, _ in (one for one in found if one is not None)}
            if None not in found and reached == entries.keys():
                ways.append((values, [one[1] for one in found if one is not None]))
        if not ways:
            raise UserError("not-final", "EMIT FINAL needs values that grow with time")
        hidden = [
            exp.Coalesce(this=values[0].copy(), expressions=[one.copy() for one in values[1:]]) for values, _ in ways
        ]
        grouped = tree.args.get("group") is not None
        for number, value in enumerate(hidden):
            plain.append("expressions", exp.alias_(value.this if grouped else value, f"hidden_{number}"))
        relation = self.relational(plain)
        width = len(relation.columns) - len(ways)
        tuples = []
        for instant, bag in enumerate(relation.bags):
            final = [
                row for row in bag if min(_closed(maps, row[width + i]) for i, (_, maps) in enumerate(ways)) == instant
            ]
            tuples += [(instant, row[:width]) for row in sorted(final, key=_by_value)]
        names = [name for name, _ in relation.columns[:width]]
        shown = [_bare(item) for item in (operator or tree).expressions]
        possible = {}
        for values, maps in ways:
            every = {value for one in maps for value in one}
            place = next((i for i, item in enumerate(shown) if item == _bare(values[0])), None)
            if place is not None and len(shown) == len(names) and not _outer(tree):
                possible[names[place].lower()] = {value: _closed(maps, value) for value in every}
        return TupleStream(relation.columns[:width], tuples, possible)

    def entries(self, tree: exp.Select) -> list[tuple[str, Possible]]:
        """What stands behind FROM, by its name there, and what of it follows from time."""
        tables = [tree.args["from_"].this] if tree.args.get("from_") is not None else []
        result = []
        for table in [*tables, *(join.this for join in tree.args.get("joins") or ())]:
            found = self.named.get(table.name.lower()) if isinstance(table, exp.Table) else None
            if isinstance(table, exp.Subquery):
                found = self.query(table.this)
            possible = (
                self.occurring(found) if isinstance(found, TupleStream) else found.possible if found is not None else {}
            )
            result.append((table.alias_or_name, possible))
        return result

    def values(self, tree: exp.Expression, entries: dict[str, Possible]) -> tuple[str, dict[Any, int]] | None:
        """Of an expression over one column that follows from time: whose it is, and the last instant of each of its
        values.
        """
        read = {(column.table, column.name.lower()) for column in tree.find_all(exp.Column)}
        owners = [
            (alias, possible[name])
            for table, name in read
            for alias, possible in entries.items()
            if name in possible and table in ("", alias)
        ]
        if len(read) != 1 or len(owners) != 1:
            return None
        alias, known = owners[0]
        copy = tree.copy()
        for column in list(copy.find_all(exp.Column)):
            new = exp.column("v")
            copy = new if column is copy else copy
            column.replace(new)
        listed = ", ".join(f"({_literal(value)}, {last})" for value, last in known.items())
        sql = f"SELECT {copy.sql('duckdb')}, MAX(last) FROM (VALUES {listed}) AS known(v, last) GROUP BY 1"
        return alias, dict(self.database.execute(sql).fetchall()) if known else {}

    def projected(self, tree: exp.Expression, names: list[str]) -> Possible:
        """What of a selection, a projection or a union of such follows from time."""
        if tree.args.get("with_"):
            return {}
        if isinstance(tree, exp.Subquery):
            return self.projected(tree.this, names)
        if isinstance(tree, exp.Union) and not tree.args.get("distinct"):
            one, other = (self.projected(side, names) for side in (tree.this, tree.expression))
            values = {name: {*one[name], *other[name]} for name in one.keys() & other.keys()}
            return {
                name: {value: max(one[name].get(value, -1), other[name].get(value, -1)) for value in some}
                for name, some in values.items()
            }
        shape = {part for part, value in tree.args.items() if value} - {"expressions", "from_", "where"}
        if (
            not isinstance(tree, exp.Select)
            or shape
            or tree.args.get("from_") is None
            or len(tree.expressions) != len(names)
        ):
            return {}
        window = tree.args["from_"].this.args.get("window") or _alias_window(tree.args["from_"].this)
        if window is not None and window.args["kind"] != "UNBOUNDED":
            return {}
        entries = dict(self.entries(tree))
        found = [(name, self.values(_bare(item), entries)) for name, item in zip(names, tree.expressions, strict=True)]
        return {name.lower(): values[1] for name, values in found if values is not None}

    def monotonic(self, tree: exp.Expression) -> bool:
        """Rows never go away, by the look of it."""
        if tree.find(exp.Except, exp.Intersect, exp.Group, exp.Having, exp.Limit, exp.Window, exp.AggFunc):
            return False
        if any(
            item.find(exp.Select, exp.Exists) for select in tree.find_all(exp.Select) for item in select.expressions
        ):
            return False
        if any(join.args.get("side") or join.args.get("kind") in ("SEMI", "ANTI") for join in tree.find_all(exp.Join)):
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
    for name, function in numbers.AGGREGATES.items():
        lists = ["DOUBLE[]"] * (2 if name in numbers.OF_PAIRS else 1)
        database.create_function(f"exact_{name}", function, lists, "VARCHAR", null_handling="special")
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
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case list() | tuple():
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


def _hashable(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return math.nan  # one and the same, so that equal rows are equal
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _by_value(row: Row) -> tuple[Any, ...]:
    return tuple((value is not None, value) for value in row)


def _without_operator(tree: exp.Select) -> tuple[StreamOf | None, exp.Expression]:
    """The operator of a select list, and the select without it."""
    first = tree.expressions[0] if tree.expressions else None
    if not isinstance(first, StreamOf):
        return None, tree
    copy = tree.copy()
    copy.set("expressions", first.expressions)
    if first.args.get("distinct"):
        copy.set("distinct", exp.Distinct())
    return first, copy


def _gives_stream(tree: exp.Expression) -> bool:
    if isinstance(tree, exp.Select):
        return bool(tree.args.get("final") or (tree.expressions and isinstance(tree.expressions[0], StreamOf)))
    return isinstance(tree, StreamOf)


def _sampled(stream: TupleStream, tree: exp.Expression) -> TupleStream:
    """The tuples that SAMPLE behind a stream draws: those whose MD5 is below that part of all of them."""
    drawn = tree.args.get("drawn")
    if drawn is None:
        return stream
    limit = Fraction(drawn.args["percent"]) / 100 * 16**8
    kinds = [kind for _, kind in stream.columns]

    def lucky(ts: int, row: Row) -> bool:
        texts = [drawn.args["seed"], str(ts), *(_hashed(value, kind) for value, kind in zip(row, kinds, strict=True))]
        text = "|".join(one for one in texts if one is not None)
        return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:8], 16) < int(limit)

    return TupleStream(stream.columns, [(ts, row) for ts, row in stream.tuples if lucky(ts, row)], stream.possible)


def _hashed(value: Any, kind: str) -> str | None:
    """A value as the text that is hashed: what all engines agree on."""
    if value is None:
        return None
    if kind in ("FLOAT", "DOUBLE"):
        return str(int(math.fmod(value * 2**20, 2**31))) if abs(value) < 1e300 else None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _alias_window(tree: exp.Expression) -> StreamWindow | None:
    alias = tree.args.get("alias")
    return alias.args.get("window") if isinstance(alias, exp.TableAlias) else None


def _renamed(found: TupleStream | VaryingRelation, alias: exp.TableAlias) -> TupleStream | VaryingRelation:
    """The same under other names of columns, if there are any."""
    names = [column.name for column in alias.args.get("columns") or ()] or [name for name, _ in found.columns]
    columns = [(name, kind) for name, (_, kind) in zip(names, found.columns, strict=True)]
    if isinstance(found, TupleStream):
        return TupleStream(columns, found.tuples, _again(found.possible, found.columns, names))
    return VaryingRelation(columns, found.bags, possible=_again(found.possible, found.columns, names))


def _again(possible: Possible, columns: list[tuple[str, str]], names: list[str]) -> Possible:
    return {
        new.lower(): possible[old.lower()]
        for (old, _), new in zip(columns, names, strict=True)
        if old.lower() in possible
    }


def _bare(item: exp.Expression) -> exp.Expression:
    inner = item.this if isinstance(item, exp.Alias) else item
    return inner.unnest()


def _outer(tree: exp.Select) -> bool:
    return any(join.args.get("side") for join in tree.args.get("joins") or ())


def _closing(tree: exp.Select) -> list[list[exp.Expression]]:
    """The values that may close a row, each as the entries of FROM have it: keys of GROUP BY, or what a join
    equates.
    """
    conditions = [join.args["on"] for join in tree.args.get("joins") or () if join.args.get("on")]
    conditions += [tree.args["where"].this] if tree.args.get("where") else []
    parts = [
        part.unnest()
        for condition in conditions
        for part in (condition.flatten() if isinstance(condition, exp.And) else [condition])
    ]
    pairs = [(part.this.unnest(), part.expression.unnest()) for part in parts if isinstance(part, exp.EQ)]
    pairs = [pair for one, two in pairs for pair in ((one, two), (two, one))]
    if tree.args.get("group") is None:
        return [[one, two] for one, two in pairs[::2]]
    result = []
    for key in tree.args["group"].expressions:
        value = _bare(key)
        result.append([value])
        for one, two in pairs:
            around = value.copy()
            places = [node for node in around.walk() if node == one]
            for place in places:
                place.replace(two.copy())
            if places:
                result.append([value, two.copy() if value == one else around])
    return result


def _closed(maps: list[dict[Any, int]], value: Any) -> int:
    """The first instant at which all are beyond a value; a row without one is never final."""
    if value is None:
        return -1
    return max(1 + max(_not_beyond(known, value), default=-1) for known in maps)


def _not_beyond(known: dict[Any, int], value: Any) -> list[int]:
    """The instants of the values that are no larger, or, if they fall, no smaller."""
    by_time = sorted(known, key=lambda entry: known[entry])
    falling = bool(known) and by_time[-1] < by_time[0]
    return [last for one, last in known.items() if (one >= value if falling else one <= value)]


def _places(stream: TupleStream, columns: list[exp.Expression]) -> list[int]:
    names = [name.lower() for name, _ in stream.columns]
    return [names.index(column.name.lower()) for column in columns]


def _slides_in_time(window: StreamWindow) -> bool:
    """A slide is a length of time behind RANGE or with a unit, and a number of rows behind ROWS alone."""
    given = window.args
    by_time = given["kind"] == "RANGE" or given.get("range") is not None or given.get("slide_unit") is not None
    return given.get("slide") is not None and by_time


def _in_duckdb(node: exp.Expression) -> exp.Expression:
    """What DuckDB calls otherwise."""
    match node:
        case exp.Anonymous(expressions=[value]) if node.name.lower() in ("every", "some"):
            return exp.Anonymous(this="BOOL_AND" if node.name.lower() == "every" else "BOOL_OR", expressions=[value])
        case _:
            return node


def _exactly(node: exp.Expression, others: set[str]) -> exp.Expression:
    """Aggregates of doubles as functions of the list of all values. Of these columns it is known that they are
    something else.
    """
    condition = node.expression.this if isinstance(node, exp.Filter) else None
    call = node.this if isinstance(node, exp.Filter) else node
    name = numbers.NAMES.get(type(call))
    if name is None or isinstance(node.parent, exp.Window):
        return node
    if all(column.name.lower() in others for column in call.find_all(exp.Column)):
        return node
    arguments = [call.this, call.expression] if name in numbers.OF_PAIRS else [call.this]
    found = exp.Anonymous(this=f"exact_{name}", expressions=[_values_of(argument, condition) for argument in arguments])
    return exp.cast(found, "DOUBLE")


def _values_of(argument: exp.Expression, condition: exp.Expression | None) -> exp.Expression:
    distinct = isinstance(argument, exp.Distinct)
    value = exp.cast((argument.expressions[0] if distinct else argument).copy(), "DOUBLE")
    values: exp.Expression = exp.Anonymous(
        this="LIST", expressions=[exp.Distinct(expressions=[value]) if distinct else value]
    )
    return values if condition is None else exp.Filter(this=values, expression=exp.Where(this=condition.copy()))


# what depends on the timestamps and the order of a window's tuples


def _is_current_time(tree: exp.Expression) -> bool:
    return isinstance(tree, exp.CurrentTime) or (isinstance(tree, exp.Column) and tree.name.lower() == "current_time")


def _is_element_time(tree: exp.Expression) -> bool:
    return isinstance(tree, exp.Column) and tree.name.lower() == "element_time"


def _stamped(tree: exp.Expression, inputs: dict[str, VaryingRelation]) -> exp.Expression:
    """The tree over tables with two more columns where they are windows: the timestamp and the place in the stream."""
    for name, relation in inputs.items():
        if relation.stamps is not None:
            columns = [*relation.columns, (f"time_of_{name}", "BIGINT"), (f"place_of_{name}", "BIGINT")]
            pairs = zip(relation.bags, relation.stamps, strict=True)
            bags = [[(*row, *stamp) for row, stamp in zip(bag, stamps, strict=True)] for bag, stamps in pairs]
            inputs[name] = VaryingRelation(columns, bags, relation.stamps)
    selects = list(tree.find_all(exp.Select))
    windows = {id(select): _windows_of(select, inputs) for select in selects}
    for select in selects:
        for item in select.expressions:
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star):
                own = [name for alias, name in windows[id(select)] if star is item or alias == item.table]
                hidden = [exp.to_identifier(f"{what}_of_{name}") for name in own for what in ("time", "place")]
                star.set("except_", hidden or None)
    for column in [column for column in tree.find_all(exp.Column) if _is_element_time(column)]:
        around: exp.Expression | None = column
        found: list[tuple[str, str]] = []
        while around is not None and not found:
            around = around.parent
            found = [entry for entry in windows.get(id(around), []) if not column.table or column.table == entry[0]]
        if len(found) != 1:
            raise UserError("no-such-column", "ELEMENT_TIME belongs to one windowed stream in FROM")
        column.replace(exp.column(f"time_of_{found[0][1]}", table=found[0][0]))
    for call in [call for call in tree.find_all(*ORDERED) if not _is_analytic(call)]:
        select = call.find_ancestor(exp.Select)
        alone = len(windows[id(select)]) == 1 and not select.args.get("joins") and not select.args.get("laterals")
        place = exp.column(f"place_of_{windows[id(select)][0][1]}", table=windows[id(select)][0][0]) if alone else None
        _in_order(call, place)
    return tree


def _windows_of(select: exp.Select, inputs: dict[str, VaryingRelation]) -> list[tuple[str, str]]:
    """The windows in a FROM: the name each goes by, and its table."""
    from_ = select.args.get("from_")
    tables = [from_.this] if from_ is not None else []
    tables += [join.this for join in select.args.get("joins") or () if join.args.get("kind") not in ("SEMI", "ANTI")]
    named = [(table.alias, table.name) for table in tables if isinstance(table, exp.Table)]
    return [(alias, name) for alias, name in named if name in inputs and inputs[name].stamps is not None]


def _is_analytic(call: exp.Expression) -> bool:
    parent = call.parent
    while isinstance(parent, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        parent = parent.parent
    return isinstance(parent, exp.Window)


def _in_order(call: exp.Expression, place: exp.Expression | None) -> None:
    """An aggregate that looks at the order of its rows, in DuckDB's words: by place in the stream, else by value."""
    value, whole = call.this, call
    conditions = []
    while isinstance(whole.parent, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        whole = whole.parent
        if isinstance(whole, exp.IgnoreNulls):
            conditions.append(exp.Not(this=exp.Is(this=value.copy(), expression=exp.null())))
        if isinstance(whole, exp.Filter):
            conditions.append(whole.expression.this.copy())
    rising = [exp.Ordered(this=(place or value).copy(), nulls_first=True)]
    given: exp.Expression = value.copy()
    name = "LAST" if isinstance(call, exp.Last | exp.LastValue) else "FIRST"
    match call:
        case exp.ArrayAgg() | exp.ArrayUniqueAgg():
            name = "LIST"
            argument = value.expressions[0] if isinstance(value, exp.Distinct) else value
            conditions.append(exp.Not(this=exp.Is(this=argument.copy(), expression=exp.null())))
            if isinstance(call, exp.ArrayUniqueAgg) or isinstance(value, exp.Distinct):
                given = exp.Distinct(expressions=[argument.copy()])
                rising = [exp.Ordered(this=argument.copy(), nulls_first=True)]
        case exp.ArgMax() | exp.ArgMin():
            falling = isinstance(call, exp.ArgMax)
            keys = (call.expression, value)
            rising = [exp.Ordered(this=key.copy(), desc=falling, nulls_first=not falling) for key in keys]
            conditions.append(exp.Not(this=exp.Is(this=call.expression.copy(), expression=exp.null())))
    result: exp.Expression = exp.Anonymous(this=name, expressions=[exp.Order(this=given, expressions=rising)])
    if conditions:
        result = exp.Filter(this=result, expression=exp.Where(this=exp.and_(*conditions)))
    whole.replace(exp.Coalesce(this=result, expressions=[exp.Array(expressions=[])]) if name == "LIST" else result)


def _is_aggregate(tree: exp.Expression | None) -> bool:
    """Whether an aggregate of the query itself stands in the expression, not one of a query inside it."""
    if tree is None or isinstance(tree, exp.Subquery | exp.Window):
        return False
    if isinstance(tree, exp.AggFunc | exp.Filter | exp.WithinGroup):
        return True
    return any(_is_aggregate(child) for child in tree.iter_expressions())
