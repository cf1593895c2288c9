"""Random families of queries, and their meaning: the union of what the reference gives for each member alone.

A family is a random query in which some of the numbers are columns of a relation. What it must answer follows from the
queries with the numbers of each row put in, so the rewriting of families is not asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

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
from tools.duck import catalog_of
from tools.random_queries import HORIZON, KEYS, RELATIONS, STREAMS, inputs, queries

FIXED = (exp.Limit, exp.Offset, exp.TableSample, exp.DataType, exp.Ordered, exp.WindowSpec, StreamWindow)
"""Where a number cannot be a column."""


@dataclass(frozen=True, slots=True)
class RandomFamily:
    """A case whose query reads columns of the member, and the relation whose rows the members are."""

    case: Case
    relation: str

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(RELATIONS[self.relation])


def _is_free(literal: exp.Expression, top: exp.Expression) -> bool:
    """Whether a number of a query may be the value of a member."""
    if not isinstance(literal, exp.Literal) or literal.is_string or not literal.name.isdigit():
        return False
    if isinstance(literal.parent, exp.Group | exp.GroupingSets | exp.Rollup | exp.Cube | exp.RegexpExtract):
        return False
    node = literal.parent
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
    chosen = draw(st.permutations(range(len(free))))[:count]
    for position in chosen:
        column = draw(st.sampled_from(columns))
        free[position].replace(exp.column(column, relation))
    case = Case(
        "families",
        tree.sql("cql"),
        STREAMS,
        RELATIONS,
        (),
        draw(inputs(most)),
        HORIZON,
        range=draw(st.sampled_from(["closed", "closed", "half-open"])),
        empty_aggregate="row",
        keys=KEYS,
    )
    return RandomFamily(case, relation)


def plan_of(family: RandomFamily) -> Node:
    """The plan of a family."""
    catalog: Catalog = catalog_of(family.case)
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
    for column in list(tree.find_all(exp.Column)):
        if column.table.lower() == family.relation.lower():
            value = values[column.name.lower()]
            constant = exp.null() if value is None else exp.Literal.number(value)
            column.replace(exp.cast(constant, "int"))
    return tree
