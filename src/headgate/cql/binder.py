"""Binds a query: turns its syntax tree into a plan, with names looked up, types inferred and defaults filled in.

The catalog and a tree come in; a plan node and the query's text with all defaults written out go out. Everything that
headgate cannot answer is refused here, with its place in the text, so that no later module meets a construct it does
not know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from sqlglot import exp

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import View
from headgate.cql import calls, final
from headgate.cql.grouping import common_keys, grouped, named_keys, scope_of_groups, with_aliases, with_keys_named
from headgate.cql.inputs import CURRENT_TIME, From, Scope, from_clause, windowed
from headgate.cql.names import Resolver
from headgate.cql.ranking import expand_named_windows, first_rows, ranked
from headgate.cql.subqueries import joined_and_filtered, lift_subqueries, scalar_row
from headgate.cql.syntax import StreamOf, WindowedQuery
from headgate.cql.trees import (
    aggregate_calls,
    as_expression,
    as_relation,
    column_named,
    conjuncts,
    filtered,
    marked_resolved,
    replaced_by,
    types_of,
    unaliased,
    unique,
)
from headgate.cql.windows import rstream_interval
from headgate.errors import NotYet, Place, UserError, quoted
from headgate.plan.derived import intersection, set_difference
from headgate.plan.expressions import Named
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
from headgate.sql.printer import compared
from headgate.ticks import TimeDomain


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A bound query: its plan, and its text with all defaults written out."""

    plan: Node
    resolved: str
    reads: frozenset[str] = frozenset()
    """The queries in GSQL that it reads by their names, in lower case."""


T = TypeVar("T")


def bind(
    tree: exp.Expression,
    text: str,
    catalog: Catalog,
    origin: str = "",
    columns: Sequence[str] = (),
    types: Sequence[str | None] = (),
) -> BoundQuery:
    """Binds a whole query.

    `columns` are names that replace those of the result; `types` are the types to which its columns are cast.
    """
    binder = Binder(text, catalog, origin)
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
    return BoundQuery(plan, binder.resolved(tree), frozenset(binder.reads))


class Binder(Resolver):
    """Turns the syntax trees of one query into plan nodes, clause by clause."""

    def __init__(self, text: str, catalog: Catalog, origin: str) -> None:
        super().__init__(text, catalog, origin)
        self.insertions: list[tuple[int, str]] = []
        self.local: dict[str, View] = {}
        self.reads: set[str] = set()
        self.enclosing: Scope | None = None

    # defaults

    def insert_default(self, offset: int, text: str) -> None:
        """Remembers a default that the user left out, to be inserted into the query's text at this offset."""
        self.insertions.append((offset, text))

    def resolved(self, tree: exp.Expression) -> str:
        """The text of the query with all defaults inserted."""
        start, end = tree.meta.get("start", 0), tree.meta.get("end", len(self.text))
        result = self.text[start:end]
        # Of several defaults at one place, a later one goes around the earlier: before it on the left, behind it on the
        # right.
        numbered = [(offset, order, text) for order, (offset, text) in enumerate(self.insertions)]
        around = sorted(numbered, key=lambda entry: (-entry[0], entry[1] if entry[2].endswith("(") else -entry[1]))
        for offset, _, addition in around:
            result = result[: offset - start] + addition + result[offset - start :]
        return result

    # queries

    def outermost(self, tree: exp.Expression) -> Node:
        """Binds a whole query; without an operator, a result that only grows becomes a stream by ISTREAM."""
        plan = self.query(tree)
        if is_stream(plan) or not plan.monotonic:
            return plan
        self.wrap(tree, "ISTREAM")
        return Istream(as_relation(plan))

    def renamed(
        self, plan: Node, columns: Sequence[str], tree: exp.Expression, cast_to: Sequence[str | None] = ()
    ) -> Node:
        """Renames the columns of a plan, and casts them where types are given."""
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
        """Writes an operator such as ISTREAM around a query in the text that shows all defaults."""
        if "start" in tree.meta:
            self.insert_default(tree.meta["start"], f"{operator}(")
            self.insert_default(tree.meta["end"], ")")

    def query(self, tree: exp.Expression) -> Node:
        """Binds a query of any form, and refuses it if its plan is too large to go on with."""
        plan = self._query(tree)
        self.refuse_large(plan, tree)
        return plan

    def _query(self, tree: exp.Expression) -> Node:
        """Bind a select, a set operation, a windowed query, or an operator around one."""
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
        """Binds a query where a relation is needed: a stream gets the default window, [RANGE UNBOUNDED]."""
        plan = self.query(tree)
        return Window(plan, Unbounded()) if is_stream(plan) else as_relation(plan)

    def as_stream(self, tree: exp.Expression) -> Stream:
        """Binds a query that has a window behind it, which needs a stream: a result that only grows gets ISTREAM."""
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
        """Puts ISTREAM, DSTREAM or RSTREAM above a relation.

        RSTREAM is refused where it would repeat the whole relation at every microsecond.
        """
        kind, interval = written.args["kind"], rstream_interval(self, written, child, tree)
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
        """Binds UNION, EXCEPT or INTERSECT, with the ORDER BY and LIMIT behind it."""
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
        """Whether both sides are plain names, `A UNION B`: Stanford's prototype means bags there, SQL means sets."""
        bare = tree.this.meta.get("bare") and tree.expression.meta.get("bare")
        return bool(bare) and self.catalog.settings.dialect == "stream"

    def define_locally(self, with_: exp.Expression | None) -> None:
        """Binds the common table expressions of WITH: views that only this query sees."""
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
        """Binds a SELECT together with its WITH clause."""
        outside = self.local
        self.define_locally(tree.args.get("with_"))
        result = self.select_body(tree)
        self.local = outside
        return result

    def select_body(self, tree: exp.Select) -> Node:
        """Binds the clauses of a SELECT: FROM, WHERE, GROUP BY, HAVING, QUALIFY, the select list, DISTINCT, LIMIT."""
        self.refuse_unsupported(tree)
        for call in tree.find_all(exp.Anonymous):
            if call.name.lower() in self.catalog.aggregates:
                call.meta["aggregate"] = True
        for call in list(tree.find_all(exp.CurrentTime)):
            call.replace(exp.Column(this=exp.to_identifier(CURRENT_TIME)))
        operator, projections, distinct = self.select_list(tree)
        expand_named_windows(self, tree)
        if tree.args.get("from_") is None:
            if tree.args.get("final"):
                raise UserError("nothing-final", "EMIT FINAL needs FROM", place=final.place_of_final(self, tree))
            node, scope, projections = self.without_from(tree, projections)
        else:
            source = from_clause(self, tree)
            scope, where = source.scope, tree.args.get("where")
            conditions = [self.with_relation_names_expanded(part) for part in conjuncts(where.this)] if where else []
            if tree.args.get("final"):
                source = self.from_when_final(tree, source, conditions, projections)
            node = joined_and_filtered(self, source, conditions)
        key_names = named_keys(tree.args.get("group"), scope)
        projected = [with_keys_named(item, key_names) for item in self.expand(projections, scope)]
        keys = self.hidden_keys(tree, projected, distinct)
        keys = [with_keys_named(key, key_names) for key in keys]
        qualify = [with_aliases(tree.args["qualify"].this, projected, scope)] if tree.args.get("qualify") else []
        chosen = [*projected, *keys, *qualify]
        group, having = tree.args.get("group"), tree.args.get("having")
        having = with_keys_named(having, key_names) if having else None
        if group or having or any(aggregate_calls(item) for item in chosen):
            node, trees = grouped(self, node, scope, chosen, group, having)
            node, trees = lift_subqueries(self, node, scope_of_groups(scope, node), trees)
            if having:
                node = filtered(node, [trees.pop()])
        else:
            node, chosen = lift_subqueries(self, node, scope, chosen)
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

    def from_when_final(
        self, tree: exp.Select, source: From, conditions: list[exp.Expression], projections: list[exp.Expression]
    ) -> From:
        """For EMIT FINAL: the FROM clause in which each tuple is held back until its group or join is complete."""
        group, key_names = tree.args.get("group"), named_keys(tree.args.get("group"), source.scope)
        projected = [with_keys_named(item, key_names) for item in self.expand(projections, source.scope)]
        if group is None and not any(aggregate_calls(item) for item in projected):
            return final.held_until_final(self, tree, source, conditions, None)
        return final.held_until_final(self, tree, source, conditions, common_keys(self, group, projected, source.scope))

    def hidden_keys(self, tree: exp.Select, projected: list[exp.Expression], distinct: bool) -> list[exp.Expression]:
        """Expressions of ORDER BY that are not in the select list; LIMIT needs them, so they are computed beside it."""
        if tree.args.get("order") is None or not (tree.args.get("limit") or tree.args.get("offset")):
            return []
        known = {self.output_name(item).lower() for item in projected} | {
            compared(unaliased(item)) for item in projected
        }
        hidden = []
        for key in tree.args["order"].expressions:
            if key.this.name.lower() in known or compared(key.this) in known or key.this.is_int:
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
        """Binds arithmetic over scalar queries, which has no FROM: the others are joined to the first one's row."""
        first = next((found for item in projections for found in item.find_all(exp.Subquery)), None)
        if first is None:
            raise UserError("no-from", "a continuous query needs FROM", place=self.place(tree))
        node, name = scalar_row(self, first.unnest())
        first.replace(marked_resolved(column_named(name)))
        return node, Scope([], types_of(node), self.enclosing), projections

    def with_relation_names_expanded(self, condition: exp.Expression) -> exp.Expression:
        """Replaces `x IN (rel)`, with the name of a relation, by `x IN (SELECT * FROM rel)`."""

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
        """The keys of ORDER BY, as columns of the result, with the hidden ones."""
        texts = [compared(unaliased(item)) for item in expanded]
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
                name, text = key.this.name.lower() if isinstance(key.this, exp.Column) else "", compared(key.this)
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

    def refuse_unsupported(self, tree: exp.Select) -> None:
        """Refuses the clauses of a SELECT that headgate does not support, such as PIVOT and TABLESAMPLE."""
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
        """The select list, the relation-to-stream operator around it if there is one, and whether DISTINCT is asked."""
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

    def bind_within(self, scope: Scope, bound: Callable[[], T]) -> T:
        """Calls `bound` with the scope as the enclosing query, so that a subquery sees its names."""
        before, self.enclosing = self.enclosing, scope
        try:
            return bound()
        finally:
            self.enclosing = before


def _cast(value: exp.Expression, kind: str, wanted: str | None) -> exp.Expression:
    return value if wanted is None or wanted == kind else exp.cast(value, wanted, dialect="spark")
