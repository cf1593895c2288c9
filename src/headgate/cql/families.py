"""Families of queries: one query in the place of many that differ in constants, which are the rows of a relation.

    FOR EACH ROW OF subscribers AS SELECT s.price FROM ticks [NOW] s WHERE s.price > subscribers.threshold

At every instant, the answer of a family is the union of its members' answers. A member is a distinct row of the
relation, while it is there; its answer is that of the query with the row's values in the place of
`subscribers.threshold`, and carries them as its first columns. This module writes the family as one plain query in
which the relation is joined in and its columns are one more key throughout:

    FROM, WHERE                   the relation stands beside what FROM has, behind the windows of its streams
    [RANGE r.minutes MINUTES]     the union of the windows of each length that the column's CHECK lists, each with its
                                  length as a column, by which it joins the relation
    GROUP BY, PARTITION BY        by the member as well
    DISTINCT, set operations      over rows that carry their member
    ORDER BY ... LIMIT            the first rows of each member, by ROW_NUMBER
    an aggregate without keys     grouped by the member, joined to the relation by a left join: a row for every member
    HAVING and the select list    alone: the relation joins above the groups, which all members share; conditions of
                                  WHERE that compare keys of groups, but for equalities, are conditions of HAVING
    subqueries                    in FROM they carry their members too; elsewhere they read the relation beside them

Syntax trees come in and go out. What the query says wrongly is found first, in the query with constants in their place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import sqlglot
from sqlglot import exp

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Family, Relation
from headgate.catalog.system import short_name
from headgate.cql.aggregates import depends_on_order
from headgate.cql.binder import Binder, BoundQuery, bind
from headgate.cql.grouping import grouping_sets, keys_of_groups, named_keys, with_aliases, with_keys_named
from headgate.cql.inputs import ELEMENT_TIME, Scope, from_clause, from_entry
from headgate.cql.subqueries import COUNTS
from headgate.cql.syntax import StreamOf, StreamWindow, WindowedQuery
from headgate.cql.trees import aggregate_calls, conjunction, conjuncts, has_subquery, replaced_by, unaliased, unique
from headgate.errors import NotYet, Place, UserError, nearest, quoted
from headgate.plan.derived import fresh
from headgate.plan.expressions import INTEGRAL
from headgate.plan.nodes import names
from headgate.sql import Column, is_plain, spelled
from headgate.sql.printer import compared, printed

LISTS = (exp.ArrayAgg, exp.ArrayUniqueAgg)
"""Aggregates that give an empty list over no rows."""

UNKNOWN_OVER_NOTHING = frozenset(
    """
    approx_top_k bitmap_construct_agg bitmap_or_agg count_min_sketch histogram_numeric hll_sketch_agg hll_union_agg
    """.split()
)
"""Aggregates that give something else than null, 0 or an empty list over no rows."""


MOST_WINDOWS = 32
"""So many windows may stand in the place of one whose length is the member's."""

LENGTHS = ("amount", "range", "slide")
"""The parts of a window that may be columns of the member."""

SEVERAL_GROUPINGS = ("grouping_sets", "rollup", "cube", "totals")
"""Parts of GROUP BY that group rows in several ways: then a key of a group may be missing."""


@dataclass(frozen=True, slots=True)
class Members:
    """The relation whose distinct rows are the members of a family, and which of its columns they are made of."""

    relation: str
    columns: tuple[Column, ...]
    repeated: bool
    """Whether equal rows may stand in the relation at one instant."""


def members_of(relation: Relation) -> Members:
    """The members that the rows of a base relation are: all columns but those that say when a row comes or goes."""
    about = {name.lower() for name in (relation.timestamp, relation.change) if name is not None}
    columns = tuple(column for column in relation.columns if column.name.lower() not in about)
    own = {column.name.lower() for column in columns}
    keyed = bool(relation.key) and {name.lower() for name in relation.key} <= own
    return Members(relation.name, columns, not keyed)


def bind_family(
    tree: exp.Expression, text: str, catalog: Catalog, origin: str, members: Members
) -> tuple[BoundQuery, Family]:
    """Binds the query of a family, and says by which columns of its answer the members are told apart."""
    rewriting = _Rewriting(tree, text, catalog, origin, members)
    rewriting.refuse_shadowed(tree)
    alone = rewriting.bound_alone(tree)
    rewriting.refuse_unread(tree)
    outputs = {name.lower() for name in names(alone.plan)}
    shown = tuple(
        column.name if column.name.lower() not in outputs else fresh(f"{members.relation}_{column.name}", outputs)
        for column in members.columns
    )
    written = over_members(tree, text, catalog, origin, members, shown)
    as_text = written.sql("cql", pretty=True)
    try:
        bound = bind(written, text, catalog, origin)
    except NotYet:
        raise
    except UserError as error:  # the query of a single member is right, so it is the form that is not known here
        if error.code == "time-domains-differ":
            raise
        raise NotYet(f'"{members.relation}" in this place ({error.message})', place=error.place) from None
    return bound, Family(members.relation, tuple(column.name for column in members.columns), shown, as_text)


def over_members(
    tree: exp.Expression, text: str, catalog: Catalog, origin: str, members: Members, shown: Sequence[str]
) -> exp.Expression:
    """The query of a family as one query over the relation of its members.

    `shown` are the names of its first columns, which hold the member of each row.
    """
    written = _Rewriting(tree, text, catalog, origin, members).query(tree.copy(), shown, outermost=True)
    written.meta.update({key: tree.meta[key] for key in ("start", "end") if key in tree.meta})
    return written


@dataclass(frozen=True, slots=True)
class _Provider:
    """An entry of FROM that has the columns of a member: its alias, and their names in it."""

    alias: str
    names: tuple[str, ...]

    def columns(self) -> list[exp.Column]:
        """The columns of the member, one after the other."""
        return [_column(name, self.alias) for name in self.names]

    def same(self, other: _Provider) -> list[exp.Expression]:
        """The conditions under which two entries are of the same member."""
        pairs = zip(self.columns(), other.columns(), strict=True)
        return [exp.NullSafeEQ(this=one, expression=two) for one, two in pairs]


@dataclass(frozen=True, slots=True)
class _Union:
    """What stands in FROM in the place of a window whose length is the member's."""

    entry: exp.Subquery
    lengths: _Provider
    """The columns that hold the lengths."""

    hidden: _Provider
    """All columns that the window itself has not."""


def _values(column: Column) -> tuple[int, ...]:
    """The whole numbers that a column can have, by its CHECK; none if it does not list them."""
    if column.check is None or column.type not in INTEGRAL:
        return ()
    lists = [one for one in conjuncts(sqlglot.parse_one(column.check, read="spark")) if isinstance(one, exp.In)]
    return tuple(sorted({int(printed(value)) for one in lists[:1] for value in one.expressions}))


def _window_of(entry: exp.Expression) -> StreamWindow | None:
    """The window behind an entry of FROM."""
    alias = entry.args.get("alias")
    found = entry.args.get("window") or (alias.args.get("window") if isinstance(alias, exp.TableAlias) else None)
    return found if isinstance(found, StreamWindow) else None


def _set_length(window: StreamWindow | None, column: Column, value: int) -> None:
    """Put a number in the place of a column of the member in a window."""
    assert window is not None
    for part in LENGTHS:
        written = window.args.get(part)
        if isinstance(written, exp.Column) and written.name.lower() == column.name.lower():
            window.set(part, str(value))


def _hide(select: exp.Select, hidden: _Provider) -> None:
    """Let * be without columns that the user's text does not have."""
    only = unaliased(select.expressions[0])
    holder = only if isinstance(only, StreamOf) else select
    holder.set("expressions", [_without_members(item, [hidden]) for item in holder.expressions])


def _identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=not is_plain(name))


def _column(name: str, table: str) -> exp.Column:
    return exp.Column(this=_identifier(name), table=_identifier(table))


def _named(tree: exp.Expression, name: str) -> exp.Alias:
    return exp.Alias(this=tree, alias=_identifier(name))


@dataclass(slots=True)
class _Body:
    """The parts of a select while it is rewritten: what stands above its groups, or above FROM if it has none."""

    tree: exp.Select
    items: list[exp.Expression]
    """The select list, with the keys of ORDER BY that are not in it."""
    having: exp.Expression | None
    qualify: exp.Expression | None

    def above(self) -> list[exp.Expression]:
        """All expressions that may hold aggregates."""
        return [*self.items, *(tree for tree in (self.having, self.qualify) if tree is not None)]

    def changed(self, change: Callable[[exp.Expression], exp.Expression]) -> None:
        """Changes each of the expressions."""
        self.items = [change(item) for item in self.items]
        self.having = change(self.having) if self.having is not None else None
        self.qualify = change(self.qualify) if self.qualify is not None else None


class _Rewriting:
    """Rewrites the query of one family."""

    def __init__(self, tree: exp.Expression, text: str, catalog: Catalog, origin: str, members: Members) -> None:
        self.catalog = catalog
        self.members = members
        self.binder = Binder(text, catalog, origin)
        self.binder.whole = Place(text, tree.meta.get("start", 0), tree.meta.get("end", len(text)), origin)
        self.carried: dict[str, tuple[str, ...]] = {}
        """The common table expressions that carry members, by name: the names of the members' columns in each."""
        self.taken = {identifier.name.lower() for identifier in tree.find_all(exp.Identifier)}
        self.taken |= {column.name.lower() for source in self._sources() for column in source}

    def _sources(self) -> Iterable[tuple[Column, ...]]:
        yield from (stream.columns for stream in self.catalog.streams.values())
        yield from (relation.columns for relation in self.catalog.relations.values())
        yield from (view.plan.columns for view in self.catalog.views.values())

    # what the query says of its members

    def refuse_shadowed(self, tree: exp.Expression) -> None:
        """Refuses a query in which the relation's name stands for something else, or for all of its rows."""
        name = self.members.relation
        for table in tree.find_all(exp.Table, exp.Subquery, exp.CTE):
            if (table.alias or table.name).lower() != name.lower():
                continue
            written = table.args["alias"].this if table.args.get("alias") else table.this
            raise UserError(
                "name-taken",
                f'"{name}" stands for one row here, the member of the family, and in FROM for something else',
                place=self.binder.place(written),
                hint=f'Give what stands in FROM another name, such as "{fresh("other", set(self.taken))}".',
            )

    def refuse_unread(self, tree: exp.Expression) -> None:
        """Refuses a query that reads no column of the relation."""
        if not self.mentions(tree):
            first = self.members.columns[0].name
            raise UserError(
                "same-for-all",
                f'the query reads no column of "{self.members.relation}", so that all members would be equal',
                place=self.binder.place(tree),
                hint=f"Write {self.members.relation}.{first} where a member's value is meant, or CREATE QUERY.",
            )

    def bound_alone(self, tree: exp.Expression) -> BoundQuery:
        """The query of a single member: it has every mistake that the family's query has."""
        binder = self.binder
        for window in tree.find_all(StreamWindow):
            count = math.prod(len(values) for _, values in self._lengths(window))
            if count > MOST_WINDOWS:
                raise UserError(
                    "too-large",
                    f"this window stands for {count} windows, and {MOST_WINDOWS} are the most",
                    place=binder.place(window),
                    hint="Let the CHECK of the column list fewer values.",
                )
        try:
            bind(self.alone(tree, longest=True), binder.text, self.catalog, binder.origin)
            return bind(self.alone(tree), binder.text, self.catalog, binder.origin)
        except UserError as error:
            own = [column.name for column in self.members.columns]
            named = error.place.text[error.place.start : error.place.end].lower() if error.place else ""
            if error.code == "no-such-column" and not error.hint.startswith("Write") and named in map(str.lower, own):
                hint = f"Write {self.members.relation}.{named} if the member's value is meant."
                raise UserError(error.code, error.message, place=error.place, detail=error.detail, hint=hint) from None
            raise

    def alone(self, tree: exp.Expression, longest: bool = False) -> exp.Expression:
        """A copy of a tree with constants in the place of the member's values, each unlike the others. Windows are the
        shortest or the longest that they can be.
        """
        tree = tree.copy()
        for window in tree.find_all(StreamWindow):
            for column, values in self._lengths(window):
                _set_length(window, column, max(values) if longest else min(values))

        def constant(column: Column) -> exp.Expression:
            return exp.cast(exp.Literal.string(column.name), column.type, dialect="spark")

        return self._with_members(tree, constant)

    # windows whose length is the member's

    def _lengths(self, window: StreamWindow) -> list[tuple[Column, tuple[int, ...]]]:
        """The columns of the member that a window reads as lengths, and which values each can have."""
        found = dict[Column, tuple[int, ...]]()
        for written in window.find_all(exp.Column):
            if not self._is_member(written):
                continue
            if written.arg_key not in LENGTHS:
                word = "ON" if written.arg_key == "on" else "PARTITION BY"
                raise NotYet(f'a column of "{self.members.relation}" behind {word}', place=self.binder.place(written))
            if written.args.get("db"):
                raise NotYet("a field of a column as the length of a window", place=self.binder.place(written))
            column = self._member_column(written.this)
            values = _values(column)
            if not values:
                kind = column.type if column.type in INTEGRAL else "INT"
                raise UserError(
                    "open-window",
                    f'it is not known which lengths "{column.name}" of "{self.members.relation}" can hold',
                    place=self.binder.place(written),
                    detail="A family runs one window for each length that a member can have.",
                    hint=f"CREATE RELATION {self.members.relation} (..., {spelled(column.name)} {kind} CHECK "
                    f"({spelled(column.name)} IN (1, 5, 60)), ...).",
                )
            found[column] = values
        return list(found.items())

    def _spell_windows_out(self, select: exp.Select) -> None:
        """Write windows whose lengths are the member's as the union of windows of each length, each with its length as
        a column. A condition ties it to the member.
        """
        start = select.args.get("from_")
        joins = [join for join in select.args.get("joins") or () if not isinstance(join.this, exp.Lateral)]
        ties = dict[Column, exp.Column]()
        """The columns of the first entry that has the lengths: others are joined to it, so that equals meet equals."""
        for holder in [*([start] if start is not None else []), *joins]:
            entry = holder.this
            window = _window_of(entry)
            lengths = self._lengths(window) if window is not None else []
            if not lengths:
                continue
            sides = {(join.args.get("side") or "").upper() for join in joins}
            if sides & {"RIGHT", "FULL"}:
                what = f'a right or full join beside a window that reads "{self.members.relation}"'
                raise NotYet(what, place=self.binder.place(entry))
            partial = isinstance(holder, exp.Join) and _is_partial(holder)
            if partial and (holder.args.get("using") or holder.args.get("method")):
                raise NotYet(
                    f'an outer join by USING or NATURAL with a window that reads "{self.members.relation}"',
                    place=self.binder.place(entry),
                    hint="Say ON.",
                )
            if depends_on_order(select) and not joins:
                raise NotYet(
                    f'an aggregate by the order of tuples over a window that reads "{self.members.relation}"',
                    place=self.binder.place(entry),
                )
            union = self._union(select, entry, lengths)
            holder.set("this", union.entry)
            conditions: list[exp.Expression] = []
            for column, own in zip((column for column, _ in lengths), union.lengths.columns(), strict=True):
                other = ties.get(column) or _column(column.name, self.members.relation)
                tie = exp.EQ(this=own, expression=other.copy())
                tie.meta["tie"] = True
                conditions.append(tie)
                if not partial:
                    ties.setdefault(column, own)
            place, holding = ("on", holder) if partial else ("where", select)
            known = holding.args.get(place)
            before = known.this if isinstance(known, exp.Where) else known
            both = conjunction([*(conjuncts(before) if before is not None else []), *conditions])
            holding.set(place, both if partial else exp.Where(this=both))
            _hide(select, union.hidden)

    def _union(
        self, select: exp.Select, entry: exp.Expression, lengths: Sequence[tuple[Column, tuple[int, ...]]]
    ) -> _Union:
        """The union of an entry's stream through each of the windows, as an entry of the same name."""
        if isinstance(entry, exp.Subquery) and self.mentions(entry.this):
            self._refuse_window(entry)
        inner = entry.copy()
        alias = inner.args.get("alias")
        window = _window_of(inner)
        given = [column.copy() for column in (alias.args.get("columns") or ())] if alias is not None else []
        plain = "late" if entry.args.get("late") else short_name(entry.name)
        name = (alias.name if alias is not None else "") or plain or fresh("windowed", self.taken)
        named = exp.TableAlias(this=_identifier(fresh("windowed", self.taken)))
        inner.set("alias", named if isinstance(inner, exp.Subquery) else None)
        inner.set("window", window)
        _, bound = from_entry(self.binder, self.alone(inner))
        times = {name.lower() for name in names(bound)}
        read = {
            column.name.lower() for column in select.find_all(exp.Column) if column.table.lower() in ("", name.lower())
        }
        times = (read & {ELEMENT_TIME, "timestamp"}) - times
        own = [fresh(f"window_{column.name}", self.taken) for column, _ in lengths]
        branches: list[exp.Expression] = []
        for chosen in product(*(values for _, values in lengths)):
            branch = inner.copy()
            items: list[exp.Expression] = [exp.Star()]
            for (column, _), value, called in zip(lengths, chosen, own, strict=True):
                _set_length(_window_of(branch), column, value)
                number = exp.Literal.number(value)
                items.append(_named(number if column.type == "INT" else exp.cast(number, column.type), called))
            items += [_named(exp.column(ELEMENT_TIME), time) for time in sorted(times)]
            branches.append(exp.Select(expressions=items, from_=exp.From(this=branch)))
        query = branches[0]
        for branch in branches[1:]:
            query = exp.Union(this=query, expression=branch, distinct=False)
        hidden = (*own, *sorted(times))
        columns = [*given, *map(_identifier, hidden)] if given else None
        made = exp.Subquery(this=query, alias=exp.TableAlias(this=_identifier(name), columns=columns))
        return _Union(made, _Provider(name, tuple(own)), _Provider(name, hidden))

    def _is_member(self, node: exp.Expression) -> bool:
        """Whether the node is a column of the member, or a field of one."""
        if not isinstance(node, exp.Column):
            return False
        return (node.args["db"].name if node.args.get("db") else node.table).lower() == self.members.relation.lower()

    def _with_members(self, tree: exp.Expression, value: Callable[[Column], exp.Expression]) -> exp.Expression:
        """The tree with the columns of the member replaced."""

        def replaced(node: exp.Expression) -> exp.Expression | None:
            if not self._is_member(node):
                return None
            assert isinstance(node, exp.Column)
            if node.args.get("db"):
                return exp.Dot(this=value(self._member_column(node.args["table"])), expression=node.this.copy())
            found = value(self._member_column(node.this))
            if isinstance(found, exp.Column):
                found.this.meta.update({key: node.this.meta[key] for key in ("start", "end") if key in node.this.meta})
            return found

        return replaced_by(tree, replaced)

    def _member_column(self, identifier: exp.Expression) -> Column:
        for column in self.members.columns:
            if column.name.lower() == identifier.name.lower():
                return column
        known, name = [column.name for column in self.members.columns], self.members.relation
        about = self.catalog.relations.get(name.lower())
        detail = f"Columns of a member are {quoted(known)}."
        if about is not None and identifier.name.lower() in map(str.lower, about.row_columns()):
            detail += f' "{identifier.name}" says when a row comes or goes.'
        raise UserError(
            "no-such-column",
            f'column "{identifier.name}" does not exist in a member of "{name}"',
            place=self.binder.place(identifier),
            detail=detail,
            hint=nearest(identifier.name, known),
        )

    def mentions(self, *trees: exp.Expression | None) -> bool:
        """Whether some tree reads a column of the member, or a common table expression that does."""
        return any(
            self._is_member(node) or (isinstance(node, exp.Table) and node.name.lower() in self.carried)
            for tree in trees
            if tree is not None
            for node in tree.find_all(exp.Column, exp.Table)
        )

    # queries

    def query(self, tree: exp.Expression, shown: Sequence[str], outermost: bool = False) -> exp.Expression:
        """The query with the columns of its member in front, under the names that are given."""
        if not self.mentions(tree):
            return self._beside_members(tree, shown)
        match tree:
            case StreamOf():
                self._refuse_stream(tree, outermost)
                tree.set("query", self.query(tree.args["query"], shown))
                return tree
            case WindowedQuery():
                if self.mentions(tree.this):
                    self._refuse_window(tree)
                inner = tree.this if isinstance(tree.this, exp.Subquery) else exp.Subquery(this=tree.this)
                inner.set("window", tree.args["window"])
                every = exp.Select(expressions=[exp.Star()], from_=exp.From(this=inner))
                return self._select(every, shown, outermost)
            case exp.Subquery():
                if tree.args.get("window") or tree.args.get("drawn"):
                    self._refuse_window(tree)
                return self.query(tree.this, shown, outermost)
            case exp.SetOperation():
                return self._set_operation(tree, shown)
            case exp.Select():
                return self._select(tree, shown, outermost)
        raise NotYet(f"a query of the form {type(tree).__name__.upper()} in a family", place=self.binder.place(tree))

    def _refuse_stream(self, tree: exp.Expression, outermost: bool) -> None:
        if not outermost:
            raise NotYet(
                f'a stream that reads "{self.members.relation}" below another query',
                place=self.binder.place(tree),
                hint="A member that comes later would not find in it what came before. Read the relation further out.",
            )

    def _refuse_window(self, tree: exp.Expression) -> None:
        raise NotYet(
            f'a window over a query that reads "{self.members.relation}"',
            place=self.binder.place(tree.args.get("window") or tree),
            hint="A member that comes later would not find in it what came before. Put the window on the stream.",
        )

    def _provider(self) -> tuple[exp.Subquery, _Provider]:
        """The distinct rows of the relation, as an entry of FROM."""
        own = tuple(fresh(f"member_{column.name}", self.taken) for column in self.members.columns)
        provider = _Provider(fresh("member", self.taken), own)
        columns = [
            _named(exp.column(_identifier(column.name)), name)
            for column, name in zip(self.members.columns, own, strict=True)
        ]
        rows = exp.Select(
            expressions=columns,
            from_=exp.From(this=exp.Table(this=_identifier(self.members.relation))),
            distinct=exp.Distinct() if self.members.repeated else None,
        )
        entry = exp.Subquery(this=rows, alias=exp.TableAlias(this=_identifier(provider.alias)))
        entry.meta["members"] = True
        return entry, provider

    def _beside_members(self, tree: exp.Expression, shown: Sequence[str]) -> exp.Select:
        """A query that is the same for all members, once for each of them."""
        entry, provider = self._provider()
        alias = fresh("same", self.taken)
        inner = tree if isinstance(tree, exp.Subquery) and not tree.alias else exp.Subquery(this=tree)
        inner.set("alias", exp.TableAlias(this=_identifier(alias)))
        every = exp.Column(this=exp.Star(), table=_identifier(alias))
        return exp.Select(
            expressions=[*(_named(*pair) for pair in zip(provider.columns(), shown, strict=True)), every],
            from_=exp.From(this=inner),
            joins=[exp.Join(this=entry, kind="CROSS")],
        )

    def _set_operation(self, tree: exp.SetOperation, shown: Sequence[str]) -> exp.Expression:
        outside = self._enter(tree)
        order, limit, offset = (_taken(tree, part) for part in ("order", "limit", "offset"))
        outputs = list(names(self.binder.relation(self.alone(tree)))) if limit or offset else []
        own = [fresh(f"member_{column.name}", self.taken) for column in self.members.columns] if outputs else shown
        with_ = _taken(tree, "with_")
        tree.set("this", self.query(tree.this, own))
        tree.set("expression", self.query(tree.expression, own))
        result: exp.Expression = tree
        if outputs:
            keys = self.binder.sort_keys(order, outputs, [_plain(name) for name in outputs])
            result = self._first_rows(tree, own, shown, outputs, keys, limit, offset)
        result.set("with_", with_)
        self._leave(outside)
        return result

    # common table expressions

    def _enter(self, tree: exp.Expression) -> tuple[dict[str, tuple[str, ...]], dict]:  # type: ignore[type-arg]
        """Lets a query see its common table expressions, rewritten where they read the relation."""
        outside = self.carried, self.binder.local
        with_ = tree.args.get("with_")
        if with_ is not None:
            self.binder.define_locally(self.alone(with_))
            for cte in with_.expressions:
                self.carried = {name: own for name, own in self.carried.items() if name != cte.alias.lower()}
                if not self.mentions(cte.this):
                    continue
                own = tuple(fresh(f"member_{column.name}", self.taken) for column in self.members.columns)
                cte.set("this", self.query(cte.this, own))
                _prepend_names(cte.args["alias"], own)
                self.carried = {**self.carried, cte.alias.lower(): own}
        return outside

    def _leave(self, outside: tuple[dict[str, tuple[str, ...]], dict]) -> None:  # type: ignore[type-arg]
        self.carried, self.binder.local = outside

    # selects

    def _select(self, tree: exp.Select, shown: Sequence[str], outermost: bool) -> exp.Select:
        outside = self._enter(tree)
        with_, operator = _taken(tree, "with_"), None
        for select in reversed(list(tree.find_all(exp.Select))):
            self._spell_windows_out(select)
        if len(tree.expressions) == 1 and isinstance(unaliased(tree.expressions[0]), StreamOf):
            operator = unaliased(tree.expressions[0])
        if operator is not None or tree.args.get("final"):
            self._refuse_stream(operator if operator is not None else tree, outermost)
        for call in tree.find_all(exp.Anonymous):
            if call.name.lower() in self.catalog.aggregates:
                call.meta["aggregate"] = True
        result = self._body(tree, operator, shown)
        if operator is not None:
            operator.set("expressions", result.expressions)
            operator.set("distinct", None)
            result.set("expressions", [operator])
        result.set("with_", with_)
        self._leave(outside)
        return result

    def _body(self, tree: exp.Select, operator: StreamOf | None, shown: Sequence[str]) -> exp.Select:
        """The select without its operator, with the columns of its member in front."""
        distinct = _taken(tree, "distinct") or (exp.Distinct() if operator and operator.args.get("distinct") else None)
        order, limit, offset = (_taken(tree, part) for part in ("order", "limit", "offset"))
        if tree.args.get("final") and (limit or offset):
            raise NotYet("EMIT FINAL with LIMIT in a family", place=self.binder.place(limit or offset))
        scope = self._scope(tree)
        items = [item.copy() for item in (operator.expressions if operator is not None else tree.expressions)]
        outputs: list[str] = []
        keys: list[exp.Expression] = []
        if limit or offset:
            tree.set("order", order)
            tree.set("limit", limit)
            items, outputs, keys = self._with_sort_keys(tree, items, scope, distinct is not None)
            _taken(tree, "order"), _taken(tree, "limit")
        body = _Body(tree, items, _taken(tree, "having"), _taken(tree, "qualify"))
        inner_names = (
            [fresh(f"member_{column.name}", self.taken) for column in self.members.columns] if outputs else shown
        )
        result = self._over_members(body, scope, inner_names)
        result.set("distinct", distinct)
        if outputs:
            return self._first_rows(result, inner_names, shown, outputs, keys, limit, offset)
        return result

    def _scope(self, tree: exp.Select) -> Scope:
        """What the names of a select mean; its mistakes have been found before."""
        if tree.args.get("from_") is None:
            return Scope([])
        alone = self.alone(tree)
        assert isinstance(alone, exp.Select)
        return from_clause(self.binder, alone).scope

    def _with_sort_keys(
        self, tree: exp.Select, items: list[exp.Expression], scope: Scope, distinct: bool
    ) -> tuple[list[exp.Expression], list[str], list[exp.Expression]]:
        """The select list with the keys of ORDER BY that it lacks, the names of its own columns, and the order."""
        binder, named = self.binder, named_keys(tree.args.get("group"), scope)
        projected = [with_keys_named(item, named) for item in binder.expand(items, scope)]
        more = [with_keys_named(key, named) for key in binder.hidden_keys(tree, projected, distinct)]
        outputs = unique(binder.output_name(item) for item in projected)
        hidden = [fresh("sort", self.taken) for _ in more]
        order = binder.sort_keys(tree.args.get("order"), [*outputs, *hidden], [*projected, *more])
        listed = [_named(unaliased(item), name) for item, name in zip(projected, outputs, strict=True)]
        return [*listed, *(_named(key, name) for key, name in zip(more, hidden, strict=True))], outputs, order

    def _first_rows(
        self,
        query: exp.Expression,
        own: Sequence[str],
        shown: Sequence[str],
        outputs: Sequence[str],
        keys: list[exp.Expression],
        limit: exp.Expression | None,
        offset: exp.Expression | None,
    ) -> exp.Select:
        """The first rows of each member; `own` are the names of the member's columns in the query."""
        alias = fresh("ranked", self.taken)
        number = exp.Window(
            this=exp.RowNumber(),
            partition_by=[_column(name, alias) for name in own],
            order=exp.Order(expressions=[key.copy() for key in keys]) if keys else None,
        )
        skipped = int(offset.expression.name) if offset is not None else 0
        bounds: list[exp.Expression] = []
        if skipped or limit is None:
            bounds.append(exp.GT(this=number, expression=exp.Literal.number(skipped)))
        if limit is not None:
            last = exp.Literal.number(skipped + int(limit.expression.name))
            bounds.append(exp.LTE(this=number.copy(), expression=last))
        return exp.Select(
            expressions=[
                *(_named(_column(name, alias), given) for name, given in zip(own, shown, strict=True)),
                *(_named(_column(name, alias), name) for name in outputs),
            ],
            from_=exp.From(this=exp.Subquery(this=query, alias=exp.TableAlias(this=_identifier(alias)))),
            qualify=exp.Qualify(this=conjunction(bounds)),
        )

    def _over_members(self, body: _Body, scope: Scope, shown: Sequence[str]) -> exp.Select:
        """The select with the relation in FROM, or above its groups."""
        tree, group = body.tree, body.tree.args.get("group")
        is_grouped = group is not None or body.having is not None or any(map(aggregate_calls, body.above()))
        self._lift_conditions(body, scope)
        calls = [call for part in body.above() for call in aggregate_calls(part)]
        from_parts = [tree.args.get("from_"), *(tree.args.get("joins") or ()), *(tree.args.get("laterals") or ())]
        ties, rest = self._ties(tree.args.get("where"))
        below = self.mentions(*from_parts, *rest, group, *calls)
        nested = any(map(has_subquery, body.above())) and (group is not None or bool(ties))
        several = group is not None and any(group.args.get(part) for part in SEVERAL_GROUPINGS)
        always = self.catalog.settings.empty_aggregate == "row"
        alone = is_grouped and not below and not nested and not tree.args.get("final")
        if alone and not ties:
            return self._above_groups(body, scope, shown)
        if alone and group is not None and not several:
            self._group_by_lengths(body, ties, rest)
            return self._above_groups(body, scope, shown)
        if alone and group is None and always:
            tree.set("where", exp.Where(this=conjunction(rest)) if rest else None)
            return self._for_every_member(body, None, ties, shown)
        provider, hidden = self._from(tree)
        if is_grouped and group is None and always:
            return self._for_every_member(body, provider, [], shown)
        body.changed(lambda part: self._of(part, provider))
        if is_grouped:
            self._group_by_member(body, provider, always)
        return self._listed(body, provider, shown, hidden)

    def _lift_conditions(self, body: _Body, scope: Scope) -> None:
        """Make conditions that compare keys of groups with a member conditions of HAVING: all members share the groups.

        A group whose keys fail such a condition has no row below it, and the others have all of theirs. An equality
        stays: by it, members find the few rows that they need.
        """
        where, group = body.tree.args.get("where"), body.tree.args.get("group")
        if where is None or group is None or any(group.args.get(part) for part in SEVERAL_GROUPINGS):
            return
        aliases = {item.alias.lower() for item in body.items if isinstance(item, exp.Alias)}
        if not all(isinstance(key, exp.Column) and key.name.lower() not in aliases for key in group.expressions):
            return
        keys = {compared(self.binder.resolve(key.copy(), scope)) for key in group.expressions}

        def is_key(column: exp.Column) -> bool:
            return column.name.lower() not in aliases and compared(self.binder.resolve(column.copy(), scope)) in keys

        def can_be_lifted(condition: exp.Expression) -> bool:
            columns = [column for column in condition.find_all(exp.Column) if not self._is_member(column)]
            is_equality = isinstance(condition, exp.EQ | exp.NullSafeEQ)
            return not is_equality and not has_subquery(condition) and all(map(is_key, columns))

        conditions = conjuncts(where.this)
        about_members = [one for one in conditions if self.mentions(one) and not one.meta.get("tie")]
        if not about_members or not all(map(can_be_lifted, about_members)):
            return
        rest = [condition for condition in conditions if condition not in about_members]
        body.tree.set("where", exp.Where(this=conjunction(rest)) if rest else None)
        above = [*about_members, *([body.having.this] if body.having is not None else [])]
        body.having = exp.Having(this=conjunction(above))

    def _ties(self, where: exp.Expression | None) -> tuple[list[exp.Expression], list[exp.Expression]]:
        """The conditions of WHERE by which windows are tied to their members, and the others."""
        conditions = conjuncts(where.this) if where is not None else []
        ties = [one for one in conditions if one.meta.get("tie") and self.mentions(one)]
        return ties, [one for one in conditions if one not in ties]

    def _group_by_lengths(self, body: _Body, ties: list[exp.Expression], rest: list[exp.Expression]) -> None:
        """Group by the lengths of windows as well: members of one length share the groups."""
        group = body.tree.args["group"]
        group.set("expressions", [*group.expressions, *(tie.this.copy() for tie in ties)])
        body.tree.set("where", exp.Where(this=conjunction(rest)) if rest else None)
        body.having = exp.Having(this=conjunction([*ties, *([body.having.this] if body.having is not None else [])]))

    def _of(self, part: exp.Expression, provider: _Provider) -> exp.Expression:
        """An expression that reads the member's columns in an entry of FROM; its analytic functions are by member."""
        self._refuse_nested(part)
        values = {column.name: name for column, name in zip(self.members.columns, provider.names, strict=True)}
        result = self._with_members(part, lambda column: _column(values[column.name], provider.alias))
        for window in list(result.find_all(exp.Window)):
            if window.find_ancestor(exp.Select) is None:
                _partition(window, provider)
        return result

    def _refuse_nested(self, part: exp.Expression) -> None:
        """Refuses a subquery of an expression whose own FROM holds a query that reads the relation."""
        for entry in (one.this for one in part.find_all(exp.From, exp.Join)):
            if isinstance(entry, exp.Subquery | exp.Table) and self.mentions(entry):
                raise NotYet(
                    f'a query in FROM that reads "{self.members.relation}", inside a subquery of an expression',
                    place=self.binder.place(entry),
                )

    def _listed(
        self, body: _Body, provider: _Provider, shown: Sequence[str], hidden: Sequence[_Provider]
    ) -> exp.Select:
        """The select with its parts in place, and the columns of the member in front."""
        tree = body.tree
        if body.having is not None:
            tree.set("having", body.having)
        if body.qualify is not None:
            tree.set("qualify", body.qualify)
        for window in tree.args.get("windows") or ():
            _partition(window, provider)
        members = [_named(*pair) for pair in zip(provider.columns(), shown, strict=True)]
        tree.set("expressions", [*members, *(_without_members(item, hidden) for item in body.items)])
        return tree

    def _group_by_member(self, body: _Body, provider: _Provider, always: bool) -> None:
        group = body.tree.args.get("group") or exp.Group(expressions=[])
        if group.args.get("rollup") or group.args.get("cube"):
            raise NotYet(
                f'WITH ROLLUP or WITH CUBE over rows chosen by "{self.members.relation}"',
                place=self.binder.place(group),
                hint="Write GROUPING SETS ((a, b), (a)).",
            )
        _, sets = grouping_sets(self.binder, self.alone(group))
        if always and group.expressions and frozenset() in sets:
            raise NotYet(
                f'a total of ROLLUP, CUBE or GROUPING SETS over rows chosen by "{self.members.relation}"',
                place=self.binder.place(group),
                hint="Write GROUPING SETS ((a, b), (a)) and the total, an aggregate without GROUP BY, as another "
                "family; or SET empty_aggregate = 'no-row'.",
            )
        group = self._of(group, provider)
        count = len(self.members.columns)

        def moved(node: exp.Expression) -> exp.Expression | None:
            if isinstance(node, exp.Literal) and not node.is_string and isinstance(node.parent, GROUPING):
                return exp.Literal.number(int(node.name) + count)
            return None if isinstance(node, GROUPING) else node

        group = replaced_by(group, moved)
        group.set("expressions", [*group.expressions, *provider.columns()])
        body.tree.set("group", group)

    # aggregates

    def _above_groups(self, body: _Body, scope: Scope, shown: Sequence[str]) -> exp.Select:
        """The relation above groups that are the same for all members."""
        binder, group = self.binder, body.tree.args.get("group")
        named = named_keys(group, scope)
        projected = [with_keys_named(item, named) for item in binder.expand(body.items, scope)]
        outputs = unique(binder.output_name(item) for item in projected)
        body.items = [_named(unaliased(item), name) for item, name in zip(projected, outputs, strict=True)]
        body.having = self._spelled_out(body.having, named, projected, scope)
        body.qualify = self._spelled_out(body.qualify, named, projected, scope)
        written, _ = grouping_sets(binder, group)
        keys = keys_of_groups(binder, written, group, projected, scope)
        inner, alias = body.tree, fresh("grouped", self.taken)
        if group is not None:
            inner.set("group", self._explicit(group, projected, named, scope))
        entry, provider = self._provider()
        texts: dict[str, str] = {}
        exported: list[exp.Expression] = []
        for key in keys:
            text = compared(binder.resolve(key, scope))
            if text not in texts:
                texts[text] = fresh("key", self.taken)
                exported.append(_named(key.copy(), texts[text]))
        kinds = tuple({type(key) for key in keys})

        def key_of(node: exp.Expression) -> str | None:
            if not isinstance(node, kinds) or self.mentions(node):
                return None
            return texts.get(compared(binder.resolve(node.copy(), scope)))

        calls = self._export(body, provider, alias, key_of, lambda call, value: value)
        inner.set("expressions", [*exported, *calls])
        windows = _taken(inner, "windows")
        outer = exp.Select(
            from_=exp.From(this=_aliased(inner, alias)), joins=[exp.Join(this=entry, kind="CROSS")], windows=windows
        )
        if body.having is not None:
            outer.set("where", exp.Where(this=body.having.this))
        return self._listed(_Body(outer, body.items, None, body.qualify), provider, shown, ())

    def _spelled_out(
        self,
        part: exp.Expression | None,
        named: dict[str, exp.Expression],
        projected: list[exp.Expression],
        scope: Scope,
    ) -> exp.Expression | None:
        """HAVING or QUALIFY with the names that GROUP BY and the select list give replaced by what they stand for."""
        if part is None:
            return None
        result = with_keys_named(part, named)
        result.set("this", with_aliases(result.this, projected, scope))
        return result

    def _explicit(
        self, group: exp.Expression, projected: list[exp.Expression], named: dict[str, exp.Expression], scope: Scope
    ) -> exp.Expression:
        """GROUP BY with its keys written out, where it names them by a position or by an alias."""

        def replaced(node: exp.Expression) -> exp.Expression | None:
            if isinstance(node, exp.Alias):
                return replaced(node.this) or node.this
            if isinstance(node, exp.Literal) and not node.is_string and isinstance(node.parent, GROUPING):
                return unaliased(projected[int(node.name) - 1]).copy()
            return None if isinstance(node, GROUPING) else with_aliases(node, projected, scope)

        return replaced_by(group.copy(), replaced)

    def _for_every_member(
        self, body: _Body, provider: _Provider | None, ties: Sequence[exp.Expression], shown: Sequence[str]
    ) -> exp.Select:
        """An aggregate without GROUP BY: a row for every member, also for one without rows.

        `provider` has the members in FROM; without one, members of which only the lengths of windows count there share
        their groups.
        """
        inner, alias = body.tree, fresh("counted", self.taken)
        body.items = [
            _named(unaliased(item), name)
            for item, name in zip(body.items, unique(map(self.binder.output_name, body.items)), strict=True)
        ]
        entry, every = self._provider()
        own = _Provider(alias, tuple(fresh(f"member_{column.name}", self.taken) for column in self.members.columns))
        calls = self._export(body, every, alias, lambda node: None, self._or_over_nothing)
        keys: list[exp.Expression]
        if provider is not None:
            calls = [self._of(call, provider) for call in calls]
            keys, same = list(provider.columns()), every.same(own)
        else:
            own = _Provider(alias, tuple(fresh(tie.this.name, self.taken) for tie in ties))
            keys = [tie.this.copy() for tie in ties]
            members = [self._of(tie.expression.copy(), every) for tie in ties]
            same = [exp.EQ(this=one, expression=two) for one, two in zip(members, own.columns(), strict=True)]
        inner.set("expressions", [*(_named(*pair) for pair in zip(keys, own.names, strict=True)), *calls])
        inner.set("group", exp.Group(expressions=[key.copy() for key in keys]))
        windows = _taken(inner, "windows")
        outer = exp.Select(
            from_=exp.From(this=entry),
            joins=[exp.Join(this=_aliased(inner, alias), side="LEFT", on=conjunction(same))],
            windows=windows,
        )
        if body.having is not None:
            outer.set("where", exp.Where(this=body.having.this))
        return self._listed(_Body(outer, body.items, None, body.qualify), every, shown, ())

    def _export(
        self,
        body: _Body,
        provider: _Provider,
        alias: str,
        key_of: Callable[[exp.Expression], str | None],
        value_of: Callable[[exp.Expression, exp.Expression], exp.Expression],
    ) -> list[exp.Expression]:
        """Lets the parts above the groups read keys and aggregates as columns of them; gives the aggregates."""
        calls: dict[str, tuple[str, exp.Expression]] = {}

        def replaced(node: exp.Expression) -> exp.Expression | None:
            if isinstance(node, exp.Subquery | exp.Select | exp.Identifier):
                return node
            if (key := key_of(node)) is not None:
                return _column(key, alias)
            in_window = isinstance(node.parent, exp.Window) and node.arg_key == "this"
            if aggregate_calls(node) == [node] and not in_window:
                text = compared(node)
                if text not in calls:
                    calls[text] = fresh("value", self.taken), node.copy()
                return value_of(node, _column(calls[text][0], alias))
            return None

        body.changed(lambda part: self._of(replaced_by(part.copy(), replaced), provider))
        return [_named(call, name) for name, call in calls.values()]

    def _or_over_nothing(self, call: exp.Expression, value: exp.Expression) -> exp.Expression:
        """The value of an aggregate, or what it gives over no rows where there is none."""
        inner = call
        while isinstance(inner, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
            inner = inner.this
        function = inner.name.lower() if isinstance(inner, exp.Anonymous) else inner.sql_name().lower()
        if inner.meta.get("aggregate") or function in UNKNOWN_OVER_NOTHING:
            raise NotYet(
                f'{function.upper()} without GROUP BY over rows chosen by "{self.members.relation}"',
                place=self.binder.place(call),
                hint=f"GROUP BY {self.members.relation}.{self.members.columns[0].name}, which gives no row over "
                "nothing.",
            )
        if function in COUNTS:
            return exp.Coalesce(this=value, expressions=[exp.Literal.number(0)])
        if isinstance(inner, LISTS):
            return exp.Coalesce(this=value, expressions=[exp.Array(expressions=[])])
        return value

    # FROM and WHERE

    def _from(self, tree: exp.Select) -> tuple[_Provider, list[_Provider]]:
        """Joins the relation into FROM and WHERE; gives who has the member's columns, and all entries that do."""
        joins = [join for join in tree.args.get("joins") or () if not isinstance(join.this, exp.Lateral)]
        laterals = [join for join in tree.args.get("joins") or () if isinstance(join.this, exp.Lateral)]
        carrying = {id(join): self._carrying(join.this) for join in joins}
        first = self._carrying(tree.args["from_"].this) if tree.args.get("from_") else None
        sides = {(join.args.get("side") or "").upper() for join in joins}
        plain = [join for join in joins if not _is_partial(join)]
        partial = [join for join in joins if _is_partial(join)]
        read = [join for join in partial if carrying[id(join)] or self.mentions(join.args.get("on"))]
        held = [one for one in (first, *(carrying[id(join)] for join in plain)) if one is not None]
        if (read or held) and sides & {"RIGHT", "FULL"}:
            place = self.binder.place((read[0] if read else tree.args["from_"]).this)
            raise NotYet(f'a right or full join of rows chosen by "{self.members.relation}"', place=place)
        for join in joins:
            if carrying[id(join)] and (join.args.get("using") or join.args.get("method")):
                words = "NATURAL" if join.args.get("method") else "USING"
                raise NotYet(
                    f'{words} with a query that reads "{self.members.relation}"',
                    place=self.binder.place(join.this),
                    hint="Say ON.",
                )
        hidden = [*held, *(one for join in read if (one := carrying[id(join)]) and _is_shown(join))]
        if held and not read:
            provider = held[0]
        else:
            entry, provider = self._provider()
            hidden.append(provider)
            if tree.args.get("from_") is None:
                tree.set("from_", exp.From(this=entry))
            elif read:  # the conditions of outer joins can see what stands before them
                moved = exp.Join(this=tree.args["from_"].this, kind="CROSS")
                tree.set("from_", exp.From(this=entry))
                joins.insert(0, moved)
            else:
                joins.append(exp.Join(this=entry, kind="CROSS"))
        ties = [tie for one in held if one is not provider for tie in provider.same(one)]
        for join in joins:
            own = carrying.get(id(join))
            on = join.args.get("on")
            if on is not None:
                on = self._of(on, provider)
            if own is not None and _is_partial(join):
                on = conjunction([*(conjuncts(on) if on is not None else []), *provider.same(own)])
            join.set("on", on)
        where = tree.args.get("where")
        conditions = [*(conjuncts(self._of(where.this, provider)) if where is not None else []), *ties]
        if conditions:
            tree.set("where", exp.Where(this=conjunction(conditions)))
        for lateral in (*laterals, *(tree.args.get("laterals") or ())):
            self._of(lateral, provider)
        tree.set("joins", [*joins, *laterals])
        return provider, hidden

    def _carrying(self, entry: exp.Expression) -> _Provider | None:
        """Rewrites an entry of FROM that reads the relation, so that its rows carry their members."""
        if not self.mentions(entry):
            return None
        alias = entry.args.get("alias")
        if entry.args.get("window") or entry.args.get("drawn") or (alias and alias.args.get("window")):
            self._refuse_window(entry)
        if alias is None:
            alias = exp.TableAlias(this=_identifier(fresh(entry.name or "inner", self.taken)))
            alias = alias if not isinstance(entry, exp.Table) else exp.TableAlias(this=entry.this.copy())
            entry.set("alias", alias)
        if isinstance(entry, exp.Table):
            own = self.carried[entry.name.lower()]
        elif isinstance(entry, exp.Subquery):
            own = tuple(fresh(f"member_{column.name}", self.taken) for column in self.members.columns)
            entry.set("this", self.query(entry.this, own))
        else:
            raise NotYet(f'this form of a table that reads "{self.members.relation}"', place=self.binder.place(entry))
        _prepend_names(alias, own)
        return _Provider(alias.name, own)


GROUPING = (exp.Group, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Paren)
"""What may stand around the keys of GROUP BY."""


def _taken(tree: exp.Expression, part: str) -> exp.Expression | None:
    """A part of a tree, taken out of it."""
    found = tree.args.get(part)
    tree.set(part, None)
    return found.copy() if isinstance(found, exp.Expression) else found  # a copy has nothing around it


def _plain(name: str) -> exp.Column:
    return exp.Column(this=_identifier(name))


def _aliased(query: exp.Expression, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=_identifier(alias)))


def _prepend_names(alias: exp.Expression, own: Sequence[str]) -> None:
    """Adds names in front of those that an alias gives to columns, if it gives any."""
    if alias.args.get("columns"):
        identifiers = [_identifier(name) for name in own]
        alias.set("columns", [*identifiers, *alias.args["columns"]])


def _is_partial(join: exp.Expression) -> bool:
    """Whether a join keeps rows without partner, or only asks for partners: outer, semi- and anti-joins."""
    kind, side = (join.args.get("kind") or "").upper(), (join.args.get("side") or "").upper()
    return bool(side) or kind in ("SEMI", "ANTI")


def _is_shown(join: exp.Expression) -> bool:
    """Whether the columns of the joined entry can be read: not behind a semi- or anti-join."""
    return (join.args.get("kind") or "").upper() not in ("SEMI", "ANTI")


def _partition(window: exp.Expression, provider: _Provider) -> None:
    """Lets an analytic function look at the rows of one member; one that has a name gets it by its definition."""
    if window.args.get("alias") is None:
        window.set("partition_by", [*provider.columns(), *(window.args.get("partition_by") or ())])


def _without_members(item: exp.Expression, hidden: Sequence[_Provider]) -> exp.Expression:
    """An item of the select list; a * without the columns that carry members."""
    if isinstance(item, exp.Star):
        shape, owners = item, hidden
    elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        shape, owners = item.this, [one for one in hidden if one.alias.lower() == item.table.lower()]
    else:
        return item
    names_of = dict.fromkeys(name for owner in owners for name in owner.names)
    if names_of:
        more = [exp.column(_identifier(name)) for name in names_of]
        shape.set("except_", [*(shape.args.get("except_") or ()), *more])
    return item
