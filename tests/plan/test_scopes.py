"""Which sources a query can see, and which queries can run group by group: by what they say, and by what they put out.

A query that does not wait for a source on which its answer depends would answer wrongly, and no other test would see
it. So the law is checked on the answers: without the tuples of all other sources they are the same, and those of the
groups together are those of the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, combinations, product
from operator import itemgetter
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tools.as_sql import sql
from tools.duck import Duck, bound
from tools.random_queries import cases, cuttings

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.delta.lower import lower
from headgate.execute.inputs import has_visible_rows, sources_in
from headgate.log.log import Log
from headgate.plan.expressions import Expression
from headgate.plan.fragments import split
from headgate.plan.nodes import Filter, Node, Relation, Scan, is_stream
from headgate.plan.rewrites.driver import rewritten
from headgate.plan.scopes import by_groups, scopes
from headgate.plan.tree import everywhere, parents
from headgate.scope import EVERYTHING, NOTHING, Groups, Scope, Scopes
from headgate.sql import Sql, name
from headgate.testing.cases import Case, Change, difference

SOURCES = ("a", "b", "c", "")
STREAMS = {"s": {"dev": "string", "v": "int"}, "t": {"dev": "string", "w": "int"}}
GROUPS = Groups((frozenset("a"), frozenset("b")))

# what a reader sees

SCOPES = [
    Scope(frozenset(some), others)
    for size in range(3)
    for some in combinations("abc", size)
    for others in (False, True)
]


def seen_by(scope: Scope) -> set[str]:
    return {source for source in (*SOURCES, "new") if source in scope}


def test_scopes_are_sets_of_sources() -> None:
    for one, other in product(SCOPES, SCOPES):
        assert seen_by(one | other) == seen_by(one) | seen_by(other)
        assert seen_by(one & other) == seen_by(one) & seen_by(other)
        assert (one <= other) == (seen_by(one) <= seen_by(other))
        assert one.meets(frozenset(seen_by(other))) == bool(seen_by(one) & seen_by(other))
    for one in SCOPES:
        groups = [seen_by(group) for group in GROUPS.scopes()]
        assert seen_by(GROUPS.waited_for(one)) == set().union(*(group for group in groups if group & seen_by(one)))


# by what a query says

SEEN: Sequence[tuple[str, Scopes]] = [
    (
        f"SELECT x.v FROM s [RANGE 3] x WHERE {condition}",
        {"s": Scope(frozenset(sources))} if sources is not None else {},
    )
    for condition, sources in [
        ("x.dev = 'a'", "a"),
        ("'a' = x.dev AND x.v > 1", "a"),
        ("x.dev IN ('a', 'b')", "ab"),
        ("x.dev = 'a' OR (x.dev = 'b' AND x.v = 1)", "ab"),
        ("(x.dev = 'a' OR x.dev = 'b') AND x.dev IN ('b', 'c')", "b"),
        ("x.dev = 'a' OR x.v = 1", None),
        ("NOT x.dev = 'a'", None),
        ("x.dev IN ('a', 'b') OR TRUE", None),
        ("UPPER(x.dev) = 'A'", None),
        ("x.dev = 1", None),
        ("x.dev > 'a'", None),
        ("x.dev = 'a' AND x.dev = 'b'", None),
    ]
] + [
    ("SELECT ISTREAM(*) FROM s [NOW] WHERE dev = 'a'", {"s": Scope(frozenset("a"))}),
    ("SELECT v FROM s [ROWS 2] WHERE dev = 'a'", {}),
    ("SELECT v FROM s [PARTITION BY dev ROWS 2] WHERE dev = 'a'", {"s": Scope(frozenset("a"))}),
    ("SELECT dev, SUM(v) FROM s [RANGE 3] GROUP BY dev HAVING dev = 'a'", {"s": Scope(frozenset("a"))}),
    (
        "SELECT y.d FROM (SELECT dev AS d, COUNT(*) AS n FROM s [RANGE 3] GROUP BY dev) y WHERE y.d = 'a'",
        {"s": Scope(frozenset("a"))},
    ),
    (
        "SELECT y.d FROM (SELECT dev AS d, SUM(v) AS n FROM s [RANGE 3] GROUP BY dev ORDER BY n LIMIT 1) y WHERE y.d = 'a'",
        {},
    ),
    (
        "SELECT x.v, y.v FROM s [RANGE 3] x, s [RANGE 3] y WHERE x.dev = 'a' AND y.dev = 'b'",
        {"s": Scope(frozenset("ab"))},
    ),
    ("SELECT x.v, y.v FROM s [RANGE 3] x, s [RANGE 3] y WHERE x.dev = 'a'", {}),
    (
        "SELECT x.v, y.w FROM s [RANGE 3] x, t [RANGE 3] y WHERE x.dev = y.dev AND x.dev = 'a'",
        {"s": Scope(frozenset("a")), "t": Scope(frozenset("a"))},
    ),
    (
        "SELECT x.v, y.w FROM s [RANGE 3] x LEFT JOIN t [RANGE 3] y ON y.dev = 'b' WHERE x.dev = 'a'",
        {"s": Scope(frozenset("a")), "t": Scope(frozenset("b"))},
    ),
    (
        "SELECT dev FROM s [RANGE 3] WHERE dev = 'a' UNION ALL SELECT dev FROM s [NOW] WHERE dev = 'b'",
        {"s": Scope(frozenset("ab"))},
    ),
    ("SELECT x.v FROM s [RANGE 3] x WHERE x.dev = 'a' AND EXISTS (SELECT 1 FROM s [RANGE 3] y WHERE y.v = x.v)", {}),
]

APART: list[tuple[str, bool]] = [
    ("SELECT dev, SUM(v) AS n FROM s [RANGE 3] GROUP BY dev", True),
    ("SELECT dev, MAX(v) AS n FROM s [RANGE 3 SLIDE 2] GROUP BY dev, v", True),
    ("SELECT SUM(v) AS n FROM s [RANGE 3] GROUP BY dev", False),
    ("ISTREAM(SELECT dev, COUNT(*) AS n FROM s [RANGE 3] GROUP BY dev)", True),
    ("ISTREAM(SELECT COUNT(*) AS n FROM s [RANGE 3] GROUP BY dev)", False),
    ("RSTREAM(SELECT COUNT(*) AS n FROM s [RANGE 3] GROUP BY dev)", True),
    ("SELECT COUNT(*) AS n FROM s [RANGE 3]", False),
    ("SELECT v, COUNT(*) AS n FROM s [RANGE 3] GROUP BY v", False),
    ("SELECT dev, v FROM s [RANGE 3] WHERE v > 0", True),
    ("SELECT v FROM s [RANGE 3] WHERE v > 0", False),
    ("SELECT dev, v FROM s [PARTITION BY dev ROWS 2]", True),
    ("SELECT dev, v FROM s [PARTITION BY v ROWS 2]", False),
    ("SELECT dev, v FROM s [ROWS 2]", False),
    ("SELECT DISTINCT dev, v FROM s [RANGE 3]", True),
    ("SELECT DISTINCT v FROM s [RANGE 3]", False),
    ("SELECT x.dev, x.v, y.w FROM s [RANGE 3] x, t [RANGE 2] y WHERE x.dev = y.dev", True),
    ("SELECT x.dev, x.v, y.w FROM s [RANGE 3] x LEFT JOIN t [RANGE 2] y ON x.dev = y.dev", True),
    ("SELECT x.dev, y.w FROM s [RANGE 3] x, t [RANGE 2] y WHERE x.v = y.w", False),
    ("SELECT x.dev, y.dev FROM s [RANGE 3] x, s [RANGE 2] y WHERE x.dev = y.dev AND x.v = y.v", True),
    ("SELECT dev, v, RANK() OVER (PARTITION BY dev ORDER BY v) AS n FROM s [RANGE 3]", True),
    ("SELECT dev, v, RANK() OVER (ORDER BY v) AS n FROM s [RANGE 3]", False),
    ("SELECT dev, v FROM s [RANGE 3] UNION ALL SELECT dev, w FROM t [RANGE 2]", True),
    ("SELECT dev, v FROM s [RANGE 3] ORDER BY v LIMIT 1", False),
    ("SELECT x.dev FROM s [RANGE 3] x WHERE x.v > (SELECT AVG(y.v) FROM s [RANGE 3] y)", False),
    ("SELECT x.dev, x.v FROM s [RANGE 3] x WHERE x.v IN (SELECT y.w FROM t [RANGE 3] y WHERE y.dev = x.dev)", True),
]


@cache
def plan_of(query: str) -> Node:
    return named(case_of(query), dict.fromkeys(STREAMS, "dev"))


def named(case: Case, by: dict[str, str]) -> Node:
    """The plan to run, over streams that name their sources in these columns."""
    plan = rewritten(bound(case)).plan
    return everywhere(plan, lambda node: replace(node, by=by[node.stream]) if isinstance(node, Scan) else None)


def case_of(query: str, given: dict[str, list[tuple[int, tuple[object, ...], str]]] | None = None) -> Case:
    return Case("scoped", query, STREAMS, {}, (), given or {}, 10)


@pytest.mark.parametrize("query,expected", SEEN)
def test_what_a_query_can_see(query: str, expected: Scopes) -> None:
    assert scopes(plan_of(query)) == expected


@pytest.mark.parametrize("query,expected", APART)
def test_which_queries_run_by_groups(query: str, expected: bool) -> None:
    assert bool(by_groups(plan_of(query), dict.fromkeys(STREAMS, GROUPS))) == expected


def test_a_selection_of_some_groups_runs_in_parts_for_these() -> None:
    query = "SELECT dev, SUM(v) AS n FROM s [RANGE 3] WHERE dev IN ('b', 'c', 'd') GROUP BY dev"
    assert by_groups(plan_of(query), {"s": GROUPS}) == ({"s": Scope(frozenset("b"))}, {"s": Scope(frozenset("cd"))})
    assert not by_groups(plan_of(query.replace(", 'c', 'd'", "")), {"s": GROUPS}), "one group alone is no parts"


def test_streams_that_are_grouped_in_other_ways_run_together() -> None:
    query = "SELECT x.dev, x.v, y.w FROM s [RANGE 3] x, t [RANGE 2] y WHERE x.dev = y.dev"
    assert not by_groups(plan_of(query), {"s": GROUPS, "t": Groups((frozenset("c"),))})
    assert by_groups(plan_of(query), {"s": GROUPS}), "of a stream without groups each part sees all"


SCRIPT = """CREATE STREAM s (dev INT, v INT) SOURCE BY dev; GROUPS OF s ('1'), ('2');
CREATE VIEW calm AS SELECT * FROM s [RANGE 3] WHERE dev IN (1, -2);
CREATE QUERY q AS """


def test_numbers_and_views_and_dead_letters() -> None:
    def seen(query: str) -> Scopes:
        catalog = Catalog()
        define(SCRIPT + query, catalog)
        return scopes(catalog.query("q").plan)

    assert seen("SELECT v FROM calm") == {"s": Scope(frozenset({"1", "-2"}))}
    assert seen("SELECT v FROM calm WHERE dev = 1") == {"s": Scope(frozenset("1"))}
    assert not seen("SELECT v FROM s [RANGE 3] WHERE dev = '1'"), "'01' would be cast"
    assert not seen("SELECT v FROM LATE(s) [RANGE 3] WHERE dev = 1"), (
        "dead letters are complete where the whole stream is"
    )


@pytest.mark.parametrize("said,parts", [("", 3), ("SET ordering = 'always';", 0), ("SET heartbeats = 'operator';", 0)])
def test_when_a_query_runs_by_groups(said: str, parts: int) -> None:
    catalog = Catalog()
    define(
        said + SCRIPT + "SELECT dev, SUM(v) FROM s [RANGE 3] GROUP BY dev; CREATE QUERY p AS SELECT ISTREAM(*) FROM s;",
        catalog,
    )
    assert len(catalog.query("q").by_groups) == parts
    assert not catalog.query("p").by_groups, "what is answered as it comes waits for nobody"


# by what it puts out


def ran(case: Case, plan: Node, kept: Scopes, cutting: tuple[list[int], list[bool]]) -> list[Change]:
    """What comes out if only tuples of these sources come in. The first column names the source."""
    given = {
        stream: [
            one for one in rows if stream not in kept or ("" if one[1][0] is None else str(one[1][0])) in kept[stream]
        ]
        for stream, rows in case.input.items()
    }
    return Duck(replace(case, input=given), [lower(plan), lower(plan, tiny=True)]).run(*cutting)


def judged(case: Case, plan: Node, groups: dict[str, Groups], cuttings: list[tuple[list[int], list[bool]]]) -> bool:
    """Whether there was anything to judge."""
    seen, parts = scopes(plan), by_groups(plan, groups)
    whole = ran(case, plan, {}, cuttings[0]) if seen or parts else []
    if seen:
        assert difference(whole, ran(case, plan, seen, cuttings[-1]), case.horizon) is None
    if parts:
        pieces = [ran(case, plan, part, cuttings[number % len(cuttings)]) for number, part in enumerate(parts)]
        assert difference(whole, sorted(chain.from_iterable(pieces), key=itemgetter(0)), case.horizon) is None
    return bool(seen or parts)


rows = st.tuples(st.sampled_from(["a", "b", "c", None]), st.integers(0, 3))
tuples = st.lists(st.tuples(st.integers(0, 8), rows), max_size=10).map(
    lambda some: [(at, row, "+") for at, row in sorted(some, key=lambda one: one[0])]
)
USED = [query for query, seen in SEEN if seen] + [query for query, expected in APART if expected]


@settings(max_examples=60)
@given(
    st.sampled_from(USED),
    st.fixed_dictionaries({"s": tuples, "t": tuples}),
    st.lists(cuttings(10), min_size=1, max_size=3),
)
def test_other_sources_have_no_part_in_the_answer(
    query: str, given_: dict[str, list[tuple[int, tuple[object, ...], str]]], cuts: list[tuple[list[int], list[bool]]]
) -> None:
    assert judged(case_of(query, given_), plan_of(query), dict.fromkeys(STREAMS, GROUPS), cuts)


NUMBERED = Groups((frozenset({"0", "1"}), frozenset("2")))


@st.composite
def selections(draw: st.DrawFn) -> tuple[Case, Node]:
    """A random query with selections by constants put somewhere into its plan, and the plan to run."""
    case = draw(cases(depth=1))
    plan = bound(case)
    for _ in range(draw(st.sampled_from([0, 1, 3]))):
        places = {node: numbers for node in parents(plan) if not is_stream(node) and (numbers := integers(node))}
        if places:
            chosen = draw(st.sampled_from(list(places)))
            column = draw(st.sampled_from(places[chosen]))
            condition = Expression(
                sql(f"{name(column)} {draw(st.sampled_from(['= 1', 'IN (1, 2)']))}"),
                Sql("BOOLEAN"),
                frozenset({column.lower()}),
            )
            plan = everywhere(plan, lambda node: Filter(cast(Relation, node), condition) if node == chosen else None)  # noqa: B023
    plan = rewritten(plan).plan
    return case, everywhere(plan, lambda node: replace(node, by="A") if isinstance(node, Scan) else None)


def integers(node: Node) -> list[str]:
    """The columns to select by; where the source is among them, that one."""
    found = [column.name for column in node.columns if column.type == "INT"]
    return [column for column in found if column.upper() == "A"] or found


@settings(max_examples=60)
@given(selections(), st.lists(cuttings(), min_size=1, max_size=2))
def test_other_sources_have_no_part_in_the_answers_of_random_queries(
    drawn: tuple[Case, Node], cuts: list[tuple[list[int], list[bool]]]
) -> None:
    judged(*drawn, dict.fromkeys(("S", "T"), NUMBERED), cuts)


def test_random_queries_see_some_sources_or_run_by_groups() -> None:
    found: Counter[str] = Counter()

    @settings(max_examples=100, phases=[Phase.generate], database=None)
    @given(selections())
    def collect(drawn: tuple[Case, Node]) -> None:
        found["seen"] += bool(scopes(drawn[1]))
        found["apart"] += bool(by_groups(drawn[1], dict.fromkeys(("S", "T"), NUMBERED)))

    collect()
    assert found["seen"] >= 2
    assert found["apart"] >= 2


def test_nothing_and_everything() -> None:
    assert NOTHING | EVERYTHING == EVERYTHING
    assert NOTHING.condition("dev") == "FALSE"
    assert (
        Scope(frozenset({"o'b"}), True).condition("my dev") == "COALESCE(CAST(`my dev` AS STRING), '') NOT IN ('o\\'b')"
    )


def test_an_epoch_is_worth_running_only_for_tuples_that_are_seen(tmp_path: Path) -> None:
    catalog = Catalog()
    define(SCRIPT + "SELECT SUM(v) AS n FROM s [RANGE 3] WHERE dev = 1", catalog)
    part, log = split(catalog.query("q").plan, "query"), Log(tmp_path / "log")
    for sources, stamps, seen in (([2, None], [5, 6], False), ([1, 2], [7, 8], True)):
        numbers = {"dev": pa.array(sources, pa.int32()), "v": pa.array([1, 1], pa.int32())}
        log.append(pa.table({**numbers, "_t": pa.array(stamps, pa.int64()), "_s": pa.array(stamps, pa.int64())}))
        assert has_visible_rows(part, "s", log, 0, 10) == seen
    assert not has_visible_rows(part, "s", log, 0, 6)
    log.chunks[0].path.write_bytes(b"damaged")
    sources_in.cache_clear()
    assert has_visible_rows(part, "s", log, 0, 6), "which an epoch then says"
