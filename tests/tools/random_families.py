"""Random families of queries, and their meaning: the union of what the reference gives for each member alone.

A family is a random query in which some of the numbers are columns of a relation, lengths of windows among them. What it
must answer follows from the queries with the numbers of each row put in, so the rewriting of families is not asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from sqlglot import exp

from headgate.catalog.catalog import Catalog
from headgate.cql.families import bind_family, members_of
from headgate.cql.script import parse
from headgate.cql.syntax import StreamOf, StreamWindow
from headgate.plan.nodes import Node
from headgate.testing.cases import Case, Change, Row
from headgate.testing.reference import _Reference, _without_operator
from headgate.testing.reference_windows import VaryingRelation
from tools.as_sql import sql
from tools.duck import catalog_of
from tools.random_queries import HORIZON, KEYS, RELATIONS, STREAMS, inputs, queries

LENGTHS = ("amount", "range", "slide")
"""The numbers of a window."""

FIXED = (exp.Limit, exp.Offset, exp.TableSample, exp.DataType, exp.Ordered, exp.WindowSpec, StreamWindow)
"""Where a number cannot be a column."""


@dataclass(frozen=True, slots=True)
class RandomFamily:
    """A case whose query reads columns of the member, and the relation whose rows the members are."""

    case: Case
    """Its input has no rows that break the CHECK."""

    relation: str
    pushed: dict[str, list[tuple[int, Row, str]]]
    """All rows that come, also those that break the CHECK."""

    lengths: tuple[str, tuple[int, ...]] | None = None
    """The column that windows have as their length, and the values that its CHECK lists."""

    @property
    def check(self) -> str:
        """The CHECK of that column."""
        assert self.lengths is not None
        return f"{self.lengths[0]} IN ({', '.join(map(str, self.lengths[1]))})"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(RELATIONS[self.relation])


def _is_free(literal: exp.Expression, top: exp.Expression) -> bool:
    """Whether a number of a query may be the value of a member."""
    if not isinstance(literal, exp.Literal) or literal.is_string or not literal.name.isdigit():
        return False
    if isinstance(literal.parent, exp.Group | exp.GroupingSets | exp.Rollup | exp.Cube | exp.RegexpExtract):
        return False
    return _is_reached(literal.parent, top)


def _is_reached(node: exp.Expression | None, top: exp.Expression) -> bool:
    """Whether what stands here may depend on the member."""
    while node is not None and node is not top:
        if isinstance(node, FIXED) or (isinstance(node, exp.Subquery) and node.args.get("window")):
            return False
        if isinstance(node, StreamOf) or (isinstance(node, exp.Select) and node.args.get("final")):
            return _is_outermost(node, top)
        if isinstance(node, exp.Select) and node.expressions and isinstance(node.expressions[0], StreamOf):
            return _is_outermost(node, top)
        node = node.parent
    return True


def _is_outermost(node: exp.Expression, top: exp.Expression) -> bool:
    return node is top or node.parent is top or node.parent is None


@st.composite
def families(draw: st.DrawFn, depth: int = 1, most: int = 8) -> RandomFamily:
    """A family: a random query with columns of the member in the place of some numbers, and input."""
    relation = draw(st.sampled_from(["R", "K"]))
    tree = parse(draw(queries(depth)))[0]
    free = [node for node in tree.find_all(exp.Literal) if _is_free(node, tree)]
    columns = list(RELATIONS[relation])
    count = draw(st.integers(1, 3))
    assume(free)
    lengths = draw(_lengths(tree, relation))
    chosen = draw(st.permutations(range(len(free))))[:count]
    for position in chosen:
        column = draw(st.sampled_from(columns))
        free[position].replace(exp.column(column, relation))
    pushed = draw(inputs(most))
    case = Case(
        "families",
        tree.sql("cql"),
        STREAMS,
        RELATIONS,
        (),
        pushed | {relation: [row for row in pushed[relation] if _passes(row[1], relation, lengths)]},
        HORIZON,
        range=draw(st.sampled_from(["closed", "closed", "half-open"])),
        empty_aggregate="row",
        keys=KEYS,
    )
    return RandomFamily(case, relation, pushed, lengths)


@st.composite
def _lengths(draw: st.DrawFn, tree: exp.Expression, relation: str) -> tuple[str, tuple[int, ...]] | None:
    """Let windows of a query have the length of the member; the column of the relation that holds it, and its values.
    None if there are no such windows.
    """
    some = [window for window in tree.find_all(StreamWindow) if _may_vary(window, tree)]
    if not some or draw(st.booleans()):
        return None
    column = draw(st.sampled_from(list(RELATIONS[relation])))
    values = draw(st.sets(st.sampled_from([1, 2, 3, 5]), min_size=1, max_size=3))
    for window in draw(st.lists(st.sampled_from(some), min_size=1, max_size=2)):
        written = [part for part in LENGTHS if window.args.get(part) is not None]
        for part in draw(st.lists(st.sampled_from(written), min_size=1, max_size=2)):
            window.set(part, exp.column(column, relation))
    return column, tuple(sorted(values))


def _may_vary(window: exp.Expression, top: exp.Expression) -> bool:
    """Whether the length of a window may depend on the member."""
    varies = window.args["kind"] in ("RANGE", "ROWS")
    return varies and _is_reached(window.find_ancestor(exp.From, exp.Join), top)


def _passes(row: Row, relation: str, lengths: tuple[str, tuple[int, ...]] | None) -> bool:
    """Whether a row of the relation passes the CHECK."""
    if lengths is None:
        return True
    value = row[list(RELATIONS[relation]).index(lengths[0])]
    return value is None or value in lengths[1]


def plan_of(family: RandomFamily) -> Node:
    """The plan of a family."""
    catalog: Catalog = catalog_of(family.case)
    if family.lengths is not None:
        known = catalog.relations[family.relation.lower()]
        columns = (
            replace(one, check=sql(family.check) if one.name == family.lengths[0] else None) for one in known.columns
        )
        catalog.relations[family.relation.lower()] = replace(known, columns=tuple(columns))
    members, text = members_of(catalog.relations[family.relation.lower()]), family.case.query
    return bind_family(parse(text)[0], text, catalog, "", members)[0].plan


def meaning(family: RandomFamily) -> list[Change]:
    """The answer of a family: at each instant what the members that are there answer alone, with their values."""
    case = family.case
    reference = _Reference(case)
    held = reference.named[family.relation.lower()]
    assert isinstance(held, VaryingRelation)
    present = [set(bag) for bag in held.bags]
    operator = _operator(parse(case.query)[0])
    bags: list[list[Row]] = [[] for _ in present]
    tuples: list[Change] = []
    for member in sorted(set().union(*present), key=repr):
        tree = _alone(parse(case.query)[0], family, member)
        if operator is not None and operator != "RSTREAM":
            relation = reference.relation(_plain(tree))
        else:
            found = _Reference(replace(case, query=tree.sql("cql"))).query(tree)
            if not isinstance(found, VaryingRelation):
                tuples += [(ts, "+", (*member, *row)) for ts, row in found.tuples if member in present[ts]]
                continue
            relation = found
        for instant, bag in enumerate(relation.bags):
            if member in present[instant]:
                bags[instant] += [(*member, *row) for row in bag]
    return tuples + _changes(bags, operator)


def _operator(tree: exp.Expression) -> str | None:
    if isinstance(tree, StreamOf):
        return str(tree.args["kind"])
    if isinstance(tree, exp.Select):
        if tree.args.get("final"):
            return "RSTREAM"
        operator, _ = _without_operator(tree)
        return str(operator.args["kind"]) if operator is not None else None
    return None


def _plain(tree: exp.Expression) -> exp.Expression:
    """The query below its operator."""
    if isinstance(tree, StreamOf):
        return tree.args["query"]
    assert isinstance(tree, exp.Select)
    return _without_operator(tree)[1]


def _changes(bags: list[list[Row]], operator: str | None) -> list[Change]:
    signs: dict[str | None, Callable[[Counter[Row], Counter[Row]], list[tuple[str, Row]]]] = {
        "ISTREAM": lambda before, now: [("+", row) for row in (now - before).elements()],
        "DSTREAM": lambda before, now: [("+", row) for row in (before - now).elements()],
        "RSTREAM": lambda before, now: [],
        None: lambda before, now: [
            *(("-", row) for row in (before - now).elements()),
            *(("+", row) for row in (now - before).elements()),
        ],
    }
    changes, before = [], Counter[Row]()
    for instant, bag in enumerate(bags):
        now = Counter(bag)
        changes += [(instant, sign, row) for sign, row in signs[operator](before, now)]
        before = now
    return changes


def _alone(tree: exp.Expression, family: RandomFamily, member: Row) -> exp.Expression:
    """The query with the values of one member put in."""
    values = dict(zip((name.lower() for name in family.columns), member, strict=True))
    for window in list(tree.find_all(StreamWindow)):
        _with_length(window, family, values)
    for column in list(tree.find_all(exp.Column)):
        if column.table.lower() == family.relation.lower():
            value = values[column.name.lower()]
            constant = exp.null() if value is None else exp.Literal.number(value)
            column.replace(exp.cast(constant, "int"))
    return tree


def _with_length(window: StreamWindow, family: RandomFamily, values: dict[str, Any]) -> None:
    """Put the length of a member into a window. Without a length, its window is empty."""
    varying = [part for part in LENGTHS if isinstance(window.args.get(part), exp.Column)]
    value = values[family.lengths[0].lower()] if family.lengths is not None else None
    for part in varying:
        window.set(part, str(1 if value is None else value))
    if not varying or value is not None:
        return
    entry = window.find_ancestor(exp.Table, exp.Subquery)
    assert entry is not None
    alias = entry.args.get("alias")
    named = alias.this if alias is not None and alias.this is not None else entry.this
    columns = [column.copy() for column in alias.args.get("columns") or ()] if alias is not None else []
    entry_alone = entry.copy()
    entry_alone.set("alias", exp.TableAlias(this=exp.to_identifier("nothing")))
    entry_alone.set("window", window.copy())
    items = [StreamOf(kind="RSTREAM", expressions=[exp.Star()])]
    never = exp.Where(this=exp.EQ(this=exp.Literal.number(1), expression=exp.Literal.number(0)))
    nothing = exp.Subquery(
        this=exp.Select(expressions=items, from_=exp.From(this=entry_alone), where=never),
        alias=exp.TableAlias(this=named.copy(), columns=columns) if isinstance(named, exp.Identifier) else None,
    )
    nothing.set("window", StreamWindow(kind="RANGE", amount="1"))
    entry.replace(nothing)
