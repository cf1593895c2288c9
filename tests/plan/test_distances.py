"""Distances: what conditions say of how far apart the rows of a pair may lie."""

from __future__ import annotations

import pytest

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query
from headgate.cql.definitions import define
from headgate.plan.distances import between_starts, distances
from headgate.plan.nodes import Join, Node

SCRIPT = """
CREATE STREAM a (k INT, ts BIGINT, other BIGINT) TIMESTAMP BY ts;
CREATE STREAM b (k INT, ts BIGINT, part DOUBLE) TIMESTAMP BY ts;
CREATE STREAM c (k INT, at TIMESTAMP) TIMESTAMP BY at;
CREATE STREAM d (k INT, at TIMESTAMP) TIMESTAMP BY at;
"""

Bounds = tuple[int | None, int | None]


def joined(text: str) -> Join:
    """The first join of a query."""
    query = define(f"{SCRIPT}{text}", Catalog())[-1]
    assert isinstance(query, Query)
    waiting: list[Node] = [query.plan]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Join):
            return node
        waiting += node.children
    raise AssertionError("no join")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("ABS(a.ts - b.ts) <= 1000", (-1000, 1000)),
        ("ABS(b.ts - a.ts) < 5", (-4, 4)),
        ("1000 >= ABS(a.ts - b.ts + 10)", (-1010, 990)),
        ("a.ts >= b.ts - 5 AND a.ts <= b.ts", (-5, 0)),
        ("b.ts BETWEEN a.ts AND a.ts + 7", (-7, 0)),
        ("a.ts - b.ts BETWEEN -3 AND 2 AND a.ts < b.ts + 2", (-3, 1)),
        ("a.ts > b.ts", (1, None)),
        ("(2 + a.ts) <= b.ts", (None, -2)),
    ],
)
def test_bounds_of_whole_numbers(condition: str, expected: Bounds) -> None:
    (found,) = distances(joined(f"SELECT a.ts FROM a, b WHERE a.k = b.k AND {condition}"))
    assert (found.least, found.most) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("d.at BETWEEN c.at AND c.at + INTERVAL 10 MINUTES", (-600_000_000, 0)),
        ("c.at - d.at < INTERVAL '2' SECONDS AND c.at >= d.at - INTERVAL 1 SECOND", (-1_000_000, 1_999_999)),
        ("UNIX_MICROS(c.at) - UNIX_MICROS(d.at) BETWEEN 0 AND 3", (0, 3)),
        ("INTERVAL 1 MINUTE + c.at >= d.at AND c.at <= d.at", (-60_000_000, 0)),
    ],
)
def test_bounds_of_timestamps_are_microseconds(condition: str, expected: Bounds) -> None:
    (found,) = distances(joined(f"SELECT c.at FROM c, d WHERE {condition}"))
    assert (found.least, found.most) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "a.ts - b.ts <= 5 OR a.k = 1",
        "NOT (a.ts - b.ts > 5)",
        "ABS(a.ts - b.ts) >= 5",
        "a.ts * 2 - b.ts BETWEEN 0 AND 5",
        "a.ts + b.ts BETWEEN 0 AND 5",
        "a.ts - a.other < 5",
        "a.ts - b.part < 5",
        "a.ts / 2 <= b.ts",
    ],
)
def test_what_is_not_certain_says_nothing(condition: str) -> None:
    assert not distances(joined(f"SELECT a.ts FROM a, b WHERE {condition}"))


@pytest.mark.parametrize(
    ("tables", "known"),
    [
        ("a [RANGE UNBOUNDED], b [RANGE 5]", True),
        ("(SELECT k, ts FROM a [NOW] WHERE k > 1) a, b [RANGE 5]", True),
        ("(SELECT k, ts + 1 AS ts FROM a [NOW]) a, b [RANGE 5]", False),
        ("(SELECT k, other AS ts FROM a [RANGE 5]) a, b [RANGE 5]", False),
        ("a [RANGE 4 SLIDE 2], b [RANGE 5]", False),
        ("a [ROWS 2], b [RANGE 5]", False),
    ],
)
def test_only_the_timestamp_of_a_window_that_shows_it_at_once_says_when_a_row_begins(tables: str, known: bool) -> None:
    join = joined(f"SELECT a.ts FROM {tables} WHERE ABS(a.ts - b.ts) <= 3")
    assert distances(join)
    assert (between_starts(join) is not None) is known
