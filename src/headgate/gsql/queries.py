"""Queries of GSQL as CQL: selections, aggregations with their final groups, joins of ordered attributes, merges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headgate.catalog.catalog import Catalog
from headgate.errors import Place, UserError, quoted
from headgate.gsql.expressions import Scope, Value, within
from headgate.gsql.functions import AGGREGATES
from headgate.gsql.inputs import Source, named, source
from headgate.gsql.syntax import (
    Attribute,
    Binary,
    Call,
    Expression,
    Key,
    KeySets,
    Merge,
    ParameterDeclaration,
    Query,
    Select,
    Span,
    Table,
)
from headgate.gsql.types import MISSING, mergeable, wider
from headgate.gsql.written import Written, listed, written


@dataclass(frozen=True, slots=True)
class Translation:
    """A query in CQL, and the GSQL types of its columns in their order."""

    cql: Written
    kinds: tuple[str, ...]


def translated(query: Query, text: str, catalog: Catalog, origin: str, name: str) -> Translation:
    """The CQL that a query amounts to."""
    parameters = {one.name.lower(): one for one in query.parameters}
    match query.body:
        case Select() as select:
            return _Selecting(select, text, catalog, origin, name, parameters).translation()
        case Merge() as merge:
            return _merged(merge, text, catalog, origin)


def _columns(source: Source) -> Written:
    return Written(", ".join(map(named, source.attributes)))


def _union(source: Source) -> Written:
    """The streams that a table merges, with their columns by name: they may stand in another order."""
    columns = _columns(source)
    return listed([written("SELECT ", columns, f" FROM {named(one)}") for one in source.names], " UNION ALL ")


class _Selecting:
    """Translates one select."""

    def __init__(
        self,
        tree: Select,
        text: str,
        catalog: Catalog,
        origin: str,
        name: str,
        parameters: dict[str, ParameterDeclaration],
    ) -> None:
        self.tree = tree
        self.text, self.origin = text, origin
        self.sources = [source(table, catalog, Place(text, *table.span, origin)) for table in tree.tables]
        self.refuse_repeated()
        self.scope = Scope(text, origin, catalog, self.sources, name, parameters)
        self.aggregates = bool(tree.keys) or any(map(self.has_aggregate, self.shown_expressions()))
        self.conditions = conjuncts(tree.where)
        self.equated = self.equalities() if self.outer else {}

    @property
    def outer(self) -> bool:
        """Whether it is an outer join."""
        return self.tree.join in ("OUTER", "LEFT_OUTER", "RIGHT_OUTER")

    def place(self, span: Span) -> Place:
        return Place(self.text, *span, self.origin)

    def refuse_repeated(self) -> None:
        _refuse_repeated(self.tree.tables, self.place)
        count = len(self.tree.tables)
        if self.outer and count != 2:
            raise UserError(
                "syntax", f"an outer join has two inputs, and this has {count}", place=self.place(self.tree.span)
            )
        if self.tree.join and count < 2:
            raise UserError("syntax", "a join has two inputs", place=self.place(self.tree.tables[0].span))

    def shown_expressions(self) -> list[Expression]:
        having = [self.tree.having] if self.tree.having is not None else []
        return [*(item.value for item in self.tree.items), *having]

    def has_aggregate(self, tree: Expression) -> bool:
        known = AGGREGATES | self.scope.catalog.aggregates
        return any(isinstance(one, Call) and one.name.lower() in known for one in within(tree))

    def translation(self) -> Translation:
        tree = self.tree
        from_clause = self.from_clause()  # with names as they are in FROM
        where = self.where()
        if self.outer:
            self.scope.shown = self.present
        group = self.group() if tree.keys else Written("")
        values = [self.scope.value(item.value) for item in tree.items]
        items = listed(
            [self.item(value, item.name, item.value) for value, item in zip(values, tree.items, strict=True)]
        )
        having = self.having()
        final = Written(" EMIT FINAL").at(self.closing_place()) if self.final else Written("")
        cql = written(Written("SELECT ").at(tree.span), items, " FROM ", from_clause, where, group, having, final)
        return Translation(cql.at(tree.span), tuple(value.kind for value in values))

    @property
    def final(self) -> bool:
        """Whether its rows are put out when the ordered attributes have passed them."""
        return self.aggregates or len(self.sources) > 1

    def closing_place(self) -> Span:
        """The place of an error about what closes groups or joins."""
        tree = self.tree
        if self.aggregates:
            return tree.group_span or tree.span
        return tree.where.span if tree.where is not None else tree.tables[-1].span

    def item(self, value: Value, alias: str | None, tree: Expression) -> Written:
        """One item of the select list with its name."""
        name = alias or (tree.name if isinstance(tree, Attribute) else _default_name(tree))
        if value.text.text.lower().rpartition(".")[2] == named(name).lower():
            return value.text
        return written(value.text, f" AS {named(name)}")

    # FROM and WHERE

    def from_clause(self) -> Written:
        entries = [self.entry(source, span) for source, span in zip(self.sources, self.spans, strict=True)]
        if not self.outer:
            return listed(entries)
        sides = {"OUTER": "FULL", "LEFT_OUTER": "LEFT", "RIGHT_OUTER": "RIGHT"}[self.tree.join]
        joining = [one for one in self.conditions if len(self.read(one)) != 1]
        if not joining:
            raise UserError(
                "not-final",
                "a join needs a condition that equates ordered attributes of both inputs",
                place=self.place(self.closing_place()),
                hint=f"where {self.sources[0].alias}.time = {self.sources[1].alias}.time",
            )
        on = self.conjunction(joining, self.scope)
        return written(entries[0], f" {sides} JOIN ", entries[1], " ON ", on)

    @property
    def spans(self) -> list[Span]:
        return [table.span for table in self.tree.tables]

    def entry(self, source: Source, span: Span) -> Written:
        """One entry of FROM; in an outer join, the conditions on this input alone choose its tuples before the join."""
        own = [one for one in self.conditions if self.read(one) == {source.alias}] if self.outer else []
        if len(source.names) == 1 and not own:
            alias = f" AS {named(source.alias)}" if source.alias.lower() != source.names[0].lower() else ""
            return written(Written(named(source.names[0])).at(span), alias if len(self.sources) > 1 else "")
        inner = _union(source)
        if own:
            scope = Scope(
                self.text, self.origin, self.scope.catalog, [source], self.scope.query_name, self.scope.parameters
            )
            table = (
                written(named(source.names[0]))
                if len(source.names) == 1
                else written("(", inner, f") AS {named(source.alias)}")
            )
            inner = written("SELECT ", _columns(source), " FROM ", table, " WHERE ", self.conjunction(own, scope))
        return written("(", inner.at(span), f") AS {named(source.alias)}")

    def where(self) -> Written:
        rest = self.conditions
        if self.outer:
            return Written("")
        return written(" WHERE ", self.conjunction(rest, self.scope)) if rest else Written("")

    def conjunction(self, conditions: list[Expression], scope: Scope) -> Written:
        values = [self.condition(one, scope) for one in conditions]
        return listed([value.within(2) if len(values) > 1 else value.text for value in values], " AND ")

    def condition(self, tree: Expression, scope: Scope) -> Value:
        value = scope.value(tree)
        if value.kind not in ("bool", "other"):
            raise scope.wrong_type(tree, value.kind, "a condition is needed")
        if self.has_aggregate(tree) and tree is not self.tree.having and tree in self.conditions:
            raise UserError(
                "aggregate-in-where",
                "an aggregate cannot stand in WHERE",
                place=self.place(tree.span),
                hint="Use HAVING.",
            )
        return value

    def read(self, tree: Expression) -> set[str]:
        """The aliases of the inputs that an expression reads."""
        return {self.scope.found(one)[0].alias for one in within(tree) if isinstance(one, Attribute)}

    # outer joins

    def equalities(self) -> dict[tuple[str, str], tuple[str, str]]:
        """The attributes that a condition equates, by alias and name in lower case: the one of the other input."""
        found: dict[tuple[str, str], tuple[str, str]] = {}
        for one in self.conditions:
            if isinstance(one, Binary) and one.operator == "=":
                sides = [self.scope.found(side)[:2] for side in (one.left, one.right) if isinstance(side, Attribute)]
                if len(sides) == 2 and sides[0][0] is not sides[1][0]:
                    (left, a), (right, b) = sides
                    found.setdefault((left.alias, a.lower()), (right.alias, b))
                    found.setdefault((right.alias, b.lower()), (left.alias, a))
        return found

    def present(self, owner: Source, name: str, text: Written) -> Written:
        """An attribute in the answer of an outer join: of the other input where it is equated, and never missing."""
        left, right = self.sources
        missing = self.tree.join == "OUTER" or owner is (right if self.tree.join == "LEFT_OUTER" else left)
        if not missing:
            return text
        other = self.equated.get((owner.alias, name.lower()))
        if other is not None:
            return written("COALESCE(", text, f", {named(other[0])}.{named(other[1])})")
        default = MISSING.get(owner.kinds[name.lower()][1])
        return written("COALESCE(", text, f", {default})") if default is not None else text

    # groups

    def group(self) -> Written:
        every = [key for part in self.tree.keys for key in _keys(part)]
        inside = self.scope.without_keys()
        for key in every:
            known = self.scope.keys.get(key.name.lower())
            if known is not None and known.value != key.value:
                same = isinstance(known.value, Attribute) and isinstance(key.value, Attribute)
                if not same:
                    raise UserError(
                        "name-taken", f'group-by variable "{key.name}" stands twice', place=self.place(key.span)
                    )
        parts = [self.grouped_by(part, inside) for part in self.tree.keys]
        self.scope.keys = {key.name.lower(): key for key in every}
        in_sets = {key.name.lower() for part in self.tree.keys if isinstance(part, KeySets) for key in _keys(part)}
        self.scope.rolled_up = frozenset(in_sets)
        self.scope.super_keys = self.supergroup(every, inside)
        return written(" GROUP BY ", listed(parts))

    def grouped_by(self, part: Key | KeySets, inside: Scope) -> Written:
        if isinstance(part, Key):
            return inside.value(part.value).text
        sets = [written("(", listed([inside.value(key.value).text for key in one]), ")") for one in part.sets]
        if part.kind == "GROUPING_SETS":
            return written("GROUPING SETS (", listed(sets), ")").at(part.span)
        return written(f"{part.kind} ", sets[0]).at(part.span)

    def supergroup(self, every: list[Key], inside: Scope) -> tuple[Written, ...]:
        """The keys of the supergroup: those that are named, and those that are ordered."""
        by_name = {key.name.lower(): key for key in every}
        for one in self.tree.supergroup:
            if one.name.lower() not in by_name:
                raise UserError(
                    "no-such-column",
                    f'"{one.name}" is no group-by variable',
                    place=self.place(one.span),
                    detail=f"There are {quoted(key.name for key in every)}.",
                )
        wanted = {one.name.lower() for one in self.tree.supergroup}
        wanted |= {name for name, key in by_name.items() if self.ordered(key.value)}
        return tuple(inside.value(key.value).text for name, key in by_name.items() if name in wanted)

    def ordered(self, tree: Expression) -> bool:
        """Whether a key grows with time: it reads one attribute, which does."""
        parts = list(within(tree))
        read = [one for one in parts if isinstance(one, Attribute)]
        if len(read) != 1 or any(isinstance(one, Call) for one in parts):
            return False
        owner, name, _ = self.scope.without_keys().found(read[0])
        return owner.ordered_in_time(name)

    def having(self) -> Written:
        """HAVING; with superaggregates it chooses among the groups that these have counted."""
        if self.tree.having is None:
            return Written("")
        condition = self.condition(self.tree.having, self.scope).text
        superaggregates = any(
            isinstance(part, Call) and part.of_supergroup for one in self.shown_expressions() for part in within(one)
        )
        return written(" QUALIFY " if superaggregates else " HAVING ", condition)


def _refuse_repeated(tables: Iterable[Table], place: Callable[[Span], Place]) -> None:
    aliases: set[str] = set()
    for table in tables:
        if table.alias.lower() in aliases:
            raise UserError(
                "name-taken",
                f'"{table.alias}" stands twice in FROM',
                place=place(table.span),
                hint="Give one an alias.",
            )
        aliases.add(table.alias.lower())


def _keys(part: Key | KeySets) -> list[Key]:
    return [part] if isinstance(part, Key) else [key for one in part.sets for key in one]


def _default_name(tree: Expression) -> str:
    """The name of a column without one: that of its outermost function."""
    return tree.name.lower() if isinstance(tree, Call) else "value"


def conjuncts(tree: Expression | None) -> list[Expression]:
    """The conditions that AND connects."""
    if tree is None:
        return []
    if isinstance(tree, Binary) and tree.operator == "AND":
        return [*conjuncts(tree.left), *conjuncts(tree.right)]
    return [tree]


def _merged(tree: Merge, text: str, catalog: Catalog, origin: str) -> Translation:
    """MERGE: the union of streams in order of an attribute that each of them has."""
    sources = [source(table, catalog, Place(text, *table.span, origin)) for table in tree.tables]
    scope = Scope(text, origin, catalog, sources)
    _refuse_repeated(tree.tables, scope.place)
    if len(tree.attributes) != len(sources):
        raise UserError(
            "columns-differ",
            f"{len(tree.attributes)} attributes are given for {len(sources)} streams",
            place=scope.place(tree.span),
        )
    first = sources[0]
    kinds = [kind for _, kind in first.kinds.values()]
    ordered: set[int] = set()
    for written_attribute, one, table in zip(tree.attributes, sources, tree.tables, strict=True):
        owner, name, _ = scope.found(written_attribute)
        if owner is not one:
            raise UserError(
                "syntax",
                f'"{written_attribute.name}" must belong to "{one.alias}": the order is that of FROM',
                place=scope.place(written_attribute.span),
                hint=f"{one.alias}.{written_attribute.name}",
            )
        if not one.ordered_in_time(name):
            raise UserError(
                "not-ordered",
                f'streams are merged by time, and "{written_attribute.name}" of "{one.alias}" does not follow from it',
                place=scope.place(written_attribute.span),
                hint=_hint_to_merge(one),
            )
        ordered.add(list(one.kinds).index(name.lower()))
        others = [kind for _, kind in one.kinds.values()]
        if len(others) != len(kinds) or not all(map(mergeable, kinds, others)):
            raise UserError(
                "columns-differ",
                f'"{first.alias}" and "{one.alias}" have different schemas',
                place=scope.place(table.span),
                detail=f'"{first.alias}" has {_schema(first)}; "{one.alias}" has {_schema(one)}.',
            )
        kinds = [kind if kind == other else wider(kind, other) for kind, other in zip(kinds, others, strict=True)]
    if len(ordered) > 1:
        raise UserError(
            "columns-differ",
            "the attributes to merge by stand at different places of the schemas",
            place=scope.place(tree.attributes[1].span),
        )
    cql = listed([_union(one).at(table.span) for one, table in zip(sources, tree.tables, strict=True)], " UNION ALL ")
    return Translation(cql.at(tree.span), tuple(kinds))


def _hint_to_merge(one: Source) -> str:
    ordered = next(filter(one.ordered_in_time, one.attributes), None)
    return f"Merge by {ordered}." if ordered else "Declare it as the first increasing attribute."


def _schema(source: Source) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in source.kinds.values())
