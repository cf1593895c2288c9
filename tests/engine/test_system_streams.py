"""System streams: rows about the engine, through the ordinary path, on a clock that is moved by hand and without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tools.duck_engine import engine_on_duckdb, without_spark

from headgate import Engine, ManualClock, UserError
from headgate.catalog.system import TABLE, page
from headgate.engine import system
from headgate.observe import events
from headgate.observe.events import Events

SECOND_US = 1_000_000
SUMS = """
CREATE STREAM s (k STRING, v INT);
CREATE QUERY totals AS SELECT k, SUM(v) AS total FROM s [RANGE 10] GROUP BY k;
"""


@pytest.fixture(autouse=True)
def on_duckdb() -> Iterator[None]:
    with without_spark():
        yield


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def engine(clock: ManualClock) -> Iterator[Engine]:
    with engine_on_duckdb(clock=clock) as made:
        made.execute(SUMS)
        yield made


def turn(engine: Engine, clock: ManualClock, seconds: float = 1) -> None:
    """Move the clock, and step until the answers to what was sampled are there."""
    clock.move_by(int(seconds * SECOND_US))
    while engine.step():
        pass


def rows(engine: Engine, query: str) -> list[dict[str, Any]]:
    return [result.row for result in engine.query(query).results()]


def watch(engine: Engine, name: str, columns: str = "*") -> None:
    engine.execute(f"CREATE QUERY watching_{name} AS SELECT ISTREAM({columns}) FROM SYSTEM.{name} [NOW]")


# what rows have


def test_every_column_is_filled_by_the_code_that_makes_rows(engine: Engine, clock: ManualClock) -> None:
    """The rows that the engine writes have the documented columns, all of them and in their order."""
    written: dict[str, list[str]] = {}
    write = system.SystemStreams._write

    def noted(self: Any, name: str, found: list[dict[str, Any]]) -> int:
        written.update({name: list(row) for row in found})
        return write(self, name, found)

    for short in TABLE:
        watch(engine, short)
    with patch.object(system.SystemStreams, "_write", noted):
        engine.push("s", [(1, {"k": "a", "v": 1})])
        turn(engine, clock)
        engine.push("s", [(9, {"k": "a", "v": 1})])
        turn(engine, clock)
        engine.push("s", [(1, {"k": "a", "v": 1})])
        engine._registry.system.failed("query", "totals", ValueError("no"))
        turn(engine, clock)
    assert written == {stream.name: [column.name for column in stream.columns] for stream in TABLE.values()}
    assert {short: bool(rows(engine, f"watching_{short}")) for short in TABLE} == dict.fromkeys(TABLE, True)
    assert engine.dead_letters("s")
    assert all(not engine._core.inputs.inlets[one.name].counts for one in TABLE.values())


def test_the_page_has_the_columns_of_the_code() -> None:
    assert page() in Path("docs/system-streams.md").read_text()


def test_figures_of_queries_streams_fragments_and_operators(engine: Engine, clock: ManualClock) -> None:
    watch(engine, "streams", "stream, taken, rate, dead, heartbeat, heartbeat_tick")
    watch(engine, "queries", "query, complete_tick, waiting, epochs")
    watch(engine, "fragments", "fragment, query, rows_in, waiting")
    watch(engine, "operators", "fragment, rows_in")
    engine.push("s", [(1, {"k": "a", "v": 1}), (2, {"k": "a", "v": 1}), (9, {"k": "a", "v": 1})])
    turn(engine, clock)
    turn(engine, clock)
    known = {"stream": "s", "taken": 3, "dead": 0, "heartbeat": None, "heartbeat_tick": 8}
    assert rows(engine, "watching_streams") == [{**known, "rate": None}, {**known, "rate": 0.0}]
    assert rows(engine, "watching_queries") == [
        {"query": "totals", "complete_tick": None, "waiting": 3, "epochs": 0},
        {"query": "totals", "complete_tick": 8, "waiting": 1, "epochs": 1},
    ]
    last = rows(engine, "watching_fragments")[-1]
    assert last == {"fragment": "totals", "query": "totals", "rows_in": 2, "waiting": 1}
    assert {"fragment": "totals", "rows_in": 2} in rows(engine, "watching_operators")


def test_streams_of_timestamps_say_how_far_behind_the_date_they_are(engine: Engine, clock: ManualClock) -> None:
    engine.execute("CREATE STREAM stamped (v INT) TIMESTAMP INTERNAL; CREATE QUERY all_of AS SELECT v FROM stamped;")
    watch(engine, "queries", "query, complete, behind_seconds")
    engine.push("stamped", [{"v": 1}])
    turn(engine, clock, 1)
    turn(engine, clock, 2)
    assert [row["behind_seconds"] for row in rows(engine, "watching_queries") if row["query"] == "all_of"][-1] == 2.0


# use in queries


def test_an_alert_over_queries_through_a_view(engine: Engine, clock: ManualClock) -> None:
    engine.execute("""
        CREATE VIEW backlog AS SELECT query, MAX(waiting) AS most FROM SYSTEM.queries [RANGE 5 SECONDS] GROUP BY query;
        CREATE QUERY alert AS SELECT ISTREAM(query, most) FROM backlog WHERE most > 2;
    """)
    engine.push("s", [(1, {"k": "a", "v": 1})])
    turn(engine, clock)
    turn(engine, clock)
    assert rows(engine, "alert") == []
    engine.push("s", [(5, {"k": "a", "v": at}) for at in range(4)])
    turn(engine, clock)
    turn(engine, clock)
    assert rows(engine, "alert") == [{"query": "totals", "most": 5}]


def test_a_join_with_a_users_stream_that_nothing_blocks(engine: Engine, clock: ManualClock) -> None:
    """A note is answered although no sample comes after it: a system stream is complete as the clock says."""
    engine.execute("""
        SET system_interval = '1 hour';
        CREATE STREAM notes (query STRING, note STRING) TIMESTAMP INTERNAL;
        CREATE QUERY noted AS SELECT ISTREAM(n.note, q.waiting)
            FROM notes [RANGE 1 MINUTE] n, SYSTEM.queries [RANGE 1 HOUR] q WHERE n.query = q.query;
    """)
    turn(engine, clock)
    turn(engine, clock, 60)
    engine.push("notes", [{"query": "totals", "note": "new"}])
    turn(engine, clock)
    assert rows(engine, "noted") == [{"note": "new", "waiting": 0}]


def test_late_tuples_are_counted_beside_the_tuples_themselves(clock: ManualClock) -> None:
    with engine_on_duckdb(clock=clock) as engine:
        engine.execute("""
            CREATE STREAM s (host STRING, v INT) SOURCE BY host;
            CREATE QUERY kept AS SELECT v FROM s [RANGE 10];
            CREATE QUERY these AS SELECT ISTREAM(host, v, _reason) FROM LATE(s) [NOW];
        """)
        engine.push("s", [(20, {"host": "a", "v": 1}), (20, {"host": "b", "v": 1})])
        engine.advance(20)
        engine.push("s", [(3, {"host": "a", "v": 1})])  # nobody counts yet
        watch(engine, "late")
        engine.push("s", [(4, {"host": "a", "v": 2}), (4, {"host": "a", "v": 3}), (5, {"host": "b", "v": 4})])
        engine.push("s", [(30, {"host": "a", "v": 9}), (30, {"host": "b", "v": 9})])
        turn(engine, clock)
        turn(engine, clock)
        late = {"stream": "s", "reason": "late"}
        found = sorted(rows(engine, "watching_late"), key=str)
        assert found == [{**late, "source": "a", "tuples": 2}, {**late, "source": "b", "tuples": 1}]
        assert sum(row["tuples"] for row in found) == len(engine.dead_letters("s")) - 1


def test_heartbeats_that_move_are_rows(engine: Engine, clock: ManualClock) -> None:
    watch(engine, "heartbeats", "stream, heartbeat_tick, moves")
    for at in (1, 4):
        engine.push("s", [(at, {"k": "a", "v": 1})])
        turn(engine, clock)
    turn(engine, clock, 100)
    assert rows(engine, "watching_heartbeats") == [
        {"stream": "s", "heartbeat_tick": 0, "moves": 1},
        {"stream": "s", "heartbeat_tick": 3, "moves": 1},
    ]


def test_sources_that_are_too_many_are_summed_up(clock: ManualClock) -> None:
    with engine_on_duckdb(clock=clock) as engine, patch.object(system, "MOST_ROWS", 2):
        engine.execute("CREATE STREAM s (host STRING) SOURCE BY host")
        watch(engine, "sources")
        engine.push("s", [(at, {"host": f"h{at}"}) for at in (5, 1, 7)])
        turn(engine, clock)
        turn(engine, clock, 0)
        known = {"stream": "s", "last": None, "late": 0}
        assert rows(engine, "watching_sources") == [
            {**known, "source": "h1", "sources": 1, "last_tick": 1},
            {**known, "source": None, "sources": 2, "last_tick": 7},
        ]


# errors as events


def test_failures_are_rows_and_their_readers_do_not_report_themselves(engine: Engine, clock: ManualClock) -> None:
    engine.execute("""
        CREATE QUERY both AS SELECT ISTREAM(e.name) FROM SYSTEM.errors [NOW] e, s [RANGE 1] WHERE e.name = s.k;
    """) if False else None
    watch(engine, "errors", "kind, name, code, message, failures")
    broken = UserError("query-failed", 'query "totals" failed', detail="Something.")
    with patch.object(engine.query("totals").answer, "prepare", side_effect=broken):
        engine.push("s", [(1, {"k": "a", "v": 1}), (2, {"k": "a", "v": 1})])
        clock.move_by(SECOND_US)
        with pytest.raises(UserError, match="totals"):
            engine.step()
    system_streams = engine._registry.system
    system_streams.failed("query", "watching_errors", broken)
    system_streams.failed("sink", "watching_errors", broken)
    turn(engine, clock)
    turn(engine, clock)
    assert rows(engine, "watching_errors") == [
        {"kind": "query", "name": "totals", "code": "query-failed", "message": broken.message, "failures": 1}
    ]


def test_events_beyond_the_limit_wait_and_are_summed_up_and_none_is_lost() -> None:
    with patch.object(events, "MOST_ROWS", 3):
        found = Events("failures")
        for name in "abab":
            found.add((name,), {"name": name})
        assert found.taken(0) == [{"name": "a", "failures": 2}, {"name": "b", "failures": 2}]
        for name in "abcda":
            found.add((name,), {"name": name})
        assert found.taken(0) == []
        assert found.taken(1) == [{"name": "a", "failures": 2}, {"name": "b", "failures": 1}, {"failures": 2}]
        assert found.taken(2) == []


# what it costs, and what it leaves out


def test_nothing_is_looked_at_while_nobody_reads(engine: Engine, clock: ManualClock) -> None:
    with patch.object(system, "overview", wraps=system.overview) as looked:
        engine.execute("CREATE VIEW v AS SELECT query FROM SYSTEM.queries [NOW]; EXPLAIN SELECT * FROM v;")
        turn(engine, clock)
        assert looked.call_count == 0
        assert engine._registry.system.next_us() is None
        assert list(engine._core.inputs.inlets) == ["s"]
        watch(engine, "queries", "query")
        for _ in range(5):
            turn(engine, clock, 0.5)
        assert looked.call_count == 3  # once an interval: at 1.5 s (the first), 2 s and 3 s
        engine.execute("DROP QUERY watching_queries")
        turn(engine, clock, 5)
        assert looked.call_count == 3
        assert list(engine._core.inputs.inlets) == ["s"]
        assert [folder.name for folder in (engine._core.directory / "streams").iterdir()] == ["s"]


def test_what_reads_system_streams_only_is_not_reported(engine: Engine, clock: ManualClock) -> None:
    for short in ("queries", "fragments", "operators", "streams", "heartbeats", "sources"):
        watch(engine, short)
    engine.execute("""
        CREATE STREAM notes (query STRING) TIMESTAMP INTERNAL;
        CREATE QUERY mixed AS SELECT n.query FROM notes [NOW] n, SYSTEM.queries [RANGE 1 HOUR] q
            WHERE n.query = q.query;
    """)
    engine.push("s", [(1, {"k": "a", "v": 1}), (2, {"k": "a", "v": 1})])
    for _ in range(3):
        turn(engine, clock)
    assert {row["query"] for row in rows(engine, "watching_queries")} == {"totals", "mixed"}
    assert {row["query"] for row in rows(engine, "watching_fragments")} == {"totals", "mixed"}
    assert {row["query"] for row in rows(engine, "watching_operators")} <= {"totals", "mixed"}
    for short in ("streams", "heartbeats", "sources"):
        assert {row["stream"] for row in rows(engine, f"watching_{short}")} <= {"s", "notes"}
    assert [row["waiting"] for row in rows(engine, "watching_queries") if row["query"] == "mixed"] == [0, 0, 0]


def test_a_system_at_rest_writes_as_many_rows_each_time(engine: Engine, clock: ManualClock) -> None:
    """Nothing that is written leads to more rows."""
    for short in TABLE:
        watch(engine, short)
    turn(engine, clock)
    logs = engine._core.inputs.logs
    counted = []
    for _ in range(4):
        before = sum(logs[one.name].rows for one in TABLE.values())
        turn(engine, clock)
        counted.append(sum(logs[one.name].rows for one in TABLE.values()) - before)
    assert len(set(counted)) == 1


# going on, and refusals


def test_queries_over_system_streams_survive_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    with engine_on_duckdb(tmp_path, clock) as engine:
        engine.execute(SUMS)
        watch(engine, "queries", "query")
        watch(engine, "late", "tuples")
        engine.execute("CREATE QUERY gone AS SELECT stream FROM SYSTEM.streams [NOW]; DROP QUERY gone;")
        engine.push("s", [(5, {"k": "a", "v": 1}), (9, {"k": "a", "v": 1})])
        turn(engine, clock)
        engine.push("s", [(1, {"k": "a", "v": 1})])
        turn(engine, clock)
        first = len(rows(engine, "watching_queries"))
        assert first == 2
        assert rows(engine, "watching_late") == [{"tuples": 1}]
    clock.move_by(60 * SECOND_US)
    for restart in (1, 2):
        with engine_on_duckdb(tmp_path, clock) as engine:
            assert sorted(engine._registry.system.opened) == ["SYSTEM.late", "SYSTEM.queries"]
            turn(engine, clock)
            assert len(rows(engine, "watching_queries")) == first + restart
            assert rows(engine, "watching_late") == [{"tuples": 1}]


def test_a_query_that_cannot_be_registered_leaves_no_system_stream(engine: Engine) -> None:
    with patch("headgate.engine.sharing.Sharing.fragments", side_effect=UserError("query-failed", "no")):
        with pytest.raises(UserError):
            watch(engine, "queries")
    assert list(engine._core.inputs.inlets) == ["s"]
    watch(engine, "queries")
    assert list(engine._core.inputs.inlets) == ["s", "SYSTEM.queries"]


def test_altering_a_query_opens_and_closes_what_it_reads(engine: Engine, clock: ManualClock) -> None:
    watch(engine, "queries", "query")
    engine.execute("ALTER QUERY watching_queries AS SELECT ISTREAM(stream) FROM SYSTEM.streams [NOW]")
    assert list(engine._registry.system.opened) == ["SYSTEM.streams"]
    turn(engine, clock)
    turn(engine, clock)
    assert rows(engine, "watching_queries") == [{"stream": "s"}] * 2


def test_rows_cannot_be_pushed_to_a_system_stream(engine: Engine) -> None:
    watch(engine, "late")
    with pytest.raises(UserError) as refused:
        engine.push("SYSTEM.late", [{"stream": "s"}])
    assert refused.value.code == "system-stream"
