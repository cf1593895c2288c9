"""CQL's meaning, written from its formal definition: the relation at every instant, recomputed from all tuples.

Slow, plain, and independent of the compiler: of the rest of headgate it uses only the syntax. For each instant from 0
to the horizon the bags behind FROM are worked out from the tuples, DuckDB evaluates relational SQL over them, and
ISTREAM, DSTREAM and RSTREAM compare consecutive instants as bags. Time is integer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

from sqlglot import exp

from headgate.cql.script import parse
from headgate.cql.syntax import StreamOf, StreamWindow, WindowedQuery
from headgate.errors import NotYet, UserError
from headgate.testing.cases import Case, Change, Row, sql_type
from headgate.testing.reference_final import closing_instant, closing_values, never_missing, unaliased
from headgate.testing.reference_skip import leaving_out
from headgate.testing.reference_sql import (
    ORDERED,
    exact_aggregates,
    has_aggregate,
    in_duckdb,
    is_current_time,
    is_element_time,
    literal,
    shared_database,
    table_of,
    with_stamps,
)
from headgate.testing.reference_windows import (
    FURTHEST,
    Possible,
    TupleStream,
    VaryingRelation,
    Windows,
    sample_of,
    slides_in_time,
)

MOST_INSTANTS = 1_000_000


def evaluate(case: Case) -> tuple[Literal["stream", "relation"], list[Change]]:
    """Evaluates the case's query: the tuples of a stream, or the changes of a relation."""
    if case.horizon > MOST_INSTANTS:
        raise UserError(
            "too-long",
            f"the reference looks at every instant up to {case.horizon:,}, which is too many",
            hint="Let time begin near 0, or run the case on Spark.",
        )
    reference = _Reference(case)
    tree = parse(case.query)[0]
    reference.skips = bool(tree.meta.get("skips"))
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


class _Reference(Windows):
    """Evaluates the queries of one case: streams to tuples, relations to a bag of rows for every instant."""

    def __init__(self, case: Case) -> None:
        try:
            import duckdb
        except ImportError:
            raise UserError(
                "no-duckdb", "the reference evaluator needs DuckDB", hint="pip install 'headgate[testing]'"
            ) from None
        super().__init__(case)
        self.database = shared_database(duckdb).cursor()  # its own temporary tables
        # without the optimizer, because planning takes longer than running
        self.database.execute(
            "SET integer_division = true; SET error_on_division_by_zero = false; PRAGMA disable_optimizer"
        )
        self.tables = 0
        self.named: dict[str, TupleStream | VaryingRelation] = {}
        self.growing: set[str] = set()
        self.sliding: dict[str, set[int]] = {}
        self.skips = False
        """Whether rows that cannot be evaluated are left out (ON ERROR SKIP)."""
        self.finals = any("final" in text.lower() for text in (case.query, *(view.query for view in case.views)))
        """Whether some query of the case has EMIT FINAL, so that columns bound to time are needed."""
        kinds = {
            sql_type(kind) for schema in (*case.streams.values(), *case.relations.values()) for kind in schema.values()
        }
        self.doubles = bool(kinds & {"DOUBLE", "FLOAT"})
        """Whether some column is a double; then aggregates are computed exactly, and rounded once."""
        for name, schema in case.streams.items():
            tuples = [(ts, row) for ts, row, _ in case.input.get(name, []) if ts <= case.horizon]
            tuples.sort(key=lambda entry: entry[0])
            possible = {
                column.lower(): self.until_passed(tuples, list(schema).index(column), order == "increasing")
                for column, order in case.orders.get(name, {}).items()
            }
            if name in case.timestamps:
                possible[case.timestamps[name].lower()] = {
                    instant: instant for instant in range(case.horizon + FURTHEST)
                }
            self.named[name.lower()] = TupleStream(_columns(schema), tuples, possible)
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

    def until_passed(self, tuples: list[tuple[int, Row]], place: int, rises: bool) -> dict[Any, int]:
        """For each value of a column that is declared to be ordered, the last instant before a tuple goes beyond it."""
        found = {}
        for value in {row[place] for _, row in tuples}:
            passing = [ts for ts, row in tuples if (row[place] > value if rises else row[place] < value)]
            found[value] = min(passing, default=self.case.horizon + FURTHEST) - 1
        return found

    def changelog(
        self, columns: list[tuple[str, str]], entries: list[tuple[int, Row, str]], key: tuple[str, ...]
    ) -> VaryingRelation:
        """A stored relation from its inserted and deleted rows.

        With a key, an inserted row replaces the row with its key, and a deleted row needs only the key.
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
        """Evaluates a query of any form."""
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
        """Evaluates a query as a relation; a stream gets the window [RANGE UNBOUNDED]."""
        found = self.query(tree)
        return self.unbounded(found) if isinstance(found, TupleStream) else found

    def stream(self, tree: exp.Expression) -> TupleStream:
        """Evaluates a query that has a window behind it, as a stream."""
        found = self.query(tree)
        if isinstance(found, TupleStream):
            return found
        if self.monotonic(tree):
            return self.in_order_of_arrival("ISTREAM", tree) or self.istream(found)
        raise UserError("window-over-relation", "a window needs a stream")

    def operator(self, written: StreamOf, tree: exp.Expression) -> TupleStream:
        """Evaluates ISTREAM, DSTREAM or RSTREAM of a query."""
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
                return self.stream_of_rows(relation, lambda before, now: before - now)
            case _:
                return self.stream_of_rows(relation, lambda before, now: now, self.every(written, tree))

    def every(self, written: StreamOf, tree: exp.Expression) -> int:
        """The interval at whose multiples RSTREAM puts out its relation."""
        if written.args.get("at_slide"):
            slides = self.slides(tree)
            if len(slides) != 1:
                raise UserError("no-slide", "EMIT AT SLIDE needs one slide that all sliding windows share")
            return slides.pop()
        return self.units(written.args["every"], written.args.get("every_unit")) if written.args.get("every") else 1

    def slides(self, tree: exp.Expression) -> set[int]:
        """The slides of the time windows in a query and its views, without those below a stream."""
        windows = [tree.args.get("window"), _alias_window(tree)]
        found = {self.slide(window) for window in windows if window is not None and slides_in_time(window)}
        if any(windows) or _gives_stream(tree):
            return found
        if isinstance(tree, exp.Table):
            return found | self.sliding.get(tree.name.lower(), set())
        return found.union(*(self.slides(child) for child in tree.iter_expressions()))

    def istream(self, relation: VaryingRelation) -> TupleStream:
        """The tuples of ISTREAM: rows that are new at each instant."""
        found = self.stream_of_rows(relation, lambda before, now: now - before)
        return TupleStream(found.columns, found.tuples, relation.possible)

    def stream_of_rows(
        self, relation: VaryingRelation, chosen: Callable[[Counter[Row], Counter[Row]], Counter[Row]], every: int = 1
    ) -> TupleStream:
        """The stream of the rows that `chosen` picks from the bags before and at each instant."""
        tuples, before = [], Counter[Row]()
        for instant, bag in enumerate(relation.bags):
            now = Counter(bag)
            if instant % every == 0:
                tuples += [(instant, row) for row in sorted(chosen(before, now).elements(), key=_by_value)]
            before = now
        return TupleStream(relation.columns, tuples)

    # relational SQL

    def relational(self, tree: exp.Expression) -> VaryingRelation:
        """Evaluates SQL: works out the inputs behind FROM, then lets DuckDB run the query at every instant."""
        copy = tree.copy()
        if self.case.dialect == "stream":
            for operation in copy.find_all(exp.SetOperation):  # on bare names, Stanford's prototype means bags
                if operation.this.meta.get("bare") and operation.expression.meta.get("bare"):
                    operation.set("distinct", False)
        for call in list(copy.find_all(exp.CountIf)):  # null over no rows in DuckDB, a count in SQL
            call.replace(exp.Count(this=exp.If(this=call.this.copy(), true=exp.Literal.number(1))))
        inputs: dict[str, VaryingRelation] = {}
        copy = self.with_tables(copy, inputs)
        if copy.find(*ORDERED) or any(map(is_element_time, copy.find_all(exp.Column))):
            copy = with_stamps(copy, inputs)
        if self.doubles:
            columns_of = [column for relation in inputs.values() for column in relation.columns]
            others = {name.lower() for name, kind in columns_of if kind not in ("DOUBLE", "FLOAT")}
            copy = copy.transform(exact_aggregates, others)
        copy = leaving_out(copy) if self.skips else copy
        clocks = [node for node in copy.find_all(exp.CurrentTime, exp.Column) if is_current_time(node)]
        clocks = [node.replace(exp.Literal.number(0)) for node in clocks]
        sql = copy.transform(in_duckdb, copy=True).sql("duckdb", copy=False)
        bags: list[list[Row]] = []
        columns: list[tuple[str, str]] = []
        seen: tuple[list[Row], ...] | None = None
        for instant in range(self.case.horizon + 1):
            contents = tuple(relation.bags[instant] for relation in inputs.values())
            for clock in clocks:
                clock.set("this", str(instant))
            if clocks:
                sql = copy.transform(in_duckdb, copy=True).sql("duckdb", copy=False)
            if contents == seen and not clocks:
                bags.append(bags[-1])
                continue
            seen = contents
            for (name, relation), rows in zip(inputs.items(), contents, strict=True):
                self.fill(name, relation.columns, rows)
            columns, rows = self.run(sql)
            bags.append(self.without_empty_aggregate(tree, rows, contents))
        possible = self.values_bound_to_time(tree, [name for name, _ in columns]) if self.finals else {}
        return VaryingRelation(columns, bags, possible=possible)

    def without_empty_aggregate(
        self, tree: exp.Expression, rows: list[Row], contents: tuple[list[Row], ...]
    ) -> list[Row]:
        """Drops the row of an aggregate over nothing, where the case says that there is none."""
        if self.case.empty_aggregate == "no-row" and isinstance(tree, exp.Select) and not tree.args.get("group"):
            if any(map(has_aggregate, tree.expressions)) and not all(contents):
                return []
        return rows

    def with_tables(self, tree: exp.Expression, inputs: dict[str, VaryingRelation]) -> exp.Expression:
        """Replaces every stream, windowed query, view and common table expression by a table of its rows."""
        if tree.args.get("with_"):
            outside, with_ = self.named, tree.args["with_"].pop()
            for cte in with_.expressions:
                self.named = {**self.named, cte.alias.lower(): _renamed(self.query(cte.this), cte.args["alias"])}
            tree = self.with_tables(tree, inputs)
            self.named = outside
            return tree
        if _gives_stream(tree):
            return exp.select("*").from_(self.table(self.relation(tree), exp.TableAlias(), inputs))
        if isinstance(tree, exp.Subquery) and (
            tree.args.get("window") or tree.args.get("drawn") or _alias_window(tree) or _gives_stream(tree.this)
        ):
            window = tree.args.get("window") or _alias_window(tree)
            drawn = sample_of(self.stream(tree.this), tree) if window or tree.args.get("drawn") else None
            relation = (
                self.relation(tree.this)
                if drawn is None
                else self.window(drawn, window)
                if window
                else self.unbounded(drawn)
            )
            table = self.table(relation, tree.args.get("alias"), inputs)
            return exp.select("*").from_(table) if isinstance(tree.parent, exp.SetOperation) else table
        if self.is_in_relation(tree):
            table = exp.to_table(tree.expressions[0].name)
            tree.set("expressions", None)
            tree.set("query", exp.Subquery(this=exp.select("*").from_(table)))
        if isinstance(tree, exp.Table):
            found = self.named.get(tree.name.lower())
            if found is None:
                raise UserError("no-such-stream", f'stream "{tree.name}" does not exist')
            window = tree.args.get("window") or _alias_window(tree)
            if isinstance(found, TupleStream):
                found = sample_of(found, tree)
                found = self.window(found, window) if window else self.unbounded(found)
            elif tree.args.get("drawn"):
                raise UserError("sample-of-relation", "SAMPLE needs a stream")
            alias = tree.args.get("alias") or exp.TableAlias(this=exp.to_identifier(tree.name))
            return self.table(found, alias, inputs, tree.args.get("joins"))
        for child in list(tree.iter_expressions()):
            changed = self.with_tables(child, inputs)
            if changed is not child:
                child.replace(changed)
        return tree

    def is_in_relation(self, tree: exp.Expression) -> bool:
        """Whether this is `(a, b) IN (R)`, which tests against the rows of a relation that is given by its name."""
        if not isinstance(tree, exp.In) or [type(value) for value in tree.expressions] != [exp.Column]:
            return False
        (only,) = tree.expressions
        return not only.table and only.name.lower() in self.named

    def table(
        self,
        relation: VaryingRelation,
        alias: exp.TableAlias | None,
        inputs: dict[str, VaryingRelation],
        joins: Any = None,
    ) -> exp.Expression:
        """A table for a relation, which is added to `inputs`, with its alias."""
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
        """Fills a temporary table of DuckDB."""
        self.database.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {table_of(columns, rows)}")

    def run(self, sql: str) -> tuple[list[tuple[str, str]], list[Row]]:
        """Runs SQL in DuckDB: the columns and the rows."""
        cursor = self.database.execute(sql)
        columns = [(entry[0], str(entry[1])) for entry in cursor.description]
        return _unique(columns), [tuple(map(_hashable, row)) for row in cursor.fetchall()]

    def in_order_of_arrival(self, kind: str, tree: exp.Expression) -> TupleStream | None:
        """Evaluates a query that only selects and projects from one stream, in order of arrival; None for any other.

        Tuples with equal timestamps then keep their order.
        """
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
        items = [*tree.expressions, *([tree.args["where"]] if tree.args.get("where") else [])]
        if any(has_aggregate(item) or item.find(exp.Select, exp.Window) for item in items):
            return None
        if any(self.is_in_relation(test) for item in items for test in item.find_all(exp.In)):
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
        stream = sample_of(stream, source)
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
        for node in [node for node in copy.find_all(exp.CurrentTime, exp.Column) if is_current_time(node)]:
            node.replace(exp.column("element_time"))  # a tuple is seen at its own instant only
        (name,) = holder
        self.fill(name, columns, [(*row, ts, position) for position, (ts, row) in enumerate(stream.tuples)])
        found, rows = self.run(copy.sql("duckdb", copy=False))
        ordered = sorted(rows, key=lambda row: row[-1])
        possible = self.values_bound_to_time(tree, [name for name, _ in found[:-1]])
        return TupleStream(found[:-1], [(stream.tuples[row[-1]][0], row[:-1]) for row in ordered], possible)

    # EMIT FINAL

    def final(self, tree: exp.Select) -> TupleStream:
        """EMIT FINAL: each row at the first instant at which a value that closes it cannot occur in any input."""
        operator, plain = _without_operator(tree)
        plain = plain.copy()
        plain.set("final", None)
        entries = {alias: possible for alias, possible in self.entries(tree) if possible}
        ways = []
        for values in closing_values(tree):
            found = [self.expression_values(value, entries) for value in values]
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
                row
                for row in bag
                if min(closing_instant(maps, row[width + i]) for i, (_, maps) in enumerate(ways)) == instant
            ]
            tuples += [(instant, row[:width]) for row in sorted(final, key=_by_value)]
        names = [name for name, _ in relation.columns[:width]]
        shown = [unaliased(item) for item in (operator or tree).expressions]
        possible = {}
        for values, maps in ways:
            every = {value for one in maps for value in one}
            for place, item in enumerate(shown if len(shown) == len(names) else ()):
                if item in map(unaliased, values) and never_missing(tree, item):
                    possible[names[place].lower()] = {value: closing_instant(maps, value) for value in every}
        return TupleStream(relation.columns[:width], tuples, possible)

    def entries(self, tree: exp.Select) -> list[tuple[str, Possible]]:
        """The entries of FROM by alias, with the columns of each whose values are bound to time."""
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

    def expression_values(
        self, tree: exp.Expression, entries: dict[str, Possible]
    ) -> tuple[str, dict[Any, int]] | None:
        """For an expression over one column bound to time: the entry of FROM, and the last instant of each value."""
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
        listed = ", ".join(f"({literal(value)}, {last})" for value, last in known.items())
        sql = f"SELECT {copy.sql('duckdb', copy=False)}, MAX(last) FROM (VALUES {listed}) AS known(v, last) GROUP BY 1"
        return alias, dict(self.database.execute(sql).fetchall()) if known else {}

    def values_bound_to_time(self, tree: exp.Expression, names: list[str]) -> Possible:
        """The columns bound to time in the result of a selection, a projection or a union of them."""
        if tree.args.get("with_"):
            return {}
        if isinstance(tree, exp.Subquery):
            return self.values_bound_to_time(tree.this, names)
        if isinstance(tree, exp.Union) and not tree.args.get("distinct"):
            one, other = (self.values_bound_to_time(side, names) for side in (tree.this, tree.expression))
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
        found = [
            (name, self.expression_values(unaliased(item), entries))
            for name, item in zip(names, tree.expressions, strict=True)
        ]
        return {name.lower(): values[1] for name, values in found if values is not None}

    def monotonic(self, tree: exp.Expression) -> bool:
        """Whether the rows of a query never go away, judged by its syntax."""
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


def _columns(schema: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, sql_type(kind)) for name, kind in schema.items()]


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


def _alias_window(tree: exp.Expression) -> StreamWindow | None:
    alias = tree.args.get("alias")
    return alias.args.get("window") if isinstance(alias, exp.TableAlias) else None


def _renamed(found: TupleStream | VaryingRelation, alias: exp.TableAlias) -> TupleStream | VaryingRelation:
    """The stream or relation with the column names of an alias, if it has any."""
    names = [column.name for column in alias.args.get("columns") or ()] or [name for name, _ in found.columns]
    columns = [(name, kind) for name, (_, kind) in zip(names, found.columns, strict=True)]
    if isinstance(found, TupleStream):
        return TupleStream(columns, found.tuples, _renamed_values(found.possible, found.columns, names))
    return VaryingRelation(columns, found.bags, possible=_renamed_values(found.possible, found.columns, names))


def _renamed_values(possible: Possible, columns: list[tuple[str, str]], names: list[str]) -> Possible:
    return {
        new.lower(): possible[old.lower()]
        for (old, _), new in zip(columns, names, strict=True)
        if old.lower() in possible
    }
