"""Families that headgate finds: a member that comes and goes answers what its query answers alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from sqlglot import exp
from tools.duck import Duck, catalog_of, variants
from tools.random_queries import (
    HORIZON,
    KEYS,
    RELATIONS,
    SHAPES,
    STREAMS,
    cuttings,
    described,
    inputs,
    queries,
    windows,
)

from headgate.catalog.entries import Query
from headgate.cql import shapes
from headgate.cql.definitions import define, found_family
from headgate.cql.script import parse
from headgate.plan.nodes import MEMBERS
from headgate.testing.cases import Case, Row, difference
from headgate.testing.reference import evaluate

Cutting = tuple[list[int], list[bool]]


@dataclass(frozen=True, slots=True)
class Member:
    """A query of the shape: its constants, the lengths of its windows, the instant behind which it sees its streams, and
    when it is dropped.
    """

    values: Row
    windows: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Found:
    """A query, the family of its shape, and queries that come and go."""

    case: Case
    query: Query
    family: Query
    members: list[Member]


@st.composite
def filters(draw: st.DrawFn) -> str:
    """A query that compares columns with constants."""
    one, two = draw(windows(SHAPES["S"])), draw(windows(SHAPES["T"]))
    where = draw(st.sampled_from(["s.B > 2", "s.A = 1 And s.B < 5", "s.D = 'x'", "s.B Between 0 And 4", "3 <> s.B"]))
    kind = draw(st.sampled_from(["", "Istream ", "Rstream ", "Dstream "]))
    source = f"S{one} s"
    items, more = draw(
        st.sampled_from(
            [
                ("*", ""),
                ("s.A, s.D", ""),
                ("s.A, Count(*) As n", " Group By s.A Having Count(*) > 1"),
                ("Count(*) As n, Max(s.B) As m", ""),
                ("s.A, Sum(s.B) As n", " Group By s.A"),
            ]
        )
    )
    if draw(st.booleans()) and items != "*":
        source, where = f"{source}, T{two} t", f"s.A = t.A And {where} And t.C >= 1"
    return f"Select {kind}{items} From {source} Where {where}{more}"


@st.composite
def found(draw: st.DrawFn) -> Found:
    """A random query that has a shape, and members of its family, which may list several lengths of windows."""
    text = draw(st.one_of(filters(), filters(), queries(1)))
    case = Case("found", text, STREAMS, RELATIONS, (), draw(inputs(8)), HORIZON, keys=KEYS)
    case = replace(case, range=draw(st.sampled_from(["closed", "half-open"])))
    try:
        (query,) = define(f"Create Query answer As {text}", catalog_of(case))
    except Exception:
        assume(False)
        raise
    assert isinstance(query, Query)
    assume(query.shape is not None)
    lengths = draw(_lengths(query))
    several = replace(query, shape=shapes.with_lengths(query.shape, lengths)) if lengths else query
    family = found_family(several, "family")
    if family is None and lengths:
        lengths, family = (), found_family(query, "family")
    elif lengths:
        event("windows of several lengths")
    assume(family is not None)
    assert family is not None
    later = shapes.takes_later(family.plan) and not query.plan.opens
    kinds = {"INT": st.integers(-1, 5), "STRING": st.sampled_from(["x", "y", "z"])}
    member = st.builds(
        Member,
        st.tuples(*(kinds[kind] for kind in query.shape.types)),
        st.sampled_from(lengths or (query.shape.windows,)),
        st.integers(-1, HORIZON // 2) if later else st.just(-1),
        st.integers(HORIZON // 2, HORIZON + 1),
    )
    return Found(case, several if lengths else query, family, draw(st.lists(member, min_size=1, max_size=4)))


@st.composite
def _lengths(draw: st.DrawFn, query: Query) -> shapes.Lengths:
    """Lengths of the windows of a query and of others like it; none if the family is not to list any."""
    own = query.shape.windows
    if not own or query.plan.flowing or draw(st.integers(0, 3)) == 0:
        return ()
    more = draw(st.sets(st.tuples(*(st.sampled_from([1, 2, 3, 5]) for _ in own)), min_size=1, max_size=3))
    found = {own, *more}
    return tuple(sorted(found)) if len(found) > 1 and shapes.may_be_listed(found) else ()


def alone(one: Found, member: Member) -> Case:
    """The query of a member, over what it sees."""
    known = shapes.found(parse(one.case.query)[0], None, one.query.shape.catalog, "")
    assert known is not None
    tree = known[1]
    for column in list(tree.find_all(exp.Column)):
        if column.table == MEMBERS:
            value = member.values[int(column.name[1:]) - 1]
            column.replace(exp.Literal.string(value) if isinstance(value, str) else exp.Literal.number(value))
    for (window, part), length in zip(shapes.lengths_in(tree), member.windows, strict=True):
        window.set(part, str(length))
    seen = {
        name: [row for row in rows if name not in STREAMS or row[0] > member.start]
        for name, rows in one.case.input.items()
    }
    return replace(one.case, query=tree.sql("cql"), input=seen)


@settings(max_examples=100, deadline=None)
@given(one=found(), cutting=cuttings())
def test_a_member_answers_what_its_query_answers_alone(one: Found, cutting: Cutting) -> None:
    shape = one.query.shape
    values = [
        shapes.values_of(replace(shape, values=member.values, windows=member.windows), shape.lengths)
        for member in one.members
    ]
    rows = [(member.start + 1, (number, *values[number]), "+") for number, member in enumerate(one.members)]
    rows += [(member.end, (number, *values[number]), "-") for number, member in enumerate(one.members)]
    kinds = {"number": "bigint"} | {f"c{n}": kind.lower() for n, kind in enumerate(one.query.shape.types, 1)}
    case = replace(
        one.case,
        relations={**RELATIONS, MEMBERS: kinds},
        input={**one.case.input, MEMBERS: sorted(rows, key=lambda row: row[0])},
    )
    results = Duck(case, variants(one.family.plan)).run(*cutting)
    width = len(kinds)
    for number, member in enumerate(one.members):
        own = [(at, sign, row[width:]) for at, sign, row in results if row[0] == number and at < member.end]
        asked = alone(one, member)
        expected = [change for change in evaluate(asked)[1] if change[0] < member.end]
        differs = difference(expected, own, one.case.horizon)
        assert differs is None, f"{member}\n{one.family.family}\n{described(asked, cutting)}\n{differs}"
