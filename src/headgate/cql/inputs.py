"""FROM and WHERE: what a query reads, joined and filtered, and what its names mean.

Every column of FROM gets a name of its own for the plan. Inner joins and WHERE are one set of conditions, from which
joins are made in an order in which each has an equality; outer, semi- and anti-joins apply to everything before them,
lateral views to all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.catalog import system
from headgate.catalog.entries import Query, View, errors_name
from headgate.catalog.entries import Relation as BaseRelation
from headgate.catalog.entries import Stream as BaseStream
from headgate.cql.aggregates import depends_on_order
from headgate.cql.constraints import on_stream
from headgate.cql.syntax import StreamWindow
from headgate.cql.trees import (
    aggregate_calls,
    as_expression,
    as_relation,
    column_named,
    conjunction,
    conjuncts,
    equalities,
    filtered,
    marked_resolved,
    read_columns,
    types_of,
    unique,
)
from headgate.cql.windows import frame
from headgate.errors import NotYet, Place, UserError
from headgate.plan.derived import anti_join, outer_join, semi_join
from headgate.plan.expressions import Named
from headgate.plan.left_out import errors_of
from headgate.plan.nodes import (
    Exploded,
    Join,
    Node,
    Now,
    Project,
    Relation,
    Sample,
    Scan,
    Stored,
    Stream,
    Unbounded,
    Window,
    is_stream,
    names,
)
from headgate.sql import Sql, spelled

if TYPE_CHECKING:
    from headgate.cql.binder import Binder
    from headgate.cql.names import Resolver

MOST_INPUTS = 24
"""So many inputs may FROM have. To plan a join of so many takes a quarter of a second."""

ELEMENT_TIME = "element_time"
"""The name of the column with a tuple's timestamp; * does not include it."""


CURRENT_TIME = "current_time"
"""The name for the instant at which an answer holds, in application time (event time)."""


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of FROM: its alias, and for each of its columns the name that the plan uses."""

    alias: str
    inner: dict[str, str]
    """Visible name in lower case -> name in the plan."""

    visible: tuple[str, ...]


@dataclass(slots=True)
class Scope:
    """What names mean in one query; `outer` is the scope of the query around it."""

    items: list[Item]
    types: dict[str, Sql] = field(default_factory=dict)
    outer: Scope | None = None
    merged: dict[str, exp.Expression] = field(default_factory=dict)
    """Columns that USING merged: name in lower case -> value."""

    order: tuple[str, ...] = ()
    """Columns with the arrival order of the only stream in FROM, if an aggregate depends on it."""

    current: str | None = None
    """The column that CURRENT_TIME means: the timestamp of a tuple that lives for one instant only."""

    copies: dict[str, str] = field(default_factory=dict)
    """Outer columns that this query carries for the queries inside it: outer name -> own name."""

    def inner_names(self) -> set[str]:
        """All column names that plans use in this query and in those around it, in lower case."""
        own = {name.lower() for name in (*self.types, *self.copies.values())}
        return own | (self.outer.inner_names() if self.outer is not None else set())


@dataclass(frozen=True, slots=True)
class Joined:
    """An entry of FROM with its kind of join to the entries before it; conditions of inner joins are kept apart."""

    node: Relation
    kind: str = "INNER"
    on: tuple[exp.Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Lateral:
    """A LATERAL VIEW: a function that makes several rows of one, and the names of its columns."""

    generator: exp.Expression
    outer: bool
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class From:
    """The FROM clause, bound: its scope, its entries in order, its lateral views and the conditions of inner joins."""

    scope: Scope
    entries: list[Joined]
    laterals: list[Lateral]
    conditions: list[exp.Expression]
    """The conditions of the inner joins."""


def from_clause(binder: Binder, tree: exp.Select) -> From:
    """Binds the FROM clause of a SELECT, with its joins and lateral views."""
    if tree.args.get("from_") is None:
        raise UserError("no-from", "a subquery needs FROM", place=binder.place(tree))
    joins: list[exp.Expression | None] = [None]
    tables = [tree.args["from_"].this]
    lateral_trees = list(tree.args.get("laterals") or [])
    for join in tree.args.get("joins") or []:
        if isinstance(join.this, exp.Lateral):
            lateral_trees.append(join.this)
        else:
            joins.append(join)
            tables.append(join.this)
    if len(tables) + len(lateral_trees) > MOST_INPUTS and not binder.remembered:
        raise UserError(
            "too-large",
            f"FROM has {len(tables) + len(lateral_trees)} inputs, and may have {MOST_INPUTS}",
            place=binder.place(tables[0]),
            hint="Join some of them in a query of its own, and read its results as a stream.",
        )
    count = sum(not written.meta.get("members") for written in tables)  # see families
    asked_now = any(_is_current_time(column) for column in tree.find_all(exp.Column))
    living: int | None = None
    bound: list[tuple[str, Relation, tuple[str, ...]]] = []
    for position, written in enumerate(tables):
        alias, node = from_entry(binder, written)
        if any(alias.lower() == other.lower() for other, _, _ in bound if alias):
            raise UserError(
                "name-taken", f'"{alias}" stands twice in FROM', place=binder.place(written), hint="Give one an alias."
            )
        visible = names(node)
        in_order = count == 1 and depends_on_order(tree)
        if (
            asked_now
            and living is None
            and isinstance(node, Window)
            and isinstance(node.frame, Now)
            and _is_in_every_row(joins, position)
        ):
            living = position
        if isinstance(node, Window) and (in_order or living == position or _reads_time(tree, alias, visible)):
            stamp = ELEMENT_TIME if ELEMENT_TIME not in map(str.lower, visible) else "stamp"
            node = replace(node, stamp=stamp, arrival="arrival_order" if in_order else None)
        bound.append((alias, node, visible))
    scope, nodes = scope_of(binder, bound)
    if isinstance(bound[0][1], Window) and bound[0][1].arrival is not None:
        scope.order = tuple(scope.items[0].inner[name.lower()] for name in names(bound[0][1])[-2:])
    if living is not None:
        window = bound[living][1]
        assert isinstance(window, Window)
        assert window.stamp is not None
        scope.current = scope.items[living].inner[window.stamp.lower()]
    result = From(scope, [Joined(nodes[0])], [], [])
    for position, join in enumerate(joins[1:], start=1):
        assert join is not None
        _join(binder, result, join, nodes[position], scope.items[: position + 1])
    hidden = [item for item, entry in zip(scope.items, result.entries, strict=True) if entry.kind in ("SEMI", "ANTI")]
    for item in hidden:
        scope.items.remove(item)
    carried = tree.meta.get("carried")
    if carried is not None:  # see subqueries.Carried
        result.entries.append(Joined(carried.relation))
        scope.copies.update(carried.copies)
        scope.types.update(types_of(carried.relation))
    for lateral in lateral_trees:
        _lateral(binder, result, lateral)
    return result


def _is_current_time(column: exp.Column) -> bool:
    return column.name.lower() == CURRENT_TIME and not column.table


def _is_in_every_row(joins: Sequence[exp.Expression | None], position: int) -> bool:
    """Whether every row of FROM has a tuple of this entry, because no outer join can leave it out."""
    sides = [(join.args.get("side") or "").upper() if join is not None else "" for join in joins]
    kinds = [(join.args.get("kind") or "").upper() if join is not None else "" for join in joins]
    return not (
        sides[position] in ("LEFT", "FULL")
        or kinds[position] in ("SEMI", "ANTI")
        or {"RIGHT", "FULL"} & set(sides[position + 1 :])
    )


def scope_of(binder: Binder, bound: Sequence[tuple[str, Relation, tuple[str, ...]]]) -> tuple[Scope, list[Relation]]:
    """The scope of some relations, with a name of its own for every column: `name`, or `alias_name` if two clash."""
    counts: dict[str, int] = {}
    for _, node, _ in bound:
        for column in names(node):
            counts[column.lower()] = counts.get(column.lower(), 0) + 1
    wanted = [
        column if counts[column.lower()] == 1 else f"{alias or 'q'}_{column}"
        for alias, node, _ in bound
        for column in names(node)
    ]
    around = binder.enclosing
    inner_names = iter(unique(wanted, around.inner_names() if around else ()))
    items, nodes = [], []
    for alias, node, visible in bound:
        columns = names(node)
        inner = {column.lower(): next(inner_names) for column in columns}
        if tuple(inner.values()) != columns:
            types = types_of(node)
            node = Project(node, tuple(Named(inner[c.lower()], as_expression(column_named(c), types)) for c in columns))
        if ELEMENT_TIME in inner and len(columns) > len(visible):  # the papers' queries call it timestamp
            inner.setdefault("timestamp", inner[ELEMENT_TIME])
        items.append(Item(alias, inner, visible))
        nodes.append(node)
    types = {name: kind for node in nodes for name, kind in types_of(node).items()}
    return Scope(items, {**(around.types if around else {}), **types}, around), nodes


def _reads_time(tree: exp.Expression, alias: str, columns: tuple[str, ...]) -> bool:
    """Whether a query reads the timestamps of this input's tuples."""
    asked = {ELEMENT_TIME, "timestamp"} - {column.lower() for column in columns}
    return any(
        column.name.lower() in asked and (not column.table or column.table.lower() == alias.lower())
        for column in tree.find_all(exp.Column)
    )


# joins as they are written


def _join(binder: Binder, source: From, join: exp.Expression, node: Relation, items: list[Item]) -> None:
    """Add one entry to the FROM clause; `items` are those of the entry and of the entries before it."""
    method, side, kind = ((join.args.get(part) or "").upper() for part in ("method", "side", "kind"))
    if method not in ("", "NATURAL") or kind not in ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI"):
        words = " ".join(word for word in (method, side, kind) if word)
        raise NotYet(f"{words} JOIN", place=binder.place(join.this))
    how = kind if kind in ("SEMI", "ANTI") else side or "INNER"
    on = conjuncts(join.args["on"]) if join.args.get("on") else []
    if method == "NATURAL" or join.args.get("using"):
        on = _using(binder, source.scope, join, items, how)
    if how == "INNER":
        source.conditions.extend(on)
        source.entries.append(Joined(node))
        return
    resolved = binder.conditions(on, replace(source.scope, items=items))
    source.entries.append(Joined(node, how, tuple(resolved)))


def _using(binder: Binder, scope: Scope, join: exp.Expression, items: list[Item], how: str) -> list[exp.Expression]:
    """The equalities that USING or NATURAL stands for; each pair of columns becomes one in the scope."""
    *before, last = items
    given = [identifier.name for identifier in join.args.get("using") or ()]
    if not given:
        known = {name.lower() for item in before for name in item.visible}
        given = [name for name in last.visible if name.lower() in known]
    result: list[exp.Expression] = []
    for name in given:
        left = scope.merged.get(name.lower())
        if left is None:
            written = exp.Column(this=exp.to_identifier(name))
            left = marked_resolved(binder.resolve(written, replace(scope, items=before)))
        if name.lower() not in last.inner:
            raise binder.no_such_column(exp.Column(this=exp.to_identifier(name)), f'"{last.alias}"', last.visible)
        right = marked_resolved(column_named(last.inner[name.lower()]))
        result.append(exp.EQ(this=left.copy(), expression=right.copy()))
        if how == "FULL":
            scope.merged[name.lower()] = exp.Coalesce(this=left.copy(), expressions=[right])
        elif how not in ("SEMI", "ANTI"):
            scope.merged[name.lower()] = right if how == "RIGHT" else left.copy()
    return result


def _lateral(binder: Binder, source: From, tree: exp.Expression) -> None:
    """Add a LATERAL VIEW: the rows that a generator such as EXPLODE makes of each row."""
    alias = tree.args.get("alias")
    wanted = [column.name for column in (alias.args.get("columns") or ())] if alias is not None else []
    if not wanted:
        wanted = ["pos", "col"] if isinstance(tree.this, exp.Posexplode) else ["col"]
    generator = binder.resolve(tree.this, source.scope)
    columns = tuple(unique(wanted, source.scope.inner_names()))
    inner = {name.lower(): column for name, column in zip(wanted, columns, strict=True)}
    source.scope.items.append(Item(alias.name if alias is not None else "", inner, tuple(wanted)))
    if len(columns) == 1:
        source.scope.types[columns[0]] = as_expression(generator, source.scope.types).type
    source.laterals.append(Lateral(generator, bool(tree.args.get("outer")), columns))


# tables


def from_entry(binder: Binder, tree: exp.Expression) -> tuple[str, Relation]:
    """Binds one entry of FROM: its alias and its relation."""
    alias = tree.args.get("alias")
    window = tree.args.get("window") or (alias.args.get("window") if alias is not None else None)
    name = alias.name if alias is not None and alias.this is not None else ""
    match tree:
        case exp.Table() if isinstance(tree.this, exp.Identifier):
            _refuse_form(binder, tree)
            node: Relation = named_input(binder, tree, window)
            function = "late" if tree.args.get("late") else "errors" if tree.args.get("errors") else ""
            name = name or function or system.short_name(tree.name)
        case exp.Subquery() if window is not None or tree.args.get("drawn"):
            stream = sampled(binder, binder.as_stream(tree.this), tree)
            node = windowed(binder, stream, window) if window is not None else Window(stream, Unbounded())
        case exp.Subquery():
            node = binder.relation(tree.this)
        case exp.Table() if isinstance(tree.this, exp.Func):
            function = tree.this.name if isinstance(tree.this, exp.Anonymous) else tree.this.sql_name()
            raise UserError(
                "foreign-construct",
                f"{function.upper()} as a table",
                place=binder.place(tree),
                hint="Name a stream, relation or view: CREATE RELATION r (...) FROM csv OPTIONS ('path' = 'folder').",
            )
        case _:
            raise NotYet("this form of a table in FROM", place=binder.place(tree))
    if alias is not None and alias.args.get("columns"):
        node = as_relation(binder.renamed(node, [column.name for column in alias.args["columns"]], tree))
    return name, node


def _refuse_form(binder: Binder, tree: exp.Table) -> None:
    if tree.args.get("db"):
        raise UserError(
            "foreign-construct",
            "a table by a catalog, or by a format and a path",
            place=binder.place(tree),
            hint="Name a stream, relation or view: CREATE RELATION r (...) FROM parquet OPTIONS ('path' = 'folder').",
        )
    if tree.args.get("version") or tree.args.get("system_time") or tree.args.get("when"):
        raise UserError(
            "foreign-construct",
            "a table AS OF a time",
            place=binder.place(tree),
            hint="Join with the relation itself, beside the stream [NOW]: it is as of the stream's time.",
        )
    more = [part for part, value in tree.args.items() if value and part not in TABLE_PARTS]
    if more:
        raise NotYet("this form of a table", place=binder.place(tree))


TABLE_PARTS = ("this", "alias", "window", "late", "errors", "drawn")


def errors_view(query: Query, place: Place | None = None) -> View:
    """What a query leaves out as a stream; an error if it leaves nothing out."""
    errors = errors_of(query.left_out)
    if errors is not None:
        return View(errors_name(query.name), errors)
    if query.skips:
        message, hint = f'nothing in query "{query.name}" can fail, so it leaves nothing out', ""
    else:
        message = f'query "{query.name}" leaves nothing out: it stops at an error'
        hint = f"ALTER QUERY {spelled(query.name)} AS ... ON ERROR SKIP leaves out rows that cannot be evaluated."
    raise UserError("no-errors-kept", message, place=place, hint=hint)


def named_input(binder: Binder, written: exp.Table, window: StreamWindow | None) -> Relation:
    """Binds a stream, relation or view that stands in FROM by its name, with its window."""
    identifier, catalog = written.this, binder.catalog
    found: BaseStream | BaseRelation | View
    if written.args.get("errors"):
        found = errors_view(catalog.query(identifier.name, binder.place(identifier)), binder.place(identifier))
        binder.reads.add(identifier.name.lower())
    elif written.args.get("late"):
        found = catalog.late_of(catalog.only_stream(identifier.name, "LATE", binder.place(identifier)))
    else:
        found = binder.local.get(identifier.name.lower()) or catalog.source(identifier.name, binder.place(identifier))
        if isinstance(found, View) and catalog.is_readable_query(found.name):
            binder.reads.add(found.name.lower())
    node: Node
    match found:
        case BaseStream():
            declared = () if written.args.get("late") else on_stream(found.name, catalog)
            node = Scan(found.name, found.columns, found.domain, found.timestamp, found.source, declared)
        case BaseRelation():
            node = Stored(found.name, found.columns, found.domain, found.growing, found.key)
        case View():
            node = found.plan
    if is_stream(node):
        if window is None and "end" in identifier.meta:
            binder.insert_default(written.meta.get("end", identifier.meta["end"]) + 1, " [RANGE UNBOUNDED]")
        node = sampled(binder, node, written)
        return windowed(binder, node, window) if window is not None else Window(node, Unbounded())
    if written.args.get("drawn"):
        raise UserError(
            "sample-of-relation",
            f'"{found.name}" is a relation, and SAMPLE needs a stream',
            place=binder.place(written.args["drawn"]),
            hint="Sample the streams that the relation is made of, or put ISTREAM around the query.",
        )
    if window is not None:
        raise UserError(
            "window-over-relation",
            f'"{found.name}" is a relation, and a window needs a stream',
            place=binder.place(window),
            hint="Leave the window out, or put ISTREAM around the query.",
        )
    return as_relation(node)


def sampled(binder: Binder, child: Stream, written: exp.Expression) -> Stream:
    """The stream under the SAMPLE that stands behind it; the stream itself if there is none."""
    drawn = written.args.get("drawn")
    if drawn is None:
        return child
    percent = drawn.args["percent"]
    if not 0 <= Fraction(percent) <= 100:
        raise UserError(
            "bad-sample",
            f"SAMPLE {percent} PERCENT is not between 0 and 100",
            place=binder.place(drawn),
            hint="Write SAMPLE 10 PERCENT for about one tuple in ten.",
        )
    return Sample(child, percent, int(drawn.args["seed"]))


def windowed(binder: Binder, child: Stream, window: StreamWindow) -> Window:
    """The window over a stream that brackets ask for."""
    return Window(child, frame(binder, child, window))


# the relation behind FROM and WHERE


def joins_as_written(
    binder: Resolver, source: From, inner: list[exp.Expression], where: list[exp.Expression]
) -> Relation:
    """Joins the entries of FROM as they are written, which outer, semi- and anti-joins need; WHERE comes last."""
    scope = source.scope
    nodes: list[Relation] = []
    for entry in source.entries:
        if entry.kind == "INNER":
            nodes.append(entry.node)
            continue
        here = {name.lower() for node in nodes for name in names(node)}
        now = [tree for tree in inner if read_columns(tree) <= here]
        inner = [tree for tree in inner if tree not in now]
        nodes = [_non_inner_join(inner_joins(nodes, now, scope), entry, scope)]
        binder.refuse_large(nodes[0])
    if not source.laterals:
        return inner_joins(nodes, [*inner, *where], scope)
    generated = {name.lower() for lateral in source.laterals for name in lateral.columns}
    late = [tree for tree in where if read_columns(tree) & generated]
    node = inner_joins(nodes, [*inner, *(tree for tree in where if tree not in late)], scope)
    for lateral in source.laterals:
        node = Exploded(node, as_expression(lateral.generator, scope.types), lateral.outer, lateral.columns)
    return filtered(node, late)


def _non_inner_join(left: Relation, entry: Joined, scope: Scope) -> Relation:
    pairs, used = equalities(left, entry.node, entry.on)
    rest = [tree for tree in entry.on if tree not in used]
    condition = as_expression(conjunction(rest), scope.types) if rest else None
    match entry.kind:
        case "SEMI":
            return semi_join(left, entry.node, tuple(pairs), condition)
        case "ANTI":
            return anti_join(left, entry.node, tuple(pairs), condition)
        case side:
            return outer_join(side, left, entry.node, tuple(pairs), condition)  # type: ignore[arg-type]


def inner_joins(nodes: list[Relation], waiting: list[exp.Expression], scope: Scope) -> Relation:
    """Joins relations by inner joins: filters first, then joins in an order in which each has an equality if it can."""
    inputs = []
    for one in nodes:
        own = {name.lower() for name in names(one)}
        mine = [tree for tree in waiting if (read := read_columns(tree)) and read <= own]
        waiting = [tree for tree in waiting if tree not in mine]
        inputs.append(filtered(one, mine))
    node, rest = inputs[0], inputs[1:]
    while rest:
        chosen = next((right for right in rest if equalities(node, right, waiting)[0]), rest[0])
        rest.remove(chosen)
        pairs, used = equalities(node, chosen, waiting)
        waiting = [tree for tree in waiting if tree not in used]
        here = {name.lower() for name in (*names(node), *names(chosen))}
        now = [tree for tree in waiting if (read := read_columns(tree)) and read <= here]
        waiting = [tree for tree in waiting if tree not in now]
        condition = as_expression(conjunction(now), scope.types) if now else None
        node = Join(node, chosen, tuple(pairs), condition)
    return filtered(node, waiting)


def check_conditions(binder: Resolver, conditions: list[exp.Expression]) -> None:
    """Refuses aggregates and analytic functions in WHERE and ON."""
    for condition in conditions:
        if condition.find(exp.Window):
            raise UserError(
                "analytic-in-where", "an analytic function cannot stand in WHERE", place=binder.place(condition)
            )
        found = aggregate_calls(condition)
        if found:
            raise UserError(
                "aggregate-in-where",
                "an aggregate cannot stand in WHERE",
                place=binder.place(found[0]),
                hint="Use HAVING.",
            )
