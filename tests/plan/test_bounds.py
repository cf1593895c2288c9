"""State bounds: what is said of each query, and that it is so: ten times the input makes limited state no larger.

The executed checks feed streams whose keys never come again and count what a program keeps at the end, synopses and
the parts of logs that must stay. What is called growing must grow where it is shown here; in general it only may.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tools.duck import Duck, compiled
from tools.random_queries import KEYS, RELATIONS, STREAMS, queries

from headgate.catalog.catalog import Catalog
from headgate.compile import compile_script, explanation
from headgate.delta.lower import lower
from headgate.errors import UserError
from headgate.plan.limits import Growing
from headgate.testing.cases import Case, Row

SCRIPT = """CREATE STREAM s (k STRING, v INT, at TIMESTAMP) TIMESTAMP BY at;
CREATE STREAM t (k STRING, w INT, at TIMESTAMP) TIMESTAMP BY at;
CREATE STREAM units (a INT, b INT);
CREATE RELATION sites (k STRING, site STRING) FROM csv OPTIONS ('path' = 'in');
CREATE RELATION staff (k STRING, person STRING, op STRING, at TIMESTAMP) TIMESTAMP BY at CHANGE BY op;
CREATE RELATION prices (k STRING, price INT, at TIMESTAMP) TIMESTAMP BY at KEY (k);
CREATE RELATION events (k STRING, what STRING, at TIMESTAMP) TIMESTAMP BY at;
"""

FOREVER = "grows without limit: "
TABLE = {
    "SELECT k, v FROM s WHERE v > 1": [],
    "SELECT * FROM s [NOW]": ["log of s: what arrived at the last instant"],
    "SELECT ISTREAM(*) FROM s [RANGE 5 MINUTES]": [],
    "SELECT * FROM s [RANGE 5 MINUTES]": ["log of s: what arrived in the last 5 minutes"],
    "SELECT * FROM units [RANGE 10 SLIDE 5]": ["log of units: what arrived in the last 15 units of time"],
    "SELECT * FROM s [ROWS 3]": ["tail_1: the last 3 rows"],
    "SELECT * FROM s [ROWS 3 SLIDE 2]": ["tail_1: the last 5 rows"],
    "SELECT * FROM s [PARTITION BY k ROWS 1]": [
        f"tail_1: {FOREVER}PARTITION BY k ROWS 1 keeps one row for each k ever seen"
    ],
    "SELECT * FROM s [PARTITION BY k ROWS 2 RANGE 1 HOUR]": [
        "tail_1: the last 2 rows for each k that arrived in the last hour",
    ],
    "SELECT * FROM s [RANGE 10 ON v]": [
        f"tail_1: {FOREVER}[RANGE 10 ON v] keeps every tuple near the largest v, however many come"
    ],
    "SELECT COUNT(*) AS n FROM s": ["sums_1: one row"],
    "SELECT MAX(v) AS hi FROM s": ["sums_1: one row"],
    "SELECT MEDIAN(v) AS middle FROM s": [
        f"log of s: {FOREVER}s [RANGE UNBOUNDED] holds every tuple ever seen, and MEDIAN(v) is computed from it again"
    ],
    "SELECT k, COUNT(*) AS n FROM s [RANGE 5 MINUTES] GROUP BY k": [
        "sums_1: one row for each k among what arrived in the last 5 minutes",
        "log of s: what arrived in the last 5 minutes",
    ],
    "SELECT k, COUNT(*) AS n FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY k": [
        "panes_1: one row for each slide, k among what arrived in the last 6 minutes",
        "log of s: what arrived in the last 6 minutes",
    ],
    "SELECT k, COUNT(*) AS n FROM s GROUP BY k": [
        f"sums_1: {FOREVER}GROUP BY k keeps one row for each group ever seen: s [RANGE UNBOUNDED] holds every tuple ever seen"
    ],
    "SELECT DATE_TRUNC('hour', at) AS h, COUNT(*) AS n FROM s GROUP BY DATE_TRUNC('hour', at)": [
        "sums_1: one row for each DATE_TRUNC('HOUR', at) that can still change",
    ],
    "SELECT DATE_TRUNC('hour', at) AS h, MEDIAN(v) AS m FROM s GROUP BY DATE_TRUNC('hour', at) EMIT FINAL": [
        "log of s: what arrived and is not final yet",
    ],
    "SELECT s.v, t.w FROM s, t WHERE s.k = t.k AND DATE_TRUNC('hour', s.at) = t.at": [
        "kept_1: what can still find a partner by s_k = t_k, DATE_TRUNC('HOUR', s_at) = t_at",
        "kept_2: what can still find a partner by s_k = t_k, DATE_TRUNC('HOUR', s_at) = t_at",
    ],
    "SELECT s.v, t.w FROM s LEFT JOIN t ON s.k = t.k AND s.at = t.at EMIT FINAL": [
        "log of s: what arrived and is not final yet",
        "log of t: what arrived and is not final yet",
    ],
    "SELECT DISTINCT k FROM s": [
        f"sums_1: {FOREVER}DISTINCT keeps every row ever seen: s [RANGE UNBOUNDED] holds every tuple ever seen"
    ],
    "SELECT DISTINCT k FROM s [ROWS 10]": [
        "sums_1: the different rows of the last 10 rows",
        "tail_1: the last 10 rows",
    ],
    "SELECT s.k FROM s [RANGE 1 HOUR], t [RANGE 1 DAY] WHERE s.k = t.k": [
        "kept_1: pairs of what arrived in the last hour and what arrived in the last day",
        "log of s: what arrived in the last hour",
        "log of t: what arrived in the last day",
    ],
    "SELECT ISTREAM(s.k) FROM s [NOW], t WHERE s.k = t.k": [
        f"kept_1: {FOREVER}a join keeps every pair: t [RANGE UNBOUNDED] holds every tuple ever seen",
        f"log of t: {FOREVER}t [RANGE UNBOUNDED] holds every tuple ever seen, and a join reads it again",
    ],
    "SELECT RSTREAM(s.k, site) FROM s [NOW], sites WHERE s.k = sites.k": [
        "kept_1: the rows of relation sites, which never change",
        "log of sites: the rows of relation sites, which never change",
    ],
    "SELECT RSTREAM(s.k, person) FROM s [NOW], staff WHERE s.k = staff.k": ["kept_1: the rows of relation staff"],
    "SELECT RSTREAM(s.k, price) FROM s [NOW], prices WHERE s.k = prices.k": ["rows_1: the rows of relation prices"],
    "SELECT RSTREAM(s.k, what) FROM s [NOW], events WHERE s.k = events.k": [
        f"kept_1: {FOREVER}relation events is only ever put into"
    ],
    "SELECT * FROM (ISTREAM(SELECT k, COUNT(*) AS n FROM s GROUP BY k)) [RANGE 1 MINUTE]": [
        "kept_1: what came in the last minute",
        f"sums_1: {FOREVER}GROUP BY k keeps one row for each group ever seen: s [RANGE UNBOUNDED] holds every tuple ever seen",
    ],
    "SELECT * FROM (SELECT s.k FROM s, t WHERE s.k = t.k) [RANGE 1 MINUTE]": [
        f"log of s: {FOREVER}s [RANGE UNBOUNDED] holds every tuple ever seen, and a join reads it again",
        f"log of t: {FOREVER}t [RANGE UNBOUNDED] holds every tuple ever seen, and a join reads it again",
        f"kept_1: {FOREVER}a new row of one side of a join meets every row of the other: "
        "s [RANGE UNBOUNDED] holds every tuple ever seen",
    ],
    "SELECT * FROM (ISTREAM(SELECT k FROM s [ROWS 5])) [RANGE 10 MINUTES SLIDE 1 MINUTE]": [
        "kept_1: what came in the last 11 minutes",
        "tail_1: the last 5 rows",
        "waiting_1: what came in the last minute",
    ],
    "SELECT * FROM (DSTREAM(SELECT k FROM s [RANGE 1 HOUR])) [ROWS 5]": [
        "log of s: what arrived in the last hour",
        "tail_1: the last 5 rows",
    ],
    "SELECT k FROM s [RANGE 1 HOUR] WHERE k IN (SELECT k FROM t)": [
        "kept_2: a partner for each of what arrived in the last hour",
        "log of s: what arrived in the last hour",
        *(
            f"{name}: {FOREVER}IN, EXISTS or an outer join keeps every row ever seen: t [RANGE UNBOUNDED] holds every tuple ever seen"
            for name in ("kept_1", "sums_1")
        ),
    ],
    "SELECT * FROM (ISTREAM(SELECT s.k, w FROM s [NOW], t [PARTITION BY k ROWS 1] WHERE s.k = t.k)) [RANGE 1 HOUR]": [
        "kept_1: a partner for each of what arrived at the last instant",
        "kept_2: what came in the last hour",
        f"tail_1: {FOREVER}PARTITION BY k ROWS 1 keeps one row for each k ever seen",
    ],
    "SELECT k, v FROM s [RANGE 1 HOUR] ORDER BY v LIMIT 3": ["log of s: what arrived in the last hour"],
}


@pytest.mark.parametrize("query", TABLE)
def test_what_is_kept_and_what_limits_it(query: str) -> None:
    catalog = Catalog()
    compile_script(f"{SCRIPT}CREATE QUERY q AS {query};", catalog)
    program = lower(catalog.query("q").plan)
    found = sorted(map(str, program.state()))
    expected = sorted(TABLE[query])
    assert found == expected
    assert bool(program.growing()) == any(FOREVER in line for line in found)
    for line in found:
        assert line in explanation(catalog.query("q"), catalog)


# what is said is so

SHORT, LONG = 60, 600


def fed(query: str, horizon: int) -> Case:
    """Tuples at every instant, their keys never twice; relations of limited size. All else repeats itself after 60
    instants.
    """
    s: list[tuple[int, Row, str]] = [(t, (t, t % 5, "xy"[t % 2]), "+") for t in range(horizon + 1)]
    t_: list[tuple[int, Row, str]] = [(t, (t, t % 3), "+") for t in range(horizon + 1)]
    put: list[tuple[int, Row, str]] = [(t, (t, t % 4), "+") for t in range(horizon + 1)]
    taken: list[tuple[int, Row, str]] = [(t + 5, row, "-") for t, row, _ in put if t + 5 <= horizon]
    r = sorted([*put, *taken], key=lambda entry: (entry[0], entry[2]))
    k: list[tuple[int, Row, str]] = [(t, (t % 6, t % 3), "+" if t % 4 else "-") for t in range(horizon + 1)]
    return Case("fed", query, STREAMS, RELATIONS, (), {"S": s, "T": t_, "R": r, "K": k}, horizon, keys=KEYS)


def size(query: str, horizon: int) -> int:
    """How many rows the query keeps at the horizon."""
    case = fed(query, horizon)
    duck = Duck(case, compiled(case)[:1])
    since = -1
    for until in (horizon // 2, horizon):
        duck.lay_inputs(since, until)
        if since < 0:
            duck.lay_synopses(since, until)
        duck.move(since, until)
        since = until
    duck.lay_inputs(horizon, horizon)
    tables = [synopsis.name for synopsis in duck.program.synopses]
    tables += [source.name for source in duck.program.inputs if source.bound is not None]
    counts = [duck.database.execute(f"SELECT COUNT(*) FROM {table}").fetchall()[0][0] for table in tables]
    duck.database.close()
    return sum(counts)


def growing(query: str) -> tuple[Growing, ...]:
    return compiled(fed(query, SHORT))[0].growing()


LIMITED = [
    "Select A, Count(*) As n From S [Range 7] Group By A",
    "Select A, Count(*) As n, Max(B) As hi From S [Range 8 Slide 4] Group By A",
    "Select Max(B) As hi From S [Range 7]",
    "Select Max(B) As hi From S",
    "Select Count(*) As n From S",
    "Select Distinct A From S [Rows 5]",
    "Select * From S [Partition By A Rows 2 Range 6]",
    "Select x.A, y.C From S [Range 4] x, T [Range 6 Slide 2] y Where x.B = y.C",
    "Select x.A, y.C From S [Range 4] x Left Join T [Rows 3] y On x.A = y.A",
    "Select A From S [Range 4] Except Select A From T [Range 2]",
    "Select * From (Istream(Select A, Count(*) As n From S [Range 5] Group By A)) [Range 4 Slide 3] x",
    "Select * From (Dstream(Select A, B From S [Rows 3])) [Rows 4] x",
    "Select x.A, y.E From S [Now] x, R y Where x.B = y.E",
    "Select A, B From S [Range 5] Order By B Limit 2",
]

UNLIMITED = [
    "Select A, Count(*) As n From S Group By A",
    "Select Median(B) As middle From S",
    "Select Distinct A From S",
    "Select * From S [Partition By A Rows 1]",
    "Select * From S [Range 100 On B]",
    "Select x.A, y.C From S [Now] x, T y Where x.B = y.C",
    "Select * From (Select x.A As A, y.C As C From S x, T y Where x.B = y.C) [Range 3] z",
    "Select A From S Except Select A From T [Range 2]",
    "Select A From S [Range 3] Where A Not In (Select A From T)",
    "Select A, B From S Order By B Limit 2",
]


@pytest.mark.parametrize("query", LIMITED)
def test_limited_state_stays_as_it_is_with_ten_times_the_input(query: str) -> None:
    assert growing(query) == ()
    assert size(query, LONG) <= size(query, SHORT)


@pytest.mark.parametrize("query", UNLIMITED)
def test_growing_state_grows_with_the_input(query: str) -> None:
    assert growing(query)
    assert size(query, LONG) > 4 * size(query, SHORT)


@settings(max_examples=40)
@given(queries(depth=1))
def test_random_queries_called_limited_are(query: str) -> None:
    if not growing(query):
        assert size(query, LONG) <= size(query, SHORT), query


def test_what_grows_is_refused_on_request() -> None:
    catalog = Catalog()
    compile_script(
        f"{SCRIPT}SET state = 'bounded'; CREATE QUERY fine AS SELECT DISTINCT k FROM s [RANGE 1 HOUR];", catalog
    )
    with pytest.raises(UserError) as refused:
        compile_script("CREATE QUERY grows AS\n  SELECT DISTINCT k FROM s", catalog)
    assert refused.value.code == "state-grows"
    assert "^^^^^^^^" in refused.value.render()
    assert "grows" not in catalog.queries
    compile_script(
        "EXPLAIN SELECT DISTINCT k FROM s; SET state = 'any'; CREATE QUERY grows AS SELECT DISTINCT k FROM s", catalog
    )
    assert isinstance(lower(catalog.query("grows").plan).synopses[0].bound, Growing)
