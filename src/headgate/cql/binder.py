"""From a query's syntax tree to its plan: names looked up, types inferred, defaults taken, everything checked.

The catalog and a tree come in; a plan node and the query's text with all defaults written out go out. Whatever headgate
cannot answer is refused here, with the place, so that nothing behind this module meets a construct it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from sqlglot import exp, parse_one

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import View
from headgate.cql import calls, final
from headgate.cql.dialect import Cql
from headgate.cql.grouping import common_keys, grouped, named_keys, of_groups, with_aliases, with_keys_named
from headgate.cql.inputs import CURRENT_TIME, From, Scope, check_conditions, from_clause, windowed
from headgate.cql.ranking import first_rows, ranked, with_windows_named
from headgate.cql.subqueries import inputs, lift, scalar
from headgate.cql.syntax import StreamOf, StreamWindow, WindowedQuery
from headgate.cql.trees import (
    aggregates,
    annotated,
    as_expression,
    as_relation,
    column_named,
    conjuncts,
    connected,
    divided,
    filtered,
    has_subquery,
    ready,
    replaced_by,
    type_of,
    types_of,
    unaliased,
    unique,
    without_inside,
)
from headgate.cql.windows import every
from headgate.errors import NotYet, Place, UserError, nearest, quoted
from headgate.plan.derived import intersection, set_difference
from headgate.plan.expressions import INTEGRAL, Named
from headgate.plan.nodes import (
    Distinct,
    Dstream,
    Istream,
    Node,
    Project,
    Relation,
    Rstream,
    Stream,
    Unbounded,
    Union,
    Window,
    domain,
    is_stream,
    names,
    sources,
)
from headgate.plan.tree import complete
from headgate.ticks import TimeDomain


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound query: its plan and its text with the defaults written out."""

    plan: Node
    resolved: str


T = TypeVar("T")
DASHED = re.compile(r"[A-Za-z_]\w*(?:-[A-Za-z_]\w*)+")
"""A name as some published queries write it; in SQL it is a subtraction."""


def bind(
    tree: exp.Expression,
    text: str,
    catalog: Catalog,
    origin: str = "",
    columns: Sequence[str] = (),
    types: Sequence[str | None] = (),
) -> Bound:
    """Bind a whole query; `columns` are other names for what it puts out, `types` what they are to be cast to."""
    binder = _Binder(text, catalog, origin)
    binder.whole = Place(text, tree.meta.get("start", 0), tree.meta.get("end", len(text)), origin)
    plan = binder.outermost(tree)
    if columns:
        plan = binder.renamed(plan, columns, tree, types)
    read = {source.domain for source in sources(plan)}
    domains = [str(time) for time in TimeDomain if time in read]
    if len(domains) > 1:
        raise UserError(
            "time-domains-differ",
            f"a query cannot mix streams with {' and streams with '.join(domains)}",
            place=binder.place(tree),
            detail=f"It reads {quoted(sorted({source.name for source in sources(plan)}))}.",
        )
    if not complete(plan):
        raise NotYet("a subquery that reads columns of the query around it in this way", place=binder.place(tree))
    calls.check(plan, catalog, binder.whole)
    return Bound(plan, binder.resolved(tree))


class _Binder:
    def __init__(self, text: str, catalog: Catalog, origin: str) -> None:
        self.text = text
        self.catalog = catalog
        self.origin = origin
        self.insertions: list[tuple[int, str]] = []
        self.local: dict[str, View] = {}
        self.enclosing: Scope | None = None
        self.whole = Place(text, 0, len(text), origin)

    # places and defaults

    def place(self, tree: exp.Expression | None) -> Place:
        """The span of the words below `tree` that know where they stood; the whole query if none does."""
        if tree is None:
            return self.whole
        if "start" in tree.meta and isinstance(
            tree, StreamWindow | exp.Identifier | exp.Anonymous | exp.Command | exp.DataType
        ):
            end = tree.meta["end"] + (0 if isinstance(tree, StreamWindow | exp.Command | exp.DataType) else 1)
            return Place(self.text, tree.meta["start"], end, self.origin)
        spans = [
            node.meta for node in tree.find_all(exp.Identifier, exp.Anonymous, StreamWindow) if "start" in node.meta
        ]
        if spans:
            first = min(spans, key=lambda meta: meta["start"])
            last = max(spans, key=lambda meta: meta["end"])
            whole = isinstance(tree, exp.Column | exp.Func | exp.Condition | exp.Alias)
            end = (last if whole else first)["end"] + 1
            return Place(self.text, first["start"], end, self.origin)
        if "start" in tree.meta:
            return Place(self.text, tree.meta["start"], tree.meta["end"], self.origin)
        return self.whole

    def default(self, offset: int, text: str) -> None:
        self.insertions.append((offset, text))

    def resolved(self, tree: exp.Expression) -> str:
        start, end = tree.meta.get("start", 0), tree.meta.get("end", len(self.text))
        result = self.text[start:end]
        # At one place what was taken later goes around what was taken before: ahead of it on the left, behind it on the
        # right.
        numbered = [(offset, order, text) for order, (offset, text) in enumerate(self.insertions)]
        around = sorted(numbered, key=lambda entry: (-entry[0], entry[1] if entry[2].endswith("(") else -entry[1]))
        for offset, _, addition in around:
            result = result[: offset - start] + addition + result[offset - start :]
        return result

    # queries

    def outermost(self, tree: exp.Expression) -> Node:
        """A whole query: Istream where the user wrote no operator and the result only grows."""
        plan = self.query(tree)
        if is_stream(plan) or not plan.monotonic:
            return plan
        self.wrap(tree, "ISTREAM")
        return Istream(as_relation(plan))

    def renamed(
        self, plan: Node, columns: Sequence[str], tree: exp.Expression, cast_to: Sequence[str | None] = ()
    ) -> Node:
        if len(columns) != len(plan.columns):
            raise UserError(
                "columns-differ",
                f"{len(columns)} names are given for {len(plan.columns)} columns",
                place=self.place(tree),
            )
        if isinstance(plan, Istream | Dstream | Rstream):
            return replace(plan, child=as_relation(self.renamed(plan.child, columns, tree, cast_to)))
        types = types_of(plan)
        items = zip(unique(columns), names(plan), cast_to or [None] * len(columns), strict=True)
        values = {new: _cast(column_named(old), types[old], kind) for new, old, kind in items}
        return Project(
            as_relation(plan), tuple(Named(new, as_expression(value, types)) for new, value in values.items())
        )

    def wrap(self, tree: exp.Expression, operator: str) -> None:
        if "start" in tree.meta:
            self.default(tree.meta["start"], f"{operator}(")
            self.default(tree.meta["end"], ")")

    def query(self, tree: exp.Expression) -> Node:
        match tree:
            case StreamOf() if tree.args.get("query") is not None:
                return self.operator(tree, self.relation(tree.args["query"]), tree)
            case WindowedQuery():
                return windowed(self, self.as_stream(tree.this), tree.args["window"])
            case exp.Subquery():
                if tree.args.get("window"):
                    return windowed(self, self.as_stream(tree.this), tree.args["window"])
                return self.query(tree.this)
            case exp.SetOperation():
                return self.set_operation(tree)
            case exp.Select():
                return self.select(tree)
            case exp.Command():
                raise NotYet(str(tree.this), place=self.place(tree))
            case _:
                raise NotYet(f"a query of the form {type(tree).__name__.upper()}", place=self.place(tree))

    def relation(self, tree: exp.Expression) -> Relation:
        """A query where a relation is needed: a stream gets the default window."""
        plan = self.query(tree)
        return Window(plan, Unbounded()) if is_stream(plan) else as_relation(plan)

    def as_stream(self, tree: exp.Expression) -> Stream:
        """A query with a window behind it: Istream by default, if the result only grows."""
        plan = self.query(tree)
        if is_stream(plan):
            return plan
        if plan.monotonic:
            self.wrap(tree, "ISTREAM")
            return Istream(as_relation(plan))
        raise UserError(
            "window-over-relation",
            "a window needs a stream, but this query gives a relation whose rows may go away",
            place=self.place(tree),
            hint="Say which stream is meant: ISTREAM, DSTREAM or RSTREAM.",
        )

    def operator(self, written: StreamOf, child: Relation, tree: exp.Expression) -> Stream:
        kind, interval = written.args["kind"], every(self, written, child, tree)
        if kind == "RSTREAM" and not interval and domain(child) is TimeDomain.TIMESTAMP and not child.instantaneous:
            raise UserError(
                "rstream-every-instant",
                "RSTREAM would repeat the relation at every microsecond",
                place=self.place(tree),
                detail="Over TIMESTAMP time it needs a relation that lives for one instant, as below [NOW].",
                hint="Use ISTREAM, say EVERY 1 SECOND behind the query, or join with a stream [NOW].",
            )
        match kind:
            case "ISTREAM":
                return Istream(child)
            case "DSTREAM":
                return Dstream(child)
            case _:
                return Rstream(child, interval)

    def set_operation(self, tree: exp.SetOperation) -> Relation:
        if tree.args.get("by_name"):
            raise NotYet("BY NAME on a set operation", place=self.place(tree))
        outside = self.local
        self.define_locally(tree.args.get("with_"))
        left, right = self.relation(tree.this), self.relation(tree.expression)
        self.local = outside
        kind = type(tree).__name__.upper()
        if len(left.columns) != len(right.columns):
            raise UserError(
                "columns-differ",
                f"the sides of {kind} have {len(left.columns)} and {len(right.columns)} columns",
                place=self.place(tree.expression),
            )
        every = not tree.args.get("distinct", True) or self.of_bare_names(tree)
        result: Relation
        match tree:
            case exp.Union():
                result = Union(left, right) if every else Distinct(Union(left, right))
            case exp.Except():
                result = set_difference(left, right, every)
            case _:
                result = intersection(left, right, every)
        if not tree.args.get("limit") and not tree.args.get("offset"):
            return result
        outputs = list(names(result))
        order = self.sort_keys(tree.args.get("order"), outputs, [column_named(name) for name in outputs])
        return first_rows(self, result, order, tree.args.get("limit"), tree.args.get("offset"), tuple(outputs))

    def of_bare_names(self, tree: exp.SetOperation) -> bool:
        """`A UNION B` on names: bags in Stanford's prototype, sets in SQL."""
        bare = tree.this.meta.get("bare") and tree.expression.meta.get("bare")
        return bool(bare) and self.catalog.settings.dialect == "stream"

    def define_locally(self, with_: exp.Expression | None) -> None:
        """Common table expressions: views that only this query sees."""
        if with_ is None:
            return
        if with_.args.get("recursive"):
            raise NotYet("WITH RECURSIVE", place=self.place(with_))
        for cte in with_.expressions:
            plan = self.query(cte.this)
            columns = [column.name for column in cte.args["alias"].args.get("columns") or ()]
            plan = self.renamed(plan, columns, cte) if columns else plan
            self.local = {**self.local, cte.alias.lower(): View(cte.alias, plan)}

    def select(self, tree: exp.Select) -> Node:
        outside = self.local
        self.define_locally(tree.args.get("with_"))
        result = self.select_body(tree)
        self.local = outside
        return result

    def select_body(self, tree: exp.Select) -> Node:
        self.refuse(tree)
        for call in tree.find_all(exp.Anonymous):
            if call.name.lower() in self.catalog.aggregates:
                call.meta["aggregate"] = True
        for call in list(tree.find_all(exp.CurrentTime)):
            call.replace(exp.Column(this=exp.to_identifier(CURRENT_TIME)))
        operator, projections, distinct = self.select_list(tree)
        with_windows_named(self, tree)
        if tree.args.get("from_") is None:
            if tree.args.get("final"):
                raise UserError("nothing-final", "EMIT FINAL needs FROM", place=final.where_written(self, tree))
            node, scope, projections = self.without_from(tree, projections)
        else:
            source = from_clause(self, tree)
            scope, where = source.scope, tree.args.get("where")
            conditions = [self.with_names_read(part) for part in conjuncts(where.this)] if where else []
            if tree.args.get("final"):
                source = self.shown_when_final(tree, source, conditions, projections)
            node = inputs(self, source, conditions)
        key_names = named_keys(tree.args.get("group"), scope)
        projected = [with_keys_named(item, key_names) for item in self.expand(projections, scope)]
        keys = self.hidden_keys(tree, projected, distinct)
        keys = [with_keys_named(key, key_names) for key in keys]
        qualify = [with_aliases(tree.args["qualify"].this, projected, scope)] if tree.args.get("qualify") else []
        chosen = [*projected, *keys, *qualify]
        group, having = tree.args.get("group"), tree.args.get("having")
        having = with_keys_named(having, key_names) if having else None
        if group or having or any(aggregates(item) for item in chosen):
            node, trees = grouped(self, node, scope, chosen, group, having)
            node, trees = lift(self, node, of_groups(scope, node), trees)
            if having:
                node = filtered(node, [trees.pop()])
        else:
            node, chosen = lift(self, node, scope, chosen)
            trees = [self.resolve(unaliased(item), scope) for item in chosen]
        node, trees = ranked(self, node, trees)
        if qualify:
            node = filtered(node, [trees.pop()])
        types = types_of(node)
        expanded = [*projected, *keys]
        hidden = [f"sort{number + 1}" for number in range(len(keys))]
        outputs = unique([*(self.output_name(item) for item in projected), *hidden])
        result: Relation = Project(
            node, tuple(Named(name, as_expression(item, types)) for name, item in zip(outputs, trees, strict=True))
        )
        result = Distinct(result) if distinct else result
        if tree.args.get("limit") or tree.args.get("offset"):
            order = self.sort_keys(tree.args.get("order"), outputs, expanded)
            shown = tuple(outputs[: len(projected)])
            result = first_rows(self, result, order, tree.args.get("limit"), tree.args.get("offset"), shown)
        if tree.args.get("final"):
            operator = operator or StreamOf(kind="RSTREAM")
        return self.operator(operator, result, tree) if operator is not None else result

    def shown_when_final(
        self, tree: exp.Select, source: From, conditions: list[exp.Expression], projections: list[exp.Expression]
    ) -> From:
        group, key_names = tree.args.get("group"), named_keys(tree.args.get("group"), source.scope)
        projected = [with_keys_named(item, key_names) for item in self.expand(projections, source.scope)]
        if group is None and not any(aggregates(item) for item in projected):
            return final.shown(self, tree, source, conditions, None)
        return final.shown(self, tree, source, conditions, common_keys(self, group, projected, source.scope))

    def hidden_keys(self, tree: exp.Select, projected: list[exp.Expression], distinct: bool) -> list[exp.Expression]:
        """Expressions of ORDER BY that are not in the select list: computed beside it, where LIMIT needs them."""
        if tree.args.get("order") is None or not (tree.args.get("limit") or tree.args.get("offset")):
            return []
        known = {self.output_name(item).lower() for item in projected} | {
            unaliased(item).sql("spark") for item in projected
        }
        hidden = []
        for key in tree.args["order"].expressions:
            if key.this.name.lower() in known or key.this.sql("spark") in known or key.this.is_int:
                continue
            if distinct:
                raise UserError(
                    "order-not-selected", "with DISTINCT, ORDER BY takes what is selected", place=self.place(key)
                )
            hidden.append(key.this)
        return hidden

    def without_from(
        self, tree: exp.Select, projections: list[exp.Expression]
    ) -> tuple[Relation, Scope, list[exp.Expression]]:
        """Arithmetic over scalar queries: the first of them is the row to which the others are joined."""
        first = next((found for item in projections for found in item.find_all(exp.Subquery)), None)
        if first is None:
            raise UserError("no-from", "a continuous query needs FROM", place=self.place(tree))
        node, name = scalar(self, first.unnest())
        first.replace(ready(column_named(name)))
        return node, Scope([], types_of(node), self.enclosing), projections

    def with_names_read(self, condition: exp.Expression) -> exp.Expression:
        """`x IN (Rel)` with the name of a relation for a query that selects all of it."""

        def replaced(tree: exp.Expression) -> exp.Expression | None:
            if isinstance(tree, exp.In) and len(tree.expressions) == 1 and isinstance(tree.expressions[0], exp.Column):
                (only,) = tree.expressions
                if not only.table and (only.name.lower() in self.local or self.catalog.has_source(only.name)):
                    query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Table(this=only.this.copy())))
                    return exp.In(this=tree.this.copy(), query=exp.Subquery(this=query))
            return None

        return replaced_by(condition.copy(), replaced)

    def sort_keys(
        self, order: exp.Expression | None, outputs: list[str], expanded: list[exp.Expression]
    ) -> list[exp.Expression]:
        """ORDER BY over the columns of the result, hidden ones included."""
        texts = [unaliased(item).sql("spark") for item in expanded]
        visible = [self.output_name(item).lower() for item in expanded]
        keys = []
        for key in order.expressions if order is not None else []:
            if key.this.is_int:
                position = int(key.this.name) - 1
                if not 0 <= position < len(outputs):
                    raise UserError(
                        "bad-position", f"ORDER BY {key.this.name} is not in the select list", place=self.place(order)
                    )
            else:
                name, text = key.this.name.lower() if isinstance(key.this, exp.Column) else "", key.this.sql("spark")
                if name not in visible and text not in texts:
                    raise UserError(
                        "order-not-selected",
                        "ORDER BY of a set operation takes its columns",
                        place=self.place(key),
                        detail=f"Columns are {quoted(outputs)}.",
                    )
                position = visible.index(name) if name in visible else texts.index(text)
            keys.append(
                exp.Ordered(
                    this=column_named(outputs[position]),
                    desc=key.args.get("desc"),
                    nulls_first=key.args.get("nulls_first"),
                )
            )
        return keys

    def refuse(self, tree: exp.Select) -> None:
        """Everything a SELECT can carry that has no rule yet."""
        for part, what in (
            ("cluster", "CLUSTER BY"),
            ("distribute", "DISTRIBUTE BY"),
            ("sort", "SORT BY"),
            ("pivots", "PIVOT"),
            ("hint", "a hint"),
            ("exclude", "EXCEPT in a select list"),
            ("operation_modifiers", "a modifier of SELECT"),
            ("sample", "TABLESAMPLE"),
            ("kind", "SELECT AS"),
        ):
            if tree.args.get(part):
                found = tree.args[part]
                raise NotYet(what, place=self.place(found[0] if isinstance(found, list) else found))
        if not tree.expressions:
            raise UserError("syntax", "the select list is empty", place=self.place(tree))

    def select_list(self, tree: exp.Select) -> tuple[StreamOf | None, list[exp.Expression], bool]:
        projections, distinct = tree.expressions, tree.args.get("distinct") is not None
        if distinct and tree.args["distinct"].args.get("on"):
            raise NotYet("DISTINCT ON", place=self.place(tree))
        operators = [item for item in projections if isinstance(unaliased(item), StreamOf)]
        if not operators:
            return None, projections, distinct
        if len(projections) > 1:
            raise UserError(
                "operator-in-list",
                f"{operators[0].args.get('kind', 'the operator')} must be around the whole select list",
                place=self.place(operators[0]),
            )
        inner = unaliased(operators[0])
        if not inner.expressions:
            raise UserError("syntax", "the select list is empty", place=self.place(tree))
        return inner, inner.expressions, distinct or bool(inner.args.get("distinct"))

    def within(self, scope: Scope, bound: Callable[[], T]) -> T:
        """Bind something inside the query of that scope, so that it sees its names."""
        before, self.enclosing = self.enclosing, scope
        try:
            return bound()
        finally:
            self.enclosing = before

    # names and expressions

    def conditions(self, conditions: list[exp.Expression], scope: Scope) -> list[exp.Expression]:
        check_conditions(self, conditions)
        resolved = [self.resolve(condition, scope) for condition in conditions]
        for written, condition in zip(conditions, resolved, strict=True):
            self.refuse_value(condition, scope.types, written)
        return resolved

    def refuse_value(
        self, condition: exp.Expression, types: dict[str, str], written: exp.Expression | None = None
    ) -> None:
        """Refuse a value of a type that is not BOOLEAN where a condition is needed, or among what AND, OR and NOT
        connect.
        """
        for part in connected(condition):
            if isinstance(part, exp.Predicate | exp.Query | exp.Subquery):
                continue
            kind = type_of(annotated(part, types))
            if kind not in ("BOOLEAN", "UNKNOWN", "NULL", "VOID"):
                place = self.place(written if part is condition and written is not None else part)
                hint = (
                    "Compare it with something, such as <> 0."
                    if kind in INTEGRAL
                    else "Compare it with something, or CAST it."
                )
                raise UserError("wrong-type", f"a condition is needed here, and this is {kind}", place=place, hint=hint)

    def resolve(self, tree: exp.Expression, scope: Scope, nested: bool = False) -> exp.Expression:
        """The expression over the inner names of the scope; with `nested`, subqueries in it stay as they are."""
        self.check_expression(tree, nested)
        expanded = replaced_by(tree.copy(), self.called)

        def replaced(node: exp.Expression) -> exp.Expression | None:
            return without_inside(node, replaced) or self.column(node, scope)

        resolved = divided(replaced_by(expanded, replaced), scope.types)
        for choice in resolved.find_all(exp.If, exp.Filter):
            if isinstance(choice, exp.Filter):
                self.refuse_value(choice.expression.this, scope.types)
            elif not (isinstance(choice.parent, exp.Case) and choice.parent.this):  # CASE x WHEN 1 compares
                self.refuse_value(choice.this, scope.types)
        return resolved

    def called(self, node: exp.Expression) -> exp.Expression | None:
        """The body of a function that was defined in SQL, with its arguments in place."""
        if not isinstance(node, exp.Anonymous) or node.name.lower() not in self.catalog.functions:
            return None
        function = self.catalog.functions[node.name.lower()]
        if len(node.expressions) != len(function.parameters):
            raise UserError(
                "wrong-arguments",
                f'function "{function.name}" takes {len(function.parameters)} arguments',
                place=self.place(node),
            )
        arguments = {
            parameter.lower(): replaced_by(argument.copy(), self.called)
            for parameter, argument in zip(function.parameters, node.expressions, strict=True)
        }

        def filled(inner: exp.Expression) -> exp.Expression | None:
            if isinstance(inner, exp.Column) and inner.name.lower() in arguments:
                return exp.paren(arguments[inner.name.lower()].copy())
            return None

        body = parse_one(function.body, dialect=Cql)
        return exp.paren(replaced_by(body, filled), copy=False)

    def check_expression(self, tree: exp.Expression, nested: bool = False) -> None:
        if not nested and has_subquery(tree):
            raise NotYet("a subquery in an expression", place=self.place(tree))
        for parameter in tree.find_all(exp.Placeholder, exp.Parameter):
            raise UserError("syntax", "a parameter has no value here", place=self.place(parameter))
        for stream in tree.find_all(StreamOf):
            raise UserError(
                "operator-in-list",
                f"{stream.args['kind']} must be around the whole select list",
                place=self.place(stream),
            )

    def column(self, node: exp.Expression, scope: Scope) -> exp.Expression | None:
        if not isinstance(node, exp.Column) or node.meta.get("resolved"):
            return None
        if isinstance(node.this, exp.Star):
            raise UserError("syntax", "* cannot stand here", place=self.place(node))
        name, table = node.name, node.table
        if not table and name.lower() in scope.merged:
            return scope.merged[name.lower()].copy()
        if node.args.get("db"):
            table, name = node.args["db"].name, node.table  # a.b.c: column b, field c
        candidates = [item for item in scope.items if not table or item.alias.lower() == table.lower()]
        found = [item.inner[name.lower()] for item in candidates if name.lower() in item.inner]
        if len(found) == 1:
            inner = column_named(found[0], node)
            return exp.Dot(this=inner, expression=node.this.copy()) if node.args.get("db") else inner
        if len(found) > 1:
            owners = [item.alias for item in candidates if name.lower() in item.inner]
            raise UserError(
                "ambiguous-column",
                f'column "{name}" stands in more than one input',
                place=self.place(node),
                detail=f"It is in {quoted(owners)}.",
                hint=f"Write {owners[0]}.{name}.",
            )
        if scope.outer is not None and self.known(node, scope.outer):
            found_there = self.column(node, scope.outer)
            if isinstance(found_there, exp.Column) and found_there.name in scope.copies:
                return column_named(scope.copies[found_there.name], node)
            return found_there
        if table and not candidates:
            owner = [item for item in scope.items if table.lower() in item.inner]
            if len(owner) == 1:  # a struct column and its field
                return exp.Dot(this=column_named(owner[0].inner[table.lower()], node), expression=node.this.copy())
            aliases = [item.alias for item in scope.items if item.alias]
            raise UserError(
                "no-such-input",
                f'"{table}" is not in FROM',
                place=self.place(node),
                detail=f"FROM has {quoted(aliases)}.",
                hint=nearest(table, aliases),
            )
        if not table and name.lower() == CURRENT_TIME:
            return self.current_time(node, scope)
        where = f'"{candidates[0].alias}"' if len(candidates) == 1 and candidates[0].alias else "FROM"
        raise self.no_such_column(node, where, [name for item in candidates for name in item.visible])

    def current_time(self, node: exp.Expression, scope: Scope) -> exp.Expression:
        """The instant of the answer, where a tuple tells it; everywhere else the answer would change at every
        instant.
        """
        if scope.current is not None:
            return column_named(scope.current, node)
        raise UserError(
            "not-deterministic",
            "CURRENT_TIME is the instant of the answer, which changes at every instant",
            place=self.place(node),
            detail="It has one value for a row only where the row lives for one instant: beside a stream [NOW] in "
            "FROM.",
            hint="FROM s [NOW], ..., or ELEMENT_TIME for the timestamp of a tuple.",
        )

    def known(self, node: exp.Column, scope: Scope) -> bool:
        """Whether an enclosing query has the column."""
        name, table = node.name.lower(), node.table.lower()
        if any(name in item.inner and (not table or item.alias.lower() == table) for item in scope.items):
            return True
        return scope.outer is not None and self.known(node, scope.outer)

    def no_such_column(self, column: exp.Expression, where: str, known: Iterable[str]) -> UserError:
        columns = list(known)
        start = column.this.meta.get("start")
        dashed = next((found for found in DASHED.finditer(self.text) if found.start() == start), None)
        if dashed is not None:
            place = Place(self.text, dashed.start(), dashed.end(), self.origin)
            hint = f"If it is one name, write `{dashed.group()}`; if not, put spaces around the minus."
            return UserError("foreign-construct", f'a name with a dash, "{dashed.group()}"', place=place, hint=hint)
        return UserError(
            "no-such-column",
            f'column "{column.name}" does not exist in {where}',
            place=self.place(column.this),
            detail=f"Columns of {where} are {quoted(columns)}.",
            hint=nearest(column.name, columns),
        )

    def expand(self, projections: Iterable[exp.Expression], scope: Scope) -> list[exp.Expression]:
        """The select list with every * written out."""
        result: list[exp.Expression] = []
        for projection in projections:
            star = isinstance(projection, exp.Star)
            if not star and not (isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star)):
                result.append(projection)
                continue
            shape = projection if star else projection.this
            if any(shape.args.get(part) for part in ("replace", "rename", "ilike")):
                raise NotYet("REPLACE, RENAME or ILIKE behind *", place=self.place(projection))
            left_out = {column.name.lower(): column for column in shape.args.get("except_") or ()}
            items = (
                scope.items
                if star
                else [item for item in scope.items if item.alias.lower() == projection.table.lower()]
            )
            if not items:
                aliases = [item.alias for item in scope.items if item.alias]
                raise UserError(
                    "no-such-input",
                    f'"{projection.table}" is not in FROM',
                    place=self.place(projection.args["table"]),
                    detail=f"FROM has {quoted(aliases)}.",
                    hint=nearest(projection.table, aliases),
                )
            qualify = len(scope.items) > 1
            once = set(scope.merged) if star else set()
            shown = [exp.Column(this=exp.to_identifier(name, quoted=True)) for name in _spelled(scope, once)]
            for item in items:
                for visible in item.visible:
                    if visible.lower() in once:
                        continue
                    table = exp.to_identifier(item.alias) if item.alias and qualify else None
                    shown.append(exp.Column(this=exp.to_identifier(visible, quoted=True), table=table))
            known = {column.name.lower() for column in shown}
            for name, column in left_out.items():
                if name not in known:
                    raise self.no_such_column(column, "the select list", [column.name for column in shown])
            result += [column for column in shown if column.name.lower() not in left_out]
        return result

    def output_name(self, item: exp.Expression) -> str:
        if isinstance(item, exp.Alias):
            return item.alias
        if isinstance(item, exp.Column):
            return item.name
        if isinstance(item, exp.Anonymous):
            return item.name.lower()
        if isinstance(item, exp.Func) and not isinstance(item, exp.Cast | exp.Connector):
            return item.sql_name().lower()
        return "value"


def _cast(value: exp.Expression, kind: str, wanted: str | None) -> exp.Expression:
    return value if wanted is None or wanted == kind else exp.cast(value, wanted, dialect="spark")


def _spelled(scope: Scope, merged: set[str]) -> list[str]:
    """The columns that USING made one of, as they are written, in the order of FROM."""
    written = {name.lower(): name for item in reversed(scope.items) for name in item.visible if name.lower() in merged}
    ordered = [name.lower() for item in scope.items for name in item.visible if name.lower() in merged]
    return [written[name] for name in dict.fromkeys(ordered)]
