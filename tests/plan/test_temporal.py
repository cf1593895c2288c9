"""Temporal attributes: what is declared and inferred, EMIT FINAL from the paper's own queries to broken promises, and
limited joins.

The random queries of test_laws judge the rules where time is the timestamp. What only this file can catch: columns that
are declared to be ordered, TIMESTAMP time, GSQL's way of writing, and that state really goes away.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession
from tools.duck import Duck

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query
from headgate.compile import compile_script
from headgate.delta.lower import lower
from headgate.engine import Engine
from headgate.errors import UserError
from headgate.explain import tree
from headgate.plan.nodes import Window
from headgate.plan.temporal import windows
from headgate.testing.cases import Case, Change

SCRIPT = """CREATE STREAM main0 (time INT, src STRING, len INT) TIMESTAMP BY time;
CREATE STREAM main1 (time INT, src STRING, len INT) TIMESTAMP BY time;
CREATE STREAM control (time INT, src STRING, len INT) TIMESTAMP BY time;
CREATE STREAM packets (time INT, seq BIGINT INCREASING, ttl INT DECREASING, len INT) TIMESTAMP BY time;
CREATE STREAM readings (sensor STRING, celsius DOUBLE, at TIMESTAMP) TIMESTAMP BY at;
"""
SCHEMAS = {
    "main0": {"time": "int", "src": "string", "len": "int"},
    "main1": {"time": "int", "src": "string", "len": "int"},
    "control": {"time": "int", "src": "string", "len": "int"},
    "packets": {"time": "int", "seq": "bigint", "ttl": "int", "len": "int"},
}
FLOWS = """CREATE VIEW flow1 AS SELECT tb, src, COUNT(*) AS cnt FROM
  (SELECT time, src, len FROM main0 UNION ALL SELECT time, src, len FROM control) GROUP BY time / 10 AS tb, src EMIT FINAL;
CREATE VIEW flow2 AS SELECT tb, src, COUNT(*) AS cnt FROM main1 GROUP BY time / 10 AS tb, src EMIT FINAL;
"""


def query(text: str) -> Query:
    found = compile_script(SCRIPT + text, Catalog())[-1]
    assert isinstance(found, Query)
    return found


def answered(text: str, rows: dict[str, list[tuple[Any, ...]]], cuts: list[int]) -> list[Change]:
    """What a query puts out; the first column of each row is its timestamp. The state moves after every epoch."""
    plan = query(text).plan
    given = {name: [(row[0], row, "+") for row in some] for name, some in rows.items()}
    case = Case(id="", query=text, streams=SCHEMAS, relations={}, views=(), input=given, horizon=cuts[-1])
    duck = Duck(case, [lower(plan), lower(plan, tiny=True)])
    return sorted(duck.run(cuts, [True] * len(cuts)), key=lambda change: (change[0], str(change[2])))


MAIN0 = [(1, "a", 10), (3, "b", 10), (9, "a", 10), (12, "a", 10), (31, "b", 1)]
MAIN1 = [(2, "a", 10), (11, "c", 10), (19, "a", 10), (33, "b", 1)]
CONTROL = [(4, "a", 1)]
CUTS = [[60], [0, 5, 10, 11, 20, 21, 60], list(range(61))]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT f.tb, f.src, f.cnt, g.cnt AS other FROM flow1 f FULL OUTER JOIN flow2 g ON f.tb = g.tb AND f.src = g.src EMIT FINAL",
        "SELECT RSTREAM(f.tb, f.src, f.cnt, g.cnt AS other) FROM flow1 [NOW] f FULL OUTER JOIN flow2 [NOW] g "
        "ON f.tb = g.tb AND f.src = g.src",
    ],
)
def test_full_flow_of_the_paper(text: str, cuts: list[int]) -> None:
    """Gigascope, section 7.2. No null row for a flow that both have."""
    later = 1 if "EMIT" in text else 0  # what is final at 10 comes at 10, and nothing that came at 10 can come at 11
    found = answered(FLOWS + text, {"main0": MAIN0, "main1": MAIN1, "control": CONTROL}, cuts)
    assert found == [
        (10 + later, "+", (0, "a", 3, 1)),
        (10 + later, "+", (0, "b", 1, None)),
        (20 + later, "+", (1, "a", 1, 1)),
        (20 + later, "+", (None, None, None, 1)),
        (40 + later, "+", (3, "b", 1, 1)),
    ]


def test_a_merge_as_a_view_is_read_as_the_streams_themselves() -> None:
    merged = "CREATE VIEW both AS SELECT time, src FROM main0 UNION ALL SELECT time, src FROM main1 UNION ALL SELECT time, src FROM control;"
    plan = query(f"{merged} SELECT tb, COUNT(*) AS n FROM both GROUP BY time / 10 AS tb EMIT FINAL").plan
    assert not lower(plan).synopses
    rows = {"main0": MAIN0, "main1": MAIN1, "control": CONTROL}
    found = answered(f"{merged} SELECT tb, COUNT(*) AS n FROM both GROUP BY time / 10 AS tb EMIT FINAL", rows, CUTS[1])
    assert found == [(10, "+", (0, 5)), (20, "+", (1, 3)), (40, "+", (3, 2))]


def test_a_merge_of_any_number_of_streams_is_a_stream_without_state() -> None:
    text = "SELECT time, src FROM main0 UNION ALL SELECT time, src FROM main1 UNION ALL SELECT time, src FROM control"
    program = lower(query(text).plan)
    assert (program.kind, program.state()) == ("stream", ())
    found = answered(text, {"main0": MAIN0, "main1": MAIN1, "control": CONTROL}, CUTS[1])
    assert [change[0] for change in found] == sorted(row[0] for row in MAIN0 + MAIN1 + CONTROL)
    nested = f"SELECT src, COUNT(*) AS n FROM ({text}) [RANGE 5] GROUP BY src"
    assert not lower(query(nested).plan).growing()


PACKETS = [
    (1, 1, 64, 5),
    (2, 4, 64, 5),
    (5, 9, 63, 5),
    (5, 12, 63, 1),
    (8, 12, 60, 2),
    (8, 11, 60, 2),
    (20, 25, 50, 7),
    (30, 47, 9, 1),
]


@pytest.mark.parametrize("cuts", CUTS)
def test_groups_by_a_declared_order_close_when_a_tuple_goes_beyond(cuts: list[int]) -> None:
    """Tuples at one timestamp may come in any order: 12 before 11."""
    text = "SELECT seq / 10 AS k, COUNT(*) AS n, SUM(len) AS len FROM packets GROUP BY seq / 10 EMIT FINAL"
    found = answered(text, {"packets": PACKETS}, cuts)
    assert found == [(5, "+", (0, 3, 15)), (20, "+", (1, 3, 5)), (30, "+", (2, 1, 7))]


@pytest.mark.parametrize("cuts", CUTS)
def test_what_falls_closes_too_and_tuples_that_are_filtered_out_count(cuts: list[int]) -> None:
    text = "SELECT ttl, COUNT(*) AS n FROM packets WHERE len < 7 GROUP BY ttl EMIT FINAL"
    found = answered(text, {"packets": PACKETS}, cuts)
    assert found == [(5, "+", (64, 2)), (8, "+", (63, 2)), (20, "+", (60, 2))]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize(("late", "said"), [((40, 39, 1, 1), "3 came after 4"), ((40, None, 1, 1), "null came after")])
def test_a_tuple_behind_a_declared_order_is_an_error(cuts: list[int], late: tuple[Any, ...], said: str) -> None:
    text = "SELECT seq / 10 AS k, COUNT(*) AS n FROM packets GROUP BY seq / 10 EMIT FINAL"
    with pytest.raises(duckdb.Error, match=f'column "seq" of stream "packets" was declared .* {said}'):
        answered(text, {"packets": [*PACKETS, late]}, cuts)


def test_of_several_keys_the_earliest_closes() -> None:
    text = "SELECT time / 10 AS a, time / 4 AS b, COUNT(*) AS n FROM main0 GROUP BY time / 10, time / 4 EMIT FINAL"
    found = answered(text, {"main0": MAIN0}, [60])
    assert found == [(4, "+", (0, 0, 2)), (10, "+", (0, 2, 1)), (16, "+", (1, 3, 1)), (32, "+", (3, 7, 1))]


@pytest.mark.parametrize("cuts", CUTS)
def test_an_outer_join_is_decided_when_it_is_final(cuts: list[int]) -> None:
    text = "SELECT a.src, b.src AS other FROM main0 a LEFT JOIN main1 b ON a.time / 2 = b.time + 1 EMIT FINAL"
    rows = {"main0": [(6, "x", 0), (7, "y", 0), (20, "z", 0)], "main1": [(2, "p", 0), (30, "q", 0)]}
    assert answered(text, rows, cuts) == [(8, "+", ("x", "p")), (8, "+", ("y", "p")), (22, "+", ("z", None))]


@pytest.mark.parametrize("cuts", CUTS)
def test_a_join_on_time_drops_what_finds_no_partner_any_more(cuts: list[int]) -> None:
    text = "SELECT a.len AS l, b.len AS r FROM main0 a, main1 b WHERE a.time / 2 = b.time + 1"
    program = lower(query(text).plan)
    assert program.kind == "stream"
    assert [found.operator for found in program.growing()] == ["JOIN"]  # rows of b wait longer and longer
    some, more = [(t, "x", t) for t in range(40)], [(t, "y", t) for t in range(0, 40, 3)]
    found = answered(text, {"main0": some, "main1": more}, [*cuts[:-1], 60, 200])
    assert {change[2] for change in found} == {
        (one, other) for one, _, _ in some for other, _, _ in more if one // 2 == other + 1
    }
    assert len(found) == len({change[2] for change in found})


NUMBERED = """CREATE STREAM sent (t INT, nr BIGINT INCREASING, left_over INT DECREASING) TIMESTAMP BY t;
CREATE STREAM heard (t INT, nr BIGINT INCREASING, left_over INT DECREASING) TIMESTAMP BY t;
"""
SCHEMAS |= {name: {"t": "int", "nr": "bigint", "left_over": "int"} for name in ("sent", "heard")}
SENT = [(t, t * 2, 100 - t) for t in range(1, 30)]
HEARD = [(3 * t + 2, t * 4, 99 - t) for t in range(1, 12)]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize(
    ("on", "paired"),
    [
        ("a.nr = b.nr", lambda a, b: a[1] == b[1]),
        ("a.nr / 3 = b.nr + 1", lambda a, b: a[1] // 3 == b[1] + 1),
        ("a.left_over = b.left_over", lambda a, b: a[2] == b[2]),
        ("a.t = b.nr / 2", lambda a, b: a[0] == b[1] // 2),
        ("-a.left_over = b.t - 100", lambda a, b: -a[2] == b[0] - 100),
    ],
)
def test_a_join_on_declared_orders_keeps_what_is_open(on: str, paired: Any, cuts: list[int]) -> None:
    text = f"{NUMBERED} SELECT a.t AS one, b.t AS other FROM sent a, heard b WHERE {on}"
    assert not lower(query(text).plan).growing()
    found = answered(text, {"sent": SENT, "heard": HEARD}, cuts)
    wanted = [(max(a[0], b[0]), "+", (a[0], b[0])) for a in SENT for b in HEARD if paired(a, b)]
    assert sorted(found) == sorted(wanted) != []


@pytest.mark.parametrize("cuts", CUTS)
def test_a_tuple_whose_partners_may_be_gone_is_an_error(cuts: list[int]) -> None:
    text = f"{NUMBERED} SELECT a.t AS one, b.t AS other FROM sent a, heard b WHERE a.nr = b.nr"
    with pytest.raises(duckdb.Error, match=r'column "nr" of stream "heard" was declared .* 4 came after 44'):
        answered(text, {"sent": SENT, "heard": [*HEARD, (40, 4, 1)]}, cuts)
    answered(text, {"sent": SENT, "heard": [*HEARD, (35, 42, 1)]}, cuts)  # behind 44, but at the same timestamp


def test_state_bounded_takes_joins_on_time_and_refuses_others() -> None:
    query("SET state = 'bounded'; SELECT a.len FROM main0 a, main1 b WHERE a.time / 2 = b.time / 2")
    query("SET state = 'bounded'; SELECT time / 60 AS tb, COUNT(*) AS n FROM main0 GROUP BY time / 60")
    query("SET state = 'bounded'; SELECT seq / 60 AS s, COUNT(*) AS n FROM packets GROUP BY seq / 60 EMIT FINAL")
    with pytest.raises(UserError, match="state-grows"):
        query("SET state = 'bounded'; SELECT a.len FROM main0 a, main1 b WHERE a.len = b.len")


def test_groups_that_cannot_change_any_more_are_not_kept() -> None:
    text = "SELECT time / 10 AS tb, COUNT(*) AS n, MAX(len) AS l FROM main0 GROUP BY time / 10"
    rows = [(t, "x", t) for t in range(60)]
    program = lower(query(text).plan)
    (state,) = program.synopses
    case = Case(
        id="",
        query=text,
        streams=SCHEMAS,
        relations={},
        views=(),
        input={"main0": [(r[0], r, "+") for r in rows]},
        horizon=55,
    )
    duck = Duck(case, [program])
    sizes: list[int] = []
    move = duck.move

    def moved(since: int, until: int) -> None:
        move(since, until)
        sizes.extend(duck.database.execute(f"SELECT COUNT(*) FROM {state.name}").fetchone() or ())

    duck.move = moved  # type: ignore[method-assign]
    assert len(duck.run(range(0, 56, 5), [True] * 12)) == 6 + 2 * 50
    assert set(sizes) == {1}


@pytest.mark.parametrize(
    ("declared", "key", "frame"),
    [
        ("n BIGINT INCREASING", "n DIV 10", "final when (CAST(n AS BIGINT) DIV 10) rises"),
        ("n INT DECREASING", "n - 1", "final when (CAST(n AS BIGINT) - 1) falls"),
        ("n INT DECREASING", "-n", "final when (CAST(n AS BIGINT) * -1) rises"),
        ("n DATE INCREASING", "n", "final when DATEDIFF(n, DATE '1970-01-01') rises"),
        (
            "n TIMESTAMP INCREASING",
            "DATE_TRUNC('hour', n)",
            "final when (UNIX_MICROS(n) - PMOD(UNIX_MICROS(n), 3600000000)) rises",
        ),
    ],
)
def test_declared_orders_are_followed_through_expressions(declared: str, key: str, frame: str) -> None:
    text = f"CREATE STREAM s ({declared}, t INT) TIMESTAMP BY t; SELECT {key} AS k FROM s GROUP BY {key} EMIT FINAL"
    (window,) = windows(query(text).bound.child)  # type: ignore[union-attr]
    assert isinstance(window, Window)
    assert frame in tree(window)
    through = text.replace("FROM s", "FROM (SELECT ISTREAM(n) FROM s WHERE t > 3) x")
    assert frame in tree(query(through).bound)


def test_a_column_that_is_added_can_be_ordered_too() -> None:
    catalog = Catalog()
    compile_script(f"{SCRIPT} ALTER STREAM main0 ADD COLUMN nr BIGINT INCREASING;", catalog)
    listing = compile_script("DESCRIBE main0;", catalog)[0]
    assert ("nr", "BIGINT", "increasing") in listing.rows  # type: ignore[union-attr]
    compile_script("SELECT nr, COUNT(*) AS n FROM main0 GROUP BY nr EMIT FINAL", catalog)


@pytest.mark.spark
def test_timestamps_and_declared_orders_on_spark(spark: SparkSession) -> None:
    minute, month = "DATE_TRUNC('minute', at)", "DATE_TRUNC('month', at)"
    with Engine(spark) as engine:
        engine.execute(
            f"""{SCRIPT}
            CREATE QUERY minutes AS SELECT {minute} AS m, sensor, COUNT(*) AS n, PERCENTILE(celsius, 0.5) AS mid
              FROM readings GROUP BY {minute}, sensor EMIT FINAL;
            CREATE QUERY months AS SELECT {month} AS m, COUNT(*) AS n FROM readings GROUP BY {month} EMIT FINAL;
            CREATE QUERY tens AS SELECT seq / 10 AS k, COUNT(*) AS n FROM packets GROUP BY seq / 10 EMIT FINAL"""
        )
        times = (("58:01", "a", 1.0), ("58:30", "b", 5.0), ("58:59", "a", 3.0), ("59:00", "a", 7.0))
        engine.push(
            "readings", [{"sensor": sensor, "celsius": c, "at": f"2026-01-31T23:{at}"} for at, sensor, c in times]
        )
        engine.push("packets", [dict(zip(SCHEMAS["packets"], row, strict=True)) for row in PACKETS])
        engine.advance(10)
        engine.advance(60)
        engine.advance(datetime(2026, 1, 31, 23, 58, 40, tzinfo=UTC))
        engine.advance(datetime(2026, 2, 1, tzinfo=UTC))
        minutes = [
            (f"{result.at:%H:%M}", *list(result.row.values())[1:]) for result in engine.query("minutes").results()
        ]
        assert sorted(minutes) == [("00:00", "a", 1, 7.0), ("23:59", "a", 2, 2.0), ("23:59", "b", 1, 5.0)]
        assert [(f"{result.at:%d %H:%M}", result.row["n"]) for result in engine.query("months").results()] == [
            ("01 00:00", 4)
        ]
        tens = [(result.at, *result.row.values()) for result in engine.query("tens").results()]
        assert tens == [(5, 0, 3), (20, 1, 3), (30, 2, 1)]
        engine.push("packets", [{"time": 70, "seq": 39, "ttl": 1, "len": 1}])
        with pytest.raises(UserError, match="query-failed") as failed:
            engine.advance(80)
        assert 'column "seq" of stream "packets" was declared' in failed.value.render()
        assert "3 came after 4" in failed.value.render()
