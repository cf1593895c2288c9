"""From a query's syntax tree to its plan: names looked up, types inferred, defaults taken, everything checked.

The catalog and a tree come in; a plan node and the query's text with all defaults written out go out. Whatever headgate
cannot answer is refused here, with the place, so that nothing behind this module meets a construct it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sqlglot import exp, parse_one

from headgate.catalog import Catalog, TimeDomain, View
from headgate.catalog import Relation as BaseRelation
from headgate.catalog import Stream as BaseStream
from headgate.cql.dialect import Cql
from headgate.cql.grouping import grouped
from headgate.cql.ranking import first_rows, ranked
from headgate.cql.subqueries import filter_by, has_subquery, lift
from headgate.cql.syntax import StreamOf, StreamWindow, WindowedQuery
from headgate.cql.trees import (
    aggregates,
    as_expression,
    as_relation,
    column_named,
    conjuncts,
    divided,
    filtered,
    read_columns,
    replaced_by,
    types_of,
    unaliased,
    unique,
)
from headgate.cql.windows import every, frame
from headgate.errors import NotYet, Place, UserError, nearest, quoted
from headgate.plan.derived import MINUS_ONE, intersection, outer_join, set_difference
from headgate.plan.expressions import Named
from headgate.plan.nodes import (
    Distinct,
    Dstream,
    Equality,
    Istream,
    Join,
    Node,
    Project,
    Relation,
    Rstream,
    Source,
    Stored,
    Stream,
    Unbounded,
    Union,
    Weight,
    Window,
    domain,
    is_stream,
    names,
    sources,
)  # fmt: skip
from headgate.plan.properties import instantaneous, monotonic


def source_name(source: Source | Stored) -> str:
    return source.stream if isinstance(source, Source) else source.relation


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound query: its plan and its text with the defaults written out."""

    plan: Node
    resolved: str


T = TypeVar("T")


def bind(tree: exp.Expression, text: str, catalog: Catalog, origin: str = "", columns: Sequence[str] = ()) -> Bound:
    """Bind a whole query; `columns` are other names for what it puts out."""
    binder = _Binder(text, catalog, origin)
    binder.whole = Place(text, tree.meta.get("start", 0), tree.meta.get("end", len(text)), origin)
    plan = binder.outermost(tree)
    if columns:
        plan = binder.renamed(plan, columns, tree)
    domains = {source.domain for source in sources(plan) if source.domain is not None}
    if len(domains) > 1:
        raise UserError(
            "time-domains-differ", "a query cannot mix streams with integer time and streams with TIMESTAMP time",
            place=binder.place(tree), detail=f"It reads {quoted(sorted({source_name(source) for source in sources(plan)}))}.",
        )  # fmt: skip
    return Bound(plan, binder.resolved(tree))


@dataclass(frozen=True, slots=True)
class _Item:
    """One entry of FROM: the name it goes by, its relation, and what its columns are called outside and inside."""

    alias: str
    node: Relation
    inner: dict[str, str]
    """Visible name in lower case -> name in `node`."""

    visible: tuple[str, ...]


@dataclass(slots=True)
class Scope:
    """What names mean in one query; `outer` is the scope of the query around it."""

    items: list[_Item]
    types: dict[str, str] = field(default_factory=dict)
    outer: Scope | None = None

    def inner_names(self) -> set[str]:
        own = {name.lower() for item in self.items for name in item.inner.values()}
        return own | (self.outer.inner_names() if self.outer is not None else set())


ELEMENT_TIME = "element_time"
"""The timestamp of a stream's tuple, as a column; not among those that * stands for."""


def _reads_time(tree: exp.Expression, alias: str, columns: tuple[str, ...]) -> bool:
    """Whether a query asks for the timestamps of the tuples of that input."""
    asked = {ELEMENT_TIME, "timestamp"} - {column.lower() for column in columns}
    return any(
        column.name.lower() in asked and (not column.table or column.table.lower() == alias.lower())
        for column in tree.find_all(exp.Column)
    )


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
        if "start" in tree.meta and isinstance(tree, StreamWindow | exp.Identifier | exp.Anonymous | exp.Command | exp.DataType):
            end = tree.meta["end"] + (0 if isinstance(tree, StreamWindow | exp.Command | exp.DataType) else 1)
            return Place(self.text, tree.meta["start"], end, self.origin)
        spans = [node.meta for node in tree.find_all(exp.Identifier, exp.Anonymous, StreamWindow) if "start" in node.meta]
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
        for offset, addition in sorted(self.insertions, key=lambda insertion: -insertion[0]):
            result = result[: offset - start] + addition + result[offset - start :]
        return result

    # queries

    def outermost(self, tree: exp.Expression) -> Node:
        """A whole query: Istream where the user wrote no operator and the result only grows."""
        plan = self.query(tree)
        if is_stream(plan) or not monotonic(plan):
            return plan
        self.wrap(tree, "ISTREAM")
        return Istream(as_relation(plan))

    def renamed(self, plan: Node, columns: Sequence[str], tree: exp.Expression) -> Node:
        if len(columns) != len(plan.columns):
            raise UserError(
                "columns-differ", f"{len(columns)} names are given for {len(plan.columns)} columns", place=self.place(tree)
            )
        if isinstance(plan, Istream | Dstream | Rstream):
            return type(plan)(as_relation(self.renamed(plan.child, columns, tree)))
        types = types_of(plan)
        items = zip(unique(columns), names(plan), strict=True)
        return Project(as_relation(plan), tuple(Named(new, as_expression(column_named(old), types)) for new, old in items))

    def wrap(self, tree: exp.Expression, operator: str) -> None:
        if "start" in tree.meta:
            self.default(tree.meta["start"], f"{operator}(")
            self.default(tree.meta["end"], ")")

    def query(self, tree: exp.Expression) -> Node:
        match tree:
            case StreamOf() if tree.args.get("query") is not None:
                return self.operator(tree, self.relation(tree.args["query"]), tree)
            case WindowedQuery():
                return self.windowed(self.as_stream(tree.this), tree.args["window"])
            case exp.Subquery():
                if tree.args.get("window"):
                    return self.windowed(self.as_stream(tree.this), tree.args["window"])
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
        if monotonic(plan):
            self.wrap(tree, "ISTREAM")
            return Istream(as_relation(plan))
        raise UserError(
            "window-over-relation", "a window needs a stream, but this query gives a relation whose rows may go away",
            place=self.place(tree), hint="Say which stream is meant: ISTREAM, DSTREAM or RSTREAM.",
        )  # fmt: skip

    def operator(self, written: StreamOf, child: Relation, tree: exp.Expression) -> Stream:
        kind, interval = written.args["kind"], every(self, written, child, tree)
        if kind == "RSTREAM" and not interval and domain(child) is TimeDomain.TIMESTAMP and not instantaneous(child):
            raise UserError(
                "rstream-every-instant", "RSTREAM would repeat the relation at every microsecond", place=self.place(tree),
                detail="Over TIMESTAMP time it needs a relation that lives for one instant, as below [NOW].",
                hint="Use ISTREAM, say EVERY 1 SECOND behind the query, or join with a stream [NOW].",
            )  # fmt: skip
        match kind:
            case "ISTREAM":
                return Istream(child)
            case "DSTREAM":
                return Dstream(child)
            case _:
                return Rstream(child, interval)

    def set_operation(self, tree: exp.SetOperation) -> Relation:
        if tree.args.get("by_name") or any(tree.args.get(part) for part in ("order", "limit", "offset")):
            raise NotYet("ORDER BY, LIMIT or BY NAME on a set operation", place=self.place(tree))
        outside = self.local
        self.define_locally(tree.args.get("with_"))
        left, right = self.relation(tree.this), self.relation(tree.expression)
        self.local = outside
        kind = type(tree).__name__.upper()
        if len(left.columns) != len(right.columns):
            raise UserError(
                "columns-differ", f"the sides of {kind} have {len(left.columns)} and {len(right.columns)} columns",
                place=self.place(tree.expression),
            )  # fmt: skip
        every = not tree.args.get("distinct", True) or self.of_bare_names(tree)
        match tree:
            case exp.Union():
                return Union(left, right) if every else Distinct(Union(left, right))
            case exp.Except():
                return set_difference(left, right, every)
            case _:
                return intersection(left, right, every)

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
        operator, projections, distinct = self.select_list(tree)
        scope, conditions, outer = self.from_clause(tree)
        where = tree.args.get("where")
        node = self.inputs(scope, conditions, outer, conjuncts(where.this) if where else [])
        projected = self.expand(projections, scope)
        expanded = [*projected, *self.hidden_keys(tree, projected, distinct)]
        if any(has_subquery(item) for item in expanded):
            if tree.args.get("group") or any(aggregates(item) for item in expanded):
                raise NotYet("a subquery beside an aggregate", place=self.place(tree))
            node, expanded = lift(self, node, scope, expanded)
        for item in expanded:
            self.check_expression(unaliased(item))
        group, having = tree.args.get("group"), tree.args.get("having")
        if group or having or any(aggregates(item) for item in expanded):
            node, items = grouped(self, node, scope, expanded, group, having)
        else:
            items = [(self.resolve(unaliased(item), scope), self.output_name(item)) for item in expanded]
        node, trees = ranked(self, node, [item for item, _ in items])
        types = types_of(node)
        hidden = [f"sort{number + 1}" for number in range(len(expanded) - len(projected))]
        outputs = unique([*(self.output_name(item) for item in projected), *hidden])
        result: Relation = Project(
            node, tuple(Named(name, as_expression(item, types)) for name, item in zip(outputs, trees, strict=True))
        )
        result = Distinct(result) if distinct else result
        if tree.args.get("limit") or tree.args.get("offset"):
            keys = self.sort_keys(tree, outputs, expanded)
            chosen = tuple(outputs[: len(projected)])
            result = first_rows(self, result, keys, tree.args.get("limit"), tree.args.get("offset"), chosen)
        return self.operator(operator, result, tree) if operator is not None else result

    def hidden_keys(self, tree: exp.Select, projected: list[exp.Expression], distinct: bool) -> list[exp.Expression]:
        """Expressions of ORDER BY that are not in the select list: computed beside it, where LIMIT needs them."""
        if tree.args.get("order") is None or not (tree.args.get("limit") or tree.args.get("offset")):
            return []
        known = {self.output_name(item).lower() for item in projected} | {unaliased(item).sql("spark") for item in projected}
        hidden = []
        for key in tree.args["order"].expressions:
            if key.this.name.lower() in known or key.this.sql("spark") in known or key.this.is_int:
                continue
            if distinct:
                raise UserError("order-not-selected", "with DISTINCT, ORDER BY takes what is selected", place=self.place(key))
            hidden.append(key.this)
        return hidden

    def sort_keys(self, tree: exp.Select, outputs: list[str], expanded: list[exp.Expression]) -> list[exp.Expression]:
        """ORDER BY over the columns of the result, hidden ones included."""
        order = tree.args.get("order")
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
                position = visible.index(name) if name in visible else texts.index(text)
            keys.append(
                exp.Ordered(
                    this=column_named(outputs[position]), desc=key.args.get("desc"), nulls_first=key.args.get("nulls_first")
                )
            )
        return keys

    def refuse(self, tree: exp.Select) -> None:
        """Everything a SELECT can carry that has no rule yet."""
        for part, what in (
            ("windows", "WINDOW"), ("laterals", "LATERAL VIEW"),
            ("qualify", "QUALIFY"), ("cluster", "CLUSTER BY"), ("distribute", "DISTRIBUTE BY"), ("sort", "SORT BY"),
            ("pivots", "PIVOT"), ("hint", "a hint"), ("exclude", "EXCEPT in a select list"),
            ("operation_modifiers", "a modifier of SELECT"), ("sample", "TABLESAMPLE"), ("kind", "SELECT AS"),
        ):  # fmt: skip
            if tree.args.get(part):
                found = tree.args[part]
                raise NotYet(what, place=self.place(found[0] if isinstance(found, list) else found))
        if tree.args.get("from_") is None:
            raise UserError("no-from", "a continuous query needs FROM", place=self.place(tree))
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
                "operator-in-list", f"{operators[0].args.get('kind', 'the operator')} must be around the whole select list",
                place=self.place(operators[0]),
            )  # fmt: skip
        inner = unaliased(operators[0])
        if not inner.expressions:
            raise UserError("syntax", "the select list is empty", place=self.place(tree))
        return inner, inner.expressions, distinct or bool(inner.args.get("distinct"))

    # FROM

    def from_clause(self, tree: exp.Select) -> tuple[Scope, list[exp.Expression], list[exp.Expression | None]]:
        """What stands behind FROM: the scope, the conditions of inner joins, and each outer join's syntax, by position."""
        joins: list[exp.Expression] = [None, *(tree.args.get("joins") or [])]
        bound: list[tuple[str, Relation, tuple[str, ...]]] = []
        conditions: list[exp.Expression] = []
        outer: list[exp.Expression | None] = []
        for table, join in zip([tree.args["from_"].this, *(join.this for join in joins[1:])], joins, strict=True):
            alias, node = self.table(table)
            if any(alias.lower() == other.lower() for other, _, _ in bound if alias):
                raise UserError(
                    "name-taken", f'"{alias}" stands twice in FROM', place=self.place(table), hint="Give one an alias."
                )
            visible = names(node)
            if isinstance(node, Window) and _reads_time(tree, alias, visible):
                node = replace(node, stamp=ELEMENT_TIME)
            bound.append((alias, node, visible))
            sided = join is not None and (join.args.get("side") or "").upper() in ("LEFT", "RIGHT", "FULL")
            outer.append(join if sided else None)
            if join is not None and not sided:
                conditions += self.inner_conditions(join, table)
        return self.scope(bound), conditions, outer

    def inner_conditions(self, join: exp.Expression, table: exp.Expression) -> list[exp.Expression]:
        words = [(join.args.get(part) or "").upper() for part in ("method", "side", "kind")]
        if words[:2] != ["", ""] or words[2] not in ("", "CROSS", "INNER"):
            raise NotYet(" ".join(word for word in words if word) + " JOIN", place=self.place(table))
        if join.args.get("using"):
            raise NotYet("JOIN ... USING", place=self.place(table))
        return conjuncts(join.args["on"]) if join.args.get("on") else []

    def scope(self, bound: Sequence[tuple[str, Relation, tuple[str, ...]]]) -> Scope:
        """Give every column of FROM a name of its own: its own where it is unique, else alias_name."""
        counts: dict[str, int] = {}
        for _, node, _ in bound:
            for column in names(node):
                counts[column.lower()] = counts.get(column.lower(), 0) + 1
        wanted = [
            column if counts[column.lower()] == 1 else f"{alias or 'q'}_{column}"
            for alias, node, _ in bound
            for column in names(node)
        ]
        inner_names = iter(unique(wanted, self.enclosing.inner_names() if self.enclosing else ()))
        items = []
        for alias, node, visible in bound:
            columns = names(node)
            inner = {column.lower(): next(inner_names) for column in columns}
            if tuple(inner.values()) != columns:
                types = types_of(node)
                node = Project(node, tuple(Named(inner[c.lower()], as_expression(column_named(c), types)) for c in columns))
            if len(columns) > len(visible):  # the papers' queries call it timestamp
                inner.setdefault("timestamp", inner[ELEMENT_TIME])
            items.append(_Item(alias, node, inner, visible))
        types = {name: kind for item in items for name, kind in types_of(item.node).items()}
        return Scope(items, {**(self.enclosing.types if self.enclosing else {}), **types}, self.enclosing)

    def within(self, scope: Scope, bound: Callable[[], T]) -> T:
        """Bind something inside the query of that scope, so that it sees its names."""
        before, self.enclosing = self.enclosing, scope
        try:
            return bound()
        finally:
            self.enclosing = before

    def table(self, tree: exp.Expression) -> tuple[str, Relation]:
        alias = tree.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            raise NotYet("an alias with columns", place=self.place(alias))
        window = tree.args.get("window") or (alias.args.get("window") if alias is not None else None)
        name = alias.name if alias is not None and alias.this is not None else ""
        match tree:
            case exp.Table() if isinstance(tree.this, exp.Identifier):
                if tree.args.get("db") or tree.args.get("joins") or tree.args.get("sample") or tree.args.get("pivots"):
                    raise NotYet("this form of a table", place=self.place(tree))
                node = self.named(tree.this, window)
                return name or tree.name, node
            case exp.Subquery():
                if window is not None:
                    return name, self.windowed(self.as_stream(tree.this), window)
                return name, self.relation(tree.this)
            case _:
                raise NotYet("this form of a table in FROM", place=self.place(tree))

    def named(self, identifier: exp.Identifier, window: StreamWindow | None) -> Relation:
        found = self.local.get(identifier.name.lower()) or self.catalog.source(identifier.name, self.place(identifier))
        node: Node
        match found:
            case BaseStream():
                node = Source(found.name, found.columns, found.domain, found.timestamp)
            case BaseRelation():
                node = Stored(found.name, found.columns, found.domain, found.growing)
            case View():
                node = found.plan
        if is_stream(node):
            if window is None and "end" in identifier.meta:
                self.default(identifier.meta["end"] + 1, " [RANGE UNBOUNDED]")
            return self.windowed(node, window) if window is not None else Window(node, Unbounded())
        if window is not None:
            raise UserError(
                "window-over-relation", f'"{found.name}" is a relation, and a window needs a stream',
                place=self.place(window), hint="Leave the window out, or put ISTREAM around the query.",
            )  # fmt: skip
        return as_relation(node)

    def windowed(self, child: Stream, window: StreamWindow) -> Window:
        return Window(child, frame(self, child, window))

    # WHERE and joins

    def inputs(
        self, scope: Scope, conditions: list[exp.Expression], outer: list[exp.Expression | None], where: list[exp.Expression]
    ) -> Relation:
        """The entries of FROM, joined and filtered. Outer joins apply to everything before them; WHERE comes after them."""
        nested = [condition for condition in (*conditions, *where) if has_subquery(condition)]
        conditions = [condition for condition in conditions if condition not in nested]
        where = [condition for condition in where if condition not in nested]
        node = self.plain_inputs(scope, conditions, outer, where)
        for condition in nested:
            node = filter_by(self, node, scope, condition)
        return node

    def plain_inputs(
        self, scope: Scope, conditions: list[exp.Expression], outer: list[exp.Expression | None], where: list[exp.Expression]
    ) -> Relation:
        if not any(outer):
            return self.joined([item.node for item in scope.items], self.conditions([*conditions, *where], scope), scope)
        waiting = self.conditions(conditions, scope)
        nodes: list[Relation] = []
        for item, join in zip(scope.items, outer, strict=True):
            if join is None:
                nodes.append(item.node)
                continue
            here = {name.lower() for node in nodes for name in names(node)}
            now = [tree for tree in waiting if read_columns(tree) <= here]
            waiting = [tree for tree in waiting if tree not in now]
            nodes = [self.outer(self.joined(nodes, now, scope), item.node, join, scope)]
        return self.joined(nodes, [*waiting, *self.conditions(where, scope)], scope)

    def outer(self, left: Relation, right: Relation, join: exp.Expression, scope: Scope) -> Relation:
        if join.args.get("using") or join.args.get("method"):
            raise NotYet("NATURAL or USING with an outer join", place=self.place(join.this))
        on = self.conditions(conjuncts(join.args["on"]) if join.args.get("on") else [], scope)
        pairs, used = self.equalities(left, right, on)
        rest = [tree for tree in on if tree not in used]
        condition = as_expression(exp.and_(*rest, copy=True), scope.types) if rest else None
        return outer_join(join.args["side"].upper(), left, right, tuple(pairs), condition)

    def conditions(self, conditions: list[exp.Expression], scope: Scope) -> list[exp.Expression]:
        for condition in conditions:
            if condition.find(exp.Window):
                raise UserError("analytic-in-where", "an analytic function cannot stand in WHERE", place=self.place(condition))
            found = aggregates(condition)
            if found:
                raise UserError(
                    "aggregate-in-where", "an aggregate cannot stand in WHERE", place=self.place(found[0]), hint="Use HAVING."
                )
        return [self.resolve(condition, scope) for condition in conditions]

    def joined(self, nodes: list[Relation], waiting: list[exp.Expression], scope: Scope) -> Relation:
        """Filters on their own input, then joins in an order in which each has an equality, if there is one."""
        inputs = []
        for one in nodes:
            own = {name.lower() for name in names(one)}
            mine = [tree for tree in waiting if (read := read_columns(tree)) and read <= own]
            waiting = [tree for tree in waiting if tree not in mine]
            inputs.append(filtered(one, mine))
        node, rest = inputs[0], inputs[1:]
        while rest:
            chosen = next((right for right in rest if self.equalities(node, right, waiting)[0]), rest[0])
            rest.remove(chosen)
            pairs, used = self.equalities(node, chosen, waiting)
            waiting = [tree for tree in waiting if tree not in used]
            here = {name.lower() for name in (*names(node), *names(chosen))}
            now = [tree for tree in waiting if (read := read_columns(tree)) and read <= here]
            waiting = [tree for tree in waiting if tree not in now]
            condition = as_expression(exp.and_(*now, copy=True), scope.types) if now else None
            node = Join(node, chosen, tuple(pairs), condition)
        return filtered(node, waiting)

    def equalities(
        self, left: Relation, right: Relation, waiting: Iterable[exp.Expression]
    ) -> tuple[list[Equality], list[exp.Expression]]:
        first, second = types_of(left), types_of(right)
        mine, theirs = {name.lower() for name in first}, {name.lower() for name in second}
        pairs, used = [], []
        for tree in waiting:
            if not isinstance(tree, exp.EQ):
                continue
            one, two = tree.this, tree.expression
            if read_columns(one) <= theirs and read_columns(two) <= mine:
                one, two = two, one
            if read_columns(one) and read_columns(two) and read_columns(one) <= mine and read_columns(two) <= theirs:
                pairs.append(Equality(as_expression(one, first), as_expression(two, second)))
                used.append(tree)
        return pairs, used

    # names and expressions

    def resolve(self, tree: exp.Expression, scope: Scope) -> exp.Expression:
        """The expression over the inner names of the scope."""
        self.check_expression(tree)
        expanded = replaced_by(tree.copy(), self.called)
        return divided(replaced_by(expanded, lambda node: self.column(node, scope)), scope.types)

    def called(self, node: exp.Expression) -> exp.Expression | None:
        """The body of a function that was defined in SQL, with its arguments in place."""
        if not isinstance(node, exp.Anonymous) or node.name.lower() not in self.catalog.functions:
            return None
        function = self.catalog.functions[node.name.lower()]
        if len(node.expressions) != len(function.parameters):
            raise UserError(
                "wrong-arguments", f'function "{function.name}" takes {len(function.parameters)} arguments',
                place=self.place(node),
            )  # fmt: skip
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

    def check_expression(self, tree: exp.Expression) -> None:
        if tree.find(exp.Subquery, exp.Select, exp.Exists, exp.SetOperation):
            raise NotYet("a subquery in an expression", place=self.place(tree))
        for parameter in tree.find_all(exp.Placeholder, exp.Parameter):
            raise UserError("syntax", "a parameter has no value here", place=self.place(parameter))
        for stream in tree.find_all(StreamOf):
            raise UserError(
                "operator-in-list", f"{stream.args['kind']} must be around the whole select list", place=self.place(stream)
            )

    def column(self, node: exp.Expression, scope: Scope) -> exp.Expression | None:
        if not isinstance(node, exp.Column) or node.meta.get("resolved"):
            return None
        if isinstance(node.this, exp.Star):
            raise UserError("syntax", "* cannot stand here", place=self.place(node))
        name, table = node.name, node.table
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
                "ambiguous-column", f'column "{name}" stands in more than one input', place=self.place(node),
                detail=f"It is in {quoted(owners)}.", hint=f"Write {owners[0]}.{name}.",
            )  # fmt: skip
        if scope.outer is not None and self.known(node, scope.outer):
            return self.column(node, scope.outer)
        if table and not candidates:
            owner = [item for item in scope.items if table.lower() in item.inner]
            if len(owner) == 1:  # a struct column and its field
                return exp.Dot(this=column_named(owner[0].inner[table.lower()], node), expression=node.this.copy())
            aliases = [item.alias for item in scope.items if item.alias]
            raise UserError(
                "no-such-input", f'"{table}" is not in FROM', place=self.place(node), detail=f"FROM has {quoted(aliases)}.",
                hint=nearest(table, aliases),
            )  # fmt: skip
        where = f'"{candidates[0].alias}"' if len(candidates) == 1 and candidates[0].alias else "FROM"
        raise self.no_such_column(node, where, [name for item in candidates for name in item.visible])

    def known(self, node: exp.Column, scope: Scope) -> bool:
        """Whether an enclosing query has the column."""
        name, table = node.name.lower(), node.table.lower()
        if any(name in item.inner and (not table or item.alias.lower() == table) for item in scope.items):
            return True
        return scope.outer is not None and self.known(node, scope.outer)

    def filtered_by(self, node: Relation, conditions: list[exp.Expression]) -> Relation:
        return filtered(node, conditions)

    def taken_away(self, node: Relation) -> Relation:
        return Weight(node, MINUS_ONE)

    def no_such_column(self, column: exp.Expression, where: str, known: Iterable[str]) -> UserError:
        columns = list(known)
        return UserError(
            "no-such-column", f'column "{column.name}" does not exist in {where}', place=self.place(column.this),
            detail=f"Columns of {where} are {quoted(columns)}.", hint=nearest(column.name, columns),
        )  # fmt: skip

    def expand(self, projections: Iterable[exp.Expression], scope: Scope) -> list[exp.Expression]:
        """The select list with every * written out."""
        result: list[exp.Expression] = []
        for projection in projections:
            star = isinstance(projection, exp.Star)
            if not star and not (isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star)):
                result.append(projection)
                continue
            shape = projection if star else projection.this
            if any(shape.args.get(part) for part in ("except_", "replace", "rename", "ilike")):
                raise NotYet("EXCEPT or REPLACE behind *", place=self.place(projection))
            items = scope.items if star else [item for item in scope.items if item.alias.lower() == projection.table.lower()]
            if not items:
                aliases = [item.alias for item in scope.items if item.alias]
                raise UserError(
                    "no-such-input", f'"{projection.table}" is not in FROM', place=self.place(projection.args["table"]),
                    detail=f"FROM has {quoted(aliases)}.", hint=nearest(projection.table, aliases),
                )  # fmt: skip
            qualify = len(scope.items) > 1
            for item in items:
                for visible in item.visible:
                    table = exp.to_identifier(item.alias) if item.alias and qualify else None
                    result.append(exp.Column(this=exp.to_identifier(visible, quoted=True), table=table))
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
