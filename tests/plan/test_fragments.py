"""Where plans are split into fragments, and for which streams each part waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.plan.fragments import Part, Splitting, all_parts, labels, split, streams
from headgate.plan.nodes import Node, Scan, Unbounded, Window
from headgate.ticks import TimeDomain

STREAMS = "CREATE STREAM s1 (k INT, a INT); CREATE STREAM s2 (k INT, b INT); CREATE STREAM s3 (k INT, c INT);"
FIGURE_5 = """CREATE QUERY q AS SELECT RSTREAM(s1.k, a, b, c) FROM s1 [NOW], s2 [RANGE 2], s3 [RANGE 100]
  WHERE s1.k = s2.k AND s2.k = s3.k"""


def plan(query: str) -> Node:
    catalog = Catalog()
    define(f"{STREAMS} CREATE RELATION r (k INT, d INT) FROM csv OPTIONS ('path' = 'r'); {query}", catalog)
    return catalog.query("q").plan


def described(query: str, how: Splitting = "operator") -> dict[str, str]:
    return {part.name: " ".join(sorted(part.streams)) for part in all_parts(split(plan(query), how))}


# where plans are split


def test_query_level_is_one_fragment() -> None:
    assert described(FIGURE_5, "query") == {"answer": "s1 s2 s3"}


def test_operator_level_cuts_below_a_join_on_the_side_that_need_not_wait() -> None:
    assert described(FIGURE_5) == {"part(1)": "s1 s2", "answer": "s1 s2 s3"}


def test_a_base_stream_is_read_from_its_log_and_a_fixed_relation_is_always_complete() -> None:
    assert described("CREATE QUERY q AS SELECT a FROM s1 [NOW], s2 [RANGE 5] WHERE s1.k = s2.k AND b > 1") == {
        "answer": "s1 s2"
    }
    fixed = (
        "CREATE QUERY q AS SELECT x.k FROM (SELECT k, COUNT(*) AS n FROM s1 [RANGE 5] GROUP BY k) x, r WHERE x.k = r.k"
    )
    assert described(fixed) == {"answer": "s1"}


def test_an_outer_join_is_cut_once_on_each_side() -> None:
    query = """CREATE QUERY q AS SELECT x.k, n, m FROM (SELECT k, COUNT(*) AS n FROM s1 [RANGE 5] GROUP BY k) x
      FULL JOIN (SELECT k, COUNT(*) AS m FROM s2 [RANGE 5] GROUP BY k) y ON x.k = y.k"""
    assert described(query) == {"part(1)": "s1", "part(2)": "s2", "answer": "s1 s2"}


def test_parts_below_parts() -> None:
    query = """CREATE QUERY q AS SELECT x.k FROM (SELECT s1.k, COUNT(*) AS n FROM s1 [RANGE 5], s2 [RANGE 5] WHERE s1.k = s2.k
      GROUP BY s1.k) x, (SELECT k, COUNT(*) AS m FROM s3 [RANGE 5] GROUP BY k) y WHERE x.k = y.k"""
    assert described(query) == {"part(1)": "s1 s2", "part(2)": "s3", "answer": "s1 s2 s3"}


def test_parts_of_parts_have_names_of_their_own() -> None:
    inner = "(SELECT k, COUNT(*) AS n FROM s1 [RANGE 5] GROUP BY k)"
    query = f"CREATE QUERY q AS SELECT x.k FROM (SELECT x.k FROM {inner} x, s2 [RANGE 5] WHERE x.k = s2.k) x, s3 [NOW] WHERE x.k = s3.k"
    assert described(query) == {"part(1)": "s1", "part(2)": "s1 s2", "answer": "s1 s2 s3"}


# for whom each waits: AssignLabels


def leaf(*names: str) -> Node:
    return Window(Scan(names[0], (), TimeDomain.INTEGER, None), Unbounded())


def part(name: str | None, own: str, *below: Part) -> Part:
    return Part(name, leaf(own), below, frozenset(own.split()).union(*(one.streams for one in below)))


O1 = part("part(1)", "S1 S2")
O2 = part(None, "S3", O1)
ALL = frozenset({"S1", "S2", "S3"})


@pytest.mark.parametrize(
    "how, selectivity, waits",
    [
        ("query", 0.1, ALL),
        ("operator", 10.0, frozenset({"S1", "S2"})),
        ("memory-aware", 0.1, frozenset({"S1", "S2"})),
        ("memory-aware", 10.0, ALL),
    ],
)
def test_figure_5_with_o1_selective_and_proliferative(
    how: Splitting, selectivity: float, waits: frozenset[str]
) -> None:
    assert labels(O2, how, {"part(1)": selectivity}) == {"answer": ALL, "part(1)": waits}


def test_a_tie_ends_at_the_first_part_that_makes_the_whole_way_selective() -> None:
    """O1 makes ten of one, O2 one of twenty: O1 runs with O2, and both ahead of the answer."""
    o2 = part("part(2)", "S3", O1)
    root = part(None, "S4", o2)
    found = labels(root, "memory-aware", {"part(1)": 10.0, "part(2)": 0.05})
    assert found == {"answer": ALL | {"S4"}, "part(2)": ALL, "part(1)": ALL}
    found = labels(root, "memory-aware", {"part(1)": 10.0, "part(2)": 0.2})
    assert set(found.values()) == {ALL | {"S4"}}, "one of two is not enough: all wait for the answer"


@given(st.lists(st.floats(0.01, 20), min_size=6, max_size=6), st.lists(st.integers(0, 5), min_size=6, max_size=6))
def test_labels_hold_what_they_are_for(factors: list[float], places: list[int]) -> None:
    """Nobody waits for less than its own streams, or for more than its reader; from a part to where it is tied all wait
    alike.
    """
    below: dict[int, list[int]] = {}
    for number, place in enumerate(places[1:], 1):
        below.setdefault(place % number, []).append(number)

    def made(number: int) -> Part:
        name = f"part({number})" if number else None
        return part(name, f"S{number}", *(made(child) for child in below.get(number, ())))

    root = made(0)
    measured = {f"part({number})": factor for number, factor in enumerate(factors) if number}
    found = labels(root, "memory-aware", measured)

    def check(here: Part, way: list[Part]) -> None:
        assert here.streams <= found[here.name]
        if way:
            assert found[here.name] <= found[way[-1].name]
        factor = 1.0
        for place, above in enumerate([here, *reversed(way)]):
            factor *= measured.get(above.name, 0.0)
            if factor <= 1:
                assert len({found[one.name] for one in [here, *reversed(way)][: place + 1]}) == 1
                break
        for child in here.parts:
            check(child, [*way, here])

    check(root, [])


def test_streams_of_a_plan_are_those_that_change() -> None:
    assert streams(plan("CREATE QUERY q AS SELECT s1.k FROM s1 [NOW], r WHERE s1.k = r.k")) == {"s1"}
